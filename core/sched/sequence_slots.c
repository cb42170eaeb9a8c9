/* sequence_slots.c - instances, their slots and the sequences in them. */

#include "core/sched/sequence_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/sched/dynamic_batcher.h"

typedef inf_sequence_batcher_t batcher_t;
typedef inf_sequence_instance_t instance_t;
typedef inf_sequence_t         sequence_t;
typedef inf_slot_t             slot_t;

static bool slot_has_work(const slot_t *s);
static bool instance_occupied(const instance_t *instance);
static void instance_move(instance_t *instance, inf_slots_state_t to);
static void vacancy_push(batcher_t *b, slot_t *s);
static inf_err_t *instance_new(const batcher_t *b, uint32_t number,
    inf_instance_t *model_instance, void *owner, instance_t **out);

void
inf_slot_issue(batcher_t *b, slot_t *s)
{
    instance_t *instance = s->instance;

    if (instance->batcher == NULL || s->issued != NULL || s->running > 0
        || inf_list_empty(&s->queue))
    {
        return;
    }

    inf_request_t *req = inf_link_entry(s->queue.next, inf_request_t, link);
    uint64_t priority = req->priority;
    inf_link_remove(&req->link);
    inf_err_t *err = instance->batcher->ops->push(instance->batcher, req,
        req->queue_ns);
    if (err != NULL) {              /* no memory: tried again later          */
        inf_err_free(err);
        inf_list_push_front(&s->queue, &req->link);
        instance->stuck = true;
        inf_sequence_instance_touch(b, instance);
        return;
    }

    req->priority = priority;
    req->sched.queued.slot = s;
    s->issued = req;
    inf_sequence_instance_touch(b, instance);
}

void
inf_slot_settle(batcher_t *b, slot_t *s, uint64_t now_ns)
{
    if (s->over && !slot_has_work(s)) {
        inf_slot_offer(b, s);
        return;
    }

    inf_slot_issue(b, s);
    if (s->sequence != NULL && s->running == 0 && !slot_has_work(s)) {
        inf_sequence_timer_set(b, s->sequence, inf_later(now_ns,
            b->idle_ns));
        inf_link_remove(&s->sequence->link);
        inf_list_push_back(&b->silent, &s->sequence->link);
        inf_slots_give_way(b);
    }
}

