#include "temp_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/storage/storage.h"
#include "core/storage/storage_local.h"

static inf_storage_t *
open_local(void)
{
    inf_storage_t *st;
    assert_ok(inf_storage_local_open(&st));
    return st;
}

static void
addresses_name_their_storage(void **state)
{
    (void) state;
    inf_storage_t *st;
    char *root;

    assert_ok(inf_storage_open("/srv/models///", &st, &root));
    assert_string_equal(root, "/srv/models");
    free(root);
    inf_storage_close(st);

    assert_ok(inf_storage_open("/", &st, &root));
    assert_string_equal(root, "/");
    free(root);
    inf_storage_close(st);

    assert_error(inf_storage_open("", &st, &root), INF_ERR_INVALID_ARG,
        "must not be empty");
    assert_ok(inf_storage_open("s3://bucket//x/", &st, &root));
    assert_string_equal(root, "s3://bucket/x");
    free(root);
    inf_storage_close(st);
    assert_ok(inf_storage_open("gs://bucket//x/", &st, &root));
    assert_string_equal(root, "gs://bucket/x");
    free(root);
    inf_storage_close(st);
    assert_ok(inf_storage_open("as://acc//c/x/?sig=secret", &st, &root));
    assert_string_equal(root, "as://acc/c/x");
    free(root);
    inf_storage_close(st);
    inf_storage_close(NULL);
}

static void
a_listing_survives_every_kind_of_entry(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_storage_t *st = open_local();
    inf_entries_t e;

    tree_dir(tree, "dir");
    tree_file(tree, "file", "12345");
    tree_file(tree, "odd \n\x01\xff name", "");
    tree_link(tree, "dir", "to_dir");
    tree_link(tree, "nowhere", "dangling");
    tree_link(tree, "loop_b", "loop_a");
    tree_link(tree, "loop_a", "loop_b");
    tree_link(tree, "self", "self");
    assert_int_equal(mkfifo(tree_path(tree, "fifo"), 0600), 0);

    assert_ok(inf_storage_list(st, tree, &e));
    assert_int_equal(e.count, 9);
    assert_int_equal(inf_entries_find(&e, "dir")->kind, INF_ENTRY_DIR);
    assert_int_equal(inf_entries_find(&e, "to_dir")->kind, INF_ENTRY_DIR);
    assert_int_equal(inf_entries_find(&e, "file")->kind, INF_ENTRY_FILE);
    assert_int_equal(inf_entries_find(&e, "file")->size, 5);
    assert_int_equal(inf_entries_find(&e, "fifo")->kind, INF_ENTRY_OTHER);
    assert_int_equal(inf_entries_find(&e, "dangling")->kind,
        INF_ENTRY_BROKEN);
    assert_int_equal(inf_entries_find(&e, "dangling")->errnum, ENOENT);
    assert_int_equal(inf_entries_find(&e, "loop_a")->errnum, ELOOP);
    assert_int_equal(inf_entries_find(&e, "self")->errnum, ELOOP);
    assert_string_equal(e.items[0].name, "dangling");
    inf_entries_fini(&e);

    assert_error(inf_storage_list(st, tree_path(tree, "gone"), &e),
        INF_ERR_NOT_FOUND, "failed to open directory");
    assert_error(inf_storage_list(st, tree_path(tree, "file"), &e),
        INF_ERR_NOT_FOUND, "Not a directory");
    assert_error(inf_storage_list(st, tree_path(tree, "fifo"), &e),
        INF_ERR_NOT_FOUND, "Not a directory");
    assert_error(inf_storage_list(st, tree_path(tree, "self"), &e),
        INF_ERR_INTERNAL, "Too many levels of symbolic links");

    inf_storage_close(st);
    tree_free(tree);
}

static void
stat_tells_missing_from_broken(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_storage_t *st = open_local();
    inf_entry_t entry;

    tree_file(tree, "file", "123");
    tree_link(tree, "nowhere", "dangling");

    assert_ok(inf_storage_stat(st, tree_path(tree, "file"), &entry));
    assert_int_equal(entry.kind, INF_ENTRY_FILE);
    assert_int_equal(entry.size, 3);
    assert_ok(inf_storage_stat(st, tree, &entry));
    assert_int_equal(entry.kind, INF_ENTRY_DIR);
    assert_error(inf_storage_stat(st, tree_path(tree, "gone"), &entry),
        INF_ERR_NOT_FOUND, "No such file or directory");
    assert_error(inf_storage_stat(st, tree_path(tree, "file/x"), &entry),
        INF_ERR_NOT_FOUND, "Not a directory");
    assert_error(inf_storage_stat(st, tree_path(tree, "dangling"), &entry),
        INF_ERR_INTERNAL, "failed to follow link");

    inf_storage_close(st);
    tree_free(tree);
}

static void
a_path_that_may_not_be_read_is_named_with_the_user(void **state)
{
    (void) state;
    static const uid_t nameless = 54321;
    if (geteuid() != 0 || getpwuid(nameless) != NULL) {
        skip();
    }

    char *tree = tree_new();
    inf_storage_t *st = open_local();
    inf_entries_t e;

    tree_dir(tree, "closed");
    assert_int_equal(chmod(tree, 0700), 0);
    assert_int_equal(seteuid(nameless), 0);
    inf_err_t *err = inf_storage_list(st, tree_path(tree, "closed"), &e);
    assert_int_equal(seteuid(0), 0);
    assert_error(err, INF_ERR_INTERNAL, "(the core runs as user 54321)");

    inf_storage_close(st);
    tree_free(tree);
}

