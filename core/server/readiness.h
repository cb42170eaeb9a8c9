/*
 * readiness.h - asks backends whether the instances of a model are ready, on
 *               threads of its own and with a time limit.
 *
 * Owner    The server owns it; it owns pending asks, each with a reference of
 *          its model.
 * Thread   ask: any, no lock held.  fn is called by the caller's thread, a
 *          readiness thread, or the timekeeper's; it must not wait.
 * Units    ns.
 * Errors   An instance that cannot be asked, or does not answer in time, is
 *          not ready.
 * Route    control, api_server -> [readiness] -> plug-in operations
 *
 * A model whose instances are all stuck, or that has one on a failed GPU, is
 * not ready, and its backend is not asked.
 *
 * A model is asked by one thread at a time; requests that come meanwhile get
 * the same answer.  Once a backend exceeds the limit its model is not ready,
 * and requests no longer wait for it.  The limit does not run while a model
 * waits for a thread; then threads are added up to a bound, which does not
 * count threads with late models.
 */

#ifndef INF_SERVER_READINESS_H
#define INF_SERVER_READINESS_H

#include "core/base/lock.h"
#include "core/repository/plugin_ops.h"

#define INF_READINESS_LIMIT_NS UINT64_C(5000000000)     /* as python's own   */

typedef struct inf_readiness_s inf_readiness_t;

typedef void (*inf_readiness_fn)(void *userp, bool ready);

/* limit_ns: time limit of one model, from the call of its backend. */
INF_CHECK inf_err_t *inf_readiness_new(const inf_plugin_ops_t *plugins,
    uint64_t limit_ns, inf_readiness_t **out);

/* Called after all models are freed; r may be NULL. */
void inf_readiness_free(inf_readiness_t *r);

/* Calls fn once, possibly before returning. */
void inf_readiness_ask(inf_readiness_t *r, inf_model_t *model,
    inf_readiness_fn fn, void *userp);

/* An answer with a condition to wait for. */
typedef struct {
    inf_lock_t lock;            /* rank 6; guards the rest                   */
    inf_cond_t came;
    bool       done;
    bool       ready;
} inf_readiness_answer_t;

/* Initializes a, in the caller's memory; wait is called once. */
void inf_readiness_answer_init(inf_readiness_answer_t *a);

/* An inf_readiness_fn; userp is an inf_readiness_answer_t. */
void inf_readiness_answer(void *userp, bool ready);

/* Waits for the answer, returns it and ends a. */
bool inf_readiness_answer_wait(inf_readiness_answer_t *a);

#endif /* INF_SERVER_READINESS_H */
