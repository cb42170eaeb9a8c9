#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include <sched.h>
#include <cmocka.h>

#include "core/wire/ring.h"

#define COUNT 8

typedef struct {
    inf_ring_index_t    tail, head, sleeping;
    uint64_t            entries[4096][8];
    inf_ring_producer_t p;
    inf_ring_consumer_t c;
} ring_t;

static void
ring_open(ring_t *r, uint32_t count)
{
    memset(r, 0, sizeof(*r));
    inf_ring_producer_init(&r->p, r->entries, &r->tail, &r->head,
        &r->sleeping, count);
    inf_ring_consumer_init(&r->c, r->entries, &r->tail, &r->head,
        &r->sleeping, count);
}

/* As if both sides had run for long: close to the wrap of the index. */
static void
ring_open_at(ring_t *r, uint32_t at)
{
    ring_open(r, COUNT);
    r->tail.value = r->head.value = at;
    r->p.tail = r->p.head = r->c.tail = r->c.head = at;
}

static void
entries_come_out_whole_and_in_order_across_the_wrap(void **state)
{
    (void) state;
    static ring_t r;
    ring_open_at(&r, UINT32_MAX - 20);

    uint64_t in = 0, out = 0;
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 1 + round % COUNT; i++, in++) {
            uint64_t e[8] = { in, ~in, in, in, in, in, in, in * 3 };
            assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
        }
        uint64_t e[8];
        while (inf_ring_pop(&r.c, e) == INF_RING_DONE) {
            assert_true(e[0] == out && e[1] == ~out && e[7] == out * 3);
            out++;
        }
    }

    assert_int_equal(in, out);
}

static void
push_into_a_full_ring_waits_and_last_place_is_told(void **state)
{
    (void) state;
    static ring_t r;
    ring_open_at(&r, UINT32_MAX - 3);
    uint64_t e[8] = { 0 };
    bool last = false;

    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(inf_ring_room(&r.p, &last), INF_RING_DONE);
        assert_int_equal(last, i == COUNT - 1);
        assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
    }

    assert_int_equal(inf_ring_push(&r.p, e), INF_RING_WAIT);
    assert_int_equal(inf_ring_pop(&r.c, e), INF_RING_DONE);
    assert_int_equal(inf_ring_room(&r.p, &last), INF_RING_DONE);
    assert_true(last);
    assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
    assert_int_equal(inf_ring_push(&r.p, e), INF_RING_WAIT);
}

static void
sleeper_is_woken_once_and_does_not_sleep_on_work(void **state)
{
    (void) state;
    static ring_t r;
    ring_open(&r, COUNT);
    uint64_t e[8] = { 0 };

    assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
    assert_false(inf_ring_wake(&r.p));
    assert_false(inf_ring_sleep(&r.c));
    assert_false(inf_ring_wake(&r.p));

    assert_int_equal(inf_ring_pop(&r.c, e), INF_RING_DONE);
    assert_true(inf_ring_sleep(&r.c));
    assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
    assert_true(inf_ring_wake(&r.p));
    assert_false(inf_ring_wake(&r.p));
}

static void
impossible_tail_breaks_the_consumer_for_good(void **state)
{
    (void) state;
    static ring_t r;
    uint64_t e[8];
    const uint32_t bad[] = { COUNT + 1, 0x7fffffff, 0x80000000, UINT32_MAX };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ring_open_at(&r, 5);
        r.tail.value = 5 + bad[i];
        assert_int_equal(inf_ring_pop(&r.c, e), INF_RING_BROKEN);
        assert_false(inf_ring_sleep(&r.c));
        r.tail.value = 6;
        assert_int_equal(inf_ring_pop(&r.c, e), INF_RING_BROKEN);
    }
}

static void
impossible_head_breaks_the_producer_for_good(void **state)
{
    (void) state;
    static ring_t r;
    uint64_t e[8] = { 0 };
    const uint32_t bad[] = { COUNT + 1, 0x80000000, UINT32_MAX };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ring_open_at(&r, 5);
        for (int k = 0; k < COUNT - 1; k++) {
            assert_int_equal(inf_ring_push(&r.p, e), INF_RING_DONE);
        }
        r.head.value = 5 + bad[i];
        assert_int_equal(inf_ring_push(&r.p, e), INF_RING_BROKEN);
        r.head.value = 5;
        assert_int_equal(inf_ring_push(&r.p, e), INF_RING_BROKEN);
    }
}

