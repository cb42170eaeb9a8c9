/* The rate limiter as a passive object: every scenario of the scheduling
   reference's section 5, ratios, and random worlds under invariants. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/rate_limiter.h"

#define NEEDS_MAX 4
#define EVERY INF_RATE_EVERY_DEVICE

static inf_rate_limiter_t *l;

static void
open_limiter(const inf_rate_resource_t *given, size_t count)
{
    assert_null(inf_rate_limiter_new(given, count, &l));
}

/* "R1 4, *R2 2": the star means global. */
static size_t
parse(const char *text, char names[NEEDS_MAX][16], inf_rate_need_t *needs)
{
    size_t n = 0;
    int used;

    while (*text != '\0') {
        bool global = *text == '*';
        unsigned long long count;

        assert_int_equal(sscanf(text + global, "%15s %llu%n", names[n],
            &count, &used), 2);
        needs[n] = (inf_rate_need_t) { names[n], count, global };
        text += global + used;
        text += strspn(text, ", ");
        n++;
    }
    return n;
}

static inf_err_t *
try_add(inf_rate_instance_t *i, int32_t device, uint32_t priority,
    const char *text)
{
    inf_rate_need_t needs[NEEDS_MAX];
    char names[NEEDS_MAX][16];
    size_t n = parse(text, names, needs);

    memset(i, 0, sizeof(*i));
    inf_err_t *err = inf_rate_limiter_add(l, i, device, priority, needs, n);
    memset(names, 'x', sizeof(names));      /* it keeps no pointer           */
    return err;
}

static void
add(inf_rate_instance_t *i, int32_t device, uint32_t priority,
    const char *text)
{
    assert_null(try_add(i, device, priority, text));
}

static void
add_fails(int32_t device, const char *text, const char *why)
{
    inf_rate_instance_t i;
    inf_err_t *err = try_add(&i, device, 1, text);

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), why);
    inf_err_free(err);
}

static void
close_limiter(inf_rate_instance_t *i, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        inf_rate_limiter_remove(l, &i[k]);
    }
    inf_rate_limiter_free(l);
}

static void
ask(inf_rate_instance_t *i)
{
    inf_rate_limiter_ask(l, i, false);
}

/* It executed, and there is more for it. */
static void
again(inf_rate_instance_t *i)
{
    inf_rate_limiter_release(l, i, true);
    inf_rate_limiter_ask(l, i, true);
}

static void
done(inf_rate_instance_t *i)
{
    inf_rate_limiter_release(l, i, true);
}

static void
expect_copies(const char *name, int32_t device, uint64_t copies)
{
    assert_int_equal(inf_rate_limiter_copies(l, name, device == EVERY, device),
        copies);
}

/* One at a time, all want to go on and on: who went how often. */
static void
saturate(inf_rate_instance_t *i, size_t count, uint32_t executions)
{
    for (size_t k = 0; k < count; k++) {
        ask(&i[k]);
    }
    for (uint32_t n = 0; n < executions; n++) {
        inf_rate_instance_t *now = inf_rate_limiter_next(l);
        assert_non_null(now);
        assert_null(inf_rate_limiter_next(l));
        again(now);
    }
    for (size_t k = 0; k < count; k++) {
        inf_rate_limiter_withdraw(l, &i[k]);
    }
}

/* scheduling.md 5, the documentation's example */
static void
the_documented_example_has_the_documented_copies(void **state)
{
    (void) state;
    inf_rate_instance_t i[3];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R1 4, R2 4");
    add(&i[1], 0, 1, "R2 5, R3 10, R4 5");
    add(&i[2], 0, 1, "R1 1, R3 7, R4 2");
    expect_copies("R1", 0, 4);
    expect_copies("R2", 0, 5);
    expect_copies("R3", 0, 10);
    expect_copies("R4", 0, 5);
    expect_copies("R1", 1, 0);
    expect_copies("R1", EVERY, 0);

    inf_rate_limiter_remove(l, &i[1]);      /* an unload shrinks             */
    expect_copies("R2", 0, 4);
    expect_copies("R3", 0, 7);
    expect_copies("R4", 0, 2);
    inf_rate_limiter_remove(l, &i[0]);
    expect_copies("R1", 0, 1);
    expect_copies("R2", 0, 0);
    close_limiter(&i[2], 1);
}

