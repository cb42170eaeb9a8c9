/*
 * ensemble_flow.h - one request in its ensemble: which step starts when, with
 *                   which tensors, and which responses are sent.
 *
 * Owner    The run owns its flow and the values.  The flow keeps a value until
 *          nothing needs the value, and then lists the value as dropped.
 * Thread   one at a time, with the run's lock held.  The flow calls nothing but
 *          the pause of inf_flow_respond().
 * Units    Steps, tensors and domains are indexes of the plan.
 * Errors   begin: outputs that cannot be in one response.  Later errors, of a
 *          step or out of memory, fail the flow: the first error is kept, no
 *          more steps start, and the flow finishes when all calls have ended.
 * Route    run -> [flow] -> run
 *
 * Events go in: an input, a response, an end, a release, an error, a cancel.
 * After each event inf_flow_next() returns the resulting actions one by one,
 * until NOTHING.
 *
 * Order for a request: begin, set_input for each input, run; then events and
 * next, until FINISH or the final EMIT; clear, when all calls have ended.
 *
 * An item is a row of values, one for each tensor of its domain.  The values of
 * a row belong together, whenever each of them is set.  Rows are answered in
 * the order of their producer.
 */

#ifndef INF_SCHED_ENSEMBLE_FLOW_H
#define INF_SCHED_ENSEMBLE_FLOW_H

#include "core/base/queue.h"
#include "core/sched/ensemble_pause.h"
#include "core/sched/ensemble_plan.h"

/* First member of the run's value of a tensor. */
typedef struct inf_flow_value_s {
    struct inf_flow_value_s *next;      /* in the list of dropped values     */
} inf_flow_value_t;

/* The value of a mapped tensor that has none. */
extern inf_flow_value_t inf_flow_empty;

typedef struct inf_flow_item_s inf_flow_item_t;
typedef struct inf_flow_start_s inf_flow_start_t;

/* One execution of a step; part of the run's step request. */
typedef struct {
    inf_flow_item_t *item;
    uint32_t         step;
    bool             answered;
    bool             ended;             /* FINAL has come                    */
    bool             released;          /* inputs no longer read             */
} inf_flow_call_t;

typedef enum {
    INF_FLOW_NOTHING,                   /* wait for the next event           */
    INF_FLOW_START,                     /* start step with item's values:
                                           bind()                            */
    INF_FLOW_EMIT,                      /* send item's outputs, then
                                           emitted()                         */
    INF_FLOW_FINISH                     /* send an error, or FINAL alone     */
} inf_flow_what_t;

/* Progress of the request's answer. */
typedef enum {
    INF_FLOW_UNANSWERED,
    INF_FLOW_EMITTED,                   /* at least one EMIT                 */
    INF_FLOW_ANSWERED                   /* nothing is sent any more          */
} inf_flow_answer_t;

typedef struct {
    inf_flow_what_t  what;
    uint32_t         step;
    inf_flow_item_t *item;
    bool             final;             /* EMIT: the last one                */
} inf_flow_action_t;

typedef struct {
    inf_flow_start_t *first;
    inf_flow_start_t *last;
} inf_flow_starts_t;

typedef struct {
    const inf_plan_t  *plan;
    uint32_t          *uses;            /* by tensor: number of readers      */
    uint32_t          *outstanding;     /* by step: permits taken            */
    inf_flow_starts_t *deferred;        /* by step: starts waiting for a
                                           permit                            */
    inf_plan_steps_t  *needed;          /* steps to run                      */
    bool              *wanted;          /* by output of the ensemble         */
    uint32_t           output_count;
    inf_flow_starts_t  starts;          /* returned by next()                */
    inf_link_t         order;           /* items in the order of answers     */
    uint32_t           emit_domain;
    uint32_t           open;            /* calls, and waiting starts         */
    uint32_t           items;           /* number of live items              */
    inf_flow_answer_t  answer;
    bool               cancelled;
    inf_err_t         *failure;         /* the first error; taken by the run */
    bool               failed;
    bool               answers_early;   /* a failure does not wait for calls */
    inf_flow_value_t  *dropped;
    inf_pause_t       *resumed;
    inf_flow_item_t   *spare_items;
    inf_flow_start_t  *spare_starts;
    inf_flow_item_t   *root;
} inf_flow_t;

/* Initializes the caller's memory; plan outlives it. */
INF_CHECK inf_err_t *inf_flow_init(inf_flow_t *f, const inf_plan_t *plan);
void inf_flow_fini(inf_flow_t *f);

/* Begins a request; wanted[i]: whether the ensemble's output i is wanted. */
INF_CHECK inf_err_t *inf_flow_begin(inf_flow_t *f, const bool *wanted);

/* set_input sets one input; run starts the flow when all inputs are set. */
void inf_flow_set_input(inf_flow_t *f, uint32_t input,
    inf_flow_value_t *value);
void inf_flow_run(inf_flow_t *f);

/* The next action. */
inf_flow_action_t inf_flow_next(inf_flow_t *f);

/* Sets up call, which action START has begun. */
void inf_flow_bind(inf_flow_call_t *call, const inf_flow_action_t *start);

/* Called instead of bind if no call could begin. */
void inf_flow_unbind(inf_flow_t *f, const inf_flow_action_t *start);

/*
 * Takes the values of a response, one for each output of the step; NULL: not
 * given.  pause, which may be NULL, is called for each start that waits for a
 * permit, and returns the pause that the start holds.  false: a second response
 * of a model that gives one; the values are dropped.
 */
bool inf_flow_respond(inf_flow_t *f, inf_flow_call_t *call,
    inf_flow_value_t *const *values, inf_pause_t *(*pause)(void));

/* end: no response of the call follows.  release: the call reads its inputs no
   more.  Each is called once. */
void inf_flow_end(inf_flow_t *f, inf_flow_call_t *call);
void inf_flow_release(inf_flow_t *f, inf_flow_call_t *call);

/* Fails the flow; takes err. */
void inf_flow_fail(inf_flow_t *f, inf_err_t *err);

/* Lets a failure be answered without a wait for calls.  Only for a process that
   ends, because calls may still write to the client's memory. */
void inf_flow_answer_early(inf_flow_t *f);

/* Starts no more steps.  Complete rows are still answered. */
void inf_flow_cancel(inf_flow_t *f);

/* The value of a tensor of item's domain or of a parent domain; NULL: there is
   none, or none yet. */
inf_flow_value_t *inf_flow_value(const inf_flow_t *f,
    const inf_flow_item_t *item, uint32_t tensor);

/* may_move: whether EMIT may give the value away, because nothing but the
   client reads the value.  emitted ends an EMIT. */
bool inf_flow_may_move(const inf_flow_t *f, const inf_flow_item_t *item,
    uint32_t tensor);
void inf_flow_emitted(inf_flow_t *f, inf_flow_item_t *item);

/* Clears the flow after FINISH or the final EMIT, when all calls have ended and
   were released. */
void inf_flow_clear(inf_flow_t *f);

/* Frees most items of a cleared flow that a long stream has left. */
void inf_flow_trim(inf_flow_t *f);

#endif /* INF_SCHED_ENSEMBLE_FLOW_H */
