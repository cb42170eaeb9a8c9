#include "temp_tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include "python/env_archive.h"

#define BYTES_MAX 100000

typedef struct {
    const char *name;
    mode_t      mode;           /* with its type                             */
    const char *link;           /* target                                    */
    bool        hard;
    const char *text;
} item_t;

/* Writes tree/a.tar.gz. */
static const char *
pack(const char *tree, const item_t *items, size_t count)
{
    const char *file = tree_path(tree, "a.tar.gz");
    struct archive *a = archive_write_new();

    assert_int_equal(archive_write_add_filter_gzip(a), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, file), ARCHIVE_OK);
    for (size_t i = 0; i < count; i++) {
        struct archive_entry *e = archive_entry_new();
        archive_entry_set_pathname(e, items[i].name);
        archive_entry_set_mode(e, items[i].mode);
        if (items[i].hard) {
            archive_entry_set_hardlink(e, items[i].link);
        } else if (items[i].link != NULL) {
            archive_entry_set_symlink(e, items[i].link);
        }
        size_t len = items[i].text != NULL ? strlen(items[i].text) : 0;
        archive_entry_set_size(e, (int64_t) len);
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        if (len > 0) {
            assert_int_equal(archive_write_data(a, items[i].text, len), len);
        }
        archive_entry_free(e);
    }
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    return file;
}

/* Into tree/in; the error's text, "" for none. */
static const char *
extract(const char *tree, const char *file)
{
    static char text[4096];

    tree_dir(tree, "in");
    TRITONSERVER_Error *err = py_archive_extract(file, tree_path(tree, "in"),
        BYTES_MAX);
    snprintf(text, sizeof(text), "%s",
        err != NULL ? TRITONSERVER_ErrorMessage(err) : "");
    bk_err_drop(err);
    return text;
}

/* The entry is rejected by its name, and nothing is beside the directory. */
static void
assert_rejected(const item_t *items, size_t count, const char *why)
{
    char *tree = tree_new();
    const char *file = pack(tree, items, count);
    const char *text = extract(tree, file);

    if (strstr(text, why) == NULL || strstr(text, "a.tar.gz") == NULL
        || strstr(text, items[count - 1].name) == NULL)
    {
        fail_msg("\"%s\" does not name \"%s\" and \"%s\"", text,
            items[count - 1].name, why);
    }
    assert_int_not_equal(access(tree_path(tree, "out"), F_OK), 0);
    tree_free(tree);
}

