#include "core/base/host_setting.h"

#include <stdbool.h>
#include <string.h>

static bool parse_number(const char **text, unsigned limit, unsigned *out);
static bool parse_range(const char **text, unsigned *first, unsigned *last);

inf_err_t *
inf_host_setting_check(const char *key, const char *value)
{
    if (strcmp(key, INF_HOST_NUMA_NODE) == 0) {
        unsigned node;
        return inf_host_node_parse(value, &node);
    }

    if (strcmp(key, INF_HOST_CPU_CORES) == 0) {
        unsigned long cores[INF_HOST_CORE_WORDS];
        return inf_host_cores_parse(value, cores);
    }

    return inf_err_new(INF_ERR_UNSUPPORTED, "Unsupported host policy setting"
        " '%s' is specified, supported settings are '" INF_HOST_NUMA_NODE
        "', '" INF_HOST_CPU_CORES "'", key);
}

inf_err_t *
inf_host_node_parse(const char *text, unsigned *node)
{
    const char *p = text;

    if (!parse_number(&p, INF_HOST_NODES, node) || *p != '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "host policy setting '"
            INF_HOST_NUMA_NODE "' is a number from 0 to %u. Got '%s'",
            INF_HOST_NODES - 1, text);
    }

    return NULL;
}

inf_err_t *
inf_host_cores_parse(const char *text,
    unsigned long cores[INF_HOST_CORE_WORDS])
{
    const char *p = text;

    memset(cores, 0, INF_HOST_CORE_WORDS * sizeof(*cores));
    for (;;) {
        unsigned first, last;
        if (!parse_range(&p, &first, &last)) {
            break;
        }
        for (unsigned i = first; i <= last; i++) {
            cores[i / INF_HOST_WORD_BITS] |= 1ul << i % INF_HOST_WORD_BITS;
        }

        if (*p == '\0') {
            return NULL;
        }
        if (*p++ != ',') {
            break;
        }
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "host policy setting '"
        INF_HOST_CPU_CORES "' format is '<lower_cpu_core_id>-"
        "<upper_cpu_core_id>'. Got '%s': a list of numbers and ranges below"
        " %u, such as 0-3,5, is meant", text, INF_HOST_CORES);
}

/* Parses "4-7", or "4" alone. */
static bool
parse_range(const char **text, unsigned *first, unsigned *last)
{
    if (!parse_number(text, INF_HOST_CORES, first)) {
        return false;
    }

    *last = *first;
    if (**text != '-') {
        return true;
    }

    (*text)++;
    return parse_number(text, INF_HOST_CORES, last) && *first <= *last;
}

/* Parses digits; the value is below limit. */
static bool
parse_number(const char **text, unsigned limit, unsigned *out)
{
    const char *p = *text;
    unsigned n = 0;

    while (*p >= '0' && *p <= '9' && n < limit) {
        n = n * 10 + (unsigned) (*p++ - '0');
    }
    if (p == *text || n >= limit) {
        return false;
    }

    *text = p;
    *out = n;
    return true;
}
