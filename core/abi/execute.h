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
 * For the handler of a crash, on the thread that crashes: the model to blame.
 * certain: this thread executes it; else a suspect executes, or nothing of
 * another model does.  NULL: it can't be told.  likely: the latter, wherever it
 * is called; several: NULL because more than one model executes.
 */
const inf_model_t *inf_execution_culprit(bool *certain);
const inf_model_t *inf_execution_likely_culprit(bool *several);

/* For the same handler: puts "model=m version=1 backend=b instance=m_0_0" of
   this thread's execution and returns true, or puts those of all executions
   under way, with "; " between, and returns false. */
bool inf_execution_describe(inf_signal_text_t *text);

/*
 * A backend has failed to execute a request, and nobody has been told yet.  If
 * its GPU has failed and the host ends the process for that, it is not
 * answered, unless it is clear that it alone is why: the next core has it.
 */
void inf_execution_judge(const inf_factory_t *factory);

/* The memory of an instance for what Execute is given; free(NULL) is fine. */
void inf_execution_free(struct inf_execution_s *execution);

/* A request is released: by the thread that executes it, perhaps. */
void inf_execution_release(const inf_request_t *request);

/* A request that executes shall run once more: it is the runner's again.  On
   error nothing has changed. */
INF_CHECK inf_err_t *inf_execution_reschedule(inf_request_t *request);

/* INVALID_ARG with what, logged with the backend that this thread executes. */
INF_CHECK inf_err_t *inf_execution_complain(const char *what);

#endif /* INF_ABI_EXECUTE_H */
