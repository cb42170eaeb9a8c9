#include "model/config_text.h"

#include <stdio.h>

#include "core/model/config_storage.h"

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

static void
entries_grow_sort_and_are_found(void **state)
{
    (void) state;
    inf_entries_t e = { NULL, 0 };
    inf_entry_t dir = { .kind = INF_ENTRY_DIR };
    char name[16];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%d", (i * 37) % 100);
        assert_true(inf_entries_add(&e, &dir, name));
    }

    inf_entries_sort(&e);
    assert_int_equal(e.count, 100);
    for (size_t i = 1; i < e.count; i++) {
        assert_true(strcmp(e.items[i - 1].name, e.items[i].name) < 0);
    }

    assert_int_equal(inf_entries_find(&e, "42")->kind, INF_ENTRY_DIR);
    assert_null(inf_entries_find(&e, "100"));
    inf_entries_fini(&e);
    assert_int_equal(e.count, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_joined_with_one_slash),
        cmocka_unit_test(inner_paths_have_no_way_out),
        cmocka_unit_test(entries_grow_sort_and_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
