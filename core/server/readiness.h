/*
 * readiness.h - asks backends whether the instances of a model are ready, on
 *               threads of its own, and doesn't wait for ever.
 *
 * Owner    The server owns it; it owns what is being asked, which holds a
 *          reference of its model.
 * Thread   ask: any, no lock held.  fn is called by the asker, by a thread of
 *          the readiness, or by its timekeeper; it must not wait.
 * Units    ns.
 * Errors   An instance that cannot be asked, or does not answer in time, is
 *          not ready.
 * Route    control, api_server -> [readiness] -> plug-in operations
 *
 * A model whose instances are all stuck, or with one on a GPU that has failed,
 * is not ready, and is not asked.
 *
 * A model is asked by one thread at a time; requests that come meanwhile get
 * the same answer.  While a backend is beyond the limit its model is not
 * ready, and nobody waits for it any more.  Models that wait for a thread
 * are not late; while they do there are more threads, up to a bound that those
 * with late models don't count for.
 */

#ifndef INF_SERVER_READINESS_H
#define INF_SERVER_READINESS_H

#include "core/base/lock.h"
#include "core/repository/plugin_ops.h"

#define INF_READINESS_LIMIT_NS UINT64_C(5000000000)     /* as python's own   */

typedef struct inf_readiness_s inf_readiness_t;

typedef void (*inf_readiness_fn)(void *userp, bool ready);

/* limit_ns: what a model may take, from when its backend is called. */
INF_CHECK inf_err_t *inf_readiness_new(const inf_plugin_ops_t *plugins,
    uint64_t limit_ns, inf_readiness_t **out);

/* Called when all models are gone; r may be NULL. */
void inf_readiness_free(inf_readiness_t *r);

/* Calls fn once, perhaps before it returns. */
void inf_readiness_ask(inf_readiness_t *r, inf_model_t *model,
    inf_readiness_fn fn, void *userp);

/* An answer that somebody waits for. */
typedef struct {
    inf_lock_t lock;            /* rank 6; guards the rest                   */
    inf_cond_t came;
    bool       done;
    bool       ready;
} inf_readiness_answer_t;

/* The caller's memory; wait is called once. */
void inf_readiness_answer_init(inf_readiness_answer_t *a);

/* The fn; userp is the answer. */
void inf_readiness_answer(void *userp, bool ready);

/* Waits for it, and ends a. */
bool inf_readiness_answer_wait(inf_readiness_answer_t *a);

#endif /* INF_SERVER_READINESS_H */
