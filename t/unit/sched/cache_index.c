#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/cache_index.h"

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
            calloc(wanted, sizeof(inf_cache_item_t *)), wanted));
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
    inf_cache_index_put(&index_, &items[i], now);
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

static void
a_table_that_comes_late_is_given_back(void **state)
{
    (void) state;
    inf_cache_item_t **table = calloc(index_.bucket_count,
        sizeof(inf_cache_item_t *));
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
        cmocka_unit_test_setup_teardown(a_table_that_comes_late_is_given_back,
            fresh, end)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
