/*
 * ensemble_run.h - one request on its way through an ensemble, and its
 *                  requests to the composing models.
 *
 * Owner    The ensemble's pool owns runs, a run owns its step requests;
 *          both are used again.  A run is in use while its request or one of
 *          its step requests is under way: a backend may keep the factory of
 *          a step request long after.
 * Thread   any.  Events change the flow under the run's lock; the
 *          actions that follow are carried out in order by one thread at a
 *          time (inf_run_drain).  Other threads leave their actions to that
 *          thread, so a step that ends within its own start goes no deeper.
 * Units    ns.
 * Errors   none: a failure is the answer.
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

/* The sequence that a request or a response names, and its flags. */
typedef struct {
    uint64_t    correlation_id;
    const char *correlation_text;       /* NULL: the number counts           */
    uint32_t    flags;
    bool        changed;                /* by a step's response              */
} inf_run_sequence_t;

/* A response of a composing model whose tensors are in use; in the response's
   arena. */
typedef struct {
    inf_response_t            *response;
    struct inf_step_request_s *request;
    uint32_t                   values;  /* run's lock                        */
    inf_run_sequence_t         sequence;
} inf_run_source_t;

typedef struct {
    inf_flow_value_t  base;             /* first                             */
    inf_run_source_t *source;           /* NULL: the client's                */
    inf_output_t     *output;           /* likewise                          */
    inf_input_t      *input;            /* the client's; else NULL           */
} inf_run_value_t;

/* A step's request. */
typedef struct inf_step_request_s {
    inf_flow_call_t            call;    /* run's lock                        */
    inf_link_t                 live;    /* in run->live; run's lock          */
    struct inf_step_request_s *next;    /* on run->spare; run's lock         */
    inf_ensemble_run_t        *run;     /* a reference while in use          */
    inf_factory_t             *client;  /* likewise: the run's request's     */
    _Atomic uint32_t           parts;   /* request and factory: 2, 1, 0;
                                           acq_rel                           */
    inf_run_sequence_t         sequence;    /* as asked                      */
    struct TRITONSERVER_InferenceTrace *trace;  /* of its own, or NULL; set
                                           before it is submitted            */
    const inf_trace_ops_t     *trace_ops;
    inf_request_t              request;
    inf_factory_t              factory;
} inf_step_request_t;

/* Whether a step request has begun to execute. */
typedef enum {
    INF_RUN_WAITS,
    INF_RUN_BEGUN,
    INF_RUN_TOLD                        /* and the request's owner knows     */
} inf_run_execution_t;

struct inf_ensemble_run_s {
    inf_ensemble_run_t    *next;        /* on the ensemble's spare list      */
    struct inf_ensemble_s *ensemble;    /* set in new(), then constant       */
    inf_model_t           *model;       /* the ensemble's                    */
    const inf_plan_t      *plan;        /* the ensemble's                    */
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    _Atomic(inf_run_execution_t) execution; /* seq_cst; to TOLD by the drain */

    inf_lock_t             lock;        /* rank 24; guards the rest          */
    inf_flow_t             flow;
    bool                   draining;    /* a thread carries out actions      */
    uint32_t               in_use;      /* step requests not yet released    */
    inf_link_t             live;        /* step requests                     */
    inf_step_request_t    *spare;
    uint32_t               spare_count;
    uint64_t               compute_ns[3];   /* input, infer, output: sums    */

    inf_request_t         *request;     /* until its release, which is the
                                           drain's                           */
    inf_factory_t         *factory;     /* the request's                     */
    _Atomic bool           start_told;  /* seq_cst: to the client's sink     */
    bool                   failed;      /* drain                             */
};

/* ensemble.c */

/* A run without a reference and without a request. The last unref keeps it
   for another request or frees it. */
INF_CHECK inf_err_t *inf_run_new(struct inf_ensemble_s *e, inf_model_t *model,
    const inf_plan_t *plan, inf_ensemble_run_t **out);
void inf_run_free(inf_ensemble_run_t *run);
void inf_run_ref(inf_ensemble_run_t *run);
void inf_run_unref(inf_ensemble_run_t *run);

/* Releases the lock and frees the values that the flow has dropped. */
void inf_run_leave(inf_ensemble_run_t *run) INF_GIVES(run->lock);

/* Carries out the actions that follow, unless another thread does. */
void inf_run_drain(inf_ensemble_run_t *run);

/* ensemble_request.c */

/* Carries out action START. */
void inf_run_start(inf_ensemble_run_t *run, const inf_flow_action_t *start);

/* Tells the composing models that execute requests of the run; queued ones go
   to rejecter.  NULL: they are rejected here. */
void inf_run_cancel_requests(inf_ensemble_run_t *run,
    const inf_rejecter_t *rejecter);

/* Of the list of spare ones; none runs. */
void inf_run_free_requests(inf_ensemble_run_t *run);

/* ensemble_answer.c */

/* The sequence that the whole request names. */
inf_run_sequence_t inf_run_sequence(const inf_request_t *req);

/* NULL: empty, or not there. */
inf_run_value_t *inf_run_value(const inf_ensemble_run_t *run,
    const inf_flow_item_t *item, uint32_t tensor);

/* When the request times out; INF_NEVER: it does not. */
uint64_t inf_run_deadline(const inf_ensemble_run_t *run);

/* A response is begun, if the client's sink hasn't been told yet. */
void inf_run_tell_start(inf_ensemble_run_t *run);

/* Whether the value of that tensor may be made in the client's memory. */
bool inf_run_may_grant(inf_ensemble_run_t *run, uint32_t tensor);

/* Carry out actions EMIT and FINISH. */
void inf_run_answer(inf_ensemble_run_t *run, const inf_flow_action_t *emit);
void inf_run_finish(inf_ensemble_run_t *run);

/* Shape as the reader wants it, of at most dim_count + 1 dimensions; how
   many. */
uint32_t inf_run_reconcile(const int64_t *shape, uint32_t dim_count,
    bool batched, const int64_t *dims, uint32_t dims_count, bool want_batch,
    int64_t *out);

#endif /* INF_SCHED_ENSEMBLE_RUN_H */
