/*
 * batcher_world.h - one policy made from a configuration, requests by number
 *                   and time in ms.
 *
 * Owner    the test: world_open, world_close.
 * Thread   one.
 * Units    ms, as the scheduling reference tells its scenarios.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_BATCHER_WORLD_H
#define INF_T_SCHED_BATCHER_WORLD_H

#include "model/config_text.h"

#include <stdio.h>

#include "core/model/model.h"
#include "core/sched/batch_strategy.h"
#include "core/sched/policy.h"

#define MS UINT64_C(1000000)
#define WORLD_REQUESTS 64

typedef struct {
    inf_model_t   *model;
    inf_policy_t  *policy;
    inf_request_t  requests[WORLD_REQUESTS];
    char           text[1024];
} world_t;

/* scheduling: what stands in dynamic_batching; inputs: what in input. */
static inline void
world_open_strategy(world_t *w, int max_batch, const char *inputs,
    const char *scheduling, inf_batch_strategy_t *strategy)
{
    char text[4096];
    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: %d"
        " input [ %s ]"
        " output [ { name: 'OUT' data_type: TYPE_INT32 dims: -1 } ]"
        " dynamic_batching { %s }", max_batch, inputs != NULL ? inputs
        : "{ name: 'IN' data_type: TYPE_INT32 dims: 4 }", scheduling);

    memset(w, 0, sizeof(*w));
    w->model = inf_model_new("m", 1, "/models/m");
    assert_non_null(w->model);
    w->model->built = config_parse_normal(text);
    w->model->sched.strategy = strategy;
    assert_ok(inf_config_tensors_new(w->model->built, &w->model->tensors));
    assert_ok(inf_policy_new(w->model, &w->policy));
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        inf_request_init(&w->requests[i]);
    }
}

static inline void
world_open(world_t *w, int max_batch, const char *inputs,
    const char *scheduling)
{
    world_open_strategy(w, max_batch, inputs, scheduling, NULL);
}

static inline void
world_close(world_t *w)
{
    w->policy->ops->free(w->policy);
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        inf_request_fini(&w->requests[i]);
    }
    inf_model_free(w->model);
}

static inline void
push(world_t *w, int i, uint32_t rows, uint64_t at_ms)
{
    w->requests[i].batch_size = rows;
    assert_ok(w->policy->ops->push(w->policy, &w->requests[i], at_ms * MS));
    assert_int_equal(w->requests[i].state, INF_REQUEST_PENDING);
}

static inline void
push_rejected(world_t *w, int i, uint32_t rows, uint64_t at_ms)
{
    w->requests[i].batch_size = rows;
    assert_error(w->policy->ops->push(w->policy, &w->requests[i], at_ms * MS),
        INF_ERR_UNAVAILABLE, "Exceeds maximum queue size");
    assert_int_equal(w->requests[i].state, INF_REQUEST_IDLE);
}

static inline void
put_ids(world_t *w, inf_link_t *list, const char *before)
{
    for (inf_link_t *l; (l = inf_list_pop_front(list)) != NULL; before = " ") {
        inf_request_t *r = inf_link_entry(l, inf_request_t, link);
        size_t len = strlen(w->text);
        snprintf(w->text + len, sizeof(w->text) - len, "%s%d", before,
            (int) (r - w->requests));
        assert_int_equal(r->state, *before == '-' || strstr(w->text, "-")
            ? INF_REQUEST_REJECTED : INF_REQUEST_PENDING);
        if (r->state == INF_REQUEST_PENDING) {
            inf_request_move(r, INF_REQUEST_EXECUTING);
        }
        inf_request_move(r, INF_REQUEST_RELEASED);
    }
}

/*
 * The answer to an idle instance: "0 2" (their payload), "wait 30" (ms),
 * "nothing", "ask"; and behind it "-5" for those that must be rejected.
 */
static inline const char *
next_of(world_t *w, uint32_t instance, uint64_t at_ms)
{
    inf_payload_t payload;
    inf_link_t gone;
    uint64_t until = 0, until_ready = 0;
    inf_next_t ready = INF_NEXT_NOTHING;

    inf_payload_init(&payload);
    inf_link_init(&gone);
    w->text[0] = '\0';
    bool early = w->policy->deadline_ns > at_ms * MS;
    if (early) {
        ready = w->policy->ops->ready(w->policy, 0, at_ms * MS,
            &until_ready);
    }
    uint32_t queued = w->policy->queued;
    inf_next_t next = w->policy->ops->next(w->policy, instance, at_ms * MS,
        &payload, &gone, &until);
    if (early && ready != INF_NEXT_ASK && next != INF_NEXT_ASK
        && ready != INF_NEXT_NOTHING)
    {
        assert_int_equal(ready, next);      /* ready foretells next          */
        assert_int_equal(until, until_ready);
    }

    switch (next) {
    case INF_NEXT_NOTHING:
        strcpy(w->text, "nothing");
        break;
    case INF_NEXT_ASK:
        strcpy(w->text, "ask");
        break;
    case INF_NEXT_WAIT:
        snprintf(w->text, sizeof(w->text), "wait %llu",
            (unsigned long long) (until / MS));
        break;
    case INF_NEXT_PAYLOAD:
        assert_true(payload.count > 0);
        queued -= payload.count;
        put_ids(w, &payload.requests, "");
        break;
    }
    put_ids(w, &gone, " -");
    if (strchr(w->text, '-') == NULL) {
        assert_int_equal(w->policy->queued, queued);
    }
    return w->text;
}

static inline const char *
next_at(world_t *w, uint64_t at_ms)
{
    return next_of(w, 0, at_ms);
}

/* "-3 4": whose time was over; "" none. */
static inline const char *
expire_at(world_t *w, uint64_t at_ms)
{
    inf_link_t gone;
    inf_link_init(&gone);
    w->text[0] = '\0';
    w->policy->ops->expire(w->policy, at_ms * MS, &gone);
    put_ids(w, &gone, "-");
    return w->text;
}

static inline bool
cancel(world_t *w, int i)
{
    return w->policy->ops->cancel(w->policy, &w->requests[i], 0, NULL);
}

#endif /* INF_T_SCHED_BATCHER_WORLD_H */
