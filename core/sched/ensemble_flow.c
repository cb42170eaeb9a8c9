#include "core/sched/ensemble_flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_SPARE 32u      /* spare items and starts kept                   */

/* A row of values.  It lives while a call reads it, while it waits for its
   answer, and while rows of child domains are alive. */
struct inf_flow_item_s {
    inf_link_t        order;        /* in flow->order, or unlinked           */
    inf_flow_item_t  *parent;       /* NULL: root or spare                   */
    uint32_t          domain;
    uint32_t          refs;
    uint32_t          open;         /* calls, and waiting starts             */
    uint32_t         *left;         /* by place: remaining readers           */
    inf_plan_steps_t *started;
    inf_flow_value_t *values[];     /* by place; NULL: not there yet         */
};

/* A start of a step with an item. */
struct inf_flow_start_s {
    inf_flow_start_t *next;
    inf_flow_item_t  *item;
    uint32_t          step;
    inf_pause_t      *pause;        /* held, or NULL                         */
};

inf_flow_value_t inf_flow_empty;

static void trim(inf_flow_t *f, uint32_t keep);
static inf_err_t *choose_domain(inf_flow_t *f);
static void count_uses(inf_flow_t *f);
static inf_flow_item_t *item_new(inf_flow_t *f, inf_flow_item_t *parent,
    uint32_t domain);
static void item_unref(inf_flow_t *f, inf_flow_item_t *item);
static void set_value(inf_flow_t *f, inf_flow_item_t *item, uint32_t tensor,
    inf_flow_value_t *value);
static void drop_value(inf_flow_t *f, inf_flow_value_t *value);
static void use_done(inf_flow_t *f, inf_flow_item_t *item, uint32_t tensor);
static void start_readers(inf_flow_t *f, inf_flow_item_t *item,
    uint32_t tensor, inf_pause_t *(*pause)(void));
static bool may_start(const inf_flow_t *f, const inf_flow_item_t *item,
    uint32_t step);
static void add_start(inf_flow_t *f, inf_flow_item_t *item, uint32_t step,
    inf_pause_t *(*pause)(void));
static void starts_push(inf_flow_starts_t *list, inf_flow_start_t *start);
static inf_flow_start_t *starts_pop(inf_flow_starts_t *list);
static void start_next(inf_flow_t *f, uint32_t step);
static void start_free(inf_flow_t *f, inf_flow_start_t *start);
static void forget_starts(inf_flow_t *f);
static void forget(inf_flow_t *f, inf_flow_start_t *start);
static void close_item(inf_flow_t *f, inf_flow_item_t *item);
static inf_flow_item_t *answerable(inf_flow_t *f);
static bool is_complete(const inf_flow_t *f, const inf_flow_item_t *item,
    bool *hopeless);
static const inf_flow_item_t *owner(const inf_flow_t *f,
    const inf_flow_item_t *item, uint32_t domain);

inf_err_t *
inf_flow_init(inf_flow_t *f, const inf_plan_t *plan)
{
    *f = (inf_flow_t) { .plan = plan };
    inf_link_init(&f->order);
    f->output_count = inf_config_tensors_output_count(plan->model->tensors);
    f->uses = calloc(plan->tensor_count + 1, sizeof(*f->uses));
    f->outstanding = calloc(plan->step_count + 1, sizeof(*f->outstanding));
    f->deferred = calloc(plan->step_count + 1, sizeof(*f->deferred));
    f->needed = calloc(plan->step_words + 1, sizeof(*f->needed));
    f->wanted = calloc(f->output_count + 1, sizeof(*f->wanted));

    if (f->uses == NULL || f->outstanding == NULL || f->deferred == NULL
        || f->needed == NULL || f->wanted == NULL)
    {
        inf_flow_fini(f);
        return inf_err_nomem();
    }
    return NULL;
}

void
inf_flow_fini(inf_flow_t *f)
{
    trim(f, 0);
    free(f->uses);
    free(f->outstanding);
    free(f->deferred);
    free(f->needed);
    free(f->wanted);
}

