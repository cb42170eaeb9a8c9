#include "core/sched/queue.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_LEVELS 16u            /* initial room for levels               */

static inf_err_t *queue_reserve(inf_queue_t *q, uint32_t cap);
static uint64_t level_number(const inf_queue_t *q, const inf_request_t *req);
static const inf_queue_policy_t *level_policy(const inf_queue_t *q,
    uint64_t number);
static uint32_t level_slot(const inf_queue_t *q, uint64_t number);
static inf_err_t *level_get(inf_queue_t *q, uint64_t number,
    inf_level_t **out);
static void level_drop(inf_queue_t *q, inf_level_t *level);
static uint64_t timeout_at(const inf_queue_policy_t *policy,
    const inf_request_t *req, uint64_t now_ns);
static inf_request_t *level_first(const inf_level_t *level);
static inf_request_t *request_of(inf_link_t *link);
static int by_level(const void *a, const void *b);

inf_err_t *
inf_queue_init(inf_queue_t *q, const inf_queue_options_t *options)
{
    *q = (inf_queue_t) {
        .levels = options->levels,
        .standard = options->standard,
        .policy = options->policy
    };

    q->rules = calloc(options->rule_count + (size_t) 1, sizeof(*q->rules));
    if (q->rules == NULL) {
        return inf_err_nomem();
    }
    if (options->levels > 0 && options->rule_count > 0) {
        q->rule_count = options->rule_count;
        memcpy(q->rules, options->rules,
            q->rule_count * sizeof(*q->rules));
        qsort(q->rules, q->rule_count, sizeof(*q->rules), by_level);
    }

    uint64_t likely = options->levels < QUEUE_LEVELS ? options->levels
        : QUEUE_LEVELS;
    return queue_reserve(q, likely > 0 ? (uint32_t) likely : 1);
}

void
inf_queue_fini(inf_queue_t *q)
{
    for (uint32_t i = 0; i < q->used_count; i++) {
        free(q->used[i]);
    }
    for (uint32_t i = 0; i < q->spare_count; i++) {
        free(q->spare[i]);
    }

    free(q->used);
    free(q->spare);
    free(q->rules);
    *q = (inf_queue_t) { 0 };
}

inf_err_t *
inf_queue_push(inf_queue_t *q, inf_request_t *req, uint64_t now_ns)
{
    inf_level_t *level;
    uint64_t number = level_number(q, req);

    inf_err_t *err = level_get(q, number, &level);
    if (err != NULL) {
        return err;
    }

    const inf_queue_policy_t *policy = level->policy;
    if (policy->limit != 0 && level->count >= policy->limit) {
        return inf_request_name_error(req, inf_err_because(inf_err_new(
            INF_ERR_UNAVAILABLE, "Exceeds maximum queue size"),
            INF_CAUSE_FULL));
    }

    inf_request_move(req, INF_REQUEST_PENDING);
    req->priority = number;
    req->queue_ns = now_ns;
    req->sched.queued = (inf_request_queued_t) { .level = level };
    inf_list_push_back(&level->live, &req->link);
    level->count++;
    q->queued++;

    uint64_t at = timeout_at(policy, req, now_ns);
    if (at != UINT64_MAX) {
        inf_heap_push(&q->timeouts, &req->timeout, at);
    }
    return NULL;
}

void
inf_queue_remove(inf_queue_t *q, inf_request_t *req)
{
    inf_level_t *level = req->sched.queued.level;

    inf_link_remove(&req->link);
    inf_heap_remove(&q->timeouts, &req->timeout);
    req->sched.queued.level = NULL;
    q->queued--;
    if (--level->count == 0) {
        level_drop(q, level);
    }
}

uint64_t
inf_queue_rejects_at(const inf_queue_t *q, const inf_request_t *req,
    uint64_t now_ns)
{
    const inf_queue_policy_t *policy = level_policy(q, level_number(q, req));
    return policy->delays ? UINT64_MAX : timeout_at(policy, req, now_ns);
}

uint64_t
inf_queue_deadline(const inf_queue_t *q)
{
    return q->timeouts.top != NULL ? q->timeouts.top->key : UINT64_MAX;
}

inf_request_t *
inf_queue_expire(inf_queue_t *q, uint64_t now_ns)
{
    if (inf_queue_deadline(q) > now_ns) {
        return NULL;
    }

    inf_request_t *req = inf_heap_entry(q->timeouts.top, inf_request_t,
        timeout);
    inf_request_queued_t *queued = &req->sched.queued;
    inf_heap_remove(&q->timeouts, &req->timeout);

    if (queued->level->policy->delays) {
        inf_link_remove(&req->link);
        inf_list_push_back(&queued->level->delayed, &req->link);
        queued->delayed = true;
    }
    return req;
}

