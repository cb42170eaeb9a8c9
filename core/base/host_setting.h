/*
 * host_setting.h - what a host policy may say: a NUMA node, a list of cores.
 *
 * Owner    nobody: texts in, values out.
 * Thread   any.
 * Units    numbers of nodes and cores, as the kernel counts them.
 * Errors   UNSUPPORTED: an unknown setting.  INVALID_ARG: a value that is no
 *          node or no list of cores; the text shows it.
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

/* Whether key is a setting and value one of its values. */
INF_CHECK inf_err_t *inf_host_setting_check(const char *key,
    const char *value);

/* The number of a NUMA node, below INF_HOST_NODES. */
INF_CHECK inf_err_t *inf_host_node_parse(const char *text, unsigned *node);

/* "0-3,5": sets the bits of these cores and clears all others. */
INF_CHECK inf_err_t *inf_host_cores_parse(const char *text,
    unsigned long cores[INF_HOST_CORE_WORDS]);

#endif /* INF_BASE_HOST_SETTING_H */