inf_err_t *
inf_flow_begin(inf_flow_t *f, const bool *wanted)
{
    const inf_plan_t *plan = f->plan;

    memset(f->uses, 0, plan->tensor_count * sizeof(*f->uses));
    memset(f->needed, 0, plan->step_words * sizeof(*f->needed));
    f->cancelled = false;
    f->answer = INF_FLOW_UNANSWERED;
    f->failed = false;
    f->answers_early = false;

    for (uint32_t o = 0; o < f->output_count; o++) {
        f->wanted[o] = wanted[o];
        if (wanted[o]) {
            inf_plan_add_needs(plan, o, f->needed);
        }
    }
    count_uses(f);

    inf_err_t *err = choose_domain(f);
    if (err != NULL) {
        return err;
    }

    f->root = item_new(f, NULL, 0);
    if (f->root == NULL) {
        return inf_err_nomem();
    }
    f->root->open = 1;              /* until run(), to keep it open          */
    f->open = 1;
    inf_list_push_back(&f->order, &f->root->order);
    return NULL;
}

/* The domain of responses: the deepest wanted one, if the others are its
   parents. */
static inf_err_t *
choose_domain(inf_flow_t *f)
{
    const inf_plan_t *plan = f->plan;
    const inf_plan_tensor_t *deepest = NULL;

    for (uint32_t o = 0; o < f->output_count; o++) {
        const inf_plan_tensor_t *t = &plan->tensors[plan->outputs[o]];
        if (f->wanted[o] && (deepest == NULL || plan->domains[t->domain].depth
                > plan->domains[deepest->domain].depth))
        {
            deepest = t;
        }
    }
    f->emit_domain = deepest != NULL ? deepest->domain : 0;

    for (uint32_t o = 0; o < f->output_count; o++) {
        const inf_plan_tensor_t *t = &plan->tensors[plan->outputs[o]];
        uint32_t above = f->emit_domain;

        while (f->wanted[o] && above != t->domain) {
            above = plan->domains[above].parent;
            if (above == INF_PLAN_NONE) {
                return inf_err_new(INF_ERR_INVALID_ARG, "outputs '%s' and '%s'"
                    " of ensemble '%s' come from different decoupled models"
                    " and can't be asked for together", deepest->name,
                    t->name, plan->model->name);
            }
        }
    }
    return NULL;
}

static void
count_uses(inf_flow_t *f)
{
    const inf_plan_t *plan = f->plan;

    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        const inf_plan_tensor_t *tensor = &plan->tensors[t];
        for (uint32_t c = 0; c < tensor->consumer_count; c++) {
            f->uses[t] += inf_plan_steps_has(f->needed, tensor->consumers[c]);
        }
    }
    for (uint32_t o = 0; o < f->output_count; o++) {
        f->uses[plan->outputs[o]] += f->wanted[o];
    }
}

void
inf_flow_set_input(inf_flow_t *f, uint32_t input, inf_flow_value_t *value)
{
    set_value(f, f->root, f->plan->inputs[input], value);
}

void
inf_flow_run(inf_flow_t *f)
{
    const inf_plan_t *plan = f->plan;
    uint32_t inputs = inf_config_tensors_input_count(plan->model->tensors);

    for (uint32_t i = 0; i < inputs; i++) {
        start_readers(f, f->root, plan->inputs[i], NULL);
    }
    close_item(f, f->root);
}

inf_flow_action_t
inf_flow_next(inf_flow_t *f)
{
    inf_flow_action_t action = { .what = INF_FLOW_NOTHING };

    inf_flow_start_t *start = starts_pop(&f->starts);
    if (start != NULL) {
        action.what = INF_FLOW_START;
        action.step = start->step;
        action.item = start->item;      /* with its reference                */
        start_free(f, start);
        return action;
    }

    if (f->answer == INF_FLOW_ANSWERED) {
        return action;
    }

    inf_flow_item_t *item = f->failed ? NULL : answerable(f);
    if (item != NULL) {
        action.what = INF_FLOW_EMIT;
        action.item = item;             /* with its reference                */
        inf_link_remove(&item->order);
        action.final = f->open == 0 && answerable(f) == NULL
            && inf_list_empty(&f->order);
        f->answer = action.final ? INF_FLOW_ANSWERED : INF_FLOW_EMITTED;
        return action;
    }

    if (f->open == 0 || (f->failed && f->answers_early)) {
        if (!f->failed && f->answer == INF_FLOW_UNANSWERED
            && f->plan->domain_count == 1)
        {
            inf_flow_fail(f, inf_err_new(INF_ERR_INVALID_ARG, "unexpected"
                " deadlock, at least one output is not set while no more"
                " ensemble steps can be made"));
        }
        f->answer = INF_FLOW_ANSWERED;
        action.what = INF_FLOW_FINISH;
    }
    return action;
}

void
inf_flow_bind(inf_flow_call_t *call, const inf_flow_action_t *start)
{
    *call = (inf_flow_call_t) { .step = start->step, .item = start->item };
}