inf_request_t *
inf_queue_after(const inf_queue_t *q, const inf_request_t *at)
{
    if (at == NULL) {
        return q->used_count > 0 ? level_first(q->used[0]) : NULL;
    }

    inf_level_t *level = at->sched.queued.level;
    inf_link_t *next = at->link.next;

    if (next == &level->live) {
        next = level->delayed.next;
    }
    if (next != &level->delayed) {
        return request_of(next);
    }

    uint32_t slot = level_slot(q, level->number) + 1;
    return slot < q->used_count ? level_first(q->used[slot]) : NULL;
}

bool
inf_queue_before(const inf_request_t *a, const inf_request_t *b)
{
    if (a->sched.queued.level != b->sched.queued.level) {
        return a->sched.queued.level->number < b->sched.queued.level->number;
    }

    return !a->sched.queued.delayed && b->sched.queued.delayed;
}

static inf_err_t *
queue_reserve(inf_queue_t *q, uint32_t cap)
{
    inf_level_t **used = realloc(q->used, cap * sizeof(*used));
    if (used == NULL) {
        return inf_err_nomem();
    }
    q->used = used;

    inf_level_t **spare = realloc(q->spare, cap * sizeof(*spare));
    if (spare == NULL) {
        return inf_err_nomem();
    }
    q->spare = spare;

    while (q->cap < cap) {
        inf_level_t *level = calloc(1, sizeof(*level));
        if (level == NULL) {
            return inf_err_nomem();
        }
        q->spare[q->spare_count++] = level;
        q->cap++;
    }

    return NULL;
}

static uint64_t
level_number(const inf_queue_t *q, const inf_request_t *req)
{
    if (q->levels == 0) {
        return 0;
    }

    return req->priority == 0 || req->priority > q->levels ? q->standard
        : req->priority;
}

static const inf_queue_policy_t *
level_policy(const inf_queue_t *q, uint64_t number)
{
    const inf_queue_rule_t key = { .level = number };
    const inf_queue_rule_t *rule = bsearch(&key, q->rules, q->rule_count,
        sizeof(*q->rules), by_level);

    return rule != NULL ? &rule->policy : &q->policy;
}

/* The index of the level of that number, or where it would be inserted. */
static uint32_t
level_slot(const inf_queue_t *q, uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = q->used_count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (q->used[mid]->number < number) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

/* Finds or adds a level; allocates only if more levels are used at once than
   ever before. */
static inf_err_t *
level_get(inf_queue_t *q, uint64_t number, inf_level_t **out)
{
    uint32_t slot = level_slot(q, number);

    if (slot < q->used_count && q->used[slot]->number == number) {
        *out = q->used[slot];
        return NULL;
    }

    if (q->spare_count == 0) {
        inf_err_t *err = queue_reserve(q, q->cap * 2);
        if (err != NULL && q->spare_count == 0) {
            return err;
        }
        inf_err_free(err);
    }

    inf_level_t *level = q->spare[--q->spare_count];
    level->number = number;
    level->policy = level_policy(q, number);
    level->count = 0;
    inf_link_init(&level->live);
    inf_link_init(&level->delayed);

    memmove(&q->used[slot + 1], &q->used[slot],
        (q->used_count - slot) * sizeof(*q->used));
    q->used[slot] = level;
    q->used_count++;
    *out = level;
    return NULL;
}

static void
level_drop(inf_queue_t *q, inf_level_t *level)
{
    uint32_t slot = level_slot(q, level->number);

    q->used_count--;
    memmove(&q->used[slot], &q->used[slot + 1],
        (q->used_count - slot) * sizeof(*q->used));
    q->spare[q->spare_count++] = level;
}

/*
 * The time of the timeout.  A request may shorten the level's timeout where
 * allowed, and set one where the level has none (Triton ignores it then).
 */
static uint64_t
timeout_at(const inf_queue_policy_t *policy, const inf_request_t *req,
    uint64_t now_ns)
{
    uint64_t timeout_us = policy->timeout_us;
    uint64_t own = req->timeout_us;
    uint64_t at;

    if (policy->overrides && own != 0
        && (timeout_us == 0 || own < timeout_us))
    {
        timeout_us = own;
    }

    return timeout_us == 0
        || __builtin_mul_overflow(timeout_us, (uint64_t) 1000, &at)
        || __builtin_add_overflow(at, now_ns, &at) ? UINT64_MAX : at;
}

static inf_request_t *
level_first(const inf_level_t *level)
{
    return request_of(!inf_list_empty(&level->live) ? level->live.next
        : level->delayed.next);
}

static inf_request_t *
request_of(inf_link_t *link)
{
    return inf_link_entry(link, inf_request_t, link);
}

static int
by_level(const void *a, const void *b)
{
    uint64_t x = ((const inf_queue_rule_t *) a)->level;
    uint64_t y = ((const inf_queue_rule_t *) b)->level;
    return (x > y) - (x < y);
}
