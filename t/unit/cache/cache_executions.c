#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/cache/cache_executions.h"

#define N 6

static inf_cache_executions_t executions;
static inf_cache_execution_t execution[N];
static inf_request_t request[N];
static inf_link_t list;

static const inf_cache_key_t a = { { 2, 1 } };
static const inf_cache_key_t b = { { 2 + INF_CACHE_EXECUTION_BUCKETS, 1 } };

static int
fresh(void **state)
{
    (void) state;
    inf_cache_executions_init(&executions);
    inf_link_init(&list);
    for (int i = 0; i < N; i++) {
        execution[i] = (inf_cache_execution_t) { .listed = false };
        inf_request_init(&request[i]);
    }
    return 0;
}

static bool
join(int i, inf_cache_key_t key)
{
    return inf_cache_executions_join(&executions, &execution[i], key,
        &request[i]);
}

static int
popped(void)
{
    inf_link_t *link = inf_list_pop_front(&list);
    return link == NULL ? -1
        : (int) (inf_link_entry(link, inf_request_t, link) - request);
}

static void
the_first_leads_and_the_others_wait(void **state)
{
    (void) state;
    assert_true(join(0, a));
    assert_false(join(1, a));
    assert_false(join(2, a));
    assert_int_equal(request[0].state, INF_REQUEST_IDLE);
    assert_int_equal(request[1].state, INF_REQUEST_PARKED);
    assert_int_equal(executions.count, 1);

    inf_cache_executions_leave(&executions, &execution[0], &list);
    assert_int_equal(popped(), 1);
    assert_int_equal(popped(), 2);
    assert_int_equal(popped(), -1);
    assert_int_equal(request[2].state, INF_REQUEST_EXECUTING);
    assert_int_equal(executions.count, 0);
    assert_true(join(3, a));
}

static void
keys_of_one_bucket_are_told_apart(void **state)
{
    (void) state;
    assert_true(join(0, a));
    assert_true(join(1, b));
    assert_false(join(2, a));
    assert_false(join(3, b));
    inf_cache_executions_leave(&executions, &execution[0], &list);
    assert_int_equal(popped(), 2);
    assert_int_equal(popped(), -1);
    inf_cache_executions_leave(&executions, &execution[1], &list);
    assert_int_equal(popped(), 3);
}

static void
none_waits_for_another_priority(void **state)
{
    (void) state;
    request[1].priority = request[3].priority = 1;
    request[0].priority = request[2].priority = 2;
    assert_true(join(0, a));
    assert_true(join(1, a));
    assert_false(join(2, a));
    assert_false(join(3, a));
    assert_ptr_equal(inf_cache_executions_pass(&executions, &execution[0],
        &execution[4]), &request[2]);
    request[5].priority = 2;
    assert_false(join(5, a));
    inf_cache_executions_leave(&executions, &execution[1], &list);
    assert_int_equal(popped(), 3);
    assert_int_equal(popped(), -1);
    inf_cache_executions_leave(&executions, &execution[4], &list);
    assert_int_equal(popped(), 5);
    assert_int_equal(executions.count, 0);
}

static void
an_execution_passes_to_the_first_that_waited(void **state)
{
    (void) state;
    assert_true(join(0, a));
    assert_false(join(1, a));
    assert_false(join(2, a));
    assert_false(join(3, a));

    inf_request_t *next = inf_cache_executions_pass(&executions, &execution[0],
        &execution[5]);
    assert_ptr_equal(next, &request[1]);
    assert_int_equal(next->state, INF_REQUEST_EXECUTING);
    assert_false(execution[0].listed);
    assert_true(execution[5].listed);
    assert_false(join(4, a));           /* comes behind those who waited     */

    inf_cache_executions_leave(&executions, &execution[5], &list);
    assert_int_equal(popped(), 2);
    assert_int_equal(popped(), 3);
    assert_int_equal(popped(), 4);
    assert_int_equal(popped(), -1);
}

static void
an_execution_nobody_waits_for_ends(void **state)
{
    (void) state;
    assert_true(join(0, a));
    assert_null(inf_cache_executions_pass(&executions, &execution[0],
        &execution[1]));
    assert_int_equal(executions.count, 0);
    assert_false(execution[1].listed);
    inf_cache_executions_leave(&executions, &execution[0], &list); /* again  */
    assert_null(inf_cache_executions_pass(&executions, &execution[0],
        &execution[1]));
    assert_int_equal(popped(), -1);
}

