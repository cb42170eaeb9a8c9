#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/error.h"
#include "core/wire/region.h"
#include "core/wire/sockets.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

static uint32_t seed = 1;

static uint32_t
next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

typedef struct {
    uint64_t in_use;
    uint64_t reserved;
    uint64_t used;
    uint64_t idle;
} sums_t;

/* Nothing overlaps, all is covered, no two free neighbours. */
static void
check_part(inf_regions_part_t *part, uint64_t at, sums_t *sums)
{
    uint64_t cached = 0;
    bool was_free = false;

    for (inf_link_t *l = part->places.next; l != &part->places; l = l->next) {
        inf_region_t *g = inf_link_entry(l, inf_region_t, place);
        assert_ptr_equal(g->part, part);
        assert_int_equal(g->offset, at);
        assert_true(g->size > 0 && g->size % INF_ARENA_ALIGN == 0);
        assert_true(g->charged <= g->size);
        if (g->dirty.to != g->dirty.from) {
            assert_true(g->dirty.from >= g->offset);
            assert_true(g->dirty.from < g->dirty.to);
            assert_true(g->dirty.to <= g->offset + g->size);
        }
        assert_false(was_free && g->state == INF_REGION_FREE);
        was_free = g->state == INF_REGION_FREE;
        at += g->size;
        if (g->state == INF_REGION_USED) {
            sums->used++;
            sums->in_use += g->charged;
            sums->reserved += g->size - g->charged;
        } else {
            assert_int_equal(g->charged, 0);
            sums->idle += g->dirty.to - g->dirty.from;
            cached += g->state == INF_REGION_CACHED ? g->size : 0;
        }
    }

    assert_false(was_free);
    assert_int_equal(cached, part->cached);
    assert_int_equal(at, part->top);
    assert_true(part->top <= part->end);
    sums->idle += part->top_dirty.to - part->top_dirty.from;
}

static void
check_all(inf_regions_t *r)
{
    sums_t sums = { 0 };

    check_part(&r->charged, 0, &sums);
    sums.reserved = 0;
    check_part(&r->reserved, r->charged.end, &sums);

    assert_int_equal(r->reserved.end, r->size);
    assert_int_equal(sums.in_use, r->stats.in_use);
    assert_int_equal(sums.reserved, r->stats.reserved);
    assert_int_equal(sums.used, r->stats.regions);
    assert_int_equal(sums.idle, r->stats.idle);
    assert_true(r->stats.in_use <= r->bound);
}

static void
what_was_freed_last_is_handed_out_first(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 64 * MIB, 0, 64 * MIB);

    const uint64_t sizes[] = { 1, 64, 100, 5000, 70000, MIB, 3 * MIB,
        17 * MIB };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        inf_region_t *a = inf_regions_alloc(&r, sizes[i]);
        inf_region_t *b = inf_regions_alloc(&r, sizes[i]);
        assert_non_null(a);
        assert_non_null(b);
        assert_true(b->size >= sizes[i] && b->offset % INF_ARENA_ALIGN == 0);
        uint64_t offset = b->offset;
        inf_regions_free(&r, b);
        b = inf_regions_alloc(&r, sizes[i]);
        assert_int_equal(b->offset, offset);
        inf_regions_free(&r, a);
        inf_regions_free(&r, b);
        check_all(&r);
    }

    inf_regions_fini(&r);
}

static void
bound_rejects_and_counts_but_nothing_leaks(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 64 * MIB, 32 * MIB, MIB);

    assert_null(inf_regions_alloc(&r, MIB + 1));
    assert_null(inf_regions_alloc(&r, UINT64_MAX));
    assert_null(inf_regions_reserve(&r, UINT64_MAX));
    assert_null(inf_regions_reserve(&r, 32 * MIB + 1));
    assert_int_equal(r.stats.failures, 4);

    inf_region_t *a = inf_regions_alloc(&r, MIB);
    assert_non_null(a);
    assert_null(inf_regions_alloc(&r, 1));
    inf_regions_free(&r, a);

    /* All that may be reserved in one piece; the rest is for charges. */
    a = inf_regions_reserve(&r, 32 * MIB);
    assert_non_null(a);
    assert_int_equal(r.stats.in_use, 0);
    assert_int_equal(r.stats.reserved, 32 * MIB);
    assert_null(inf_regions_reserve(&r, 1));
    inf_region_t *b = inf_regions_alloc(&r, MIB);
    assert_non_null(b);
    assert_int_equal(r.stats.reserved, 32 * MIB);
    check_all(&r);
    inf_regions_free(&r, b);
    inf_regions_free(&r, a);
    assert_int_equal(r.stats.reserved, 0);

    check_all(&r);
    assert_int_equal(r.stats.in_use, 0);
    assert_int_equal(r.stats.peak, MIB);
    inf_regions_fini(&r);
}