/* scheduling.md 5, the documentation's example with two devices */
static void
the_documented_two_devices_have_the_documented_copies(void **state)
{
    (void) state;
    const inf_rate_resource_t given[] = {
        { "R1", 10, EVERY }, { "R2", 5, 0 }, { "R2", 8, 1 }, { "R3", 2, EVERY }
    };
    inf_rate_instance_t i[2];

    open_limiter(given, 4);
    add(&i[0], 0, 1, "R1 1, R2 1, *R3 1");
    add(&i[1], 1, 1, "R1 1, R2 1, *R3 1");
    expect_copies("R3", EVERY, 2);
    expect_copies("R1", 0, 10);
    expect_copies("R2", 0, 5);
    expect_copies("R1", 1, 10);
    expect_copies("R2", 1, 8);
    expect_copies("R3", 0, 0);

    add_fails(0, "R2 6", "Resource count for \"R2\" is limited to 5 which will"
        " prevent scheduling of one or more model instances, the minimum"
        " required count is 6");
    add_fails(1, "R4 1", "Resource count for \"R4\" is limited to 0 which will"
        " prevent scheduling of one or more model instances, the minimum"
        " required count is 1");
    close_limiter(i, 2);
}

static void
of_repeated_limits_the_least_counts_and_of_devices_the_most(void **state)
{
    (void) state;
    const inf_rate_resource_t given[] = {
        { "A", 7, EVERY }, { "A", 3, EVERY }, { "A", 9, 1 }, { "A", 8, 1 },
        { "A", 2, 2 }, { "G", 2, 0 }, { "G", 6, 5 }, { "G", 5, 5 }
    };
    inf_rate_instance_t i[4];

    open_limiter(given, 8);
    for (int32_t k = 0; k < 3; k++) {
        add(&i[k], k, 1, "A 1");
    }
    add(&i[3], 0, 1, "*G 1");
    expect_copies("A", 0, 3);
    expect_copies("A", 1, 8);
    expect_copies("A", 2, 3);       /* every device has that many            */
    expect_copies("G", EVERY, 5);
    add_fails(0, "a 1", "Resource count for \"a\" is limited to 0 which will"
        " prevent scheduling of one or more model instances, the minimum"
        " required count is 1");    /* names are case-sensitive              */
    close_limiter(i, 4);
}

/* scheduling.md 5.1 */
static void
priority_two_gets_half_the_turns_of_priority_one(void **state)
{
    (void) state;
    inf_rate_instance_t i[2];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R1 1");
    add(&i[1], 0, 2, "R1 1");
    saturate(i, 2, 10000);
    assert_in_range(i[0].turns, 6666, 6667);
    assert_in_range(i[1].turns, 3333, 3334);
    close_limiter(i, 2);
}

/* Of two that have used the same share the higher priority is first. */
static void
a_tie_goes_to_the_higher_priority(void **state)
{
    (void) state;
    inf_rate_instance_t i[2];

    for (size_t high = 0; high < 2; high++) {
        open_limiter(NULL, 0);
        add(&i[high], 0, 1, "R1 1");
        add(&i[1 - high], 0, 2, "R1 1");
        ask(&i[0]);
        ask(&i[1]);
        assert_ptr_equal(inf_rate_limiter_next(l), &i[high]);
        inf_rate_limiter_release(l, &i[high], false);
        inf_rate_limiter_withdraw(l, &i[1 - high]);
        close_limiter(i, 2);
    }
}

/* Priority 2 has its turn after two of priority 1, and the first one, too. */
static void
of_two_that_begin_together_a_low_priority_ends_its_period(void **state)
{
    (void) state;
    static const size_t order[] = { 0, 0, 1, 0, 0, 1, 0, 0, 1 };
    inf_rate_instance_t i[2];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R1 1");
    add(&i[1], 0, 2, "R1 1");
    ask(&i[0]);
    ask(&i[1]);
    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        inf_rate_instance_t *turn = inf_rate_limiter_next(l);
        assert_ptr_equal(turn, &i[order[k]]);
        inf_rate_limiter_release(l, turn, true);
        ask(turn);
    }
    inf_rate_limiter_withdraw(l, &i[0]);
    inf_rate_limiter_withdraw(l, &i[1]);
    close_limiter(i, 2);
}