static void
one_that_waits_can_be_taken_out(void **state)
{
    (void) state;
    assert_true(join(0, a));
    assert_false(join(1, a));
    assert_false(join(2, a));
    inf_link_remove(&request[1].link);
    inf_cache_executions_leave(&executions, &execution[0], &list);
    assert_int_equal(popped(), 2);
    assert_int_equal(popped(), -1);
}

/* Random joins, leaves, passes and cancels against a plain model: nobody is
   lost, nobody comes twice, at most one leads a key. */
static void
nobody_is_lost_and_nobody_comes_twice(void **state)
{
    (void) state;
    enum { REQUESTS = 2000, KEYS = 5 };
    static inf_request_t r[REQUESTS];
    static inf_cache_execution_t f[REQUESTS];
    static int ended[REQUESTS];
    int leader[KEYS], made = 0;
    uint32_t seed = 12345;

    memset(ended, 0, sizeof(ended));
    for (int k = 0; k < KEYS; k++) {
        leader[k] = -1;
    }

    for (int step = 0; step < 20000 && made < REQUESTS; step++) {
        seed = seed * 1664525u + 1013904223u;
        int k = (int) (seed >> 16) % KEYS;
        inf_cache_key_t key = {
            { (uint64_t) k * INF_CACHE_EXECUTION_BUCKETS, 7 }
        };
        uint32_t what = seed >> 28;

        if (what < 10) {
            inf_request_init(&r[made]);
            bool leads = inf_cache_executions_join(&executions, &f[made], key,
                &r[made]);
            assert_int_equal(leads, leader[k] < 0);
            leader[k] = leads ? made : leader[k];
            made++;
        } else if (leader[k] >= 0 && what < 12) {
            inf_cache_executions_leave(&executions, &f[leader[k]], &list);
            ended[leader[k]]++;
            leader[k] = -1;
            inf_link_t *link;
            while ((link = inf_list_pop_front(&list)) != NULL) {
                ended[inf_link_entry(link, inf_request_t, link) - r]++;
            }
        } else if (leader[k] >= 0 && what < 14) {
            static inf_cache_execution_t heir;
            heir = (inf_cache_execution_t) { .listed = false };
            inf_request_t *next = inf_cache_executions_pass(&executions,
                &f[leader[k]], &heir);
            ended[leader[k]]++;
            leader[k] = -1;
            if (next != NULL) {
                /* its own execution takes over, so that the heir is free */
                inf_request_t *rest = inf_cache_executions_pass(&executions,
                    &heir, &f[next - r]);
                ended[next - r]++;
                if (rest != NULL) {
                    leader[k] = (int) (next - r);
                    /* rest leads with that execution */
                    ended[next - r]--;
                    ended[rest - r]++;
                }
            }
        } else if (made > 0) {
            int i = (int) (seed >> 8) % made;
            if (r[i].state == INF_REQUEST_PARKED) {
                inf_link_remove(&r[i].link);
                inf_request_move(&r[i], INF_REQUEST_EXECUTING);
                ended[i]++;
            }
        }
    }

    for (int k = 0; k < KEYS; k++) {
        if (leader[k] >= 0) {
            ended[leader[k]]++;
            inf_cache_executions_leave(&executions, &f[leader[k]], &list);
        }
    }
    inf_link_t *link;
    while ((link = inf_list_pop_front(&list)) != NULL) {
        ended[inf_link_entry(link, inf_request_t, link) - r]++;
    }
    assert_int_equal(executions.count, 0);
    for (int i = 0; i < made; i++) {
        assert_int_equal(ended[i], 1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_leads_and_the_others_wait, fresh),
        cmocka_unit_test_setup(keys_of_one_bucket_are_told_apart, fresh),
        cmocka_unit_test_setup(none_waits_for_another_priority, fresh),
        cmocka_unit_test_setup(an_execution_passes_to_the_first_that_waited,
            fresh),
        cmocka_unit_test_setup(an_execution_nobody_waits_for_ends, fresh),
        cmocka_unit_test_setup(one_that_waits_can_be_taken_out, fresh),
        cmocka_unit_test_setup(nobody_is_lost_and_nobody_comes_twice, fresh)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
