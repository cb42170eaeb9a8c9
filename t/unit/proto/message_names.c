/* The names in the first bytes of a message. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/proto/message_names.h"

#define T(name) cmocka_unit_test(name)

static const inf_names_fields_t both = { 1, 2 };

static void
assert_names(inf_slice_t bytes, inf_names_fields_t fields, const char *model,
    const char *version)
{
    inf_names_t names = inf_message_names(bytes, fields);

    assert_true(inf_slice_eq(names.model, inf_slice_str(model)));
    assert_true(inf_slice_eq(names.version, inf_slice_str(version)));
}

static void
names_stand_in_their_fields(void **state)
{
    inf_slice_t bytes = INF_SLICE("\x0a\1m\x12\2" "12\x1a\1x");

    (void) state;
    assert_names(bytes, both, "m", "12");
    assert_names(bytes, (inf_names_fields_t) { 2, 0 }, "12", "");
    assert_names(bytes, (inf_names_fields_t) { 0, 0 }, "", "");
    assert_names((inf_slice_t) { NULL, 0 }, both, "", "");
}

static void
fields_of_other_kinds_are_skipped(void **state)
{
    (void) state;
    assert_names(INF_SLICE("\x08\x96\x01\x0d" "abcd\x11" "abcdefgh\x0a\1m"),
                 both, "m", "");
}

static void
the_last_of_two_counts(void **state)
{
    (void) state;
    assert_names(INF_SLICE("\x0a\1a\x12\1" "1\x0a\1b"), both, "b", "1");
    assert_names(INF_SLICE("\x0a\1a\x0a\0"), both, "", "");
}

static void
a_cut_ends_the_search(void **state)
{
    inf_slice_t bytes = INF_SLICE("\x0a\5model\x12\3" "123");

    (void) state;
    for (size_t n = 0; n < bytes.len; n++) {
        assert_names(inf_slice(bytes.data, n), both, n < 7 ? "" : "model", "");
    }
}

static void
bytes_that_are_no_message_end_the_search(void **state)
{
    (void) state;
    assert_names(INF_SLICE("\x0a\1m\x0b\x0a\1x"), both, "m", "");
    assert_names(INF_SLICE("\x0a\1m\0\x0a\1x"), both, "m", "");
    assert_names(INF_SLICE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1m"),
                 both, "", "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(names_stand_in_their_fields),
        T(fields_of_other_kinds_are_skipped),
        T(the_last_of_two_counts),
        T(a_cut_ends_the_search),
        T(bytes_that_are_no_message_end_the_search)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
