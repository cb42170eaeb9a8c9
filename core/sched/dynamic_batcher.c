#include "core/sched/dynamic_batcher.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/private_inputs.h"
#include "core/model/string_check.h"
#include "core/sched/compatibility.h"

/* The state of the scan of the queue: "included" requests would form the
   batch. */
typedef struct {
    uint32_t       number;      /* stored in included requests               */
    inf_request_t *first;       /* NULL: none included                       */
    inf_request_t *last;
    uint32_t       count;       /* requests included                         */
    uint64_t       rows;        /* their rows                                */
    uint32_t       best;        /* how many of them make a preferred size    */
    uint64_t       oldest_ns;   /* arrival of the oldest                     */
    bool           closed;      /* no later request may join                 */
} batcher_scan_t;

/* The question to the strategy, asked without the lock by one instance's
   thread.  Requests that the strategy may read stay in the queue meanwhile. */
typedef enum {
    QUESTION_NONE,
    QUESTION_ASKED,
    QUESTION_LEFT               /* and a request it may read is to leave the
                                   queue                                     */
} question_state_t;

typedef enum {
    BATCH_NONE,
    BATCH_OPEN,
    BATCH_ENDS                  /* ends at the next question                 */
} strategy_batch_t;

typedef struct {
    question_state_t state;
    uint32_t         instance;
    uint32_t         scan;      /* number of the scan at its begin           */
    inf_request_t   *about;     /* whether this one joins; NULL: no question */
    bool             begins;    /* about would begin a batch                 */

    strategy_batch_t open;      /* used by the asking thread while it asks   */
    void            *batch;
    bool             joins;     /* the answer                                */
} batcher_question_t;

typedef struct {
    inf_policy_t                base;
    inf_queue_t                 queue;
    uint32_t                   *preferred;
    uint32_t                    preferred_count;
    uint32_t                    most;       /* largest preferred size        */
    uint32_t                    limit;
    uint64_t                    delay_ns;
    const inf_config_tensors_t *tensors;    /* NULL: no comparison           */
    inf_batch_strategy_t       *strategy;   /* or NULL                       */
    uint32_t                    hold;

    batcher_scan_t              scan;
    bool                        stale;      /* the open batch is of an older
                                               scan                          */
    batcher_question_t          question;
} batcher_t;

static inf_err_t *batcher_init(batcher_t *b,
    const inf_dynamic_batcher_options_t *options);
static inf_err_t *batcher_push(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns);
static inf_next_t batcher_next(inf_policy_t *p, uint32_t instance,
    uint64_t now_ns, inf_payload_t *out, inf_link_t *gone,
    uint64_t *until_ns);
static inf_next_t batcher_ready(inf_policy_t *p, uint32_t instance,
    uint64_t now_ns, uint64_t *until_ns);
static void batcher_ask(inf_policy_t *p);
static bool batcher_cancel(inf_policy_t *p, inf_request_t *req,
    uint64_t now_ns, inf_link_t *gone);
static inf_request_t *batcher_drop(inf_policy_t *p);
static void batcher_expire(inf_policy_t *p, uint64_t now_ns,
    inf_link_t *gone);
static uint64_t batcher_rejects_at(const inf_policy_t *p,
    const inf_request_t *req, uint64_t now_ns);
static void batcher_free(inf_policy_t *p);

static bool scan_more(batcher_t *b, inf_request_t **about);
static bool scan_fits(batcher_t *b, const inf_request_t *req);
static void scan_add(batcher_t *b, inf_request_t *req);
static void scan_again(batcher_t *b);
static bool scan_has(const batcher_t *b, const inf_request_t *req);
static inf_next_t decide(const batcher_t *b, uint64_t now_ns,
    uint32_t *count, uint64_t *until_ns);
static bool holds(batcher_t *b);
static void take(batcher_t *b, uint32_t count, inf_payload_t *out);

static inf_next_t question_put(batcher_t *b, uint32_t instance,
    inf_request_t *about, bool ends);
static void question_settle(batcher_t *b, inf_link_t *gone);
static void question_withdrawals(batcher_t *b, inf_link_t *gone);
static bool question_pins(const batcher_t *b, const inf_request_t *req);
static void strategy_begin(batcher_t *b);
static bool strategy_include(batcher_t *b, inf_request_t *req);
static bool is_sound(inf_request_t *req);
static void strategy_end(batcher_t *b);