static void
random_foreign_index_never_yields_more_than_the_ring_holds(void **state)
{
    (void) state;
    static ring_t r;
    uint32_t seed = 12345;

    for (int round = 0; round < 20000; round++) {
        ring_open_at(&r, seed);
        uint32_t popped = 0;
        uint64_t e[8];
        for (int step = 0; step < 4; step++) {
            seed = seed * 1664525u + 1013904223u;
            r.tail.value = round % 2 ? r.c.head + (seed >> 24) : seed;
            uint32_t avail = r.tail.value - r.c.head;
            uint32_t n = 0;
            while (inf_ring_pop(&r.c, e) == INF_RING_DONE) {
                n++;
                assert_true(n <= COUNT);
            }
            assert_true(r.c.broken || n == avail);
            popped += n;
        }
        assert_true(popped <= 4 * COUNT);
    }
}

#define STRESS 200000u

static void *
produce(void *arg)
{
    ring_t *r = arg;

    for (uint64_t i = 0; i < STRESS; ) {
        uint64_t e[8] = { i, i, i, i, i, i, i, ~i };
        if (inf_ring_push(&r->p, e) == INF_RING_DONE) {
            i++;
        } else {
            sched_yield();
        }
    }

    return NULL;
}

static void
two_threads_see_every_entry_once(void **state)
{
    (void) state;
    static ring_t r;
    pthread_t t;

    ring_open(&r, 64);
    assert_int_equal(pthread_create(&t, NULL, produce, &r), 0);
    for (uint64_t i = 0; i < STRESS; ) {
        uint64_t e[8];
        if (inf_ring_pop(&r.c, e) != INF_RING_DONE) {
            sched_yield();
            continue;
        }
        assert_true(e[0] == i && e[7] == ~i);
        i++;
    }
    pthread_join(t, NULL);
}

static void
layout_of_other_sizes_is_rejected(void **state)
{
    (void) state;
    inf_rings_header_t h;
    uint64_t size = inf_rings_layout(&h, 4096, 4096);

    assert_true(inf_rings_check(&h, size));
    assert_false(inf_rings_check(&h, size - 1));
    assert_true(h.submit_offset >= sizeof(h));
    assert_true(h.slot_state_offset + 4096 <= size);

    uint64_t *offsets[] = { &h.submit_offset, &h.complete_offset,
        &h.slot_state_offset, &h.magic };
    for (size_t i = 0; i < 4; i++) {
        uint64_t was = *offsets[i];
        *offsets[i] = was + 64;
        assert_false(inf_rings_check(&h, size));
        *offsets[i] = was;
    }

    const uint32_t entries[] = { 0, 1, 3, 4095, INF_RINGS_MAX_ENTRIES * 2,
        0x80000000u };
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        size = inf_rings_layout(&h, entries[i], 16);
        assert_false(inf_rings_check(&h, size));
    }
    size = inf_rings_layout(&h, 16, 0);
    assert_false(inf_rings_check(&h, size));
    size = inf_rings_layout(&h, 16, INF_MAX_SLOTS + 1);
    assert_false(inf_rings_check(&h, size));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_out_whole_and_in_order_across_the_wrap),
        cmocka_unit_test(push_into_a_full_ring_waits_and_last_place_is_told),
        cmocka_unit_test(sleeper_is_woken_once_and_does_not_sleep_on_work),
        cmocka_unit_test(impossible_tail_breaks_the_consumer_for_good),
        cmocka_unit_test(impossible_head_breaks_the_producer_for_good),
        cmocka_unit_test(
            random_foreign_index_never_yields_more_than_the_ring_holds),
        cmocka_unit_test(two_threads_see_every_entry_once),
        cmocka_unit_test(layout_of_other_sizes_is_rejected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
