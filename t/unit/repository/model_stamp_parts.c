#include "temp_tree.h"

#include "core/repository/model_stamp.h"
#include "core/storage/storage_local.h"

typedef struct {
    inf_storage_t     *storage;
    char              *tree;
    inf_model_stamp_t  old;
} world_t;

static world_t w;

static int
setup(void **state)
{
    (void) state;
    w.tree = tree_new();
    tree_file(w.tree, "m/config.pbtxt", "a");
    tree_file(w.tree, "m/configs/wide.pbtxt", "b");
    tree_file(w.tree, "m/labels.txt", "c");
    tree_file(w.tree, "m/1/data", "d");
    tree_file(w.tree, "m/2/data", "e");
    assert_ok(inf_storage_local_open(&w.storage));
    assert_ok(inf_model_stamp_take(w.storage, tree_path(w.tree, "m"),
        &w.old));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_model_stamp_fini(&w.old);
    inf_storage_close(w.storage);
    tree_free(w.tree);
    return 0;
}

/* After that file has got another size; what is the same then, "rest" for a
   configuration from config.pbtxt and "named" for one from configs/. */
static void
expect_same(const char *file, const char *same)
{
    inf_model_stamp_t now;
    char text[64] = "";

    tree_file(w.tree, file, "longer than before");
    assert_ok(inf_model_stamp_take(w.storage, tree_path(w.tree, "m"), &now));
    assert_false(inf_model_stamp_equal(&w.old, &now));
    if (inf_model_stamp_same_version(&w.old, &now, 1)) {
        strcat(text, "1 ");
    }
    if (inf_model_stamp_same_version(&w.old, &now, 2)) {
        strcat(text, "2 ");
    }
    if (inf_model_stamp_same_rest(&w.old, false, &now, false)) {
        strcat(text, "rest ");
    }
    if (inf_model_stamp_same_rest(&w.old, true, &now, true)) {
        strcat(text, "named ");
    }
    assert_string_equal(text, same);
    inf_model_stamp_fini(&now);
}

static void
each_part_changes_by_itself(void **state)
{
    (void) state;
    expect_same("m/1/data", "2 rest named ");
}

static void
the_configuration_in_use_is_not_the_rest(void **state)
{
    (void) state;
    expect_same("m/config.pbtxt", "1 2 rest ");
}

static void
the_other_one_is(void **state)
{
    (void) state;
    expect_same("m/configs/narrow.pbtxt", "1 2 named ");
}

static void
labels_are_the_rest(void **state)
{
    (void) state;
    expect_same("m/labels.txt", "1 2 ");
}

/* Then the configurations themselves are compared. */
static void
from_one_configuration_to_the_other_neither_is(void **state)
{
    (void) state;
    inf_model_stamp_t now;

    tree_file(w.tree, "m/config.pbtxt", "longer than before");
    tree_file(w.tree, "m/configs/wide.pbtxt", "longer than before");
    assert_ok(inf_model_stamp_take(w.storage, tree_path(w.tree, "m"), &now));
    assert_true(inf_model_stamp_same_rest(&w.old, false, &now, true));
    assert_true(inf_model_stamp_same_rest(&w.old, true, &now, false));
    inf_model_stamp_fini(&now);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_part_changes_by_itself),
        TEST(the_configuration_in_use_is_not_the_rest),
        TEST(the_other_one_is),
        TEST(labels_are_the_rest),
        TEST(from_one_configuration_to_the_other_neither_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
