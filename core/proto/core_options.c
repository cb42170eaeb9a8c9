#include "core/proto/core_options.h"

#include <string.h>

#include "core/proto/number.h"

static bool read_number(const char *p, const char *end, double *out);

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
    const char *colon = text + strcspn(text, ":,");
    double error;

    return *colon == ':' && read_number(text, colon, quantile)
        && read_number(colon + 1, colon + strcspn(colon, ","), &error)
        && *quantile >= 0 && *quantile <= 1 && error >= 0 && error <= 1;
}

/* Whether [p, end) is a number, perhaps behind blanks. */
static bool
read_number(const char *p, const char *end, double *out)
{
    p += strspn(p, " ");
    return p < end
        && inf_number_parse_double(inf_slice(p, (size_t) (end - p)), out);
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
