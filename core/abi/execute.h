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

#include "core/base/os/signal_text.h"
#include "core/sched/executor.h"

extern const inf_executor_t inf_backend_executor;

/*
 * For a crash handler, on the crashing thread: the model to blame.  certain:
 * this thread executes it; otherwise a suspect executes, or only this model
 * does.  NULL: unknown.  likely: the latter, on any thread; several: NULL
 * because more than one model executes.
 */
const inf_model_t *inf_execution_culprit(bool *certain);
const inf_model_t *inf_execution_likely_culprit(bool *several);

/* For a crash handler: appends "model=m version=1 backend=b instance=m_0_0" of
   this thread's execution and returns true, or appends those of all executions
   in progress, separated by "; ", and returns false. */
bool inf_execution_describe(inf_signal_text_t *text);

/*
 * Handles a request that a backend failed to execute, before it is answered.
 * If its GPU has failed and the host ends the process for that, the request is
 * not answered, so that the next core runs it, unless it is known to be the
 * only cause.
 */
void inf_execution_judge(const inf_factory_t *factory);

/* Frees an instance's execution; execution may be NULL. */
void inf_execution_free(struct inf_execution_s *execution);

/* Notes that a request is released, by any thread. */
void inf_execution_release(const inf_request_t *request);

/* Passes an executing request to the runner to execute it again.  On error
   nothing has changed. */
INF_CHECK inf_err_t *inf_execution_reschedule(inf_request_t *request);

/* INVALID_ARG with the text what, logged with the backend that this thread
   executes. */
INF_CHECK inf_err_t *inf_execution_complain(const char *what);

#endif /* INF_ABI_EXECUTE_H */
