#include "core/base/os/host_policy.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/log.h"

#define POLICY_DEFAULT 0        /* from linux/mempolicy.h, which is not always
                                   installed                                 */
#define POLICY_BIND    2        /* likewise                                  */

static inf_err_t *apply_cores(const char *policy, const char *text);
static inf_err_t *apply_node(const char *policy, const char *text);

const char *
inf_host_policy_find(const inf_host_policies_t *policies, const char *policy,
    const char *key)
{
    const char *value = NULL;

    for (size_t i = 0; policies != NULL && i < policies->count; i++) {
        const inf_host_setting_t *s = &policies->items[i];
        if (strcmp(s->policy, policy) == 0 && strcmp(s->key, key) == 0) {
            value = s->value;
        }
    }

    return value;
}

inf_err_t *
inf_host_policy_apply(const inf_host_policies_t *policies, const char *policy)
{
    const char *cores = inf_host_policy_find(policies, policy,
        INF_HOST_CPU_CORES);
    const char *node = inf_host_policy_find(policies, policy,
        INF_HOST_NUMA_NODE);

    inf_err_t *err = cores != NULL ? apply_cores(policy, cores) : NULL;
    if (err == NULL && node != NULL) {
        err = apply_node(policy, node);
    }
    return err;
}

void
inf_host_place_save(inf_host_place_t *place,
    const inf_host_policies_t *policies, const char *policy)
{
    memset(place, 0, sizeof(*place));

    if (inf_host_policy_find(policies, policy, INF_HOST_CPU_CORES) != NULL) {
        place->has_cores = sched_getaffinity(0, sizeof(place->cores),
            (cpu_set_t *) (void *) place->cores) == 0;
    }

    if (inf_host_policy_find(policies, policy, INF_HOST_NUMA_NODE) != NULL) {
        place->has_memory = syscall(SYS_get_mempolicy, &place->memory_mode,
            place->nodes, (unsigned long) INF_HOST_NODES, NULL, 0ul) == 0;
    }
}

void
inf_host_place_restore(const inf_host_place_t *place)
{
    if (place->has_cores && sched_setaffinity(0, sizeof(place->cores),
            (const cpu_set_t *) (const void *) place->cores) != 0)
    {
        inf_err_log(inf_err_os(errno, "a thread stays on the cores of a host"
            " policy"));
    }

    if (place->has_memory && syscall(SYS_set_mempolicy, place->memory_mode,
            place->memory_mode == POLICY_DEFAULT ? NULL : place->nodes,
            place->memory_mode == POLICY_DEFAULT ? 0ul
            : (unsigned long) INF_HOST_NODES) != 0)
    {
        inf_err_log(inf_err_os(errno, "a thread stays on the NUMA node of a"
            " host policy"));
    }
}

static inf_err_t *
apply_cores(const char *policy, const char *text)
{
    unsigned long cores[INF_HOST_CORE_WORDS];

    inf_err_t *err = inf_host_cores_parse(text, cores);
    if (err != NULL) {
        return inf_err_add(err, "host policy '%s'", policy);
    }

    if (sched_setaffinity(0, sizeof(cores), (const cpu_set_t *) (void *) cores)
        == 0)
    {
        return NULL;
    }

    return errno == EINVAL
        ? inf_err_new(INF_ERR_INVALID_ARG, "host policy '%s': none of the"
            " cores %s may be used here", policy, text)
        : inf_err_os(errno, "host policy '%s': cannot run on cores %s",
            policy, text);
}

static inf_err_t *
apply_node(const char *policy, const char *text)
{
    unsigned long nodes[INF_HOST_NODES / INF_HOST_WORD_BITS] = { 0 };
    unsigned node;

    inf_err_t *err = inf_host_node_parse(text, &node);
    if (err != NULL) {
        return inf_err_add(err, "host policy '%s'", policy);
    }

    nodes[node / INF_HOST_WORD_BITS] = 1ul << node % INF_HOST_WORD_BITS;
    if (syscall(SYS_set_mempolicy, POLICY_BIND, nodes,
            (unsigned long) INF_HOST_NODES) == 0)
    {
        return NULL;
    }

    return errno == EINVAL
        ? inf_err_new(INF_ERR_INVALID_ARG, "host policy '%s': there is no NUMA"
            " node %s here", policy, text)
        : inf_err_os(errno, "host policy '%s': cannot take memory of NUMA"
            " node %s", policy, text);
}
