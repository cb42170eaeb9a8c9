#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/sched/block_sums.h"

enum { BYTES = 2048, WORDS = (BYTES + INF_BLOCK_STEP) / 8 };

static uint64_t secret[WORDS];

static uint64_t
mix(uint64_t n)
{
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

static bool
equal(inf_block_sums_t a, inf_block_sums_t b)
{
    return a.first == b.first && a.second == b.second;
}

/* By the definition: words of 32 bits, little-endian as here. */
static void
the_sums_are_of_products_of_neighbours(void **state)
{
    (void) state;
    const uint32_t data[8] = { 1, 2, 3, 4, 5, 6, 0xffffffff, 8 };
    const uint32_t keys[16] = { 10, 20, 30, 40, 50, 60, 70, 0xfffffff9,
        100, 200, 300, 400, 500, 600, 700, 800 };
    uint64_t words[8];
    memcpy(words, keys, sizeof(words));

    inf_block_sums_t s = inf_block_sums_way(0)(data, sizeof(data), words);
    assert_int_equal(s.first, 11 * 22 + 33 * 44 + 55 * 66 + 69 * 1);
    assert_int_equal(s.second, 101 * 202 + 303 * 404 + 505 * 606 + 699 * 808);
}

static void
every_way_gives_the_same(void **state)
{
    (void) state;
    unsigned char *data = malloc(BYTES + 64);
    unsigned ways = 0;
    assert_non_null(data);
    for (uint64_t i = 0; i < BYTES + 64; i++) {
        data[i] = (unsigned char) mix(i + 99);
    }

    for (; inf_block_sums_way(ways) != NULL; ways++) {
        for (size_t len = 0; len <= BYTES; len += INF_BLOCK_STEP) {
            for (size_t at = 0; at < 64; at += len > 256 ? 13 : 1) {
                assert_true(equal(
                    inf_block_sums_way(ways)(data + at, len, secret),
                    inf_block_sums_way(0)(data + at, len, secret)));
            }
        }
    }
    assert_true(ways >= 1);
    assert_null(inf_block_sums_way(ways));
    assert_true(equal(inf_block_sums()(data, BYTES, secret),
        inf_block_sums_way(0)(data, BYTES, secret)));
    free(data);
}

/* No sum stays as it was when one bit turns. */
static void
every_bit_counts_in_both(void **state)
{
    (void) state;
    static unsigned char data[BYTES];
    inf_block_sums_t was = inf_block_sums()(data, BYTES, secret);

    for (size_t bit = 0; bit < BYTES * 8; bit++) {
        data[bit / 8] = (unsigned char) (1 << bit % 8);
        inf_block_sums_t is = inf_block_sums()(data, BYTES, secret);
        assert_true(is.first != was.first && is.second != was.second);
        data[bit / 8] = 0;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sums_are_of_products_of_neighbours),
        cmocka_unit_test(every_way_gives_the_same),
        cmocka_unit_test(every_bit_counts_in_both)
    };
    for (uint64_t i = 0; i < WORDS; i++) {
        secret[i] = mix((i + 1) * UINT64_C(0x9e3779b97f4a7c15));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