/* However they lie: holes of any size are left between the reservations. */
static void
reservations_leave_their_part_of_the_space_to_charges(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 1024 * MIB, 512 * MIB, 64 * MIB);
    enum { COUNT = 20000 };
    static inf_region_t *g[COUNT];

    for (uint64_t hole = 32 * MIB; hole >= 64 * 1024; hole /= 2) {
        int n = 0;
        while (n < COUNT && (g[n] = inf_regions_reserve(&r, hole)) != NULL) {
            assert_true(inf_regions_charge(&r, g[n], 1));
            n++;
        }
        assert_true(n > 1);
        check_all(&r);

        /* Every other one goes and leaves its hole. */
        for (int i = 0; i < n; i += 2) {
            inf_regions_free(&r, g[i]);
            g[i] = NULL;
        }
        assert_null(inf_regions_reserve(&r, 2 * hole + 64));

        inf_region_t *a = inf_regions_alloc(&r, 32 * MIB);
        inf_region_t *b = inf_regions_alloc(&r, 16 * MIB);
        assert_true(a != NULL && b != NULL);
        inf_region_t *c = inf_regions_replace(&r, g[1], 32 * MIB);
        assert_non_null(c);
        check_all(&r);

        inf_regions_free(&r, a);
        inf_regions_free(&r, b);
        inf_regions_free(&r, c);
        for (int i = 1; i < n; i += 2) {
            inf_regions_free(&r, g[i]);
        }
        check_all(&r);
        assert_int_equal(r.stats.in_use, 0);
        assert_int_equal(r.stats.reserved, 0);
    }

    inf_regions_fini(&r);
}

/* Or a client that announces much makes all other requests pay for it. */
static void
reservation_that_fails_leaves_what_others_have_cached(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 128 * MIB, 64 * MIB, 64 * MIB);
    inf_region_t *g[100];

    for (int i = 0; i < 100; i++) {
        g[i] = inf_regions_alloc(&r, 65536);
        assert_non_null(g[i]);
    }
    for (int i = 0; i < 100; i++) {
        inf_regions_free(&r, g[i]);
    }
    assert_int_equal(r.charged.cached, 100 * 65536);

    inf_region_t *a = inf_regions_reserve(&r, 64 * MIB);
    assert_non_null(a);
    assert_null(inf_regions_reserve(&r, 65536));
    assert_int_equal(r.charged.cached, 100 * 65536);
    check_all(&r);
    inf_regions_free(&r, a);
    inf_regions_fini(&r);
}

static void
reserved_bytes_are_charged_as_they_arrive(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 2048 * MIB, 1024 * MIB, MIB);

    inf_region_t *a = inf_regions_reserve(&r, 512 * MIB);
    inf_region_t *b = inf_regions_reserve(&r, 256 * MIB);
    assert_true(a != NULL && b != NULL);
    assert_int_equal(r.stats.reserved, 768 * MIB);
    assert_true(inf_regions_charge(&r, a, 10));
    assert_int_equal(r.stats.in_use, 64);
    assert_int_equal(r.stats.reserved, 768 * MIB - 64);
    assert_true(inf_regions_charge(&r, a, MIB / 2));
    assert_true(inf_regions_charge(&r, a, 100));
    assert_int_equal(r.stats.in_use, MIB / 2);
    assert_true(inf_regions_charge(&r, b, MIB / 2));
    assert_false(inf_regions_charge(&r, b, MIB / 2 + 1));
    inf_regions_free(&r, a);
    assert_true(inf_regions_charge(&r, b, MIB / 2 + 1));
    check_all(&r);
    inf_regions_free(&r, b);
    check_all(&r);
    assert_int_equal(r.stats.in_use, 0);
    inf_regions_fini(&r);
}

