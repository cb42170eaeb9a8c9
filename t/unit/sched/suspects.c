/* When suspects go: the rules one by one, and requests that end core after
   core, with a virtual clock. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/suspects.h"

#define MS UINT64_C(1000000)

static inf_suspects_t s;
static uint64_t now;

static int
setup(void **state)
{
    (void) state;
    inf_suspects_init(&s);
    now = 1000 * MS;
    return 0;
}

static inf_suspect_t *
next(void)
{
    return inf_suspects_next(&s, now);
}

static void
push(inf_suspect_t *suspect)
{
    inf_suspects_push(&s, suspect);
}

static void
suspects_go_one_at_a_time_in_order_of_arrival(void **state)
{
    (void) state;
    inf_suspect_t a = { .waits = false }, b = a, c = a;

    assert_null(next());
    push(&a);
    assert_ptr_equal(next(), &a);
    push(&b);
    push(&c);
    assert_null(next());
    inf_suspects_done(&s);
    assert_ptr_equal(next(), &b);
    assert_null(next());
    inf_suspects_done(&s);
    assert_ptr_equal(next(), &c);
    inf_suspects_done(&s);
    assert_null(next());
}

static void
a_cancelled_suspect_gives_way_to_the_next(void **state)
{
    (void) state;
    inf_suspect_t a = { .waits = false }, b = a, c = a;

    assert_false(inf_suspects_cancel(&a));
    push(&a);
    assert_ptr_equal(next(), &a);
    assert_false(inf_suspects_cancel(&a));
    push(&b);
    push(&c);
    assert_true(inf_suspects_cancel(&b));
    assert_false(inf_suspects_cancel(&b));
    inf_suspects_done(&s);
    assert_ptr_equal(next(), &c);
    assert_null(next());
}

/* 32 of 9 s each: the last begins with the total, not after five minutes; and
   nobody waits in this core again. */
static void
all_go_when_some_have_waited_for_the_total(void **state)
{
    (void) state;
    inf_suspect_t many[32];
    uint64_t first = now;
    uint32_t gone = 0;

    memset(many, 0, sizeof(many));
    for (int i = 0; i < 32; i++) {
        push(&many[i]);
    }
    while (next() != NULL) {
        gone++;
    }
    assert_int_equal(gone, 1);

    while (gone < 32) {
        now += 9000 * MS;
        inf_suspects_done(&s);
        while (next() != NULL) {
            gone++;
        }
        assert_true(now - first < INF_SUSPECTS_TOTAL_NS + 9000 * MS);
    }
    assert_int_equal(now - first, 36000 * MS);

    inf_suspect_t late[2] = { { .waits = false } };
    push(&late[0]);
    push(&late[1]);
    assert_ptr_equal(next(), &late[0]);
    assert_ptr_equal(next(), &late[1]);
}

static void
a_suspect_that_never_ends_holds_up_the_others_once(void **state)
{
    (void) state;
    inf_suspect_t hung = { .waits = false }, a = hung, b = hung;

    push(&hung);
    assert_ptr_equal(next(), &hung);
    now += 2 * INF_SUSPECTS_TOTAL_NS;           /* nobody has waited so far  */
    push(&a);
    assert_null(next());
    now += INF_SUSPECTS_TOTAL_NS - 1;
    push(&b);
    assert_null(next());
    now++;
    assert_ptr_equal(next(), &a);
    assert_ptr_equal(next(), &b);
    assert_null(next());
}

/* As suspects do that come to a new core in one turn of its intake. */
static void
suspects_that_come_together_are_held_up_once(void **state)
{
    (void) state;
    inf_suspect_t hung = { .waits = false }, a = hung, b = hung;

    push(&hung);
    push(&a);
    push(&b);
    assert_ptr_equal(next(), &hung);
    assert_null(next());
    now += INF_SUSPECTS_TOTAL_NS - 1;
    assert_null(next());
    now++;
    assert_ptr_equal(next(), &a);
    assert_ptr_equal(next(), &b);
    assert_null(next());
}

/* ---- cores one after another --------------------------------------------- */

#define COUNT     24
#define INSTANCES 6
#define TRIES     3

typedef enum {
    SENT,                       /* on its way to the core                    */
    WAITS,                      /* among suspects                            */
    QUEUED,
    EXECUTES,
    OVER
} place_t;

