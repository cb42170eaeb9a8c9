/*
 * ensemble.h - a model that is composed of others: it carries the responses
 *              of each step to the steps that read them, and to the client.
 *
 * Owner    The model owns its ensemble, which holds a reference to every
 *          model it is composed of: those live, and keep their version, for
 *          as long as it does.
 * Thread   new, free: the thread that loads or destroys the model.  The rest:
 *          any, no lock held.  The thread that brings a response does what
 *          follows from it.
 * Units    ns.
 * Errors   new: INF_ERR_INVALID_ARG, the models don't fit together.  submit:
 *          INF_ERR_UNAVAILABLE, the model is stopping.
 * Route    entrance -> [ensemble] -> the runners (caches, ensembles) of its
 *          models -> [ensemble, as their requests' sink] -> sink
 *
 * For the lifecycle: make it when config, built and tensors of the model are
 * there (it has no backend, no instances and no runner), and free it where the
 * runner would be; the last reference to the model is gone then, so no request
 * is left.  A composing model may be an ensemble.  At the server's stop
 * inf_entrance_close() rejects what is new, and what runs goes on to its end:
 * models serve the ensembles that hold them until they are destroyed.
 */

#ifndef INF_SCHED_ENSEMBLE_H
#define INF_SCHED_ENSEMBLE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

typedef struct inf_ensemble_s inf_ensemble_t;

/* Callbacks of a trace on the requests that an ensemble makes of one.  abi
   fills them in, and the request brings them (inf_request_t.abi). */
typedef struct inf_trace_ops_s {
    /* A trace for part, which is about to be submitted; NULL: none. */
    struct TRITONSERVER_InferenceTrace *(*part)(
        struct TRITONSERVER_InferenceTrace *trace, const inf_request_t *part);
    void (*answer)(struct TRITONSERVER_InferenceTrace *trace,
        const inf_response_t *response);

    /* The request is released. */
    void (*end)(struct TRITONSERVER_InferenceTrace *trace);

    /* Nothing more is told. */
    void (*free)(struct TRITONSERVER_InferenceTrace *trace);
} inf_trace_ops_t;

/*
 * model: config, built and tensors are set.  composing[i] is the loaded model
 * of step i.  Sets model->decoupled, sequential and entrance; the caller sets
 * model->sched.ensemble.  at: as inf_plan_new has it.
 */
INF_CHECK inf_err_t *inf_ensemble_new(inf_model_t *model,
    inf_model_t *const *composing, size_t count, uint32_t *at,
    inf_ensemble_t **out);

/* e may be NULL. */
void inf_ensemble_free(inf_ensemble_t *e);

/* Requests that are not answered yet. */
uint32_t inf_ensemble_pending(const inf_ensemble_t *e);

/* Rejects requests that begin a sequence from now on. */
void inf_ensemble_end_sequences(inf_ensemble_t *e);

/* How many ensembles lie within each other there: 0, model is none. */
uint32_t inf_ensemble_height(const inf_model_t *model);

/* The model of that step; NULL: there is no such step. */
inf_model_t *inf_ensemble_composing_model(const inf_ensemble_t *e,
    uint32_t step);

#endif /* INF_SCHED_ENSEMBLE_H */
