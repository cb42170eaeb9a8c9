/*
 * ensemble_flow.h - what one request makes of its ensemble's table: which
 *                   step starts when, with which tensors, and what is
 *                   answered.
 *
 * Owner    The run owns its flow.  Values are the run's: a flow keeps each
 *          until nobody needs it and then lists it as dropped.  Items and
 *          calls live in the run's lock.
 * Thread   one at a time, the run's lock held; it calls nothing.
 * Units    steps, tensors and domains are the plan's indexes.
 * Errors   begin: outputs that never meet.  Out of memory fails the flow, as
 *          a step's error does: the first error stays, nothing starts any
 *          more, and when all calls have ended the flow finishes.
 * Route    run -> [flow] -> run
 *
 * Events go in (an input, a response, an end, a release, an error, a cancel);
 * inf_flow_next() gives what follows, one after the other.  An item is a row
 * of values, one a tensor of its domain: the values of a row belong together,
 * however late each of them comes.  Rows are answered in the order in which
 * their producer made them.
 */

#ifndef INF_SCHED_ENSEMBLE_FLOW_H
#define INF_SCHED_ENSEMBLE_FLOW_H

#include "core/base/queue.h"
#include "core/sched/ensemble_pause.h"
#include "core/sched/ensemble_plan.h"

/* The first member of what the run keeps of a tensor. */
typedef struct inf_flow_value_s {
    struct inf_flow_value_s *next;      /* on the list of dropped ones       */
} inf_flow_value_t;

/* Stands for a tensor that is mapped, but was not given. */
extern inf_flow_value_t inf_flow_empty;

typedef struct inf_flow_item_s inf_flow_item_t;
typedef struct inf_flow_start_s inf_flow_start_t;

/* One execution of a step; in what the run keeps of it. */
typedef struct {
    inf_flow_item_t *item;
    uint32_t         step;
    bool             answered;
    bool             ended;             /* FINAL                             */
    bool             released;          /* it reads its inputs no more       */
} inf_flow_call_t;

typedef enum {
    INF_FLOW_NOTHING,                   /* until the next event              */
    INF_FLOW_START,                     /* step with item's values: bind()   */
    INF_FLOW_EMIT,                      /* item's outputs, then emitted()    */
    INF_FLOW_FINISH                     /* an error, or FINAL alone          */
} inf_flow_what_t;

/* How far the request is answered. */
typedef enum {
    INF_FLOW_UNANSWERED,
    INF_FLOW_EMITTED,                   /* at least one EMIT                 */
    INF_FLOW_ANSWERED                   /* nothing is answered any more      */
} inf_flow_answer_t;

typedef struct {
    inf_flow_what_t  what;
    uint32_t         step;
    inf_flow_item_t *item;
    bool             final;             /* EMIT: nothing follows             */
} inf_flow_action_t;

typedef struct {
    inf_flow_start_t *first;
    inf_flow_start_t *last;
} inf_flow_starts_t;

typedef struct {
    const inf_plan_t  *plan;
    uint32_t          *uses;            /* of each tensor: who reads it      */
    uint32_t          *outstanding;     /* of each step: permits taken       */
    inf_flow_starts_t *deferred;        /* of each step: wait for a permit   */
    inf_plan_steps_t  *needed;          /* steps                             */
    bool              *wanted;          /* of each of its outputs            */
    uint32_t           output_count;
    inf_flow_starts_t  starts;          /* next() gives them                 */
    inf_link_t         order;           /* items as they are answered        */
    uint32_t           emit_domain;
    uint32_t           open;            /* calls, and starts that wait       */
    uint32_t           items;           /* alive                             */
    inf_flow_answer_t  answer;
    bool               cancelled;
    inf_err_t         *failure;         /* the first; taken by the run       */
    bool               failed;
    bool               hasty;           /* then the answer waits for no call */
    inf_flow_value_t  *dropped;
    inf_pause_t       *resumed;
    inf_flow_item_t   *spare_items;
    inf_flow_start_t  *spare_starts;
    inf_flow_item_t   *root;
} inf_flow_t;

/* The caller's memory; plan outlives it. */
INF_CHECK inf_err_t *inf_flow_init(inf_flow_t *f, const inf_plan_t *plan);
void inf_flow_fini(inf_flow_t *f);

/* A new request; wanted[i]: the ensemble's output i. */
INF_CHECK inf_err_t *inf_flow_begin(inf_flow_t *f, const bool *wanted);

/* All inputs, then run(). */
void inf_flow_set_input(inf_flow_t *f, uint32_t input,
    inf_flow_value_t *value);
void inf_flow_run(inf_flow_t *f);

/* The action that is due. */
inf_flow_action_t inf_flow_next(inf_flow_t *f);

/* The call that an action START asked for has begun. */
void inf_flow_bind(inf_flow_t *f, inf_flow_call_t *call,
    const inf_flow_action_t *start);

/* The same when there is none to begin. */
void inf_flow_unbind(inf_flow_t *f, const inf_flow_action_t *start);

/*
 * A response; values: one for each output of the step, NULL: not given.
 * pause gives (or is NULL) what is held for each start that has to wait for a
 * permit.
 * false: a second response of a model that gives one; the values are dropped.
 */
bool inf_flow_respond(inf_flow_t *f, inf_flow_call_t *call,
    inf_flow_value_t *const *values, inf_pause_t *(*pause)(void));

/* No response follows; the inputs aren't read any more.  Once each. */
void inf_flow_end(inf_flow_t *f, inf_flow_call_t *call);
void inf_flow_release(inf_flow_t *f, inf_flow_call_t *call);

/* Takes err. */
void inf_flow_fail(inf_flow_t *f, inf_err_t *err);

/* After a failure: the answer waits for no call.  Only where the process ends,
   since calls may still write to the client's memory. */
void inf_flow_hasten(inf_flow_t *f);

/* No step starts any more; what can be answered without is. */
void inf_flow_cancel(inf_flow_t *f);

/* NULL: not there (yet); of item's domain or those above. */
inf_flow_value_t *inf_flow_value(const inf_flow_t *f,
    const inf_flow_item_t *item, uint32_t tensor);

/* Whether the run may give item's value of that tensor away on EMIT: nobody
   reads it but the client. */
bool inf_flow_may_move(const inf_flow_t *f, const inf_flow_item_t *item,
    uint32_t tensor);
void inf_flow_emitted(inf_flow_t *f, inf_flow_item_t *item);

/* After FINISH or the final EMIT, all calls ended and released. */
void inf_flow_clear(inf_flow_t *f);

/* Of a cleared flow: frees what a long stream left, but for a few. */
void inf_flow_trim(inf_flow_t *f);

#endif /* INF_SCHED_ENSEMBLE_FLOW_H */
