/* lightgbm.c - see lightgbm.h */

#include "lightgbm.h"

#include <string.h>

static bool has(const void *data, size_t len, const char *line);

TRITONSERVER_Error *
trees_lightgbm_check(const void *data, size_t len)
{
    /* the first versions wrote no end mark, but something behind it */
    return has(data, len, "\nend of trees")
        || has(data, len, "\nfeature importances:") ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "not a text of LightGBM,"
        " or it ends before the end of its trees");
}

static bool
has(const void *data, size_t len, const char *line)
{
    return memmem(data, len, line, strlen(line)) != NULL;
}
