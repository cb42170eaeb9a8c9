/*
 * ensemble_run.h - one execution of an ensemble, with its requests to the
 *                  composing models.
 *
 * Owner    The ensemble's pool owns runs, and a run owns its step requests;
 *          both are reused.  A run is in use while its request or one of its
 *          step requests is: a backend may keep the factory of a step request
 *          for long.
 * Thread   any.  Events change the flow under the run's lock; one thread at a
 *          time carries out the actions in order (inf_run_drain).  Other
 *          threads leave their actions to that thread, so a step that ends
 *          within its own start does not recurse.
 * Units    ns.
 * Errors   none: a failure is sent as the answer.
 * Route    ensemble -> [run] -> entrance of a composing model; its sink ->
 *          [run] -> sink of the request
 */

#ifndef INF_SCHED_ENSEMBLE_RUN_H
#define INF_SCHED_ENSEMBLE_RUN_H

#include "core/base/lock.h"
#include "core/sched/ensemble.h"
#include "core/sched/ensemble_flow.h"
#include "core/sched/entrance.h"
#include "core/tensor/request.h"
#include "core/tensor/response.h"

typedef struct inf_ensemble_run_s inf_ensemble_run_t;

/* The sequence and flags of a request or a response. */
typedef struct {
    uint64_t    correlation_id;
    const char *correlation_text;       /* NULL: the number is used          */
    uint32_t    flags;
    bool        changed;                /* by a response of a step           */
} inf_run_sequence_t;

/* A response of a composing model whose tensors are in use; allocated in the
   response's arena. */
typedef struct {
    inf_response_t            *response;
    struct inf_step_request_s *request;
    uint32_t                   values;  /* values in use; run's lock         */
    inf_run_sequence_t         sequence;
} inf_run_source_t;

typedef struct {
    inf_flow_value_t  base;             /* must be first                     */
    inf_run_source_t *source;           /* NULL: the client's input          */
    inf_output_t     *output;           /* NULL: the client's input          */
    inf_input_t      *input;            /* the client's input, or NULL       */
} inf_run_value_t;

/* A request to a composing model. */
typedef struct inf_step_request_s {
    inf_flow_call_t            call;    /* run's lock                        */
    inf_link_t                 live;    /* in run->live; run's lock          */
    struct inf_step_request_s *next;    /* on run->spare; run's lock         */
    inf_ensemble_run_t        *run;     /* a reference while in use          */
    inf_factory_t             *client;  /* likewise: the run's request's     */
    _Atomic uint32_t           parts;   /* request and factory alive: 2, 1, 0;
                                           acq_rel                           */
    inf_run_sequence_t         sequence;    /* as submitted                  */
    struct TRITONSERVER_InferenceTrace *trace;  /* its own trace, or NULL; set
                                                   before the submission     */
    const inf_trace_ops_t     *trace_ops;
    inf_request_t              request;
    inf_factory_t              factory;
} inf_step_request_t;

/* Whether a step request has begun to execute. */
typedef enum {
    INF_RUN_WAITS,
    INF_RUN_BEGUN,
    INF_RUN_TOLD                        /* the request's owner knows         */
} inf_run_execution_t;

struct inf_ensemble_run_s {
    inf_ensemble_run_t    *next;        /* on the ensemble's spare list      */
    struct inf_ensemble_s *ensemble;    /* set in new(), then constant       */
    inf_model_t           *model;       /* the ensemble's                    */
    const inf_plan_t      *plan;        /* the ensemble's                    */
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    _Atomic(inf_run_execution_t) execution; /* seq_cst; drain sets TOLD      */

    inf_lock_t             lock;        /* rank 24; guards the rest          */
    inf_flow_t             flow;
    bool                   draining;    /* a thread carries out actions      */
    uint32_t               in_use;      /* step requests not released        */
    inf_link_t             live;        /* step requests                     */
    inf_step_request_t    *spare;
    uint32_t               spare_count;
    uint64_t               compute_ns[3];   /* input, infer, output: sums    */

    inf_request_t         *request;     /* until the drain releases it       */
    inf_factory_t         *factory;     /* the request's                     */
    _Atomic bool           start_told;  /* seq_cst: told to the client's
                                           sink                              */
    bool                   failed;      /* drain                             */
};

/* ensemble.c */

/* Creates a run without references and without a request.  The last unref keeps
   it for another request, or frees it. */
INF_CHECK inf_err_t *inf_run_new(struct inf_ensemble_s *e, inf_model_t *model,
    const inf_plan_t *plan, inf_ensemble_run_t **out);
void inf_run_free(inf_ensemble_run_t *run);
void inf_run_ref(inf_ensemble_run_t *run);
void inf_run_unref(inf_ensemble_run_t *run);

/* Releases the lock and frees values that the flow has dropped. */
void inf_run_leave(inf_ensemble_run_t *run) INF_GIVES(run->lock);

/* Carries out the actions due, unless another thread does. */
void inf_run_drain(inf_ensemble_run_t *run);

/* ensemble_request.c */

/* Carries out action START. */
void inf_run_start(inf_ensemble_run_t *run, const inf_flow_action_t *start);

/* Cancels the run's requests to composing models; queued ones go to rejecter,
   or are rejected here if rejecter is NULL. */
void inf_run_cancel_requests(inf_ensemble_run_t *run,
    const inf_rejecter_t *rejecter);

/* Frees the spare step requests; none is in use. */
void inf_run_free_requests(inf_ensemble_run_t *run);

/* ensemble_answer.c */

/* The sequence of the whole request. */
inf_run_sequence_t inf_run_sequence(const inf_request_t *req);

/* The value of a tensor; NULL: empty, or not there. */
inf_run_value_t *inf_run_value(const inf_ensemble_run_t *run,
    const inf_flow_item_t *item, uint32_t tensor);

/* The time when the request times out; INF_NEVER: none. */
uint64_t inf_run_deadline(const inf_ensemble_run_t *run);

/* Tells the client's sink, once, that a response begins. */
void inf_run_tell_start(inf_ensemble_run_t *run);

/* Whether the tensor may be written directly to the client's memory. */
bool inf_run_may_grant(inf_ensemble_run_t *run, uint32_t tensor);

/* Carries out the actions EMIT and FINISH. */
void inf_run_answer(inf_ensemble_run_t *run, const inf_flow_action_t *emit);
void inf_run_finish(inf_ensemble_run_t *run);

/* Converts a shape to the reader's form, of at most dim_count + 1 dimensions;
   returns their number. */
uint32_t inf_run_reconcile(const int64_t *shape, uint32_t dim_count,
    bool batched, const int64_t *dims, uint32_t dims_count, bool want_batch,
    int64_t *out);

#endif /* INF_SCHED_ENSEMBLE_RUN_H */
