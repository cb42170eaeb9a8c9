/*
 * host_check.h - host policies that name cores or a NUMA node which this
 *                machine lacks.
 *
 * Owner    Nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND: none of the cores, or no such node, is here: nothing
 *          runs there.  INVALID_ARG: some of the cores are not.
 * Route    check of nginx -t -> [host check] -> /sys/devices/system
 */

#ifndef INF_BASE_OS_HOST_CHECK_H
#define INF_BASE_OS_HOST_CHECK_H

#include "core/base/os/host_policy.h"

/* Where the kernel does not say what there is, nothing is missed. */
INF_CHECK inf_err_t *inf_host_check(const inf_host_setting_t *s);

#endif /* INF_BASE_OS_HOST_CHECK_H */