static void drop(batcher_t *b, inf_request_t *req);
static void account(batcher_t *b);
static uint32_t request_rows(const inf_request_t *req);
static inf_queue_policy_t queue_policy(
    const Inference__ModelQueuePolicy *msg, bool keeps_order);
static inf_err_t *queue_rules(const Inference__ModelDynamicBatching *msg,
    inf_queue_rule_t **out);

static const inf_policy_ops_t batcher_ops = {
    .gathers = true,
    .push = batcher_push,
    .next = batcher_next,
    .ready = batcher_ready,
    .ask = batcher_ask,
    .cancel = batcher_cancel,
    .drop = batcher_drop,
    .expire = batcher_expire,
    .rejects_at = batcher_rejects_at,
    .leave = inf_policy_leave,
    .free = batcher_free,
    INF_POLICY_ANY_INSTANCE
};

inf_err_t *
inf_dynamic_batcher_new(const inf_dynamic_batcher_options_t *options,
    inf_policy_t **out)
{
    batcher_t *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = batcher_init(b, options);
    if (err != NULL) {
        batcher_free(&b->base);
        return err;
    }

    *out = &b->base;
    return NULL;
}

inf_err_t *
inf_dynamic_batcher_of(inf_model_t *model, inf_policy_t **out)
{
    const Inference__ModelDynamicBatching *msg =
        model->built->dynamic_batching;
    inf_queue_rule_t *rules = NULL;
    uint32_t *preferred = calloc(msg->n_preferred_batch_size + 1,
        sizeof(*preferred));

    inf_err_t *err = preferred == NULL ? inf_err_nomem()
        : queue_rules(msg, &rules);
    if (err != NULL) {
        free(preferred);
        return err;
    }

    for (size_t i = 0; i < msg->n_preferred_batch_size; i++) {
        preferred[i] = (uint32_t) msg->preferred_batch_size[i];
    }

    const inf_dynamic_batcher_options_t options = {
        .queue = {
            .levels = msg->priority_levels,
            .standard = msg->default_priority_level,
            .policy = queue_policy(msg->default_queue_policy,
                msg->preserve_ordering),
            .rules = rules,
            .rule_count = (uint32_t) msg->n_priority_queue_policy
        },
        .preferred = preferred,
        .preferred_count = (uint32_t) msg->n_preferred_batch_size,
        .limit = inf_config_tensors_max_batch_size(model->tensors),
        .delay_us = msg->max_queue_delay_microseconds,
        .tensors = model->tensors,
        .strategy = model->sched.strategy,
        /* for tests: fills the queue before the first batch */
        .hold = inf_policy_hold("TRITONSERVER_DELAY_SCHEDULER")
    };

    err = inf_dynamic_batcher_new(&options, out);
    free(preferred);
    free(rules);
    return err;
}

static inf_err_t *
batcher_init(batcher_t *b, const inf_dynamic_batcher_options_t *options)
{
    uint32_t n = options->preferred_count;

    b->base.ops = &batcher_ops;
    b->base.deadline_ns = INF_NEVER;
    b->limit = options->limit > 0 ? options->limit : 1;
    b->delay_ns = inf_us_to_ns(options->delay_us);
    b->strategy = options->strategy;
    b->hold = options->hold;
    b->scan.number = 1;
    if (options->tensors != NULL
        && inf_compatibility_matters(options->tensors))
    {
        b->tensors = options->tensors;
    }

    b->preferred = calloc(n + (size_t) 1, sizeof(*b->preferred));
    if (b->preferred == NULL) {
        return inf_err_nomem();
    }
    for (uint32_t i = 0; i < n; i++) {
        b->preferred[i] = options->preferred[i];
        b->most = b->preferred[i] > b->most ? b->preferred[i] : b->most;
    }
    b->preferred_count = n;
    if (n == 0) {
        b->preferred[b->preferred_count++] = b->most = b->limit;
    }

    return inf_queue_init(&b->queue, &options->queue);
}

static uint64_t
batcher_rejects_at(const inf_policy_t *p, const inf_request_t *req,
    uint64_t now_ns)
{
    return inf_queue_rejects_at(&((const batcher_t *) p)->queue, req, now_ns);
}

static void
batcher_free(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;

    strategy_end(b);
    inf_queue_fini(&b->queue);
    free(b->preferred);
    free(b);
}

