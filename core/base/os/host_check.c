#include "core/base/os/host_check.h"

#include <stdio.h>
#include <string.h>

#define CORES "/sys/devices/system/cpu/online"
#define NODES "/sys/devices/system/node/online"

static bool read_list(const char *file, char *text, int cap,
    unsigned long set[INF_HOST_CORE_WORDS]);

inf_err_t *
inf_host_check(const inf_host_setting_t *s)
{
    bool cores = strcmp(s->key, INF_HOST_CPU_CORES) == 0;
    unsigned long wanted[INF_HOST_CORE_WORDS];
    unsigned long there[INF_HOST_CORE_WORDS];
    char text[256];
    bool missing = false;
    bool found = false;

    /* a node's number is a list with one entry */
    inf_err_t *err = inf_host_cores_parse(s->value, wanted);
    if (err != NULL || !read_list(cores ? CORES : NODES, text, sizeof(text),
            there))
    {
        return err;
    }

    for (unsigned i = 0; i < INF_HOST_CORE_WORDS; i++) {
        missing |= (wanted[i] & ~there[i]) != 0;
        found |= (wanted[i] & there[i]) != 0;
    }
    if (!missing) {
        return NULL;
    }
    return inf_err_new(found ? INF_ERR_INVALID_ARG : INF_ERR_NOT_FOUND,
        "host policy \"%s\": %s=%s, but this machine has %s %s", s->policy,
        s->key, s->value, cores ? "cores" : "NUMA nodes", text);
}

/* Reads a line such as "0-3,8". */
static bool
read_list(const char *file, char *text, int cap,
    unsigned long set[INF_HOST_CORE_WORDS])
{
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return false;
    }
    bool ok = fgets(text, cap, f) != NULL;
    fclose(f);
    if (!ok) {
        return false;
    }

    text[strcspn(text, "\n")] = '\0';
    inf_err_t *err = inf_host_cores_parse(text, set);
    inf_err_free(err);
    return err == NULL;
}
