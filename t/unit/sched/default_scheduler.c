#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/default_scheduler.h"

#define REQUESTS 64

static inf_request_t requests[REQUESTS];

static inf_err_t *
push(inf_default_scheduler_t *s, inf_request_t *r, uint64_t now_ns)
{
    return s->base.ops->push(&s->base, r, now_ns);
}

static inf_request_t *
next(inf_default_scheduler_t *s)
{
    inf_payload_t payload;
    inf_payload_init(&payload);

    inf_next_t ready = s->base.ops->ready(&s->base, 0, 0, NULL);
    inf_next_t next = s->base.ops->next(&s->base, 0, 0, &payload, NULL, NULL);
    assert_int_equal(next, ready);
    if (next == INF_NEXT_NOTHING) {
        assert_int_equal(payload.count, 0);
        return NULL;
    }
    assert_int_equal(next, INF_NEXT_PAYLOAD);
    assert_int_equal(payload.count, 1);
    return inf_link_entry(inf_list_pop_front(&payload.requests),
        inf_request_t, link);
}

static bool
cancel(inf_default_scheduler_t *s, inf_request_t *r)
{
    return s->base.ops->cancel(&s->base, r, 0, NULL);
}

static void
init_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        inf_request_init(&requests[i]);
    }
}

static void
an_empty_queue_has_nothing_next(void **state)
{
    (void) state;
    inf_default_scheduler_t s;

    init_requests();
    inf_default_scheduler_init(&s, 0);
    assert_null(next(&s));
    assert_int_equal(s.base.queued, 0);
    assert_false(cancel(&s, &requests[0]));
    assert_int_equal(s.base.queued, 0);
}

static void
requests_leave_in_the_order_of_arrival(void **state)
{
    (void) state;
    inf_default_scheduler_t s;

    init_requests();
    inf_default_scheduler_init(&s, 0);
    for (uint64_t i = 0; i < 5; i++) {
        assert_null(push(&s, &requests[i], 100 + i));
        assert_int_equal(requests[i].state, INF_REQUEST_PENDING);
        assert_int_equal(requests[i].queue_ns, 100 + i);
    }
    assert_int_equal(s.base.queued, 5);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(next(&s), &requests[i]);
        assert_true(inf_list_empty(&requests[i].link));
    }
    assert_null(next(&s));
    assert_int_equal(s.base.queued, 0);
}

/* Priority and timeout mean nothing without dynamic batching.
   (scheduling.md 2.4) */
static void
priority_and_timeout_change_nothing(void **state)
{
    (void) state;
    inf_default_scheduler_t s;

    init_requests();
    inf_default_scheduler_init(&s, 0);
    requests[0].priority = 9;
    requests[0].timeout_us = 1;
    requests[1].priority = 1;
    assert_null(push(&s, &requests[0], 0));
    assert_null(push(&s, &requests[1],
        UINT64_C(1) << 60));
    assert_int_equal(requests[0].priority, 0);
    assert_ptr_equal(next(&s), &requests[0]);
    assert_ptr_equal(next(&s), &requests[1]);
}

/* A rejected request stays with the caller, untouched, and may come again. */
static void
a_full_queue_rejects_and_changes_nothing(void **state)
{
    (void) state;
    inf_default_scheduler_t s;

    init_requests();
    inf_default_scheduler_init(&s, 2);
    assert_null(push(&s, &requests[0], 1));
    assert_null(push(&s, &requests[1], 2));
    requests[2].queue_ns = 77;
    inf_err_t *err = push(&s, &requests[2], 3);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    assert_string_equal(inf_err_msg(err),
        "[request id: <id_unknown>] Exceeds maximum queue size");
    inf_err_free(err);
    assert_int_equal(requests[2].state, INF_REQUEST_IDLE);
    assert_int_equal(requests[2].queue_ns, 77);
    assert_true(inf_list_empty(&requests[2].link));
    assert_int_equal(s.base.queued, 2);

    assert_ptr_equal(next(&s), &requests[0]);
    assert_null(push(&s, &requests[2], 4));
    assert_int_equal(requests[2].queue_ns, 4);
}

