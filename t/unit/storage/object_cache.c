/* The owner of the directory that the cache of S3 storage lies in. */

#include "temp_tree.h"

#include <dirent.h>

#include "core/storage/object_cache.h"

#define OTHER_USER 65534

static char *tree;

static int
setup(void **state)
{
    (void) state;
    tree = tree_new();
    setenv("TRITON_AWS_MOUNT_DIRECTORY", tree, 1);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    unsetenv("TRITON_AWS_MOUNT_DIRECTORY");
    tree_free(tree);
    return 0;
}

static const char *
base_path(const char *below)
{
    char name[128];

    snprintf(name, sizeof(name), "inference-s3-%u%s", (unsigned) geteuid(),
        below);
    return tree_path(tree, name);
}

/* A directory for a model without files: nothing is asked of a service. */
static inf_err_t *
use_cache(void)
{
    const inf_object_listing_t nothing = { 0 };
    inf_object_cache_t *cache;
    char *folder = NULL;

    assert_ok(inf_object_cache_new(&inf_service_s3, &cache));
    inf_err_t *err = inf_object_cache_directory(cache, NULL, &nothing, 0,
        &folder);
    if (err == NULL) {
        struct stat st;
        assert_int_equal(lstat(folder, &st), 0);
        inf_object_cache_release(cache, folder);
    }
    inf_object_cache_free(cache);
    return err;
}

static void
rejected_where(const char *path)
{
    inf_err_t *err = use_cache();

    assert_non_null(err);
    if (strstr(inf_err_msg(err), path) == NULL
        || strstr(inf_err_msg(err), "belongs to this user alone") == NULL)
    {
        fail_msg("\"%s\" lacks \"%s\"", inf_err_msg(err), path);
    }
    inf_err_free(err);
}

static unsigned
mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return (unsigned) st.st_mode & 07777;
}

static unsigned
entries_of(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n - 2;
}

static void
it_is_made_for_this_user_alone_and_used_again(void **state)
{
    (void) state;
    mode_t mask = umask(0);
    assert_ok(use_cache());
    umask(mask);
    assert_int_equal(mode_of(base_path("")), 0700);
    assert_int_equal(mode_of(base_path("/objects")), 0700);
    assert_ok(use_cache());
}

static void
one_that_others_may_enter_is_not_used(void **state)
{
    (void) state;
    static const mode_t modes[] = { 0755, 0750, 0701, 0710, 0770, 0777, 01777,
        0704, 0740, 0702, 0720 };
    static const char *const parts[] = { "", "/objects" };

    assert_ok(use_cache());
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
            assert_int_equal(chmod(base_path(parts[p]), modes[i]), 0);
            rejected_where(base_path(parts[p]));
            assert_int_equal(mode_of(base_path(parts[p])), modes[i]);
        }
        assert_int_equal(chmod(base_path(parts[p]), 0700), 0);
    }
    assert_int_equal(entries_of(base_path("/objects")), 0);
    assert_ok(use_cache());
}

static void
one_of_another_user_is_not_used(void **state)
{
    (void) state;
    static const char *const parts[] = { "", "/objects" };

    if (geteuid() != 0) {
        print_message("this needs root, to give a directory away\n");
        skip();
    }
    assert_ok(use_cache());
    for (size_t p = 0; p < 2; p++) {
        assert_int_equal(chown(base_path(parts[p]), OTHER_USER, OTHER_USER), 0);
        rejected_where(base_path(parts[p]));
        assert_int_equal(chown(base_path(parts[p]), 0, 0), 0);
    }
    assert_ok(use_cache());
}

/* The maker of the link decides where files would be written. */
static void
one_behind_a_link_is_not_used(void **state)
{
    (void) state;
    static const char *const parts[] = { "", "/objects" };

    tree_dir(tree, "elsewhere");
    assert_int_equal(chmod(tree_path(tree, "elsewhere"), 0700), 0);
    for (size_t p = 0; p < 2; p++) {
        assert_int_equal(symlink(tree_path(tree, "elsewhere"),
            base_path(parts[p])), 0);
        rejected_where(base_path(parts[p]));
        assert_int_equal(entries_of(tree_path(tree, "elsewhere")), 0);
        assert_int_equal(unlink(base_path(parts[p])), 0);
        if (p == 0) {
            assert_int_equal(mkdir(base_path(""), 0700), 0);
        }
    }
    assert_ok(use_cache());
}

static void
what_is_no_directory_is_not_used(void **state)
{
    (void) state;
    char name[64];

    snprintf(name, sizeof(name), "inference-s3-%u", (unsigned) geteuid());
    tree_file(tree, name, "");
    assert_int_equal(chmod(base_path(""), 0600), 0);
    rejected_where(base_path(""));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(it_is_made_for_this_user_alone_and_used_again),
        T(one_that_others_may_enter_is_not_used),
        T(one_of_another_user_is_not_used),
        T(one_behind_a_link_is_not_used),
        T(what_is_no_directory_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
