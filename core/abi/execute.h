/*
 * execute.h - the executor that the runtime's instance threads call.
 *
 * Owner    static.
 * Thread   instance threads.
 * Units    none.
 * Errors   a failed execution answers and releases every request.
 * Route    runtime -> [execute] -> plugin -> backend.
 */

#ifndef INF_ABI_EXECUTE_H
#define INF_ABI_EXECUTE_H

#include "core/sched/executor.h"

extern const inf_executor_t inf_backend_executor;

#endif /* INF_ABI_EXECUTE_H */