static inf_err_t *
batcher_push(inf_policy_t *p, inf_request_t *req, uint64_t now_ns)
{
    batcher_t *b = (batcher_t *) p;

    inf_err_t *err = inf_queue_push(&b->queue, req, now_ns);
    if (err != NULL) {
        return err;
    }

    if (b->scan.last != NULL && inf_queue_before(req, b->scan.last)) {
        scan_again(b);
    }
    account(b);
    return NULL;
}

static inf_next_t
batcher_next(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
    inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns)
{
    batcher_t *b = (batcher_t *) p;
    inf_request_t *about = NULL;
    uint32_t count = 0;

    batcher_expire(p, now_ns, gone);
    if (b->question.state != QUESTION_NONE) {
        if (b->question.instance != instance) {
            return INF_NEXT_NOTHING;
        }
        question_settle(b, gone);
    }

    if (holds(b)) {
        return INF_NEXT_NOTHING;
    }
    if (scan_more(b, &about)) {
        return question_put(b, instance, about, b->stale);
    }

    inf_next_t next = decide(b, now_ns, &count, until_ns);
    if (b->question.open == BATCH_OPEN
        && (b->stale || next == INF_NEXT_PAYLOAD))
    {
        b->scan.closed |= next == INF_NEXT_PAYLOAD;
        return question_put(b, instance, NULL, true);
    }
    if (next == INF_NEXT_PAYLOAD) {
        take(b, count, out);
    }
    return next;
}

static inf_next_t
batcher_ready(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
    uint64_t *until_ns)
{
    batcher_t *b = (batcher_t *) p;
    inf_request_t *about;
    uint32_t count;
    (void) instance;

    if (b->question.state != QUESTION_NONE || holds(b)) {
        return INF_NEXT_NOTHING;
    }

    return scan_more(b, &about) ? INF_NEXT_ASK
        : decide(b, now_ns, &count, until_ns);
}

static bool
batcher_cancel(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
    inf_link_t *gone)
{
    batcher_t *b = (batcher_t *) p;
    (void) now_ns;
    (void) gone;

    if (atomic_load_explicit(&req->state, memory_order_relaxed)
        != INF_REQUEST_PENDING)
    {
        return false;
    }
    if (question_pins(b, req)) {
        req->sched.queued.withdrawn = true;
        b->question.state = QUESTION_LEFT;
        return false;
    }

    drop(b, req);
    account(b);
    return true;
}

static inf_request_t *
batcher_drop(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;
    inf_request_t *req = inf_queue_after(&b->queue, NULL);

    while (req != NULL && question_pins(b, req)) {
        req = inf_queue_after(&b->queue, req);
    }
    if (req != NULL) {
        drop(b, req);
        account(b);
    }
    return req;
}

static void
batcher_expire(inf_policy_t *p, uint64_t now_ns, inf_link_t *gone)
{
    batcher_t *b = (batcher_t *) p;
    inf_request_t *req;

    if (p->deadline_ns > now_ns) {
        return;
    }

    while ((req = inf_queue_expire(&b->queue, now_ns)) != NULL) {
        if (req->sched.queued.delayed) {
            if (scan_has(b, req)) {
                scan_again(b);
            }

        } else if (question_pins(b, req)) {
            req->sched.queued.withdrawn = true;
            b->question.state = QUESTION_LEFT;

        } else {
            drop(b, req);
            inf_list_push_back(gone, &req->link);
        }
    }
    account(b);
}

/* ---- the scan of the queue ----------------------------------------------- */

/* Continues the scan.  true: the strategy must first decide on *about. */
static bool
scan_more(batcher_t *b, inf_request_t **about)
{
    while (!b->scan.closed) {
        inf_request_t *req = inf_queue_after(&b->queue, b->scan.last);
        if (req == NULL) {
            break;
        }
        if (!scan_fits(b, req)) {
            b->scan.closed = true;
            break;
        }
        if (b->strategy != NULL) {
            *about = req;
            return true;
        }
        scan_add(b, req);
    }

    return false;
}

/* Whether req fits into the batch.  Without a preferred size reached, the scan
   stops at the request that would exceed the largest one. */
static bool
scan_fits(batcher_t *b, const inf_request_t *req)
{
    batcher_scan_t *scan = &b->scan;
    uint64_t rows = scan->rows + request_rows(req);

    if (scan->count == 0) {
        return true;
    }

    if (rows > b->most && scan->best == 0) {
        scan->best = scan->count;
    }

    return rows <= b->limit && !req->suspect
        && (b->tensors == NULL || inf_compatible(b->tensors, scan->first,
            req));
}