static void
turns_go_by_priority_whatever_the_order_of_asking(void **state)
{
    (void) state;
    static const uint32_t priorities[] = { 5, 0, 3, 1, 2, 4000000000u };
    inf_rate_instance_t i[6];
    double weight = 1.0 / 5 + 1 + 1.0 / 3 + 1 + 1.0 / 2
        + 1.0 / INF_RATE_PRIORITY_MAX;

    open_limiter(NULL, 0);
    for (size_t k = 0; k < 6; k++) {
        add(&i[k], 0, priorities[k], k % 2 ? "R1 1" : "R1 1, S 1");
    }
    saturate(i, 6, 10000);
    for (size_t k = 0; k < 5; k++) {
        uint32_t p = priorities[k] == 0 ? 1 : priorities[k];
        double fair = 10000 / weight / p;
        assert_true((double) i[k].turns > fair - 2);
        assert_true((double) i[k].turns < fair + 2);
    }
    assert_int_equal(i[5].turns, 1);
    close_limiter(i, 6);
}

/* scheduling.md 5.2 */
static void
with_plenty_of_resources_nobody_waits(void **state)
{
    (void) state;
    const inf_rate_resource_t given[] = {
        { "R1", 6, EVERY }, { "R2", 2, EVERY }
    };
    inf_rate_instance_t i[2];

    open_limiter(given, 2);
    add(&i[0], 0, 1, "R1 4");
    add(&i[1], 0, 2, "R1 2, *R2 2");
    for (int n = 0; n < 80; n++) {
        ask(&i[0]);
        ask(&i[1]);
        assert_non_null(inf_rate_limiter_next(l));
        assert_non_null(inf_rate_limiter_next(l));
        assert_null(inf_rate_limiter_next(l));
        done(&i[0]);
        done(&i[1]);
    }
    assert_int_equal(i[0].turns, i[1].turns);
    close_limiter(i, 2);
}

/* scheduling.md 5.3 */
static void
who_needs_more_than_there_is_is_rejected(void **state)
{
    (void) state;
    const inf_rate_resource_t one[] = { { "resource1", 1, EVERY } };
    const inf_rate_resource_t far[] = { { "resource1", 10, 10 } };

    open_limiter(one, 1);
    add_fails(0, "resource1 4", "Resource count for \"resource1\" is limited"
        " to 1 which will prevent scheduling of one or more model instances,"
        " the minimum required count is 4");
    expect_copies("resource1", 0, 0);       /* nothing is left of it         */
    inf_rate_limiter_free(l);

    open_limiter(far, 1);
    add_fails(0, "resource1 4", "Resource count for \"resource1\" is limited"
        " to 0 which will prevent scheduling of one or more model instances,"
        " the minimum required count is 4");
    inf_rate_limiter_free(l);
}

/* scheduling.md 5.4 */
static void
a_resource_is_global_for_all_or_for_none(void **state)
{
    (void) state;
    static const char why[] = "Resource \"resource2\" is present as both"
        " global and device-specific resource in the model configuration.";
    inf_rate_instance_t i;

    open_limiter(NULL, 0);
    add_fails(0, "resource2 1, *resource2 1", why);
    add(&i, 0, 1, "*resource2 2");
    add_fails(3, "R 1, resource2 1", why);
    expect_copies("R", 3, 0);
    inf_rate_limiter_remove(l, &i);
    add(&i, 0, 1, "resource2 2");           /* the other one is gone         */
    add_fails(0, "*resource2 1", why);
    close_limiter(&i, 1);
}

static void
senseless_needs_are_rejected(void **state)
{
    (void) state;

    open_limiter(NULL, 0);
    add_fails(0, "R 0",
        "rate_limiter.resources \"R\": count must be at least 1");
    add_fails(0, "R 1, R 2",
        "rate_limiter.resources \"R\": named more than once");

    const inf_rate_need_t nameless = { "", 1, false };
    inf_rate_instance_t i = { 0 };
    inf_err_t *err = inf_rate_limiter_add(l, &i, 0, 1, &nameless, 1);
    assert_string_equal(inf_err_msg(err),
        "rate_limiter.resources \"\": name must not be empty");
    inf_err_free(err);
    inf_rate_limiter_free(l);
}