static void
environment_is_extracted(void **state)
{
    (void) state;
    static const item_t items[] = {
        { "./", S_IFDIR | 0777, NULL, false, NULL },
        { "bin/", S_IFDIR | 0555, NULL, false, NULL },
        { "lib/python3/a.py", S_IFREG | 0644, NULL, false, "x = 1\n" },
        { "bin/python3.11", S_IFREG | 0755 | S_ISUID, NULL, false, "run" },
        { "./bin/python3", S_IFLNK | 0777, "python3.11", false, NULL },
        { "lib/link", S_IFLNK | 0777, "../bin/./python3", false, NULL },
        { "lib/same.py", S_IFREG | 0644, "lib/python3/a.py", true, NULL },
        { "share/empty", S_IFREG, NULL, false, NULL },
    };
    char *tree = tree_new();
    const char *file = pack(tree, items, sizeof(items) / sizeof(items[0]));
    struct stat st;

    tree_dir(tree, "in");
    assert_int_equal(chmod(tree_path(tree, "in"), 0700), 0);
    assert_string_equal(extract(tree, file), "");
    assert_int_equal(stat(tree_path(tree, "in"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(tree_path(tree, "in/bin/python3.11"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0755);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(stat(tree_path(tree, "in/bin"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_int_equal(stat(tree_path(tree, "in/lib/link"), &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(tree_path(tree, "in/lib/same.py"), &st), 0);
    assert_int_equal(st.st_nlink, 2);
    tree_free(tree);
}

static void
entry_that_climbs_is_rejected(void **state)
{
    (void) state;
    static const item_t up[] = {
        { "../out", S_IFREG | 0644, NULL, false, "x" } };
    static const item_t below[] = {
        { "lib/../../out", S_IFREG | 0644, NULL, false, "x" } };
    static const item_t absolute[] = {
        { "/tmp/inf_never_written", S_IFREG | 0644, NULL, false, "x" } };

    assert_rejected(up, 1, "leaves the directory");
    assert_rejected(below, 1, "leaves the directory");
    assert_rejected(absolute, 1, "leaves the directory");
    assert_int_not_equal(access("/tmp/inf_never_written", F_OK), 0);
}

static void
link_that_climbs_is_rejected(void **state)
{
    (void) state;
    static const item_t symbolic[] = {
        { "lib/link", S_IFLNK | 0777, "../../out", false, NULL } };
    static const item_t absolute[] = {
        { "link", S_IFLNK | 0777, "/etc", false, NULL } };
    static const item_t hard[] = {
        { "link", S_IFREG | 0644, "../a.tar.gz", true, NULL } };
    static const item_t far_hard[] = {
        { "link", S_IFREG | 0644, "/etc/passwd", true, NULL } };

    assert_rejected(symbolic, 1, "outside the directory");
    assert_rejected(absolute, 1, "outside the directory");
    assert_rejected(hard, 1, "outside the directory");
    assert_rejected(far_hard, 1, "outside the directory");
}

/* here -> ., here/x is x: then ".." behind a link climbs. */
static void
parent_behind_a_link_is_rejected(void **state)
{
    (void) state;
    static const item_t items[] = {
        { "here", S_IFLNK | 0777, ".", false, NULL },
        { "up", S_IFLNK | 0777, "here/..", false, NULL } };

    assert_rejected(items, 2, "outside the directory");
}

static void
file_is_not_written_through_a_link(void **state)
{
    (void) state;
    static const item_t items[] = {
        { "real/", S_IFDIR | 0755, NULL, false, NULL },
        { "lib", S_IFLNK | 0777, "real", false, NULL },
        { "lib/a", S_IFREG | 0644, NULL, false, "x" } };

    assert_rejected(items, 3, "Cannot extract through symlink");
}

static void
device_and_pipe_are_rejected(void **state)
{
    (void) state;
    static const item_t device[] = {
        { "null", S_IFCHR | 0666, NULL, false, NULL } };
    static const item_t pipe[] = {
        { "pipe", S_IFIFO | 0666, NULL, false, NULL } };

    assert_rejected(device, 1, "no file, directory or link");
    assert_rejected(pipe, 1, "no file, directory or link");
}

static void
file_that_is_no_archive_is_named(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_file(tree, "a.tar.gz", "these are no entries, and not few of them");
    const char *text = extract(tree, tree_path(tree, "a.tar.gz"));
    assert_non_null(strstr(text, "cannot extract archive"));
    assert_non_null(strstr(text, "a.tar.gz"));
    tree_free(tree);
}

static void
archive_that_is_cut_off_is_named(void **state)
{
    (void) state;
    char big[20001];
    char *tree = tree_new();
    unsigned n = 1;

    for (size_t i = 0; i < sizeof(big) - 1; i++) {
        n = n * 1103515245u + 12345u;
        big[i] = (char) ('a' + (n >> 16) % 26);
    }
    big[sizeof(big) - 1] = '\0';
    const item_t items[] = { { "big", S_IFREG | 0644, NULL, false, big } };
    const char *file = pack(tree, items, 1);
    assert_int_equal(truncate(file, 5000), 0);
    const char *text = extract(tree, file);
    assert_non_null(strstr(text, "a.tar.gz"));
    assert_non_null(strstr(text, "truncated gzip input"));
    tree_free(tree);
}

/* A file and an entry: 4096 bytes for each entry are counted. */
static void
archive_with_too_many_bytes_is_rejected(void **state)
{
    (void) state;
    static char text[BYTES_MAX];
    item_t items[24];

    for (size_t i = 0; i < 24; i++) {
        items[i] = (item_t) { .name = ".", .mode = S_IFDIR | 0755 };
    }
    items[1] = (item_t) { .name = "a", .mode = S_IFREG | 0644, .text = text };
    for (size_t extra = 0; extra < 2; extra++) {
        char *tree = tree_new();
        memset(text, 'x', BYTES_MAX - 24 * 4096 + extra);
        const char *why = extract(tree, pack(tree, items, 24));
        if (extra == 0) {
            assert_string_equal(why, "");
        } else {
            assert_non_null(strstr(why, "more than 100000 bytes"));
        }
        tree_free(tree);
    }

    char *tree = tree_new();
    items[1] = (item_t) { .name = ".", .mode = S_IFDIR | 0755 };
    item_t more[25];
    memcpy(more, items, sizeof(items));
    more[24] = items[0];
    assert_string_equal(extract(tree, pack(tree, more, 24)), "");
    assert_non_null(strstr(extract(tree, pack(tree, more, 25)),
        "more than 100000 bytes"));
    tree_free(tree);
}

static void
rules_of_names(void **state)
{
    (void) state;
    assert_true(py_archive_name_stays("a"));
    assert_true(py_archive_name_stays("./a/..b/c.."));
    assert_false(py_archive_name_stays(""));
    assert_false(py_archive_name_stays(".."));
    assert_false(py_archive_name_stays("/a"));
    assert_false(py_archive_name_stays("a/../b"));
    assert_false(py_archive_name_stays("a//..//b"));
}

static void
rules_of_links(void **state)
{
    (void) state;
    assert_true(py_archive_link_stays("a", "b"));
    assert_true(py_archive_link_stays("lib/a", "../b"));
    assert_true(py_archive_link_stays("./lib/./a", "../b"));
    assert_true(py_archive_link_stays("x/y/a", ".././..//b"));
    assert_true(py_archive_link_stays("x/y/a", "../.."));
    assert_false(py_archive_link_stays("a", ".."));
    assert_false(py_archive_link_stays("./a", "../b"));
    assert_false(py_archive_link_stays("lib/a", "../../b"));
    assert_false(py_archive_link_stays("lib/a", "b/.."));
    assert_false(py_archive_link_stays("a", "/b"));
    assert_false(py_archive_link_stays("a", ""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_is_extracted),
        cmocka_unit_test(entry_that_climbs_is_rejected),
        cmocka_unit_test(link_that_climbs_is_rejected),
        cmocka_unit_test(parent_behind_a_link_is_rejected),
        cmocka_unit_test(file_is_not_written_through_a_link),
        cmocka_unit_test(device_and_pipe_are_rejected),
        cmocka_unit_test(file_that_is_no_archive_is_named),
        cmocka_unit_test(archive_that_is_cut_off_is_named),
        cmocka_unit_test(archive_with_too_many_bytes_is_rejected),
        cmocka_unit_test(rules_of_names),
        cmocka_unit_test(rules_of_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