void
inf_flow_unbind(inf_flow_t *f, const inf_flow_action_t *start)
{
    f->outstanding[start->step]--;
    start_next(f, start->step);
    close_item(f, start->item);
    item_unref(f, start->item);
}

bool
inf_flow_respond(inf_flow_t *f, inf_flow_call_t *call,
    inf_flow_value_t *const *values, inf_pause_t *(*pause)(void))
{
    const inf_plan_step_t *step = &f->plan->steps[call->step];
    bool one = step->out_domain == step->domain;
    bool legal = !one || !call->answered;
    inf_flow_item_t *item = one ? call->item : NULL;

    call->answered = true;
    if (legal && !one && !f->failed) {
        item = item_new(f, call->item, step->out_domain);
        if (item == NULL) {
            inf_flow_fail(f, inf_err_nomem());
        } else {
            inf_link_insert(&call->item->order, &item->order);
        }
    }
    if (!legal || f->failed) {
        for (uint32_t i = 0; i < step->output_count; i++) {
            drop_value(f, values[i]);
        }
        return legal;
    }

    for (uint32_t i = 0; i < step->output_count; i++) {
        set_value(f, item, step->outputs[i].tensor, values[i] != NULL
            ? values[i] : &inf_flow_empty);
    }
    for (uint32_t i = 0; i < step->output_count; i++) {
        start_readers(f, item, step->outputs[i].tensor, pause);
    }
    return true;
}

void
inf_flow_end(inf_flow_t *f, inf_flow_call_t *call)
{
    assert(!call->ended);
    call->ended = true;
    f->outstanding[call->step]--;
    start_next(f, call->step);
    close_item(f, call->item);
    if (call->released) {
        item_unref(f, call->item);
    }
}

void
inf_flow_release(inf_flow_t *f, inf_flow_call_t *call)
{
    const inf_plan_step_t *step = &f->plan->steps[call->step];
    assert(!call->released);
    call->released = true;

    for (uint32_t i = 0; i < step->input_count; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i; k++) {
            again |= step->inputs[k].tensor == step->inputs[i].tensor;
        }
        if (!again) {
            use_done(f, call->item, step->inputs[i].tensor);
        }
    }
    if (call->ended) {
        item_unref(f, call->item);
    }
}

void
inf_flow_fail(inf_flow_t *f, inf_err_t *err)
{
    if (f->failed) {
        inf_err_free(err);
        return;
    }

    f->failed = true;
    f->failure = err;
    forget_starts(f);
}

void
inf_flow_answer_early(inf_flow_t *f)
{
    f->answers_early = true;
}

void
inf_flow_cancel(inf_flow_t *f)
{
    bool waits = f->starts.first != NULL;

    f->cancelled = true;
    for (uint32_t s = 0; !waits && s < f->plan->step_count; s++) {
        waits = f->deferred[s].first != NULL;
    }
    if (waits) {
        inf_flow_fail(f, inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    }
}

inf_flow_value_t *
inf_flow_value(const inf_flow_t *f, const inf_flow_item_t *item,
    uint32_t tensor)
{
    const inf_plan_tensor_t *t = &f->plan->tensors[tensor];
    return owner(f, item, t->domain)->values[t->place];
}

bool
inf_flow_may_move(const inf_flow_t *f, const inf_flow_item_t *item,
    uint32_t tensor)
{
    const inf_plan_tensor_t *t = &f->plan->tensors[tensor];
    return item->domain == t->domain && item->left[t->place] == 1;
}

void
inf_flow_emitted(inf_flow_t *f, inf_flow_item_t *item)
{
    for (uint32_t o = 0; o < f->output_count; o++) {
        uint32_t tensor = f->plan->outputs[o];
        if (f->wanted[o] && f->plan->tensors[tensor].domain == item->domain) {
            use_done(f, item, tensor);
        }
    }
    item_unref(f, item);
}

void
inf_flow_clear(inf_flow_t *f)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(&f->order)) != NULL) {
        item_unref(f, inf_link_entry(link, inf_flow_item_t, order));
    }
    assert(f->items == 0 && f->open == 0);
    inf_err_free(f->failure);
    f->failure = NULL;
    f->root = NULL;
}

void
inf_flow_trim(inf_flow_t *f)
{
    trim(f, FLOW_SPARE);
}

