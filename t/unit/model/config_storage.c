#include "model/config_text.h"

#include <stdio.h>

#include "core/model/config_storage.h"

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
        cmocka_unit_test(entries_grow_sort_and_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