static void
scan_add(batcher_t *b, inf_request_t *req)
{
    batcher_scan_t *scan = &b->scan;

    if (scan->count == 0) {
        scan->first = req;
        scan->oldest_ns = req->queue_ns;
        scan->closed = req->suspect;    /* a suspect may crash the backend   */
    }
    if (req->queue_ns < scan->oldest_ns) {
        scan->oldest_ns = req->queue_ns;
    }

    req->sched.queued.scan = scan->number;
    scan->last = req;
    scan->count++;
    scan->rows += request_rows(req);

    for (uint32_t i = 0; i < b->preferred_count; i++) {
        if (scan->rows == b->preferred[i]) {
            scan->best = scan->count;
        }
    }
}

static void
scan_again(batcher_t *b)
{
    uint32_t number = b->scan.number + 1;

    b->scan = (batcher_scan_t) { .number = number != 0 ? number : 1 };
    b->stale = true;
}

static bool
scan_has(const batcher_t *b, const inf_request_t *req)
{
    return req->sched.queued.scan == b->scan.number;
}

/* Pure: the decision on the scan at now_ns. */
static inf_next_t
decide(const batcher_t *b, uint64_t now_ns, uint32_t *count,
    uint64_t *until_ns)
{
    const batcher_scan_t *scan = &b->scan;
    uint64_t due_ns = inf_later(scan->oldest_ns, b->delay_ns);

    if (scan->count == 0) {
        return INF_NEXT_NOTHING;
    }

    bool late = b->base.closing || b->base.leaving
        || (b->delay_ns > 0 && now_ns >= due_ns);
    if (scan->best > 0 && !late) {
        *count = scan->best;
        return INF_NEXT_PAYLOAD;
    }
    if (late || scan->closed || scan->rows >= b->most || b->delay_ns == 0) {
        *count = scan->count;
        return INF_NEXT_PAYLOAD;
    }

    *until_ns = due_ns;
    return INF_NEXT_WAIT;
}

static bool
holds(batcher_t *b)
{
    if (b->queue.queued >= b->hold || b->base.closing || b->base.leaving) {
        b->hold = 0;
    }

    return b->hold > 0;
}

/* Takes the batch, which is the head of the queue, in order. */
static void
take(batcher_t *b, uint32_t count, inf_payload_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        inf_request_t *req = inf_queue_after(&b->queue, NULL);
        inf_queue_remove(&b->queue, req);
        inf_list_push_back(&out->requests, &req->link);
        out->count++;
    }

    scan_again(b);
    account(b);
}

/* ---- the strategy -------------------------------------------------------- */

static inf_next_t
question_put(batcher_t *b, uint32_t instance, inf_request_t *about, bool ends)
{
    batcher_question_t *q = &b->question;

    q->state = QUESTION_ASKED;
    q->instance = instance;
    q->scan = b->scan.number;
    q->about = about;
    q->begins = b->scan.count == 0;
    if (ends && q->open == BATCH_OPEN) {
        q->open = BATCH_ENDS;
    }
    b->stale = false;
    return INF_NEXT_ASK;
}

/* Asks the strategy without the lock: writes only the last three fields of the
   question, and reads the inputs of the request. */
static void
batcher_ask(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;
    batcher_question_t *q = &b->question;

    if (q->open == BATCH_ENDS) {
        strategy_end(b);
    }
    if (q->about != NULL) {
        if (q->begins) {
            strategy_begin(b);
        }
        q->joins = strategy_include(b, q->about);
    }
}

/* Applies the answer, unless the queue changed and the batch is void. */
static void
question_settle(batcher_t *b, inf_link_t *gone)
{
    batcher_question_t *q = &b->question;
    inf_request_t *about = q->about;

    bool left = q->state == QUESTION_LEFT;

    q->state = QUESTION_NONE;
    if (left) {
        question_withdrawals(b, gone);
        return;
    }
    if (about == NULL) {
        return;
    }

    if (q->scan != b->scan.number
        || inf_queue_after(&b->queue, b->scan.last) != about)
    {
        scan_again(b);

    } else if (q->joins || b->scan.count == 0) {
        scan_add(b, about);         /* the first is never rejected           */

    } else {
        b->scan.closed = true;
    }
}

