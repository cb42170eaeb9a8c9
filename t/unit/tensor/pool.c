#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "core/tensor/pool.h"

#define KIB 1024u

static void
succeeds(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

static uint64_t
take(inf_pool_t *pool, uint64_t size)
{
    uint64_t offset = UINT64_MAX;
    assert_true(inf_pool_alloc(pool, size, &offset));
    assert_true(offset < inf_pool_size(pool));
    return offset;
}

static void
the_whole_range_can_be_one_stretch(void **state)
{
    (void) state;
    static const uint64_t sizes[] = {
        INF_POOL_GRANULE, 3 * INF_POOL_GRANULE, 1000 * KIB, 1u << 26, 1u << 28,
        (1u << 28) + 4096, UINT64_C(100000) << 20, UINT64_C(1) << 52
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        inf_pool_t pool;
        uint64_t offset;

        succeeds(inf_pool_init(&pool, sizes[i]));
        assert_true(inf_pool_size(&pool) <= sizes[i]);
        assert_true(pool.count <= INF_POOL_GRANULES);
        assert_int_equal(take(&pool, inf_pool_size(&pool)), 0);
        assert_int_equal(pool.used, inf_pool_size(&pool));
        assert_false(inf_pool_alloc(&pool, 1, &offset));
        assert_true(inf_pool_free(&pool, 0));
        assert_int_equal(pool.used, 0);
        assert_int_equal(take(&pool, inf_pool_size(&pool)), 0);
        inf_pool_fini(&pool);
    }
}

static void
impossible_sizes_are_rejected(void **state)
{
    (void) state;
    static const uint64_t sizes[] = {
        0, INF_POOL_GRANULE - 1, (UINT64_C(1) << 52) + 1, UINT64_MAX
    };

    for (size_t i = 0; i < 4; i++) {
        inf_pool_t pool;
        inf_err_t *err = inf_pool_init(&pool, sizes[i]);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        inf_err_free(err);
        inf_pool_fini(&pool);
    }
}

static void
sizes_beyond_the_range_never_wrap(void **state)
{
    (void) state;
    inf_pool_t pool;
    uint64_t offset;

    succeeds(inf_pool_init(&pool, 64 * KIB));
    assert_false(inf_pool_alloc(&pool, 64 * KIB + 1, &offset));
    assert_false(inf_pool_alloc(&pool, UINT64_MAX, &offset));
    assert_false(inf_pool_alloc(&pool, UINT64_MAX - 254, &offset));
    assert_int_equal(pool.used, 0);
    inf_pool_fini(&pool);
}

static void
nothing_is_a_stretch_of_its_own(void **state)
{
    (void) state;
    inf_pool_t pool;

    succeeds(inf_pool_init(&pool, 64 * KIB));
    uint64_t a = take(&pool, 0);
    uint64_t b = take(&pool, 0);
    assert_true(a != b);
    assert_int_equal(pool.used, 2 * INF_POOL_GRANULE);
    assert_true(inf_pool_free(&pool, a));
    assert_true(inf_pool_free(&pool, b));
    inf_pool_fini(&pool);
}

static void
only_what_was_given_is_taken_back_and_once(void **state)
{
    (void) state;
    inf_pool_t pool;

    succeeds(inf_pool_init(&pool, 64 * KIB));
    uint64_t a = take(&pool, 4 * KIB);
    uint64_t b = take(&pool, 4 * KIB);

    assert_false(inf_pool_free(&pool, a + 1));
    assert_false(inf_pool_free(&pool, a + INF_POOL_GRANULE));
    assert_false(inf_pool_free(&pool, 32 * KIB));       /* free anyway       */
    assert_false(inf_pool_free(&pool, 64 * KIB));
    assert_false(inf_pool_free(&pool, UINT64_MAX));
    assert_int_equal(pool.used, 8 * KIB);

    assert_true(inf_pool_free(&pool, a));
    assert_false(inf_pool_free(&pool, a));
    assert_true(inf_pool_free(&pool, b));
    assert_false(inf_pool_free(&pool, b));
    assert_int_equal(pool.used, 0);
    inf_pool_fini(&pool);
}

/* Neighbours in every order of freeing. */
static void
free_neighbours_become_one(void **state)
{
    (void) state;
    static const int orders[6][3] = {
        { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 },
        { 2, 1, 0 }
    };

    for (int i = 0; i < 6; i++) {
        inf_pool_t pool;
        uint64_t at[3];

        succeeds(inf_pool_init(&pool, 48 * KIB));
        for (int k = 0; k < 3; k++) {
            at[k] = take(&pool, 16 * KIB);
        }
        for (int k = 0; k < 3; k++) {
            assert_true(inf_pool_free(&pool, at[orders[i][k]]));
        }
        take(&pool, 48 * KIB);
        inf_pool_fini(&pool);
    }
}

/* A fit that is in the list of shorter ones is found, too. */
static void
an_exact_fit_is_never_missed(void **state)
{
    (void) state;
    inf_pool_t pool;

    succeeds(inf_pool_init(&pool, 256 * KIB));
    uint64_t odd = take(&pool, 70 * KIB + INF_POOL_GRANULE);
    uint64_t wall = take(&pool, INF_POOL_GRANULE);
    take(&pool, inf_pool_size(&pool) - pool.used);
    assert_true(inf_pool_free(&pool, odd));
    assert_int_equal(take(&pool, 70 * KIB + INF_POOL_GRANULE), odd);
    assert_true(inf_pool_free(&pool, wall));
    inf_pool_fini(&pool);
}

/* Random allocations never overlap, are where they should be, and all come
   back as one; on memory that must not be touched. */
static void
random_use_keeps_stretches_apart(void **state)
{
    (void) state;
    enum { SIZE = 1 << 20, LIVE = 200, ROUNDS = 40000 };
    struct { uint64_t at, size; } live[LIVE];
    size_t count = 0;
    uint64_t sum = 0;
    inf_pool_t pool;
    char *base = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    uint8_t *owner = calloc(SIZE / INF_POOL_GRANULE, 1);
    unsigned seed = 1;

    assert_true(base != MAP_FAILED);
    assert_non_null(owner);
    succeeds(inf_pool_init(&pool, SIZE));
    for (int round = 0; round < ROUNDS; round++) {
        seed = seed * 1103515245u + 12345u;
        unsigned dice = seed >> 8;
        bool drop = count == LIVE || (count > 0 && dice % 5 < 2);

        if (drop) {
            size_t k = dice / 5 % count;
            for (uint64_t b = live[k].at; b < live[k].at + live[k].size;
                b += INF_POOL_GRANULE)
            {
                owner[b / INF_POOL_GRANULE] = 0;
            }
            assert_true(inf_pool_free(&pool, live[k].at));
            sum -= live[k].size;
            live[k] = live[--count];

        } else {
            uint64_t size = dice % 7 == 0 ? dice / 7 % 200000 : dice % 4000;
            uint64_t at;
            if (!inf_pool_alloc(&pool, size, &at)) {
                continue;
            }

            size = (size + INF_POOL_GRANULE - 1) / INF_POOL_GRANULE
                * INF_POOL_GRANULE;
            size = size == 0 ? INF_POOL_GRANULE : size;
            assert_true(at % INF_POOL_GRANULE == 0 && at + size <= SIZE);
            for (uint64_t b = at; b < at + size; b += INF_POOL_GRANULE) {
                assert_int_equal(owner[b / INF_POOL_GRANULE]++, 0);
            }
            live[count].at = at;
            live[count++].size = size;
            sum += size;
        }
        assert_int_equal(pool.used, sum);
    }

    while (count > 0) {
        assert_true(inf_pool_free(&pool, live[--count].at));
    }
    assert_int_equal(pool.used, 0);
    assert_int_equal(take(&pool, SIZE), 0);
    inf_pool_fini(&pool);
    munmap(base, SIZE);
    free(owner);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_range_can_be_one_stretch),
        cmocka_unit_test(impossible_sizes_are_rejected),
        cmocka_unit_test(sizes_beyond_the_range_never_wrap),
        cmocka_unit_test(nothing_is_a_stretch_of_its_own),
        cmocka_unit_test(only_what_was_given_is_taken_back_and_once),
        cmocka_unit_test(free_neighbours_become_one),
        cmocka_unit_test(an_exact_fit_is_never_missed),
        cmocka_unit_test(random_use_keeps_stretches_apart)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
