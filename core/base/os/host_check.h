/*
 * host_check.h - checks host policies for cores or a NUMA node that this
 *                machine lacks.
 *
 * Owner    none.
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND: the machine has none of the cores, or not the node.
 *          INVALID_ARG: some of the cores are missing.
 * Route    check of nginx -t -> [host check] -> /sys/devices/system
 */

#ifndef INF_BASE_OS_HOST_CHECK_H
#define INF_BASE_OS_HOST_CHECK_H

#include "core/base/os/host_policy.h"

/* Checks nothing if the kernel does not list cores and nodes. */
INF_CHECK inf_err_t *inf_host_check(const inf_host_setting_t *s);

#endif /* INF_BASE_OS_HOST_CHECK_H */