void
inf_slot_offer(batcher_t *b, slot_t *s)
{
    instance_t *instance = s->instance;

    s->over = false;
    s->sequence = NULL;
    if (s->taken) {
        s->taken = false;
        instance->taken--;
        b->taken--;
    }

    if (instance->state != INF_SLOTS_OPEN) {
        inf_sequence_instance_touch_empty(b, instance);
        return;
    }

    if (inf_list_empty(&b->backlog)) {
        vacancy_push(b, s);
        return;
    }

    sequence_t *q = inf_link_entry(b->backlog.next, sequence_t, link);
    inf_link_t *link;

    inf_sequence_leave_backlog(b, q);
    inf_slot_give(b, s, q);
    while ((link = inf_list_pop_front(&q->queue)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        req->sched.queued = (inf_request_queued_t) { .slot = s };
        inf_list_push_back(&s->queue, link);
        instance->queued++;
    }
    s->over = q->over;
    if (!q->known) {
        s->sequence = NULL;
        inf_sequence_free(b, q);
    }

    inf_slot_issue(b, s);
    inf_slot_touch(b, s);
}

void
inf_slot_give(batcher_t *b, slot_t *s, sequence_t *q)
{
    s->taken = true;
    s->turn++;
    s->sequence = q;
    q->slot = s;
    s->instance->taken++;
    b->taken++;
}

void
inf_slot_forget(batcher_t *b, slot_t *s)
{
    sequence_t *q = s->sequence;

    if (q != NULL) {
        inf_slot_speak(b, s);
        inf_sequence_forget(b, q);
        inf_sequence_free(b, q);
        s->sequence = NULL;
    }
}

void
inf_slot_lose(batcher_t *b, slot_t *s, inf_request_t *req)
{
    s->instance->queued--;
    b->base.queued--;
    b->base.again -= req->sched.again;
    req->sched.again = false;
}

void
inf_slot_speak(batcher_t *b, slot_t *s)
{
    inf_sequence_timer_clear(b, s->sequence);
    inf_link_remove(&s->sequence->link);
}

void
inf_slots_give_way(batcher_t *b)
{
    inf_link_t *link = b->silent.next;

    while (b->base.leaving && !inf_list_empty(&b->backlog)
        && link != &b->silent)
    {
        slot_t *s = inf_link_entry(link, sequence_t, link)->slot;
        link = link->next;
        if (s->instance->state != INF_SLOTS_RETIRED) {
            inf_slot_forget(b, s);
            inf_slot_offer(b, s);
        }
    }
}

static bool
slot_has_work(const slot_t *s)
{
    return s->issued != NULL || !inf_list_empty(&s->queue);
}

slot_t *
inf_slot_take_free(batcher_t *b)
{
    if (b->vacancies.top == NULL) {
        return NULL;
    }

    slot_t *s = inf_heap_entry(b->vacancies.top, slot_t, vacancy);
    inf_heap_remove(&b->vacancies, &s->vacancy);
    b->vacant--;
    return s;
}

/* Adds a free slot, ordered by slot number, then by instance. */
static void
vacancy_push(batcher_t *b, slot_t *s)
{
    inf_heap_push(&b->vacancies, &s->vacancy,
        (uint64_t) s->number << 32 | s->instance->number);
    b->vacant++;
}

void
inf_sequence_leave_backlog(batcher_t *b, sequence_t *q)
{
    inf_link_remove(&q->link);
    b->waiting--;
    inf_sequence_timer_clear(b, q);
}

inf_err_t *
inf_sequence_batcher_attach(inf_policy_t *p, uint32_t number,
    inf_instance_t *model_instance, void *owner)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = NULL;

    if (b->instance_count == b->instance_cap) {
        uint32_t cap = b->instance_cap > 0 ? b->instance_cap * 2 : 4;
        instance_t **wider = realloc(b->instances, cap * sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        b->instances = wider;
        b->instance_cap = cap;
    }

    inf_err_t *err = instance_new(b, number, model_instance, owner, &instance);
    if (err != NULL) {
        return err;
    }

    uint32_t at = b->instance_count++;
    while (at > 0 && b->instances[at - 1]->number > number) {
        b->instances[at] = b->instances[at - 1];
        at--;
    }
    b->instances[at] = instance;
    return NULL;
}

void
inf_sequence_batcher_open(inf_policy_t *p, uint32_t number)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = inf_sequence_instance_find(b, number);

    if (instance == NULL || instance->state != INF_SLOTS_PREPARING) {
        return;
    }

    instance_move(instance, INF_SLOTS_OPEN);
    for (uint32_t i = 0; i < b->options.slots; i++) {
        inf_slot_offer(b, &instance->slots[i]);
    }
}

void
inf_sequence_batcher_retire(inf_policy_t *p, uint32_t number)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = inf_sequence_instance_find(b, number);

    if (instance == NULL || instance->state == INF_SLOTS_RETIRED) {
        return;
    }

    instance_move(instance, INF_SLOTS_RETIRED);
    for (uint32_t i = 0; i < b->options.slots; i++) {
        slot_t *s = &instance->slots[i];
        if (s->vacancy.queued) {
            inf_heap_remove(&b->vacancies, &s->vacancy);
            b->vacant--;
        }
    }
    inf_sequence_instance_touch_empty(b, instance);
}
static void
instance_move(instance_t *instance, inf_slots_state_t to)
{
    assert(to > instance->state);
    instance->state = to;
}


void
inf_sequence_batcher_leave(inf_policy_t *p, bool leaves)
{
    p->leaving = leaves;
    inf_slots_give_way((batcher_t *) p);
}

bool
inf_sequence_batcher_occupied(const inf_policy_t *p, uint32_t number)
{
    const batcher_t *b = (const batcher_t *) p;
    const instance_t *instance = inf_sequence_instance_find(b, number);

    return instance != NULL && instance_occupied(instance);
}

static bool
instance_occupied(const instance_t *instance)
{
    return instance->taken > 0 || instance->queued > 0 || instance->running > 0;
}