static void
newest_region_grows_in_place_and_charge_can_move(void **state)
{
    (void) state;
    inf_regions_t r;
    inf_regions_init(&r, -1, 64 * MIB, 0, 64 * MIB);

    inf_region_t *a = inf_regions_alloc(&r, 4096);
    for (uint64_t size = 8192; size <= 32 * MIB; size *= 2) {
        uint64_t offset = a->offset;
        assert_true(inf_regions_grow(&r, a, size));
        assert_true(inf_regions_charge(&r, a, size));
        assert_true(a->size >= size && a->offset == offset);
        check_all(&r);
    }
    assert_false(inf_regions_grow(&r, a, 65 * MIB));
    assert_false(inf_regions_grow(&r, a, UINT64_MAX));

    inf_region_t *b = inf_regions_alloc(&r, 4096);
    assert_false(inf_regions_grow(&r, a, 40 * MIB));

    inf_regions_free(&r, a);
    a = inf_regions_alloc(&r, 8 * MIB);
    assert_true(inf_regions_charge(&r, a, 8 * MIB));
    inf_region_t *c = inf_regions_replace(&r, a, 16 * MIB);
    assert_non_null(c);
    assert_int_equal(c->charged, 8 * MIB);
    assert_int_equal(a->charged, 0);
    check_all(&r);
    inf_regions_free(&r, a);
    inf_regions_free(&r, b);
    inf_regions_free(&r, c);
    check_all(&r);
    assert_int_equal(r.stats.in_use, 0);
    inf_regions_fini(&r);
}

static void
free_neighbours_merge_so_that_large_fits_after_small(void **state)
{
    (void) state;
    inf_regions_t r;
    static inf_region_t *g[1024];
    inf_regions_init(&r, -1, 64 * MIB, 0, 64 * MIB);

    for (int i = 0; i < 1024; i++) {
        g[i] = inf_regions_alloc(&r, 65536);
        assert_non_null(g[i]);
    }
    assert_null(inf_regions_alloc(&r, 65536));
    for (int i = 0; i < 1024; i++) {
        inf_regions_free(&r, g[(i * 7) % 1024]);
    }
    inf_region_t *a = inf_regions_alloc(&r, 64 * MIB);
    assert_non_null(a);
    check_all(&r);
    inf_regions_free(&r, a);
    inf_regions_fini(&r);
}

/* Both free regions are of one size class, one of them is large enough. */
static void
a_full_arena_is_searched_for_what_just_fits(void **state)
{
    (void) state;
    static const uint64_t sizes[] = { 40 * MIB, 28 * MIB, 5 * MIB, 40 * MIB,
        30 * MIB, 5 * MIB };

    for (int small_first = 0; small_first < 2; small_first++) {
        inf_regions_t r;
        inf_region_t *all[6];

        inf_regions_init(&r, -1, 148 * MIB, 0, 148 * MIB);
        for (int i = 0; i < 6; i++) {
            all[i] = inf_regions_alloc(&r, sizes[i]);
            assert_non_null(all[i]);
        }
        assert_null(inf_regions_alloc(&r, 1));

        uint64_t offset = all[3]->offset;
        int first = small_first ? 0 : 3;
        for (int i = 0; i < 4; i++) {           /* neighbours become one     */
            int pair = i < 2 ? first : 3 - first;
            inf_regions_free(&r, all[pair + i % 2]);
        }
        check_all(&r);
        inf_region_t *fits = inf_regions_alloc(&r, 69 * MIB);
        assert_non_null(fits);
        assert_int_equal(fits->offset, offset);
        check_all(&r);
        inf_regions_fini(&r);
    }
}

static void
a_full_arena_has_room_where_one_large_region_was(void **state)
{
    (void) state;
    inf_regions_t r;

    for (uint64_t size = 64; size <= 64 * MIB; size *= 8) {
        inf_regions_init(&r, -1, 128 * MIB, 0, 128 * MIB);
        inf_region_t *large = inf_regions_alloc(&r, 64 * MIB);
        assert_non_null(inf_regions_alloc(&r, 64 * MIB));
        inf_regions_free(&r, large);
        inf_region_t *region = inf_regions_alloc(&r, size);
        assert_non_null(region);
        assert_int_equal(region->offset, 0);
        check_all(&r);
        inf_regions_fini(&r);
    }
}

