/*
 * execute.h - executes payloads in backends, and says who executes when the
 *             core crashes.
 *
 * Owner    The executor is static.  An instance owns its execution until
 *          inf_execution_free().
 * Thread   The executor, judge, reschedule, complain: the instance thread that
 *          executes.  release: any.  culprit, likely_culprit, describe: the
 *          signal handler of the crashing thread.
 * Units    none.
 * Errors   A failed execution answers and releases all its requests.
 * Route    runtime -> [execute] -> plugin -> backend.
 */

#ifndef INF_ABI_EXECUTE_H
#define INF_ABI_EXECUTE_H

#include "core/base/os/signal_text.h"
#include "core/sched/executor.h"

/* The executor that the runtime's instance threads call. */
extern const inf_executor_t inf_backend_executor;

/*
 * For a crash handler: the model that the crash counts against; NULL: unknown.
 *
 * culprit is called on the crashing thread.  certain: that thread executes the
 * model.  If that thread executes nothing, the result is the likely culprit.
 *
 * likely_culprit is called on any thread: the model of a suspect that executes,
 * or the only model that executes.  several: the result is NULL because more
 * than one model executes.
 */
const inf_model_t *inf_execution_culprit(bool *certain);
const inf_model_t *inf_execution_likely_culprit(bool *several);

/* For a crash handler: appends "model=m version=1 backend=b instance=m_0_0".
   true: the text is of this thread's execution.  false: this thread executes
   nothing, and the text lists all executions, separated by "; ". */
bool inf_execution_describe(inf_signal_text_t *text);

/*
 * Called after a backend has failed to execute, before the request is answered.
 * A host that ends the process for a failed GPU does so here, so that the next
 * core executes the request.  A request that is known as the only cause is
 * answered first.
 */
void inf_execution_judge(const inf_factory_t *factory);

/* Frees an instance's execution; execution may be NULL. */
void inf_execution_free(struct inf_execution_s *execution);

/* Notes that a backend has released a request. */
void inf_execution_release(const inf_request_t *request);

/* Passes a request that is being executed back to the runner, which executes
   the request again.  On error nothing has changed. */
INF_CHECK inf_err_t *inf_execution_reschedule(inf_request_t *request);

/* Returns INVALID_ARG with the text, and logs the text with the name of the
   backend that this thread executes. */
INF_CHECK inf_err_t *inf_execution_complain(const char *what);

#endif /* INF_ABI_EXECUTE_H */
