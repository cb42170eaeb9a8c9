/*
 * entrance.h - the entry of requests to a model: its gate (the response cache),
 *              its ensemble or its runner.
 *
 * Owner    As gate, ensemble or runner.
 * Thread   any, no lock held.
 * Units    ns.
 * Errors   submit: those of gate, ensemble or runner; the caller still owns req
 *          then.
 * Route    service, ensemble -> [entrance] -> gate, ensemble, runner
 */

#ifndef INF_SCHED_ENTRANCE_H
#define INF_SCHED_ENTRANCE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

struct inf_runner_s;

/* Answers requests that cancel finds in the queue of an ensemble's composing
   model, which the caller cannot own; NULL: inf_reject_cancelled. */
typedef struct {
    void (*reject)(void *userp, inf_request_t *req);
    void  *userp;
} inf_rejecter_t;

/* Submission to a model without a runner; set by the ensemble. */
typedef struct inf_entrance_ops_s {
    /* Takes req on success. */
    inf_err_t *(*submit)(inf_model_t *model, inf_request_t *req,
        uint64_t now_ns);
    void (*cancel)(inf_model_t *model, inf_request_t *req,
        const inf_rejecter_t *rejecter);
    void (*close)(inf_model_t *model);
} inf_entrance_ops_t;

/* Submits req through the model's gate.  nonblocking: the call must not spend
   time on req's bytes.  *queued: req went directly to the model's runner. */
INF_CHECK inf_err_t *inf_entrance_submit(inf_model_t *model,
    inf_request_t *req, uint64_t now_ns, bool nonblocking, bool *queued);

/* Submits req behind the model's gate. */
INF_CHECK inf_err_t *inf_entrance_execute(inf_model_t *model,
    inf_request_t *req, uint64_t now_ns);

/* Cancels req, whose cancelled flag is set.  true: unlinked, the caller owns
   and answers it.  false: it runs, has ended, or is answered elsewhere. */
bool inf_entrance_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter);

/* Rejects new requests from now on, except those of running ensemble
   requests. */
void inf_entrance_close(inf_model_t *model);

/* Whether all serving instances of the model are stuck; false for an
   ensemble. */
bool inf_entrance_is_stuck(const inf_model_t *model);

/*
 * Users are the sources of requests: the server that serves the model, and each
 * ensemble that it composes.  A model begins with one user.  When the last is
 * dropped, queued requests do not wait for a batch, and silent sequences yield
 * their slots to the backlog.
 */
void inf_entrance_add_user(inf_model_t *model);
void inf_entrance_drop_user(inf_model_t *model);

#endif /* INF_SCHED_ENTRANCE_H */