/* scheduling.md 5.5 */
static void
a_shared_resource_keeps_two_models_apart(void **state)
{
    (void) state;
    inf_rate_instance_t i[2];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R1 4");
    add(&i[1], 0, 1, "R1 2, *R2 2");
    expect_copies("R1", 0, 4);
    expect_copies("R2", EVERY, 2);
    ask(&i[0]);
    ask(&i[1]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
    assert_null(inf_rate_limiter_next(l));
    assert_int_equal(inf_rate_limiter_used(l, "R1", false, 0), 4);
    assert_int_equal(inf_rate_limiter_used(l, "R2", true, 0), 0);
    done(&i[0]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
    ask(&i[0]);
    assert_null(inf_rate_limiter_next(l));
    done(&i[1]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
    done(&i[0]);
    close_limiter(i, 2);
}

/* scheduling.md 5.6 */
static void
a_device_has_its_own_copies_and_a_global_one_is_shared(void **state)
{
    (void) state;
    inf_rate_instance_t i[2];

    for (int global = 0; global < 2; global++) {
        open_limiter(NULL, 0);
        add(&i[0], 0, 1, global ? "*R1 1" : "R1 1");
        add(&i[1], 1, 1, global ? "*R1 1" : "R1 1");
        ask(&i[0]);
        ask(&i[1]);
        assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
        if (global) {
            assert_null(inf_rate_limiter_next(l));
            done(&i[0]);
        }
        assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
        if (!global) {
            done(&i[0]);
        }
        done(&i[1]);
        close_limiter(i, 2);
    }
}

/* scheduling.md 5.7 */
static void
equals_overlap_or_alternate_strictly(void **state)
{
    (void) state;
    const inf_rate_resource_t two[] = { { "R1", 2, EVERY } };
    const inf_rate_resource_t one[] = { { "R1", 1, EVERY } };
    inf_rate_instance_t i[2];

    open_limiter(two, 1);
    add(&i[0], 0, 1, "R1 1");
    add(&i[1], 0, 1, "R1 1");
    ask(&i[0]);
    ask(&i[1]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
    done(&i[0]);
    done(&i[1]);
    close_limiter(i, 2);

    open_limiter(one, 1);
    add(&i[0], 0, 1, "R1 1");
    add(&i[1], 0, 1, "R1 1");
    ask(&i[0]);
    ask(&i[1]);
    for (int n = 0; n < 100; n++) {
        assert_ptr_equal(inf_rate_limiter_next(l), &i[n % 2]);
        again(&i[n % 2]);
    }
    close_limiter(i, 2);
}

/* scheduling.md 5.8 */
static void
who_can_run_does_not_wait_behind_who_cannot(void **state)
{
    (void) state;
    inf_rate_instance_t i[4];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R1 4");
    add(&i[1], 0, 1, "R1 4, R2 1");
    add(&i[2], 0, 9, "");
    add(&i[3], 0, 9, "R2 1");
    ask(&i[0]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
    ask(&i[1]);
    assert_null(inf_rate_limiter_next(l));
    ask(&i[2]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[2]);
    ask(&i[3]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[3]);
    assert_null(inf_rate_limiter_next(l));
    done(&i[0]);
    assert_null(inf_rate_limiter_next(l));
    done(&i[3]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
    done(&i[1]);
    done(&i[2]);
    close_limiter(i, 4);
}

/* The other half of scheduling.md 5.8: small ones keep coming, and still there
   are four copies together one day; afterwards the small ones go on. */
static void
a_big_need_is_not_starved_by_small_ones(void **state)
{
    (void) state;
    const inf_rate_resource_t four[] = { { "R1", 4, EVERY } };
    inf_rate_instance_t i[6];

    open_limiter(four, 1);
    for (int k = 0; k < 5; k++) {
        add(&i[k], 0, 1, "R1 1");
        ask(&i[k]);
    }
    add(&i[5], 0, 1, "R1 4");

    /* four run, one waits: who ends makes room for one, never for four */
    for (int k = 0; k < 4; k++) {
        assert_ptr_equal(inf_rate_limiter_next(l), &i[k]);
    }
    ask(&i[5]);
    for (int n = 0; n < 1000; n++) {
        int oldest = -1;
        for (int k = 0; k < 6; k++) {
            if (i[k].state == INF_RATE_GRANTED
                && (oldest < 0 || i[k].asked < i[oldest].asked))
            {
                oldest = k;
            }
        }
        assert_true(oldest >= 0);
        again(&i[oldest]);
        while (inf_rate_limiter_next(l) != NULL) {
            continue;
        }
    }
    for (int k = 0; k < 6; k++) {   /* in the end all have had as many turns */
        assert_in_range(i[k].turns, 160, 172);
    }
    for (int k = 0; k < 6; k++) {
        if (i[k].state == INF_RATE_GRANTED) {
            done(&i[k]);
        }
    }
    close_limiter(i, 6);
}

/* An execution may wait for a call of another model, which is not stopped for
   ever by what is kept for a big need. */
static void
expect_kept_until(bool calls, int reviews)
{
    const inf_rate_resource_t two[] = { { "R1", 2, EVERY } };
    inf_rate_instance_t i[3];
    inf_rate_instance_t *caller = &i[0], *called = &i[1], *big = &i[2];

    open_limiter(two, 1);
    add(caller, 0, 1, "R1 1");
    add(called, 0, 1, "R1 1");
    add(big, 0, 1, "R1 2");
    ask(caller);
    ask(called);
    assert_ptr_equal(inf_rate_limiter_next(l), caller);
    assert_ptr_equal(inf_rate_limiter_next(l), called);
    ask(big);
    if (calls) {
        inf_rate_limiter_expect_calls(l);
    }

    for (int round = 0; round < 3; round++) {
        inf_rate_limiter_review(l, big);        /* it is not late yet        */
        do {
            again(called);
        } while (inf_rate_limiter_next(l) == called);

        /* caller holds what big lacks, and the rest is kept for big */
        for (int review = 1; review < reviews; review++) {
            inf_rate_limiter_review(l, called);
            inf_rate_limiter_review(l, big);
            assert_null(inf_rate_limiter_next(l));
        }
        inf_rate_limiter_review(l, big);
        assert_ptr_equal(inf_rate_limiter_next(l), called);
    }

    done(called);
    done(caller);
    assert_ptr_equal(inf_rate_limiter_next(l), big);
    done(big);
    close_limiter(i, 3);
}

static void
what_is_kept_is_kept_until_the_second_review(void **state)
{
    (void) state;
    expect_kept_until(true, 2);
}

/* Long executions starve nobody there, and a call that nobody knows of waits
   for minutes, but not for ever. */
static void
where_nobody_calls_it_is_kept_for_sixty_reviews(void **state)
{
    (void) state;
    expect_kept_until(false, 60);
}

/* The executions of four last for four reviews each, and one of them ends
   between two reviews. */
static void
what_is_kept_is_kept_while_it_is_returned(void **state)
{
    (void) state;
    const inf_rate_resource_t four[] = { { "R1", 4, EVERY } };
    inf_rate_instance_t i[5];

    open_limiter(four, 1);
    inf_rate_limiter_expect_calls(l);
    for (int k = 0; k < 4; k++) {
        add(&i[k], 0, 1, "R1 1");
        ask(&i[k]);
        assert_ptr_equal(inf_rate_limiter_next(l), &i[k]);
    }
    add(&i[4], 0, 1, "R1 4");
    ask(&i[4]);
    for (int n = 0; i[4].state != INF_RATE_GRANTED; n++) {
        assert_true(n < 100);
        if (i[n % 4].state == INF_RATE_GRANTED) {
            again(&i[n % 4]);
        }
        while (inf_rate_limiter_next(l) != NULL) {
            continue;
        }
        inf_rate_limiter_review(l, &i[4]);
    }
    done(&i[4]);
    close_limiter(i, 5);
}

/* scheduling.md 5.10 */
static void
two_instances_of_a_model_share_what_there_is(void **state)
{
    (void) state;
    const inf_rate_resource_t six[] = { { "R1", 6, EVERY } };
    inf_rate_instance_t i[2];

    for (int plenty = 0; plenty < 2; plenty++) {
        open_limiter(six, (size_t) plenty);
        add(&i[0], 0, 1, "R1 4");
        add(&i[1], 0, 1, "R1 2");
        expect_copies("R1", 0, plenty ? 6 : 4);
        ask(&i[0]);
        ask(&i[1]);
        for (int n = 0; n < 100; n++) {
            inf_rate_instance_t *first = inf_rate_limiter_next(l);
            inf_rate_instance_t *second = inf_rate_limiter_next(l);
            assert_non_null(first);
            assert_int_equal(second != NULL, plenty);
            again(first);
            if (second != NULL) {
                again(second);
            }
        }
        assert_in_range(i[0].turns, plenty ? 100 : 49, plenty ? 100 : 51);
        close_limiter(i, 2);
    }
}

/* scheduling.md 5.13, and 10: counters since the load are a defect. */
static void
a_newcomer_takes_its_share_and_no_more(void **state)
{
    (void) state;
    inf_rate_instance_t i[3];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R 1");
    add(&i[1], 0, 1, "R 1");
    saturate(i, 1, 5000);           /* the second one rests                  */
    saturate(i, 2, 100);
    assert_in_range(i[1].turns, 49, 51);
    add(&i[2], 0, 1, "R 1");
    saturate(i, 3, 300);
    assert_in_range(i[2].turns, 98, 102);
    close_limiter(i, 3);
}

/* Another device is a hundred times as fast; they share something plentiful. */
static void
a_fast_neighbour_does_not_change_the_ratio(void **state)
{
    (void) state;
    const inf_rate_resource_t given[] = { { "R", 1, EVERY }, { "G", 9, 0 } };
    inf_rate_instance_t i[4];

    open_limiter(given, 2);
    add(&i[0], 0, 1, "R 1, *G 1");
    add(&i[1], 0, 1, "R 1, *G 1");
    add(&i[2], 1, 1, "R 1, *G 1");
    add(&i[3], 1, 3, "R 1, *G 1");
    for (int k = 0; k < 4; k++) {
        ask(&i[k]);
    }

    inf_rate_instance_t *runs[2] = { NULL, NULL };
    for (int n = 0; n < 40000; n++) {
        inf_rate_instance_t *now;
        while ((now = inf_rate_limiter_next(l)) != NULL) {
            runs[now >= &i[2]] = now;
        }
        again(runs[n % 100 == 0]);
    }
    assert_in_range(i[2].turns, 299, 301);
    assert_in_range(i[3].turns, 99, 101);
    assert_in_range(i[0].turns, 19799, 19801);
    done(runs[0]->state == INF_RATE_GRANTED ? runs[0] : runs[1]);
    while (inf_rate_limiter_next(l) != NULL) {
        continue;
    }
    for (int k = 0; k < 4; k++) {
        if (i[k].state == INF_RATE_GRANTED) {
            done(&i[k]);
        }
    }
    close_limiter(i, 4);
}

/* scheduling.md 8.11 */
static void
leave_that_is_given_back_unused_was_no_turn(void **state)
{
    (void) state;
    inf_rate_instance_t i[2];

    open_limiter(NULL, 0);
    add(&i[0], 0, 1, "R 1");
    add(&i[1], 0, 1, "R 1");
    ask(&i[0]);
    ask(&i[1]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);
    inf_rate_limiter_release(l, &i[0], false);
    assert_int_equal(i[0].turns, 0);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
    ask(&i[0]);
    inf_rate_limiter_withdraw(l, &i[0]);
    inf_rate_limiter_withdraw(l, &i[0]);
    done(&i[1]);
    assert_null(inf_rate_limiter_next(l));
    assert_int_equal(inf_rate_limiter_used(l, "R", false, 0), 0);
    close_limiter(i, 2);
}

static void
an_unload_while_others_run_takes_copies_away_later(void **state)
{
    (void) state;
    inf_rate_instance_t i[4];

    open_limiter(NULL, 0);
    add(&i[3], 0, 1, "R 6");
    for (int k = 0; k < 3; k++) {
        add(&i[k], 0, 1, "R 2");
        ask(&i[k]);
        assert_ptr_equal(inf_rate_limiter_next(l), &i[k]);
    }
    inf_rate_limiter_remove(l, &i[3]);
    expect_copies("R", 0, 2);
    assert_int_equal(inf_rate_limiter_used(l, "R", false, 0), 6);
    again(&i[0]);
    assert_null(inf_rate_limiter_next(l));
    done(&i[1]);
    assert_null(inf_rate_limiter_next(l));
    done(&i[2]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[0]);

    add(&i[3], 0, 1, "R 4");        /* and a load gives more at once         */
    ask(&i[1]);
    assert_ptr_equal(inf_rate_limiter_next(l), &i[1]);
    done(&i[0]);
    done(&i[1]);
    close_limiter(i, 4);
}

/* ---- random worlds ------------------------------------------------------- */

enum { WORLD_INSTANCES = 24, WORLD_NAMES = 5, WORLD_DEVICES = 2 };

typedef struct {
    inf_rate_instance_t limited;
    bool                loaded;
    int32_t             device;
    inf_rate_need_t     needs[3];
    size_t              count;
    uint64_t            waits;      /* grants to others since it asked       */
} world_instance_t;

static const char *const world_names[WORLD_NAMES] = {
    "a", "b", "c", "G", "H"         /* the last two are global               */
};
static world_instance_t world[WORLD_INSTANCES];
static unsigned seed;
static bool shrunk;                 /* more may be held than there is        */

static uint32_t
pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void
world_load(world_instance_t *w)
{
    memset(w, 0, sizeof(*w));
    w->device = (int32_t) pick(WORLD_DEVICES);
    w->count = pick(4);
    uint32_t name = pick(WORLD_NAMES);
    for (size_t k = 0; k < w->count; k++) {
        w->needs[k].name = world_names[(name + k) % WORLD_NAMES];
        w->needs[k].global = (name + k) % WORLD_NAMES >= 3;
        w->needs[k].count = 1 + pick(3);
    }
    w->limited.userp = w;
    inf_err_t *err = inf_rate_limiter_add(l, &w->limited, w->device,
        pick(5), w->needs, w->count);
    w->loaded = err == NULL;
    inf_err_free(err);
}

static uint64_t
world_held(const inf_rate_need_t *n, int32_t device)
{
    uint64_t held = 0;

    for (int k = 0; k < WORLD_INSTANCES; k++) {
        const world_instance_t *w = &world[k];
        for (size_t j = 0; w->loaded && w->limited.state == INF_RATE_GRANTED
            && j < w->count; j++)
        {
            held += strcmp(w->needs[j].name, n->name) == 0
                && (n->global || w->device == device) ? w->needs[j].count : 0;
        }
    }
    return held;
}

static bool
world_fits(const world_instance_t *w)
{
    bool fits = true;

    for (size_t k = 0; k < w->count; k++) {
        const inf_rate_need_t *n = &w->needs[k];
        uint64_t held = world_held(n, w->device);
        uint64_t copies = inf_rate_limiter_copies(l, n->name, n->global,
            w->device);

        assert_int_equal(held, inf_rate_limiter_used(l, n->name, n->global,
            w->device));
        assert_true(held <= copies || shrunk);
        fits = fits && held + n->count <= copies;
    }
    return fits;
}

static bool
world_share(const world_instance_t *x, const world_instance_t *y)
{
    for (size_t k = 0; k < x->count; k++) {
        for (size_t j = 0; j < y->count; j++) {
            if (strcmp(x->needs[k].name, y->needs[j].name) == 0
                && (x->needs[k].global || x->device == y->device))
            {
                return true;
            }
        }
    }
    return false;
}

/* The resources of w would be missed by another that asks. */
static bool
world_delays(world_instance_t *w)
{
    bool delays = false;

    for (int j = 0; j < WORLD_INSTANCES; j++) {
        world_instance_t *o = &world[j];
        if (o == w || !o->loaded || o->limited.state != INF_RATE_ASKING
            || !world_share(w, o))
        {
            continue;
        }
        w->limited.state = INF_RATE_GRANTED;    /* as if                     */
        for (size_t k = 0; k < o->count; k++) {
            const inf_rate_need_t *n = &o->needs[k];
            delays = delays || world_held(n, o->device) + n->count
                > inf_rate_limiter_copies(l, n->name, n->global, o->device);
        }
        w->limited.state = INF_RATE_ASKING;
    }
    return delays;
}

/* Takes all decisions; afterwards nobody waits who could run, unless it
   leaves what it needs to somebody else.  How many do that. */
static uint32_t
world_settle(void)
{
    inf_rate_instance_t *now;
    uint32_t kept = 0;

    while ((now = inf_rate_limiter_next(l)) != NULL) {
        world_instance_t *w = now->userp;
        assert_int_equal(now->state, INF_RATE_GRANTED);
        w->waits = 0;
        for (int k = 0; k < WORLD_INSTANCES; k++) {
            world_instance_t *o = &world[k];
            if (o->loaded && o->limited.state == INF_RATE_ASKING
                && world_share(o, w))
            {
                /* five rivals' worth of turns and each one's patience */
                assert_true(++o->waits < 6 * 6 * WORLD_INSTANCES);
            }
        }
    }

    for (int k = 0; k < WORLD_INSTANCES; k++) {
        world_instance_t *w = &world[k];
        if (!w->loaded || w->limited.state != INF_RATE_ASKING
            || !world_fits(w))
        {
            continue;
        }

        assert_true(world_delays(w));
        kept++;
    }
    return kept;
}

static void
world_step(bool unloads)
{
    world_instance_t *w = &world[pick(WORLD_INSTANCES)];
    uint32_t what = pick(100);

    if (!w->loaded) {
        world_load(w);
    } else if (w->limited.state == INF_RATE_GRANTED) {
        inf_rate_limiter_release(l, &w->limited, what != 0);
        if (what > 20) {
            inf_rate_limiter_ask(l, &w->limited, true);
        }
    } else if (w->limited.state == INF_RATE_IDLE && what > 10) {
        inf_rate_limiter_ask(l, &w->limited, false);
    } else if (what == 1) {
        inf_rate_limiter_withdraw(l, &w->limited);
        w->waits = 0;
    } else if (unloads && what == 2) {
        inf_rate_limiter_remove(l, &w->limited);
        w->loaded = false;
        shrunk = true;
    }
}

static void
in_random_worlds_limits_hold_and_nobody_starves(void **state)
{
    (void) state;
    const inf_rate_resource_t given[] = {
        { "a", 3, EVERY }, { "b", 4, 0 }, { "b", 2, 1 }, { "c", 5, EVERY },
        { "G", 3, EVERY }, { "H", 1, 0 }
    };

    for (seed = 1; seed < 100; seed++) {
        unsigned number = seed;
        bool explicit = number % 2 == 0;
        uint32_t kept = 0;

        open_limiter(given, explicit ? 6 : 0);
        memset(world, 0, sizeof(world));
        shrunk = false;
        for (int n = 0; n < 3000; n++) {
            world_step(number % 3 == 0);
            kept += world_settle();
        }

        assert_true(kept < 3000 * WORLD_INSTANCES / 6);
        for (int k = 0; k < WORLD_INSTANCES; k++) {
            world_instance_t *w = &world[k];
            if (w->loaded && w->limited.state == INF_RATE_GRANTED) {
                inf_rate_limiter_release(l, &w->limited, true);
            }
        }
        for (int k = 0; k < WORLD_INSTANCES; k++) {
            if (world[k].loaded) {
                inf_rate_limiter_remove(l, &world[k].limited);
            }
        }
        inf_rate_limiter_free(l);
        seed = number;
    }
}

/* A thousand instances on a hundred devices: each keeps its share. */
static void
a_thousand_instances_share_a_hundred_devices(void **state)
{
    (void) state;
    enum { N = 1000, DEVICES = 100 };
    static inf_rate_instance_t i[N];
    static inf_rate_instance_t *runs[DEVICES];

    open_limiter(NULL, 0);
    for (int k = 0; k < N; k++) {
        add(&i[k], k % DEVICES, 1 + (uint32_t) (k / DEVICES) % 2, "R 1");
        ask(&i[k]);
    }
    for (int n = 0; n < 1000000; n++) {
        inf_rate_instance_t *now;
        while ((now = inf_rate_limiter_next(l)) != NULL) {
            runs[(now - i) % DEVICES] = now;
        }
        again(runs[n % DEVICES]);
    }
    for (int k = 0; k < N; k++) {
        uint64_t fair = (k / DEVICES) % 2 == 0 ? 1333 : 667;
        assert_in_range(i[k].turns, fair - 2, fair + 2);
    }
    for (int k = 0; k < N; k++) {
        if (i[k].state == INF_RATE_GRANTED) {
            done(&i[k]);
        }
    }
    close_limiter(i, N);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_example_has_the_documented_copies),
        cmocka_unit_test(
            the_documented_two_devices_have_the_documented_copies),
        cmocka_unit_test(
            of_repeated_limits_the_least_counts_and_of_devices_the_most),
        cmocka_unit_test(priority_two_gets_half_the_turns_of_priority_one),
        cmocka_unit_test(a_tie_goes_to_the_higher_priority),
        cmocka_unit_test(
            of_two_that_begin_together_a_low_priority_ends_its_period),
        cmocka_unit_test(turns_go_by_priority_whatever_the_order_of_asking),
        cmocka_unit_test(with_plenty_of_resources_nobody_waits),
        cmocka_unit_test(who_needs_more_than_there_is_is_rejected),
        cmocka_unit_test(a_resource_is_global_for_all_or_for_none),
        cmocka_unit_test(senseless_needs_are_rejected),
        cmocka_unit_test(a_shared_resource_keeps_two_models_apart),
        cmocka_unit_test(
            a_device_has_its_own_copies_and_a_global_one_is_shared),
        cmocka_unit_test(equals_overlap_or_alternate_strictly),
        cmocka_unit_test(who_can_run_does_not_wait_behind_who_cannot),
        cmocka_unit_test(a_big_need_is_not_starved_by_small_ones),
        cmocka_unit_test(what_is_kept_is_kept_until_the_second_review),
        cmocka_unit_test(where_nobody_calls_it_is_kept_for_sixty_reviews),
        cmocka_unit_test(what_is_kept_is_kept_while_it_is_returned),
        cmocka_unit_test(two_instances_of_a_model_share_what_there_is),
        cmocka_unit_test(a_newcomer_takes_its_share_and_no_more),
        cmocka_unit_test(a_fast_neighbour_does_not_change_the_ratio),
        cmocka_unit_test(leave_that_is_given_back_unused_was_no_turn),
        cmocka_unit_test(an_unload_while_others_run_takes_copies_away_later),
        cmocka_unit_test(in_random_worlds_limits_hold_and_nobody_starves),
        cmocka_unit_test(a_thousand_instances_share_a_hundred_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