static void
an_old_modification_time_does_not_hide_a_change(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_storage_t *st = open_local();
    inf_entry_t entry;
    struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };

    tree_file(tree, "file", "123");
    assert_int_equal(utimensat(AT_FDCWD, tree_path(tree, "file"), old, 0),
        0);
    assert_ok(inf_storage_stat(st, tree_path(tree, "file"), &entry));
    assert_true(entry.changed_ns > INT64_C(1000000000) * 1001);

    inf_storage_close(st);
    tree_free(tree);
}

static void
files_are_read_whole_within_the_limit(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_storage_t *st = open_local();
    char *data;
    size_t len;

    tree_file(tree, "file", "12345");
    tree_file(tree, "empty", "");
    tree_dir(tree, "dir");
    assert_int_equal(mkfifo(tree_path(tree, "fifo"), 0600), 0);

    assert_ok(inf_storage_read(st, tree_path(tree, "file"), 5, &data, &len));
    assert_int_equal(len, 5);
    assert_string_equal(data, "12345");
    free(data);

    assert_ok(inf_storage_read(st, tree_path(tree, "empty"), 0, &data,
        &len));
    assert_int_equal(len, 0);
    assert_string_equal(data, "");
    free(data);

    assert_error(inf_storage_read(st, tree_path(tree, "file"), 4, &data,
        &len), INF_ERR_INVALID_ARG, "larger than the limit of 4 bytes");
    assert_error(inf_storage_read(st, tree_path(tree, "dir"), 9, &data,
        &len), INF_ERR_INVALID_ARG, "is not a regular file");
    assert_error(inf_storage_read(st, tree_path(tree, "fifo"), 9, &data,
        &len), INF_ERR_INVALID_ARG, "is not a regular file");
    assert_error(inf_storage_read(st, tree_path(tree, "gone"), 9, &data,
        &len), INF_ERR_NOT_FOUND, "failed to open text file for read");

    inf_storage_close(st);
    tree_free(tree);
}

static void
a_file_that_claims_no_size_is_read_to_its_end(void **state)
{
    (void) state;
    inf_storage_t *st = open_local();
    char *data;
    size_t len;

    assert_ok(inf_storage_read(st, "/proc/self/status", 1 << 20, &data,
        &len));
    assert_true(len > 100);
    assert_non_null(strstr(data, "Pid:"));
    free(data);

    assert_error(inf_storage_read(st, "/proc/self/status", 10, &data, &len),
        INF_ERR_INVALID_ARG, "larger than the limit");
    inf_storage_close(st);
}

static void
containment_follows_links(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_storage_t *st = open_local();

    tree_file(tree, "a/in/file", "");
    tree_file(tree, "ab/file", "");
    tree_link(tree, "in", "a/link_in");
    tree_link(tree, "../ab", "a/link_out");
    tree_link(tree, "/etc", "a/link_etc");
    tree_link(tree, "../ab/later", "a/dangling");
    tree_link(tree, "self", "a/self");

    static const struct {
        const char *path;
        bool        inside;
    } rows[] = {
        { "a", true }, { "a/in/file", true }, { "a/link_in/file", true },
        { "a/in/../in/file", true }, { "a/new", true },
        { "a/new/deeper/still", true }, { "a//in//file", true },
        { "ab", false }, { "ab/file", false }, { "a/../ab/file", false },
        { "a/link_out", false }, { "a/link_out/file", false },
        { "a/link_out/new", false }, { "a/link_etc/passwd", false },
        { "a/dangling", false }, { "a/new/../../ab/file", false },
        { "a/..", false },
    };
    char *dir = strdup(tree_path(tree, "a"));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_err_t *err = inf_storage_contain(st, dir,
            tree_path(tree, rows[i].path));
        if (rows[i].inside) {
            assert_ok(err);

        } else {
            assert_error(err, INF_ERR_UNSUPPORTED, "is outside directory");
        }
    }

    assert_error(inf_storage_contain(st, dir, tree_path(tree, "a/self")),
        INF_ERR_INTERNAL, "failed to resolve path");
    assert_error(inf_storage_contain(st, dir,
        tree_path(tree, "a/in/file/x")), INF_ERR_NOT_FOUND,
        "failed to resolve path");
    assert_error(inf_storage_contain(st, tree_path(tree, "gone"),
        tree_path(tree, "gone/x")), INF_ERR_NOT_FOUND,
        "failed to resolve directory");
    assert_ok(inf_storage_contain(st, "/", "/etc"));

    free(dir);
    inf_storage_close(st);
    tree_free(tree);
}

static void
a_local_directory_is_used_in_place(void **state)
{
    (void) state;
    inf_storage_t *st = open_local();
    char *local;

    assert_ok(inf_storage_localize(st, "/srv/m", &local));
    assert_string_equal(local, "/srv/m");
    inf_storage_release(st, local);
    inf_storage_release(st, NULL);
    inf_storage_close(st);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_name_their_storage),
        cmocka_unit_test(a_listing_survives_every_kind_of_entry),
        cmocka_unit_test(stat_tells_missing_from_broken),
        cmocka_unit_test(
            a_path_that_may_not_be_read_is_named_with_the_user),
        cmocka_unit_test(an_old_modification_time_does_not_hide_a_change),
        cmocka_unit_test(files_are_read_whole_within_the_limit),
        cmocka_unit_test(a_file_that_claims_no_size_is_read_to_its_end),
        cmocka_unit_test(containment_follows_links),
        cmocka_unit_test(a_local_directory_is_used_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
