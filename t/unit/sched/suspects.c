/* Which executions begin beside suspects: the rules one by one, and random
   traffic with a virtual clock. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static inf_execution_t *
next(void)
{
    return inf_suspects_next(&s, now);
}

static void
push(inf_execution_t *e, bool suspect)
{
    *e = (inf_execution_t) { .suspect = suspect, .whole = e };
    inf_suspects_push(&s, e, now);
}

static void
done(inf_execution_t *e)
{
    inf_suspects_done(&s, e, now);
}

static void
a_suspect_waits_for_what_executes_and_others_for_it(void **state)
{
    (void) state;
    inf_execution_t a, b, first, second, c;

    push(&a, false);
    push(&b, false);
    assert_ptr_equal(next(), &a);
    assert_ptr_equal(next(), &b);
    push(&first, true);
    push(&c, false);
    push(&second, true);
    assert_null(next());
    done(&a);
    assert_null(next());
    done(&b);
    assert_ptr_equal(next(), &first);
    assert_null(next());
    done(&first);
    assert_ptr_equal(next(), &second);
    assert_null(next());
    done(&second);
    assert_ptr_equal(next(), &c);
    done(&c);
    assert_null(next());
}

static void
what_another_execution_may_wait_for_begins_at_once(void **state)
{
    (void) state;
    inf_execution_t a, suspect, part, other_part, unrelated;

    push(&a, false);
    assert_ptr_equal(next(), &a);
    push(&suspect, true);
    assert_null(next());
    part = (inf_execution_t) { .exempt = true, .whole = &a };
    inf_suspects_push(&s, &part, now);          /* a waits for it            */
    assert_ptr_equal(next(), &part);
    done(&a);
    assert_null(next());
    done(&part);
    assert_ptr_equal(next(), &suspect);

    other_part = (inf_execution_t) { .suspect = true, .exempt = true,
        .whole = &suspect };
    push(&unrelated, true);
    inf_suspects_push(&s, &other_part, now);
    assert_ptr_equal(next(), &other_part);      /* the suspect waits for it  */
    assert_null(next());
    done(&suspect);
    assert_null(next());
    done(&other_part);
    assert_ptr_equal(next(), &unrelated);
    done(&unrelated);
}

static void
what_never_ends_is_waited_for_once(void **state)
{
    (void) state;
    inf_execution_t stuck, suspect, second, c;

    push(&stuck, false);
    assert_ptr_equal(next(), &stuck);
    push(&suspect, true);
    now += INF_SUSPECT_WAIT_NS - 1;
    assert_null(next());
    now++;
    assert_ptr_equal(next(), &suspect);
    push(&second, true);
    done(&suspect);
    assert_ptr_equal(next(), &second);
    done(&stuck);                               /* of a round before         */
    push(&c, false);
    assert_null(next());
    done(&second);
    assert_ptr_equal(next(), &c);
    done(&c);
}

static void
a_suspect_that_never_ends_holds_up_nobody_for_ever(void **state)
{
    (void) state;
    inf_execution_t stuck, second, c, d;

    push(&stuck, true);
    assert_ptr_equal(next(), &stuck);
    now += MS;
    push(&c, false);
    push(&second, true);
    now += INF_SUSPECT_WAIT_NS;
    assert_ptr_equal(next(), &c);               /* it has waited as long     */
    assert_null(next());
    push(&d, false);
    assert_null(next());
    done(&c);
    assert_ptr_equal(next(), &second);
    done(&stuck);
    done(&second);
    assert_ptr_equal(next(), &d);
    done(&d);
}

/* ---- random traffic ------------------------------------------------------ */

#define COUNT 24

typedef struct {
    inf_execution_t e;
    uint64_t        pushed_ns;
    uint64_t        begun_ns;
    uint64_t        takes_ns;
    bool            used;
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

static bool
executes(const job_t *j)
{
    return j->used && (j->e.state == INF_EXECUTION_BESIDE
        || j->e.state == INF_EXECUTION_ALONE);
}

/* Executions are shorter than the longest wait: a suspect has nobody beside it
   but what is exempt. */
static void
check_alone(void)
{
    for (int i = 0; i < COUNT; i++) {
        if (!executes(&jobs[i]) || jobs[i].e.state != INF_EXECUTION_ALONE) {
            continue;
        }
        for (int k = 0; k < COUNT; k++) {
            assert_true(k == i || !executes(&jobs[k]) || jobs[k].e.exempt);
        }
    }
}

static void
nobody_is_lost_and_suspects_are_alone(void **state)
{
    (void) state;
    uint64_t suspects = 0;
    uint64_t longest = 0;

    memset(jobs, 0, sizeof(jobs));
    for (uint32_t step = 0; step < 400000; step++) {
        job_t *j = &jobs[random_below(COUNT)];
        if (!j->used && step < 399000) {
            *j = (job_t) { .used = true, .pushed_ns = now,
                .takes_ns = (1 + random_below(400)) * MS };
            j->e.suspect = random_below(6) == 0;
            j->e.exempt = !j->e.suspect && random_below(10) == 0;
            j->e.whole = j;
            suspects += j->e.suspect;
            inf_suspects_push(&s, &j->e, now);
        } else if (executes(j) && now - j->begun_ns >= j->takes_ns) {
            inf_suspects_done(&s, &j->e, now);
            j->used = false;
        }

        inf_execution_t *e;
        while ((e = inf_suspects_next(&s, now)) != NULL) {
            job_t *begun = (job_t *) (void *) e;
            begun->begun_ns = now;
            uint64_t waited = now - begun->pushed_ns;
            longest = waited > longest ? waited : longest;
            check_alone();
        }
        now += random_below(20) * MS;
    }
    for (int i = 0; i < COUNT; i++) {
        assert_false(jobs[i].used);
    }
    assert_true(suspects > 1000);
    assert_true(longest < 3 * INF_SUSPECT_WAIT_NS);
    assert_int_equal(s.alone, 0);
    assert_int_equal(s.beside, 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        T(a_suspect_waits_for_what_executes_and_others_for_it),
        T(what_another_execution_may_wait_for_begins_at_once),
        T(what_never_ends_is_waited_for_once),
        T(a_suspect_that_never_ends_holds_up_nobody_for_ever),
        T(nobody_is_lost_and_suspects_are_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