static void
question_withdrawals(batcher_t *b, inf_link_t *gone)
{
    inf_request_t *req = inf_queue_after(&b->queue, NULL);

    while (req != NULL) {
        inf_request_t *next = inf_queue_after(&b->queue, req);
        if (req->sched.queued.withdrawn) {
            drop(b, req);
            inf_list_push_back(gone, &req->link);
        }
        req = next;
    }

    scan_again(b);
    account(b);
}

/* Whether the strategy may be reading req. */
static bool
question_pins(const batcher_t *b, const inf_request_t *req)
{
    const batcher_question_t *q = &b->question;

    return q->state != QUESTION_NONE
        && (req == q->about || req->sched.queued.scan == q->scan);
}

static void
strategy_begin(batcher_t *b)
{
    batcher_question_t *q = &b->question;
    q->batch = NULL;

    inf_err_t *err = b->strategy->ops->begin(b->strategy, &q->batch);
    q->open = err == NULL ? BATCH_OPEN : BATCH_NONE;
    inf_err_log(err);
}

/* Whether req joins by the strategy.  Without a batch of the strategy nothing
   joins; malformed requests are not shown to it. */
static bool
strategy_include(batcher_t *b, inf_request_t *req)
{
    batcher_question_t *q = &b->question;
    bool joins = false;

    if (q->open != BATCH_OPEN || !is_sound(req)) {
        return false;
    }

    inf_err_t *err = b->strategy->ops->include(b->strategy, q->batch, req,
        &joins);
    joins = joins && err == NULL;
    inf_err_log(err);
    return joins;
}

/* Checks the strings that the strategy would read, as the backend does.  The
   thread that takes a malformed request rejects it. */
static bool
is_sound(inf_request_t *req)
{
    inf_err_t *err = inf_private_inputs_make(req, INF_INPUTS_ANY_GPU);
    if (err == NULL) {
        err = inf_request_check_strings(req);
        req->strings_unchecked = err != NULL;
    }

    bool sound = err == NULL;
    inf_err_free(err);
    return sound;
}

static void
strategy_end(batcher_t *b)
{
    batcher_question_t *q = &b->question;

    if (q->open != BATCH_NONE) {
        q->open = BATCH_NONE;
        inf_err_log(b->strategy->ops->end(b->strategy, q->batch));
        q->batch = NULL;
    }
}

/* ---- helpers ------------------------------------------------------------- */

static void
drop(batcher_t *b, inf_request_t *req)
{
    if (scan_has(b, req)) {
        scan_again(b);
    }
    inf_queue_remove(&b->queue, req);
    inf_request_move(req, INF_REQUEST_REJECTED);
}

static void
account(batcher_t *b)
{
    b->base.queued = b->queue.queued;
    b->base.deadline_ns = inf_queue_deadline(&b->queue);
}

static uint32_t
request_rows(const inf_request_t *req)
{
    return req->batch_size > 0 ? req->batch_size : 1;
}

/* The queue policy of msg.  A delayed request lets others pass, so if order is
   kept no request may set a timeout; a model's own delay is an invalid
   configuration then. */
static inf_queue_policy_t
queue_policy(const Inference__ModelQueuePolicy *msg, bool keeps_order)
{
    if (msg == NULL) {
        return (inf_queue_policy_t) { 0 };
    }

    bool delays = msg->timeout_action
        == INFERENCE__MODEL_QUEUE_POLICY__TIMEOUT_ACTION__DELAY;
    return (inf_queue_policy_t) {
        .delays = delays,
        .overrides = msg->allow_timeout_override && !(delays && keeps_order),
        .timeout_us = msg->default_timeout_microseconds,
        .limit = msg->max_queue_size
    };
}

static inf_err_t *
queue_rules(const Inference__ModelDynamicBatching *msg,
    inf_queue_rule_t **out)
{
    inf_queue_rule_t *rules = calloc(msg->n_priority_queue_policy + 1,
        sizeof(*rules));
    if (rules == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < msg->n_priority_queue_policy; i++) {
        rules[i] = (inf_queue_rule_t) {
            .level = msg->priority_queue_policy[i]->key,
            .policy = queue_policy(msg->priority_queue_policy[i]->value,
                msg->preserve_ordering)
        };
    }

    *out = rules;
    return NULL;
}
