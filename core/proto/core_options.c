#include "core/proto/core_options.h"

#include <stdlib.h>
#include <string.h>

#define ROW(name, ...) { .directive = name, __VA_ARGS__ },
#define GROUP(name, ...)                                                      \
    { .directive = name, .kind = INF_OPTION_GROUP, __VA_ARGS__ },

const inf_core_option_t inf_core_options[] = {
    INF_CORE_OPTIONS(ROW, GROUP, ROW)
};

const size_t inf_core_options_count =
    sizeof(inf_core_options) / sizeof(inf_core_options[0]);

bool
inf_quantile_parse(const char *text, double *quantile)
{
    char *end, *last;
    double value = strtod(text, &end);

    if (end == text || *end != ':') {
        return false;
    }

    double error = strtod(end + 1, &last);

    *quantile = value;
    return last != end + 1 && (*last == ',' || *last == '\0')
        && value >= 0 && value <= 1 && error >= 0 && error <= 1;
}

bool
inf_quantiles_are_valid(const char *text)
{
    double quantile;

    if (text[strspn(text, "0123456789.:, ")] != '\0') {
        return false;
    }

    do {
        if (!inf_quantile_parse(text, &quantile)) {
            return false;
        }
        text += strcspn(text, ",");
        text += *text == ',';
    } while (*text != '\0');

    return true;
}
