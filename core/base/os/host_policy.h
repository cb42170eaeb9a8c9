/*
 * host_policy.h - on which cores and NUMA node the threads of an instance
 *                 run, by the name of its policy.
 *
 * Owner    The settings belong to the caller and outlive every use.
 * Thread   apply, save and restore are about the calling thread.
 * Units    none.
 * Errors   INVALID_ARG: none of the cores or no such node is here.
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

/* Of one key of one policy the last value counts. */
typedef struct {
    const inf_host_setting_t *items;
    size_t                    count;
} inf_host_policies_t;

/* Where a thread was before a policy was applied. */
typedef struct {
    bool          has_cores;
    bool          has_memory;
    int           memory_mode;
    unsigned long cores[INF_HOST_CORE_WORDS];
    unsigned long nodes[INF_HOST_NODES / INF_HOST_WORD_BITS];
} inf_host_place_t;

/* NULL: not set.  policies may be NULL. */
const char *inf_host_policy_find(const inf_host_policies_t *policies,
    const char *policy, const char *key);

/* Moves the calling thread where the policy says; an undefined policy says
   nothing. */
INF_CHECK inf_err_t *inf_host_policy_apply(
    const inf_host_policies_t *policies, const char *policy);

/* Saves the settings that apply of that policy changes; puts them back. */
void inf_host_place_save(inf_host_place_t *place,
    const inf_host_policies_t *policies, const char *policy);
void inf_host_place_restore(const inf_host_place_t *place);

#endif /* INF_BASE_OS_HOST_POLICY_H */
