#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/cache/cache_index.h"

#define N 1000

static inf_cache_index_t index_;
static inf_cache_item_t items[N];
static char keys[N][16];

static void
grow(void)
{
    uint64_t wanted = inf_cache_index_wants_buckets(&index_);
    if (wanted > 0) {
        free(inf_cache_index_give_buckets(&index_,
            calloc(wanted, INF_CACHE_BUCKET_SIZE), wanted));
    }
}

static int
fresh(void **state)
{
    (void) state;
    inf_cache_index_init(&index_);
    for (int i = 0; i < N; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key %d", i);
        items[i] = (inf_cache_item_t) { .key = keys[i],
            .hash = (uint64_t) i % 97 };
        inf_link_init(&items[i].age);
    }
    grow();
    return 0;
}

static int
end(void **state)
{
    (void) state;
    free(index_.buckets);
    return 0;
}

static void
put(int i, uint64_t now)
{
    grow();
    assert_true(inf_cache_index_put(&index_, &items[i], now));
}

static int
oldest(void)
{
    inf_cache_item_t *item = inf_cache_index_oldest(&index_);
    return item != NULL ? (int) (item - items) : -1;
}

static void
what_is_put_is_found_by_its_key(void **state)
{
    (void) state;
    inf_cache_index_t bare;
    inf_cache_index_init(&bare);
    assert_null(inf_cache_index_find(&bare, 0, "key 0"));
    assert_int_equal(inf_cache_index_wants_buckets(&index_), 0);

    for (int i = 0; i < N; i++) {
        assert_null(inf_cache_index_find(&index_, items[i].hash, keys[i]));
        put(i, (uint64_t) i);
    }
    assert_int_equal(index_.count, N);
    assert_true(index_.bucket_count >= N);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(inf_cache_index_find(&index_, items[i].hash,
            keys[i]), &items[i]);
        assert_null(inf_cache_index_find(&index_, items[i].hash + 1,
            keys[i]));
    }
    for (int i = 0; i < N; i += 2) {
        inf_cache_index_remove(&index_, &items[i]);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(inf_cache_index_find(&index_, items[i].hash, keys[i])
            != NULL, i % 2);
    }
    assert_int_equal(index_.count, N / 2);
}

static void
the_oldest_is_the_longest_unused(void **state)
{
    (void) state;
    assert_int_equal(oldest(), -1);
    put(1, 10);
    put(2, 20);
    put(3, 30);
    assert_int_equal(oldest(), 1);
    inf_cache_index_use(&index_, &items[1], 40);
    assert_int_equal(oldest(), 2);
    assert_int_equal(items[1].used_ns, 40);
    inf_cache_index_find(&index_, items[2].hash, keys[2]);
    assert_int_equal(oldest(), 2);
    inf_cache_index_remove(&index_, &items[2]);
    assert_int_equal(oldest(), 3);
    inf_cache_index_remove(&index_, &items[3]);
    inf_cache_index_remove(&index_, &items[1]);
    assert_int_equal(oldest(), -1);
}

/* Few places and few hashes: items lie far from their own places, around the
   table's end too. */
static void
what_is_removed_leaves_the_others_to_be_found(void **state)
{
    enum { PLACES = 64, KEYS = 40, STEPS = 20000 };
    bool there[KEYS] = { false };
    unsigned rng = 7;

    (void) state;
    assert_int_equal(index_.bucket_count, PLACES);
    for (int i = 0; i < KEYS; i++) {
        items[i].hash = (uint64_t) (PLACES - 5 + i % 9);
    }
    for (int step = 0; step < STEPS; step++) {
        rng = rng * 1103515245u + 12345u;
        int i = (int) (rng >> 16) % KEYS;
        if (there[i]) {
            inf_cache_index_remove(&index_, &items[i]);
        } else {
            assert_true(inf_cache_index_put(&index_, &items[i],
                (uint64_t) step));
        }
        there[i] = !there[i];
        for (int k = 0; k < KEYS; k++) {
            assert_ptr_equal(inf_cache_index_find(&index_, items[k].hash,
                keys[k]), there[k] ? &items[k] : NULL);
        }
    }
}

static void
a_full_table_rejects_and_is_searched_to_its_end(void **state)
{
    (void) state;
    for (int i = 0; i < 63; i++) {
        assert_true(inf_cache_index_put(&index_, &items[i], 1));
    }
    assert_false(inf_cache_index_put(&index_, &items[63], 1));
    assert_null(inf_cache_index_find(&index_, items[63].hash, keys[63]));
    assert_ptr_equal(inf_cache_index_find(&index_, items[62].hash, keys[62]),
        &items[62]);
    put(63, 1);                             /* a larger one comes            */
    assert_int_equal(index_.bucket_count, 128);
    assert_int_equal(index_.count, 64);
}

static void
a_table_that_comes_late_is_given_back(void **state)
{
    (void) state;
    inf_cache_bucket_t *table = calloc(index_.bucket_count,
        INF_CACHE_BUCKET_SIZE);
    assert_ptr_equal(inf_cache_index_give_buckets(&index_, table,
        index_.bucket_count), table);
    free(table);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_put_is_found_by_its_key, fresh,
            end),
        cmocka_unit_test_setup_teardown(the_oldest_is_the_longest_unused,
            fresh, end),
        cmocka_unit_test_setup_teardown(
            what_is_removed_leaves_the_others_to_be_found, fresh, end),
        cmocka_unit_test_setup_teardown(
            a_full_table_rejects_and_is_searched_to_its_end, fresh, end),
        cmocka_unit_test_setup_teardown(a_table_that_comes_late_is_given_back,
            fresh, end)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
