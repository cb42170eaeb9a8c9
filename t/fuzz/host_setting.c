/* Any value of a host policy: what is taken for cores or a node prints as the
   same cores or node again. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host_setting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long cores[INF_HOST_CORE_WORDS];
static unsigned long again[INF_HOST_CORE_WORDS];

static bool
has(unsigned core)
{
    return (cores[core / INF_HOST_WORD_BITS]
        >> core % INF_HOST_WORD_BITS & 1) != 0;
}

static void
print_cores(char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < INF_HOST_CORES; i++) {
        unsigned last = i;
        if (!has(i)) {
            continue;
        }
        while (last + 1 < INF_HOST_CORES && has(last + 1)) {
            last++;
        }
        used += (size_t) snprintf(text + used, room - used, "%s%u-%u",
            used > 0 ? "," : "", i, last);
        i = last;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[INF_HOST_CORES * 12];
    char *value = malloc(size + 1);
    unsigned node;

    if (size > 0) {
        memcpy(value, data, size);
    }
    value[size] = '\0';

    inf_err_t *err = inf_host_cores_parse(value, cores);
    if (err == NULL) {
        print_cores(text, sizeof(text));
        err = inf_host_cores_parse(text, again);
        if (err != NULL || text[0] == '\0'
            || memcmp(cores, again, sizeof(cores)) != 0)
        {
            abort();
        }
    }
    inf_err_free(err);

    err = inf_host_node_parse(value, &node);
    if (err == NULL && (node >= INF_HOST_NODES
        || node != strtoul(value, NULL, 10)))
    {
        abort();
    }
    inf_err_free(err);
    inf_err_free(inf_host_setting_check(value, value));
    free(value);
    return 0;
}
