/* A model's directory, with links of all kinds. */

#include "temp_tree.h"

#include "core/repository/model_stamp.h"
#include "core/storage/storage_local.h"

static inf_storage_t *disk;
static size_t         lists;

static int
open_disk(void **state)
{
    (void) state;
    return inf_storage_local_open(&disk) == NULL ? 0 : -1;
}

static int
close_disk(void **state)
{
    (void) state;
    inf_storage_close(disk);
    return 0;
}

static inf_err_t *
counted_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    (void) st;
    lists++;
    return inf_storage_list(disk, dir, out);
}

static inf_err_t *
counted_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    (void) st;
    return inf_storage_stat(disk, path, out);
}

/* Directories in directories without an end: a storage can't tell whether
   they are the same. */
static inf_err_t *
endless_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    const inf_entry_t entry = { .kind = INF_ENTRY_DIR };
    char name[16];

    (void) st;
    (void) dir;
    lists++;
    *out = (inf_entries_t) { NULL, 0 };
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        if (!inf_entries_add(out, &entry, name)) {
            return inf_err_nomem();
        }
    }
    return NULL;
}

static const inf_storage_ops_t counted_ops = {
    .list = counted_list, .stat = counted_stat
};
static const inf_storage_t counted = { &counted_ops };
static const inf_storage_ops_t endless_ops = { .list = endless_list };
static const inf_storage_t endless = { &endless_ops };

static inf_model_stamp_t
stamp_of(const char *tree, const char *name)
{
    inf_model_stamp_t s;

    lists = 0;
    assert_ok(inf_model_stamp_take(&counted, tree_path(tree, name), &s));
    return s;
}

static bool
changes(const char *tree, inf_model_stamp_t *last)
{
    inf_model_stamp_t now = stamp_of(tree, "m");
    bool changed = !inf_model_stamp_equal(last, &now);

    inf_model_stamp_fini(last);
    *last = now;
    return changed;
}

static void
make_maze(const char *tree)
{
    char from[64], to[64];

    for (int level = 0; level < 8; level++) {
        snprintf(from, sizeof(from), "m/level%d", level);
        tree_dir(tree, from);
        for (int i = 0; i < 10; i++) {
            snprintf(from, sizeof(from), "m/level%d/next%d", level, i);
            snprintf(to, sizeof(to), "../level%d", level + 1);
            tree_link(tree, to, from);
        }
    }
    tree_dir(tree, "m/1");
    for (int i = 0; i < 10; i++) {
        snprintf(from, sizeof(from), "m/self%d", i);
        tree_link(tree, ".", from);
        snprintf(from, sizeof(from), "m/1/up%d", i);
        tree_link(tree, "..", from);
    }
}

static void
a_folder_is_looked_into_once_however_many_links_lead_there(void **state)
{
    (void) state;
    char *tree = tree_new();

    make_maze(tree);
    inf_model_stamp_t last = stamp_of(tree, "m");
    assert_true(lists > 8 && lists < 100);
    assert_false(changes(tree, &last));

    tree_file(tree, "m/level7/x", "");
    assert_true(changes(tree, &last));
    tree_file(tree, "m/1/x", "");
    assert_true(changes(tree, &last));
    assert_false(changes(tree, &last));
    inf_model_stamp_fini(&last);
    tree_free(tree);
}

static void
what_two_versions_link_to_changes_both(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_file(tree, "weights/a", "1");
    tree_dir(tree, "m/1");
    tree_dir(tree, "m/2");
    tree_dir(tree, "m/3");
    tree_link(tree, "../../weights", "m/1/weights");
    tree_link(tree, "../../weights", "m/2/weights");
    inf_model_stamp_t before = stamp_of(tree, "m");
    tree_file(tree, "weights/a", "22");
    inf_model_stamp_t after = stamp_of(tree, "m");

    assert_false(inf_model_stamp_same_version(&before, &after, 1));
    assert_false(inf_model_stamp_same_version(&before, &after, 2));
    assert_true(inf_model_stamp_same_version(&before, &after, 3));
    assert_false(inf_model_stamp_same_version(&before, &after, 4));
    inf_model_stamp_fini(&before);
    inf_model_stamp_fini(&after);
    tree_free(tree);
}

static void
a_look_ends_where_folders_do_not(void **state)
{
    (void) state;
    inf_model_stamp_t a, b;

    lists = 0;
    assert_ok(inf_model_stamp_take(&endless, "m", &a));
    assert_true(lists > 1000 && lists < 200000);
    assert_ok(inf_model_stamp_take(&endless, "m", &b));
    assert_true(inf_model_stamp_equal(&a, &b));
    inf_model_stamp_fini(&a);
    inf_model_stamp_fini(&b);
}

static void
what_cannot_be_listed_is_an_error(void **state)
{
    (void) state;
    inf_model_stamp_t s;

    assert_error(inf_model_stamp_take(&counted, "/nowhere/m", &s),
        INF_ERR_NOT_FOUND, "/nowhere/m");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_folder_is_looked_into_once_however_many_links_lead_there),
        cmocka_unit_test(what_two_versions_link_to_changes_both),
        cmocka_unit_test(a_look_ends_where_folders_do_not),
        cmocka_unit_test(what_cannot_be_listed_is_an_error),
    };

    return cmocka_run_group_tests(tests, open_disk, close_disk);
}