static void
a_cancelled_request_leaves_from_anywhere_once(void **state)
{
    (void) state;
    inf_default_scheduler_t s;

    init_requests();
    inf_default_scheduler_init(&s, 0);
    for (uint64_t i = 0; i < 5; i++) {
        assert_null(push(&s, &requests[i], i));
    }
    static const int gone[] = { 0, 2, 4 };
    for (int i = 0; i < 3; i++) {
        inf_request_t *r = &requests[gone[i]];
        assert_true(cancel(&s, r));
        assert_true(inf_list_empty(&r->link));
        assert_int_equal(r->state, INF_REQUEST_REJECTED);
        assert_false(cancel(&s, r));
        inf_request_move(r, INF_REQUEST_RELEASED);
        assert_false(cancel(&s, r));
    }
    assert_int_equal(s.base.queued, 2);
    assert_ptr_equal(next(&s), &requests[1]);
    inf_request_move(&requests[1], INF_REQUEST_EXECUTING);
    assert_false(cancel(&s, &requests[1]));
    assert_ptr_equal(next(&s), &requests[3]);
    assert_int_equal(s.base.queued, 0);
}

/* ---- simulation ---------------------------------------------------------- */

/* A model of the queue: an array of the numbers in order of arrival. */
typedef struct {
    uint64_t seed;
    uint64_t now;
    int      queue[REQUESTS];
    int      count;
    uint64_t pushed, taken, cancelled, rejected;
} sim_t;

static uint32_t
sim_random(sim_t *m, uint32_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (uint32_t) (m->seed >> 33) % below;
}

static void
sim_remove(sim_t *m, int at)
{
    memmove(&m->queue[at], &m->queue[at + 1],
        (size_t) (m->count - at - 1) * sizeof(m->queue[0]));
    m->count--;
}

static void
sim_done(inf_request_t *r)
{
    inf_request_move(r, INF_REQUEST_RELEASED);
    inf_request_reset(r);
}

static void
sim_step(sim_t *m, inf_default_scheduler_t *s)
{
    int i = (int) sim_random(m, REQUESTS);
    inf_request_t *r = &requests[i];
    m->now += sim_random(m, 1000);

    switch (sim_random(m, 5)) {
    case 0:
    case 1:
        if (r->state != INF_REQUEST_IDLE) {
            return;
        }
        inf_err_t *err = push(s, r, m->now);
        if (s->limit != 0 && (uint32_t) m->count == s->limit) {
            assert_non_null(err);
            inf_err_free(err);
            m->rejected++;
            return;
        }
        assert_null(err);
        assert_int_equal(r->queue_ns, m->now);
        m->queue[m->count++] = i;
        m->pushed++;
        return;

    case 2:
        r = next(s);
        if (m->count == 0) {
            assert_null(r);
            return;
        }
        assert_ptr_equal(r, &requests[m->queue[0]]);
        assert_true(r->queue_ns <= m->now);
        sim_remove(m, 0);
        m->taken++;
        inf_request_move(r, INF_REQUEST_EXECUTING);
        if (sim_random(m, 2) == 0) {    /* others stay EXECUTING for a while */
            sim_done(r);
        }
        return;

    default:
        if (r->state == INF_REQUEST_EXECUTING) {
            assert_false(cancel(s, r));
            sim_done(r);
            return;
        }
        int at = 0;
        while (at < m->count && m->queue[at] != i) {
            at++;
        }
        assert_int_equal(cancel(s, r), at < m->count);
        if (at < m->count) {
            sim_remove(m, at);
            m->cancelled++;
            sim_done(r);
        }
        return;
    }
}

static void
simulate(uint64_t seed, uint32_t limit)
{
    inf_default_scheduler_t s;
    sim_t m = { .seed = seed };

    init_requests();
    inf_default_scheduler_init(&s, limit);
    for (int step = 0; step < 20000; step++) {
        sim_step(&m, &s);
        assert_int_equal(s.base.queued, m.count);
    }
    assert_int_equal(m.pushed, m.taken + m.cancelled + (uint64_t) m.count);
    assert_true(m.taken > 1000 && m.cancelled > 100);
    assert_true((m.rejected > 0) == (limit != 0));

    while (m.count > 0) {
        inf_request_t *r = next(&s);
        assert_ptr_equal(r, &requests[m.queue[0]]);
        sim_remove(&m, 0);
    }
    assert_null(next(&s));
    for (int i = 0; i < REQUESTS; i++) {
        inf_request_fini(&requests[i]);
    }
}

static void
random_life_loses_nothing_and_keeps_the_order(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        simulate(seed * UINT64_C(0x9e3779b97f4a7c15), seed % 2 ? 0 : 5);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_has_nothing_next),
        cmocka_unit_test(requests_leave_in_the_order_of_arrival),
        cmocka_unit_test(priority_and_timeout_change_nothing),
        cmocka_unit_test(a_full_queue_rejects_and_changes_nothing),
        cmocka_unit_test(a_cancelled_request_leaves_from_anywhere_once),
        cmocka_unit_test(random_life_loses_nothing_and_keeps_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
