/* Paths as words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/path.h"

static void
paths_are_joined_with_one_slash(void **state)
{
    (void) state;
    static const char *const rows[][3] = {
        { "a", "b", "a/b" }, { "a/", "b", "a/b" }, { "/", "b", "/b" },
        { "s3://x/y", "z", "s3://x/y/z" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *path = inf_path_join(rows[i][0], rows[i][1]);
        assert_string_equal(path, rows[i][2]);
        free(path);
    }
}

static void
slashes_at_the_end_do_not_count(void **state)
{
    (void) state;
    assert_int_equal(inf_path_len("/a/b//"), 4);
    assert_int_equal(inf_path_len("http://h/"), 8);
    assert_int_equal(inf_path_len("//"), 1);
    assert_int_equal(inf_path_len(""), 0);
}

static void
inner_paths_have_no_way_out(void **state)
{
    (void) state;
    static const char *const inner[] = {
        "a", "a/b", "..a", "a..", "a/..b/c", ".", "./a", "a//b", "...",
    };
    static const char *const outer[] = {
        "", "/", "/a", "..", "../a", "a/..", "a/../b", "a//../b", "./..",
    };

    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
        assert_true(inf_path_is_inner(inner[i]));
    }

    for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++) {
        assert_false(inf_path_is_inner(outer[i]));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_joined_with_one_slash),
        cmocka_unit_test(slashes_at_the_end_do_not_count),
        cmocka_unit_test(inner_paths_have_no_way_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
