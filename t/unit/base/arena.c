/*
 * arena.c - memory of an arena serves the next one, and no more of it is kept
 *           than is said.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <string.h>

#include "core/base/arena.h"

#define MIB (1u << 20)

static void
drop(inf_arena_spares_t *spares)
{
    while (spares->count != 0) {
        inf_arena_t a;
        inf_arena_take(&a, spares);
        inf_arena_fini(&a);
    }

    assert_null(spares->chunks);
}

static void
an_arena_takes_what_another_has_given(void **state)
{
    inf_arena_spares_t spares = { .count = 0 };
    inf_arena_t a;

    (void) state;
    inf_arena_take(&a, &spares);
    void *first = inf_arena_alloc(&a, 100);
    assert_non_null(first);
    memset(first, 1, 100);
    inf_arena_give(&a, &spares);
    assert_null(a.chunks);

#ifndef INF_NOPOOL
    assert_int_equal(spares.count, 1);
    inf_arena_take(&a, &spares);
    assert_int_equal(spares.count, 0);
    assert_ptr_equal(inf_arena_alloc(&a, 50), first);

    /* all of it is there to be used again */
    memset(inf_arena_alloc(&a, 3000), 2, 3000);
    inf_arena_give(&a, &spares);
    assert_int_equal(spares.count, 1);
#endif

    drop(&spares);
}

static void
large_memory_and_too_much_of_it_are_freed(void **state)
{
    inf_arena_spares_t spares = { .count = 0 };
    inf_arena_t a;

    (void) state;
    inf_arena_take(&a, &spares);
    assert_non_null(inf_arena_alloc(&a, 100000));
    inf_arena_give(&a, &spares);
    assert_int_equal(spares.count, 0);

    inf_arena_take(&a, &spares);
    for (unsigned i = 0; i < 2 * INF_ARENA_SPARES; i++) {
        assert_non_null(inf_arena_alloc(&a, 3000));
    }

    assert_non_null(inf_arena_alloc(&a, 100000));
    inf_arena_give(&a, &spares);
#ifndef INF_NOPOOL
    assert_int_equal(spares.count, INF_ARENA_SPARES);
#endif

    drop(&spares);
}

static void
what_is_kept_of_an_arena_is_small(void **state)
{
    inf_arena_t a;

    (void) state;
    inf_arena_init(&a);
    size_t before = mallinfo2().hblkhd;     /* the allocator's large ones    */
    assert_non_null(inf_arena_alloc(&a, MIB));
    void *first = inf_arena_alloc(&a, 100);
    assert_non_null(first);
    inf_arena_reset(&a);
    assert_int_equal(mallinfo2().hblkhd, before);

#ifndef INF_NOPOOL
    assert_ptr_equal(inf_arena_alloc(&a, 3000), first);
#endif
    inf_arena_fini(&a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_takes_what_another_has_given),
        cmocka_unit_test(large_memory_and_too_much_of_it_are_freed),
        cmocka_unit_test(what_is_kept_of_an_arena_is_small)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
