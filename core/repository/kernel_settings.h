/*
 * kernel_settings.h - checks whether a load request changes the kernels of a
 *                     model of backend cuda.
 *
 * Owner    none; arguments are only read.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: the setting, and the directive that permits it.
 * Route    code upload -> [kernel settings]
 *
 * Launch geometry, arguments and compiler options are code in another form, and
 * a tensor's shape determines how far a kernel reads and writes: with other
 * values than intended, a kernel may access memory of other models.  Without a
 * timeout an endless kernel holds its requests for ever, and device memory is
 * used by batches and kept by graphs.
 */

#ifndef INF_REPOSITORY_KERNEL_SETTINGS_H
#define INF_REPOSITORY_KERNEL_SETTINGS_H

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* Checks sent against own, the repository's configuration, whose settings it
   may repeat. */
INF_CHECK inf_err_t *inf_kernel_settings_check(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

#endif /* INF_REPOSITORY_KERNEL_SETTINGS_H */