static void
trim(inf_flow_t *f, uint32_t keep)
{
    inf_flow_item_t **items = &f->spare_items;
    inf_flow_start_t **starts = &f->spare_starts;

    for (uint32_t i = 0; i < keep && *items != NULL; i++) {
        items = &(*items)->parent;
    }
    while (*items != NULL) {
        inf_flow_item_t *item = *items;
        *items = item->parent;
        free(item);
    }
    for (uint32_t i = 0; i < keep && *starts != NULL; i++) {
        starts = &(*starts)->next;
    }
    while (*starts != NULL) {
        inf_flow_start_t *start = *starts;
        *starts = start->next;
        free(start);
    }
}

/* Creates an item with the reference of the order of answers; NULL: out of
   memory. */
static inf_flow_item_t *
item_new(inf_flow_t *f, inf_flow_item_t *parent, uint32_t domain)
{
    const inf_plan_t *plan = f->plan;
    uint32_t most = plan->most_tensors;
    inf_flow_item_t *item = f->spare_items;

    if (item != NULL) {
        f->spare_items = item->parent;
    } else {
        size_t size = sizeof(*item) + most * sizeof(item->values[0])
            + plan->step_words * sizeof(*item->started)
            + most * sizeof(*item->left);
        item = malloc(size);
        if (item == NULL) {
            return NULL;
        }
        item->started = (inf_plan_steps_t *) (void *) &item->values[most];
        item->left = (uint32_t *) (void *) &item->started[plan->step_words];
    }

    const inf_plan_domain_t *d = &plan->domains[domain];
    for (uint32_t p = 0; p < d->tensor_count; p++) {
        item->values[p] = NULL;
        item->left[p] = f->uses[d->tensors[p]];
    }
    memset(item->started, 0, plan->step_words * sizeof(*item->started));
    inf_link_init(&item->order);
    item->parent = parent;
    item->domain = domain;
    item->refs = 1;
    item->open = 0;
    f->items++;
    if (parent != NULL) {
        parent->refs++;
    }
    return item;
}

static void
item_unref(inf_flow_t *f, inf_flow_item_t *item)
{
    while (item != NULL && --item->refs == 0) {
        const inf_plan_domain_t *d = &f->plan->domains[item->domain];
        inf_flow_item_t *parent = item->parent;

        for (uint32_t p = 0; p < d->tensor_count; p++) {
            drop_value(f, item->values[p]);
        }
        item->parent = f->spare_items;
        f->spare_items = item;
        f->items--;
        item = parent;
    }
}

/* Sets a value (taken); an unneeded one is dropped at once. */
static void
set_value(inf_flow_t *f, inf_flow_item_t *item, uint32_t tensor,
    inf_flow_value_t *value)
{
    uint32_t place = f->plan->tensors[tensor].place;

    if (f->uses[tensor] == 0) {
        drop_value(f, value);
    } else {
        item->values[place] = value;
    }
}

static void
drop_value(inf_flow_t *f, inf_flow_value_t *value)
{
    if (value != NULL && value != &inf_flow_empty) {
        value->next = f->dropped;
        f->dropped = value;
    }
}

static void
use_done(inf_flow_t *f, inf_flow_item_t *item, uint32_t tensor)
{
    uint32_t place = f->plan->tensors[tensor].place;

    assert(item->left[place] > 0);
    if (--item->left[place] == 0) {
        drop_value(f, item->values[place]);
        item->values[place] = &inf_flow_empty;
    }
}

/* Starts needed steps that read tensor and have all inputs now. */
static void
start_readers(inf_flow_t *f, inf_flow_item_t *item, uint32_t tensor,
    inf_pause_t *(*pause)(void))
{
    const inf_plan_tensor_t *t = &f->plan->tensors[tensor];

    for (uint32_t i = 0; i < t->consumer_count; i++) {
        uint32_t step = t->consumers[i];
        if (may_start(f, item, step)) {
            item->started[step / 64] |= UINT64_C(1) << (step % 64);
            add_start(f, item, step, pause);
        }
    }
}

static bool
may_start(const inf_flow_t *f, const inf_flow_item_t *item, uint32_t step)
{
    const inf_plan_step_t *s = &f->plan->steps[step];

    if (f->failed || !inf_plan_steps_has(f->needed, step)
        || inf_plan_steps_has(item->started, step))
    {
        return false;
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        const inf_plan_tensor_t *t = &f->plan->tensors[s->inputs[i].tensor];
        if (item->values[t->place] == NULL) {
            return false;
        }
    }
    return true;
}

