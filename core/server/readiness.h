/*
 * readiness.h - asks backends whether the instances of a model are ready,
 *               within a time limit and on threads of its own.
 *
 * Owner    The server owns the readiness, and frees it after all models.  A
 *          pending question holds a reference of its model.
 * Thread   ask: any, without a lock.  fn is called on the caller's thread, on
 *          a readiness thread or on the timekeeper's, and must not wait.
 * Units    ns.
 * Errors   none: an instance that cannot be asked, or does not answer in time,
 *          is not ready.
 * Route    control, api_server -> [readiness] -> plug-in operations
 *
 * Not every question reaches a backend.  A model with all instances stuck, or
 * with an instance on a failed GPU, is not ready without a call.  A question
 * that comes while the same model is being asked gets the answer of the call
 * that runs.
 *
 * The time limit begins with the call of the backend, not with the wait for a
 * thread.  When a call exceeds the limit, the model is not ready, and later
 * questions are answered so at once until the call returns.  Threads are added
 * up to a bound while models wait; a thread with a late call does not count.
 */

#ifndef INF_SERVER_READINESS_H
#define INF_SERVER_READINESS_H

#include "core/base/lock.h"
#include "core/repository/plugin_ops.h"

#define INF_READINESS_LIMIT_NS UINT64_C(5000000000)     /* as python's own   */

typedef struct inf_readiness_s inf_readiness_t;

typedef void (*inf_readiness_fn)(void *userp, bool ready);

/* plugins: the operations that call the backend.  limit_ns: limit of one
   call. */
INF_CHECK inf_err_t *inf_readiness_new(const inf_plugin_ops_t *plugins,
    uint64_t limit_ns, inf_readiness_t **out);

/* Called when no model is left; r may be NULL. */
void inf_readiness_free(inf_readiness_t *r);

/* Calls fn(userp, whether the model is ready) once, possibly at once. */
void inf_readiness_ask(inf_readiness_t *r, inf_model_t *model,
    inf_readiness_fn fn, void *userp);

/* For a caller that waits for the answer: init, ask with fn and userp as below,
   then wait. */
typedef struct {
    inf_lock_t lock;            /* rank 6; guards the rest                   */
    inf_cond_t came;
    bool       done;
    bool       ready;
} inf_readiness_answer_t;

/* Initializes a in the caller's memory. */
void inf_readiness_answer_init(inf_readiness_answer_t *a);

/* The fn of such a question; userp is the inf_readiness_answer_t. */
void inf_readiness_answer(void *userp, bool ready);

/* Waits for the answer and returns it.  Called once; ends a. */
bool inf_readiness_answer_wait(inf_readiness_answer_t *a);

#endif /* INF_SERVER_READINESS_H */
