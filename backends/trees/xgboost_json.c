/* xgboost_json.c - see xgboost_json.h */

#include "xgboost_json.h"

#define DEPTH_MOST 200                  /* a model has about ten levels      */

TRITONSERVER_Error *
trees_xgboost_json_check(const void *data, size_t len)
{
    const char *text = data;
    bool quoted = false;
    size_t depth = 0;

    for (size_t i = 0; i < len && depth <= DEPTH_MOST; i++) {
        switch (text[i]) {

        case '"':
            quoted = !quoted;
            break;

        case '\\':                      /* of quotes, and of itself          */
            i += quoted ? 1 : 0;
            break;

        case '[':
        case '{':
            depth += quoted ? 0 : 1;
            break;

        case ']':
        case '}':
            depth -= quoted || depth == 0 ? 0 : 1;
            break;

        default:
            break;
        }
    }

    return depth <= DEPTH_MOST ? NULL : bk_err_new(
        TRITONSERVER_ERROR_INVALID_ARG, "nested deeper than %d levels",
        DEPTH_MOST);
}
