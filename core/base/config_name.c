#include "core/base/config_name.h"

const char *
inf_config_name_problem(const char *name, size_t len)
{
    if (len == 0) {
        return "it must not be empty";
    }
    if (len > INF_CONFIG_NAME_MAX) {
        return "it must not be longer than 249 bytes";
    }

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char) name[i];
        if (c == '/') {
            return "it must not contain a slash";
        }
        if (c < 0x20 || c == 0x7f) {
            return "it must not contain control characters";
        }
    }

    return NULL;
}