void
inf_sequence_batcher_detach(inf_policy_t *p, uint32_t number)
{
    batcher_t *b = (batcher_t *) p;
    instance_t *instance = inf_sequence_instance_find(b, number);
    uint32_t at = 0;

    if (instance == NULL) {
        return;
    }

    inf_sequence_batcher_retire(p, number);
    inf_link_remove(&instance->touch);
    for (uint32_t i = 0; i < b->options.slots; i++) {
        slot_t *s = &instance->slots[i];
        inf_slot_forget(b, s);
        b->taken -= s->taken;
        s->taken = false;
    }

    while (b->instances[at] != instance) {
        at++;
    }
    b->instance_count--;
    memmove(&b->instances[at], &b->instances[at + 1],
        (b->instance_count - at) * sizeof(b->instances[0]));

    if (instance->running > 0) {
        inf_list_push_back(&b->departed, &instance->link);
    } else {
        inf_sequence_instance_free(b, instance);
    }
}

void *
inf_sequence_batcher_touched(inf_policy_t *p)
{
    batcher_t *b = (batcher_t *) p;
    inf_link_t *link = inf_list_pop_front(&b->touched);

    return link != NULL ? inf_link_entry(link, instance_t, touch)->owner : NULL;
}

void
inf_sequence_instance_touch(batcher_t *b, instance_t *instance)
{
    if (inf_list_empty(&instance->touch)) {
        inf_list_push_back(&b->touched, &instance->touch);
    }
}

void
inf_slot_touch(batcher_t *b, slot_t *s)
{
    if (s->instance->batcher == NULL && inf_slot_can_run(s)) {
        inf_sequence_instance_touch(b, s->instance);
    }
}

void
inf_sequence_instance_touch_empty(batcher_t *b, instance_t *instance)
{
    if (instance->state == INF_SLOTS_RETIRED && !instance_occupied(instance)) {
        inf_sequence_instance_touch(b, instance);
    }
}

instance_t *
inf_sequence_instance_find(const batcher_t *b, uint32_t number)
{
    uint32_t low = 0, high = b->instance_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (b->instances[mid]->number < number) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < b->instance_count && b->instances[low]->number == number
        ? b->instances[low] : NULL;
}

static inf_err_t *
instance_new(const batcher_t *b, uint32_t number,
    inf_instance_t *model_instance, void *owner, instance_t **out)
{
    const inf_sequence_batcher_options_t *o = &b->options;
    instance_t *instance = calloc(1, sizeof(*instance)
        + o->slots * sizeof(instance->slots[0]));
    inf_err_t *err = NULL;
    if (instance == NULL) {
        return inf_err_nomem();
    }

    instance->number = number;
    instance->owner = owner;
    instance->keeps = o->inputs != NULL && inf_sequence_inputs_keep(o->inputs);
    inf_link_init(&instance->touch);
    inf_link_init(&instance->link);
    for (uint32_t i = 0; i < o->slots; i++) {
        slot_t *s = &instance->slots[i];
        s->instance = instance;
        s->number = i;
        inf_link_init(&s->queue);
    }

    if (o->oldest) {
        err = inf_dynamic_batcher_new(&(inf_dynamic_batcher_options_t) {
            .preferred = b->preferred,
            .preferred_count = o->preferred_count,
            .limit = o->limit,
            .delay_us = o->delay_us,
            .tensors = o->tensors
        }, &instance->batcher);
    }
    for (uint32_t i = 0; err == NULL && o->inputs != NULL && i < o->slots;
        i++)
    {
        err = inf_slot_inputs_open(o->inputs, model_instance,
            &instance->slots[i].inputs);
    }
    if (err != NULL) {
        inf_sequence_instance_free(b, instance);
        return err;
    }

    *out = instance;
    return NULL;
}

void
inf_sequence_instance_free(const batcher_t *b, instance_t *instance)
{
    for (uint32_t i = 0; i < b->options.slots; i++) {
        inf_slot_inputs_close(instance->slots[i].inputs);
    }
    if (instance->batcher != NULL) {
        instance->batcher->ops->free(instance->batcher);
    }
    free(instance);
}
