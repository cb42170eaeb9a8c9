/*
 * executor.h - executes a payload on an instance thread; set by abi.
 *
 * Owner    The table is static.
 * Thread   execute: the instance's thread, no lock held.
 * Units    none.
 * Errors   handled inside: every request of the payload is answered and
 *          released, by the backend or by the executor.
 * Route    runtime -> [executor] -> backend's ModelInstanceExecute.
 */

#ifndef INF_SCHED_EXECUTOR_H
#define INF_SCHED_EXECUTOR_H

#include <stdint.h>

#include "core/model/model.h"
#include "core/tensor/request.h"

typedef struct {
    /* Executes and takes the requests; the array stays the caller's. */
    void (*execute)(inf_instance_t *instance, inf_request_t **requests,
        uint32_t count);
} inf_executor_t;

#endif /* INF_SCHED_EXECUTOR_H */
