/*
 * host_policy.h - places the threads of an instance on cores and a NUMA node,
 *                 by the name of its host policy.
 *
 * Owner    The settings belong to the caller and outlive their use.
 * Thread   apply, save and restore affect the calling thread.
 * Units    none.
 * Errors   INVALID_ARG: the machine has none of the cores, or not the node.
 *          INTERNAL: the kernel rejected it.
 * Route    configuration -> [host policy] -> loader, instance thread
 */

#ifndef INF_BASE_OS_HOST_POLICY_H
#define INF_BASE_OS_HOST_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/base/host_setting.h"

typedef struct {
    const char *policy;         /* "cpu", "gpu_0", "model", or any name      */
    const char *key;
    const char *value;          /* checked                                   */
} inf_host_setting_t;

/* The last value of one key of one policy counts. */
typedef struct {
    const inf_host_setting_t *items;
    size_t                    count;
} inf_host_policies_t;

/* The placement of a thread before a policy was applied. */
typedef struct {
    bool          has_cores;
    bool          has_memory;
    int           memory_mode;
    unsigned long cores[INF_HOST_CORE_WORDS];
    unsigned long nodes[INF_HOST_NODES / INF_HOST_WORD_BITS];
} inf_host_place_t;

/* The value; NULL: not set.  policies may be NULL. */
const char *inf_host_policy_find(const inf_host_policies_t *policies,
    const char *policy, const char *key);

/* Applies the policy to the calling thread; an undefined policy has no
   effect. */
INF_CHECK inf_err_t *inf_host_policy_apply(
    const inf_host_policies_t *policies, const char *policy);

/* save: saves the settings that apply would change; restore: sets them
   again. */
void inf_host_place_save(inf_host_place_t *place,
    const inf_host_policies_t *policies, const char *policy);
void inf_host_place_restore(const inf_host_place_t *place);

#endif /* INF_BASE_OS_HOST_POLICY_H */
