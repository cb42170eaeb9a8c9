/*
 * kernel_settings.h - whether a load request changes what the kernels of a
 *                     model of backend cuda do.
 *
 * Owner    nobody: it reads what others own.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: the setting, and the directive that permits it.
 * Route    code upload -> [kernel settings]
 *
 * Launch geometry, arguments and options of the compiler are code in other
 * words, and a tensor's shape says how far a kernel reads and writes: with
 * others than those that it was written for, a kernel reaches memory of other
 * models.  Without a timeout a kernel that does not end holds its requests for
 * ever, and memory of the device is what a batch may take and what graphs
 * keep.
 */

#ifndef INF_REPOSITORY_KERNEL_SETTINGS_H
#define INF_REPOSITORY_KERNEL_SETTINGS_H

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* own: the model's configuration in its repository, which sent may repeat. */
INF_CHECK inf_err_t *inf_kernel_settings_check(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

#endif /* INF_REPOSITORY_KERNEL_SETTINGS_H */