static void
random_life_keeps_every_invariant(void **state)
{
    (void) state;
    inf_regions_t r;
    enum { LIVE = 200 };
    inf_region_t *live[LIVE] = { NULL };
    int fd;
    assert_null(inf_memfd_new("test", 256 * MIB, &fd));
    unsigned char *p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    inf_regions_init(&r, fd, 256 * MIB, 128 * MIB, 24 * MIB);

    for (int step = 0; step < 30000; step++) {
        int i = (int) (next_random() % LIVE);
        uint64_t size = next_random() % (1u << next_random() % 23);

        if (live[i] == NULL) {
            live[i] = next_random() % 3 ? inf_regions_alloc(&r, size)
                : inf_regions_reserve(&r, size);
            if (live[i] != NULL && live[i]->charged > 0) {
                /* Marks both ends; trimming must not touch them. */
                p[live[i]->offset] = (unsigned char) (i + 1);
                p[live[i]->offset + live[i]->charged - 1] =
                    (unsigned char) (i + 1);
            }
        } else if (next_random() % 4 == 0) {
            (void) inf_regions_grow(&r, live[i], size);
        } else if (next_random() % 8 == 0 && size >= live[i]->charged) {
            inf_region_t *g = inf_regions_replace(&r, live[i], size);
            if (g != NULL) {
                memcpy(p + g->offset, p + live[i]->offset, g->charged);
                inf_regions_free(&r, live[i]);
                live[i] = g;
            }
        } else {
            if (live[i]->charged > 0) {
                assert_int_equal(p[live[i]->offset], i + 1);
                assert_int_equal(p[live[i]->offset + live[i]->charged - 1],
                    i + 1);
            }
            inf_regions_free(&r, live[i]);
            live[i] = NULL;
        }

        if (step % 100 == 0) {
            (void) inf_regions_trim(&r, (uint64_t) step * SECOND / 10, MIB);
        }
        if (step % 50 == 0) {
            check_all(&r);
        }
    }

    for (int i = 0; i < LIVE; i++) {
        inf_regions_free(&r, live[i]);
    }
    check_all(&r);
    assert_int_equal(r.stats.in_use, 0);
    assert_int_equal(r.stats.regions, 0);
    assert_true(r.stats.trimmed > 0);
    inf_regions_fini(&r);
    munmap(p, 256 * MIB);
    close(fd);
}

static uint64_t
resident(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return (uint64_t) st.st_blocks * 512;
}

