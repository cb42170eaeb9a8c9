/*
 * host_setting.h - settings of a host policy: a NUMA node, a list of cores.
 *
 * Owner    none.
 * Thread   any.
 * Units    numbers of nodes and cores, as in the kernel.
 * Errors   UNSUPPORTED: an unknown setting.  INVALID_ARG: an invalid node or
 *          list of cores; the text has the value.
 * Route    directive, ServerOptions -> [host setting] -> host policy
 */

#ifndef INF_BASE_HOST_SETTING_H
#define INF_BASE_HOST_SETTING_H

#include "core/base/error.h"

#define INF_HOST_NUMA_NODE "numa-node"
#define INF_HOST_CPU_CORES "cpu-cores"

#define INF_HOST_NODES 1024u
#define INF_HOST_CORES 8192u

#define INF_HOST_WORD_BITS  (8u * (unsigned) sizeof(unsigned long))
#define INF_HOST_CORE_WORDS (INF_HOST_CORES / INF_HOST_WORD_BITS)

/* Checks that key is a setting and value valid for it. */
INF_CHECK inf_err_t *inf_host_setting_check(const char *key,
    const char *value);

/* Parses the number of a NUMA node, below INF_HOST_NODES. */
INF_CHECK inf_err_t *inf_host_node_parse(const char *text, unsigned *node);

/* Parses "0-3,5": sets the bits of these cores and clears all others. */
INF_CHECK inf_err_t *inf_host_cores_parse(const char *text,
    unsigned long cores[INF_HOST_CORE_WORDS]);

#endif /* INF_BASE_HOST_SETTING_H */
