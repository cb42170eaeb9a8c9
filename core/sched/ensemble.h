/*
 * ensemble.h - a model that is composed of others: passes the responses of each
 *              step to the steps that read them, and to the client.
 *
 * Owner    The model owns its ensemble, which holds a reference to every
 *          composing model: these live, and keep their version, as long as the
 *          ensemble.
 * Thread   new, free: the thread that loads or destroys the model.  The rest:
 *          any, no lock held.  The thread that brings a response carries out
 *          its consequences.
 * Units    ns.
 * Errors   new: INF_ERR_INVALID_ARG, the models do not fit together.  submit:
 *          INF_ERR_UNAVAILABLE, the model is stopping.
 * Route    entrance -> [ensemble] -> the runners (caches, ensembles) of its
 *          models -> [ensemble, as their requests' sink] -> sink
 *
 * The lifecycle creates the ensemble when config, built and tensors of the
 * model are set (there is no backend, instance or runner), and frees it in
 * place of a runner; the model has no references then, so no request is left.
 * A composing model may be an ensemble.  When the server stops,
 * inf_entrance_close() rejects new requests, and running ones complete:
 * composing models serve their ensembles until they are destroyed.
 */

#ifndef INF_SCHED_ENSEMBLE_H
#define INF_SCHED_ENSEMBLE_H

#include "core/model/model.h"
#include "core/tensor/request.h"

typedef struct inf_ensemble_s inf_ensemble_t;

/* Callbacks for traces of the requests that an ensemble makes of one request;
   set by abi, carried by the request (inf_request_t.abi). */
typedef struct inf_trace_ops_s {
    /* Creates the trace of part before it is submitted; NULL: none. */
    struct TRITONSERVER_InferenceTrace *(*part)(
        struct TRITONSERVER_InferenceTrace *trace, const inf_request_t *part);
    void (*answer)(struct TRITONSERVER_InferenceTrace *trace,
        const inf_response_t *response);

    /* Called when the request is released. */
    void (*end)(struct TRITONSERVER_InferenceTrace *trace);

    /* Frees a trace; no further call follows. */
    void (*free)(struct TRITONSERVER_InferenceTrace *trace);
} inf_trace_ops_t;

/*
 * Creates the ensemble of a model whose config, built and tensors are set.
 * composing[i] is the loaded model of step i.  Sets model->decoupled,
 * sequential and entrance; the caller sets model->sched.ensemble.  at: as in
 * inf_plan_new.
 */
INF_CHECK inf_err_t *inf_ensemble_new(inf_model_t *model,
    inf_model_t *const *composing, size_t count, uint32_t *at,
    inf_ensemble_t **out);

/* e may be NULL. */
void inf_ensemble_free(inf_ensemble_t *e);

/* Number of unanswered requests. */
uint32_t inf_ensemble_pending(const inf_ensemble_t *e);

/* Rejects requests that begin a sequence from now on. */
void inf_ensemble_end_sequences(inf_ensemble_t *e);

/* Depth of nested ensembles; 0: model is no ensemble. */
uint32_t inf_ensemble_height(const inf_model_t *model);

/* The model of that step, or NULL if there is no such step. */
inf_model_t *inf_ensemble_composing_model(const inf_ensemble_t *e,
    uint32_t step);

#endif /* INF_SCHED_ENSEMBLE_H */
