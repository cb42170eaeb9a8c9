/*
 * instance_config.h - the properties that all requests of an instance share.
 *
 * Owner    The runner owns its copy; the model owns the tensors, which outlive
 *          the runner.
 * Thread   any: constant.
 * Units    device_id is a GPU's number, or BK_NO_DEVICE.
 * Errors   none.
 * Route    the backend's instance -> runner -> [instance config] ->
 *          batch_request, batch
 */

#ifndef BK_INSTANCE_CONFIG_H
#define BK_INSTANCE_CONFIG_H

#include "tensors.h"

typedef struct {
    const bk_tensors_t *tensors;
    bool                batching;
    int32_t             device_id;
} bk_instance_config_t;

#endif /* BK_INSTANCE_CONFIG_H */