static void
add_start(inf_flow_t *f, inf_flow_item_t *item, uint32_t step,
    inf_pause_t *(*pause)(void))
{
    uint32_t most = f->plan->max_inflight;

    if (f->cancelled) {
        inf_flow_fail(f, inf_err_new(INF_ERR_CANCELLED, "%s", ""));
        return;
    }

    inf_flow_start_t *start = f->spare_starts;
    if (start != NULL) {
        f->spare_starts = start->next;
    } else {
        start = malloc(sizeof(*start));
        if (start == NULL) {
            inf_flow_fail(f, inf_err_nomem());
            return;
        }
    }

    *start = (inf_flow_start_t) { .item = item, .step = step };
    item->refs++;
    item->open++;
    f->open++;
    if (most == 0 || f->outstanding[step] < most) {
        f->outstanding[step]++;
        starts_push(&f->starts, start);
        return;
    }

    starts_push(&f->deferred[step], start);
    start->pause = pause != NULL ? pause() : NULL;
    if (start->pause != NULL) {
        inf_pause_hold(start->pause, f->plan->steps[step].model);
    }
}

static void
starts_push(inf_flow_starts_t *list, inf_flow_start_t *start)
{
    if (list->first == NULL) {
        list->first = start;
    } else {
        list->last->next = start;
    }
    list->last = start;
    start->next = NULL;
}

static inf_flow_start_t *
starts_pop(inf_flow_starts_t *list)
{
    inf_flow_start_t *start = list->first;

    if (start != NULL) {
        list->first = start->next;
    }
    return start;
}

/* Starts the next waiting start of step with a free permit. */
static void
start_next(inf_flow_t *f, uint32_t step)
{
    inf_flow_start_t *start = starts_pop(&f->deferred[step]);
    if (start == NULL) {
        return;
    }

    f->outstanding[step]++;
    if (start->pause != NULL && inf_pause_drop(start->pause)) {
        inf_pause_push(&f->resumed, start->pause);
    }
    start->pause = NULL;
    starts_push(&f->starts, start);
}

static void
start_free(inf_flow_t *f, inf_flow_start_t *start)
{
    start->next = f->spare_starts;
    f->spare_starts = start;
}

static void
forget_starts(inf_flow_t *f)
{
    inf_flow_start_t *start;

    while ((start = starts_pop(&f->starts)) != NULL) {
        f->outstanding[start->step]--;
        forget(f, start);
    }
    for (uint32_t s = 0; s < f->plan->step_count; s++) {
        while ((start = starts_pop(&f->deferred[s])) != NULL) {
            forget(f, start);
        }
    }
}

static void
forget(inf_flow_t *f, inf_flow_start_t *start)
{
    if (start->pause != NULL && inf_pause_drop(start->pause)) {
        inf_pause_push(&f->resumed, start->pause);
    }
    close_item(f, start->item);
    item_unref(f, start->item);
    start_free(f, start);
}

static void
close_item(inf_flow_t *f, inf_flow_item_t *item)
{
    assert(item->open > 0 && f->open > 0);
    item->open--;
    f->open--;
}

/*
 * The first item that can be answered.  Items that never can be are removed,
 * and so are items that only made room for items of their calls, when no more
 * can come.
 */
static inf_flow_item_t *
answerable(inf_flow_t *f)
{
    while (!inf_list_empty(&f->order)) {
        inf_flow_item_t *item = inf_link_entry(f->order.next, inf_flow_item_t,
            order);
        bool hopeless = item->open == 0;

        if (item->domain == f->emit_domain && is_complete(f, item, &hopeless)) {
            /* FINAL goes with it if it is the only response */
            return f->plan->domain_count > 1 || f->open == 0 ? item : NULL;
        }
        if (!hopeless) {
            return NULL;
        }
        inf_link_remove(&item->order);
        item_unref(f, item);
    }
    return NULL;
}

/* Whether all outputs are there; hopeless: a missing one can never come. */
static bool
is_complete(const inf_flow_t *f, const inf_flow_item_t *item, bool *hopeless)
{
    bool complete = true;
    *hopeless = false;

    for (uint32_t o = 0; o < f->output_count; o++) {
        const inf_plan_tensor_t *t = &f->plan->tensors[f->plan->outputs[o]];
        if (!f->wanted[o]) {
            continue;
        }

        const inf_flow_item_t *above = owner(f, item, t->domain);
        if (above->values[t->place] == NULL) {
            complete = false;
            *hopeless |= above->open == 0;
        }
    }
    return complete;
}

static const inf_flow_item_t *
owner(const inf_flow_t *f, const inf_flow_item_t *item, uint32_t domain)
{
    (void) f;
    while (item->domain != domain) {
        item = item->parent;
    }
    return item;
}
