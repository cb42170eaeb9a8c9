/*
 * entrance.h - where a request enters its model: the gate before it (the
 *              response cache), the ensemble or the runner.
 *
 * Owner    As the one that it enters.
 * Thread   any, no lock held.
 * Units    ns.
 * Errors   submit: theirs; the caller still owns req then.
 * Route    service, ensemble -> [entrance] -> gate, ensemble, runner
 */

#ifndef INF_SCHED_ENTRANCE_H
#define INF_SCHED_ENTRANCE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

struct inf_runner_s;

/* Answers what is found in a queue of an ensemble's model and can't be the
   caller's; NULL: inf_reject_cancelled. */
typedef struct {
    void (*reject)(void *userp, inf_request_t *req);
    void  *userp;
} inf_rejecter_t;

/* How requests enter a model that has no runner; the ensemble fills it in. */
typedef struct inf_entrance_ops_s {
    /* Takes req on success. */
    inf_err_t *(*submit)(inf_model_t *model, inf_request_t *req,
        uint64_t now_ns);
    void (*cancel)(inf_model_t *model, inf_request_t *req,
        const inf_rejecter_t *rejecter);
    void (*close)(inf_model_t *model);
} inf_entrance_ops_t;

/* nonblocking: the caller must not spend time on req's bytes.  *queued: it
   went to
   the model's runner at once. */
INF_CHECK inf_err_t *inf_entrance_submit(inf_model_t *model,
    inf_request_t *req, uint64_t now_ns, bool nonblocking, bool *queued);

/* The same past the model's gate. */
INF_CHECK inf_err_t *inf_entrance_execute(inf_model_t *model,
    inf_request_t *req, uint64_t now_ns);

/* req's cancelled flag is set.  true: it was unlinked, the caller owns and
   answers it.  false: it runs, is gone, or is answered for the caller. */
bool inf_entrance_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter);

/* Rejects new requests from now on, but for what ensembles have begun. */
void inf_entrance_close(inf_model_t *model);

/* Every instance of it that serves is stuck; an ensemble has none. */
bool inf_entrance_is_stuck(const inf_model_t *model);

/*
 * Users are where requests come from: the server that serves the model, and
 * each ensemble that it composes.  A model begins with one.  When the last is
 * dropped, what is queued waits for no company, and sequences that say nothing
 * give way to those that wait.
 */
void inf_entrance_add_user(inf_model_t *model);
void inf_entrance_drop_user(inf_model_t *model);

#endif /* INF_SCHED_ENTRANCE_H */