/* A request as its worker keeps it, which judges by what it knows after a
   death: whether it was executing, and whether a suspect was under way. */
typedef struct {
    inf_suspect_t suspect;
    place_t       place;
    uint64_t      at_ns;            /* it arrives, or its execution ends     */
    bool          ends_core;
    uint32_t      begun;
    uint32_t      excused;
    uint32_t      taken[COUNT];     /* tries, by the request that ended its
                                       core                                  */
} job_t;

static job_t jobs[COUNT];

static uint32_t
random_below(uint32_t n)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t) (state % n);
}

static uint32_t
count_in(place_t place, bool suspects_only)
{
    uint32_t n = 0;

    for (int i = 0; i < COUNT; i++) {
        n += jobs[i].place == place && (!suspects_only || jobs[i].begun > 0);
    }
    return n;
}

static void
core_starts(void)
{
    inf_suspects_init(&s);
    for (int i = 0; i < COUNT; i++) {
        if (jobs[i].place != OVER) {
            jobs[i].place = SENT;
            jobs[i].at_ns = now + random_below(60) * MS;
            jobs[i].suspect.waits = false;
        }
    }
}

static void
core_dies(uint32_t culprit)
{
    for (int i = 0; i < COUNT; i++) {
        job_t *j = &jobs[i];
        if (j->place != EXECUTES) {
            continue;
        }
        if (j->begun == 0 && s.under_way > 0) {
            j->excused = 1;
        } else {
            j->taken[culprit]++;
        }
        j->begun++;
        if (j->begun == TRIES + j->excused) {
            j->place = OVER;                    /* 503                       */
        }
    }
    core_starts();
}

static void
job_moves(uint32_t i)
{
    job_t *j = &jobs[i];

    switch (j->place) {
    case SENT:
        if (now >= j->at_ns && j->begun > 0) {
            j->place = WAITS;
            push(&j->suspect);
        } else if (now >= j->at_ns) {
            j->place = QUEUED;
        }
        break;
    case QUEUED:
        if (count_in(EXECUTES, false) < INSTANCES) {
            j->place = EXECUTES;
            j->at_ns = now + (1 + random_below(40)) * MS;
            assert_true(count_in(EXECUTES, true) <= 1);
        }
        break;
    case EXECUTES:
        if (now < j->at_ns) {
            break;
        }
        if (j->ends_core) {
            core_dies(i);
            break;
        }
        if (j->begun > 0) {
            inf_suspects_done(&s);
        }
        j->place = OVER;
        break;
    case WAITS:
    case OVER:
        break;
    }

    for (inf_suspect_t *e; (e = next()) != NULL; ) {
        inf_link_entry(e, job_t, suspect)->place = QUEUED;
    }
}

/* Requests that end their core each time take at most one try of any other
   each, and are rejected themselves. */
static void
a_request_that_ends_cores_takes_one_try_of_the_others(void **state)
{
    (void) state;
    uint32_t taken = 0;

    for (int world = 0; world < 3000; world++) {
        memset(jobs, 0, sizeof(jobs));
        uint32_t bad = 1 + random_below(2);
        for (uint32_t i = 0; i < bad; i++) {
            jobs[random_below(COUNT)].ends_core = true;
        }
        core_starts();
        for (int step = 0; count_in(OVER, false) < COUNT; step++) {
            assert_true(step < 200000);
            job_moves(random_below(COUNT));
            now += random_below(3) * MS / 4;
        }
        for (int i = 0; i < COUNT; i++) {
            assert_true(!jobs[i].ends_core || jobs[i].begun >= TRIES);
            assert_true(jobs[i].ends_core || jobs[i].begun < TRIES);
            for (int k = 0; k < COUNT; k++) {
                assert_true(k == i || jobs[i].taken[k] <= 1);
                taken += k != i && jobs[i].taken[k] > 0;
            }
        }
    }
    assert_true(taken > 3000);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        T(suspects_go_one_at_a_time_in_order_of_arrival),
        T(a_cancelled_suspect_gives_way_to_the_next),
        T(all_go_when_some_have_waited_for_the_total),
        T(a_suspect_that_never_ends_holds_up_the_others_once),
        T(suspects_that_come_together_are_held_up_once),
        T(a_request_that_ends_cores_takes_one_try_of_the_others)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