static void
trim_gives_cold_pages_back_and_keeps_recent_ones(void **state)
{
    (void) state;
    inf_regions_t r;
    int fd;
    assert_null(inf_memfd_new("test", 1024 * MIB, &fd));
    unsigned char *p = mmap(NULL, 1024 * MIB, PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    inf_regions_init(&r, fd, 1024 * MIB, 0, 64 * MIB);
    (void) inf_regions_trim(&r, SECOND, MIB);

    inf_region_t *g[20];
    for (int i = 0; i < 20; i++) {
        g[i] = inf_regions_alloc(&r, i % 2 ? MIB : 8192);
        memset(p + g[i]->offset, 1, g[i]->charged);
    }
    for (int i = 0; i < 20; i++) {
        inf_regions_free(&r, g[i]);
    }
    uint64_t warm = resident(fd);
    assert_true(warm >= 10 * MIB);

    /* The peak is recent: all stays. */
    assert_int_equal(inf_regions_trim(&r, 2 * SECOND, 64 * MIB), 0);
    assert_int_equal(inf_regions_trim(&r, 12 * SECOND, 64 * MIB), 0);
    assert_int_equal(resident(fd), warm);

    /* Two windows later it is not, and each call is bounded. */
    (void) inf_regions_trim(&r, 23 * SECOND, MIB);
    assert_true(resident(fd) >= warm - 3 * MIB);
    assert_true(resident(fd) < warm);
    (void) inf_regions_trim(&r, 24 * SECOND, 64 * MIB);
    assert_true(resident(fd) < 64 * 1024);
    assert_true(r.stats.trimmed >= 10 * MIB);
    check_all(&r);
    inf_regions_fini(&r);
    munmap(p, 1024 * MIB);
    close(fd);
}

static void
pinned_stretch_is_never_trimmed(void **state)
{
    (void) state;
    inf_regions_t r;
    int fd;
    assert_null(inf_memfd_new("test", 64 * MIB, &fd));
    unsigned char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    inf_regions_init(&r, fd, 64 * MIB, 0, 64 * MIB);
    inf_regions_pin(&r, 4 * MIB);

    inf_region_t *a = inf_regions_alloc(&r, 10 * MIB);
    memset(p + a->offset, 1, 10 * MIB);
    inf_regions_free(&r, a);
    for (uint64_t t = 1; t < 60; t++) {
        (void) inf_regions_trim(&r, t * SECOND, 64 * MIB);
    }
    assert_true(resident(fd) >= 4 * MIB);
    assert_true(resident(fd) <= 4 * MIB + 8192);
    check_all(&r);
    inf_regions_fini(&r);
    munmap(p, 64 * MIB);
    close(fd);
}

/* Though what was freed last lies beyond; of a size whose regions are kept for
   the next of that size, and of one whose regions are merged. */
static void
pinned_stretch_is_handed_out_first(void **state)
{
    (void) state;
    static const uint64_t sizes[] = { MIB / 8, 5 * MIB };

    for (int i = 0; i < 4; i++) {
        uint64_t size = sizes[i / 2];
        bool reserved = i % 2;
        inf_region_t *all[16], *again[4];
        inf_regions_t r;

        inf_regions_init(&r, -1, 512 * MIB, 256 * MIB, 512 * MIB);
        inf_regions_pin(&r, 8 * size);
        for (int n = 0; n < 16; n++) {
            all[n] = reserved ? inf_regions_reserve(&r, size)
                : inf_regions_alloc(&r, size);
        }
        for (int n = 0; n < 16; n += 2) {
            inf_regions_free(&r, all[n]);
        }
        for (int n = 0; n < 4; n++) {
            again[n] = reserved ? inf_regions_reserve(&r, size)
                : inf_regions_alloc(&r, size);
            assert_true(again[n]->offset - (reserved ? 256 * MIB : 0) + size
                <= 8 * size);
        }
        check_all(&r);
        for (int n = 0; n < 4; n++) {
            inf_regions_free(&r, again[n]);
        }
        check_all(&r);
        inf_regions_fini(&r);
    }
}

/* Regions of both kinds are there already, in use and free. */
static void
pinned_pages_are_not_idle(void **state)
{
    (void) state;
    inf_regions_t r;

    inf_regions_init(&r, -1, 64 * MIB, 32 * MIB, 64 * MIB);
    inf_region_t *used = inf_regions_alloc(&r, MIB);
    inf_region_t *cached = inf_regions_alloc(&r, MIB);
    inf_region_t *merged = inf_regions_alloc(&r, 5 * MIB);
    inf_region_t *last = inf_regions_alloc(&r, 64);
    inf_region_t *top = inf_regions_reserve(&r, 9 * MIB);
    assert_true(inf_regions_charge(&r, top, 9 * MIB));
    inf_regions_free(&r, cached);
    inf_regions_free(&r, merged);
    inf_regions_free(&r, top);
    assert_int_equal(r.stats.idle, 15 * MIB);

    inf_regions_pin(&r, 4 * MIB);
    assert_int_equal(r.stats.idle, 3 * MIB + 5 * MIB);
    inf_regions_free(&r, used);
    assert_int_equal(r.stats.idle, 3 * MIB + 5 * MIB);
    check_all(&r);
    inf_regions_free(&r, last);
    check_all(&r);
    inf_regions_fini(&r);
}

static void
changing_sizes_do_not_hoard_pages_beyond_the_bound(void **state)
{
    (void) state;
    inf_regions_t r;
    int fd;
    assert_null(inf_memfd_new("test", 4096 * MIB, &fd));
    unsigned char *p = mmap(NULL, 4096 * MIB, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_true(p != MAP_FAILED);
    inf_regions_init(&r, fd, 4096 * MIB, 0, 32 * MIB);

    for (uint64_t size = 4096; size < 8 * MIB; size += size / 3) {
        inf_region_t *g[8192];
        uint64_t n = 0;
        while (n < 8192 && (g[n] = inf_regions_alloc(&r, size)) != NULL) {
            for (uint64_t k = 0; k < size; k += 4096) {
                p[g[n]->offset + k] = 1;
            }
            n++;
        }
        assert_true(n > 1);
        assert_true(resident(fd) <= 48 * MIB);
        while (n > 0) {
            inf_regions_free(&r, g[--n]);
        }
    }
    check_all(&r);
    inf_regions_fini(&r);
    munmap(p, 4096 * MIB);
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_last_is_handed_out_first),
        cmocka_unit_test(bound_rejects_and_counts_but_nothing_leaks),
        cmocka_unit_test(reservations_leave_their_part_of_the_space_to_charges),
        cmocka_unit_test(reservation_that_fails_leaves_what_others_have_cached),
        cmocka_unit_test(reserved_bytes_are_charged_as_they_arrive),
        cmocka_unit_test(newest_region_grows_in_place_and_charge_can_move),
        cmocka_unit_test(free_neighbours_merge_so_that_large_fits_after_small),
        cmocka_unit_test(a_full_arena_is_searched_for_what_just_fits),
        cmocka_unit_test(a_full_arena_has_room_where_one_large_region_was),
        cmocka_unit_test(random_life_keeps_every_invariant),
        cmocka_unit_test(trim_gives_cold_pages_back_and_keeps_recent_ones),
        cmocka_unit_test(pinned_stretch_is_never_trimmed),
        cmocka_unit_test(pinned_stretch_is_handed_out_first),
        cmocka_unit_test(pinned_pages_are_not_idle),
        cmocka_unit_test(changing_sizes_do_not_hoard_pages_beyond_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
