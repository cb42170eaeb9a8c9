/* Directories that come to repositories while nothing loads new models. */

#include "temp_tree.h"

#include <poll.h>
#include <sys/resource.h>

#include "core/base/log.h"
#include "core/repository/ignored_models.h"

static struct {
    char                 *tree;
    char                 *roots[2];
    inf_ignored_models_t *ignored;
    unsigned              lines;
    char                  last[INF_LOG_MAX + 1];
} w;

static void
keep_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) level;
    (void) file;
    (void) line_no;
    w.lines++;
    snprintf(w.last, sizeof(w.last), "%s", line);
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_dir(w.tree, "one/a/1");
    tree_dir(w.tree, "two/b/1");
    w.roots[0] = strdup(tree_path(w.tree, "one"));
    w.roots[1] = strdup(tree_path(w.tree, "two"));
    assert_ok(inf_ignored_models_new(&w.ignored));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_ignored_models_free(w.ignored);
    free(w.roots[0]);
    free(w.roots[1]);
    tree_free(w.tree);
    return 0;
}

/* Events of a change are there when the change is done. */
static void
take_all(void)
{
    struct pollfd p = {
        .fd = inf_ignored_models_fd(w.ignored), .events = POLLIN
    };
    while (poll(&p, 1, 0) == 1) {
        inf_ignored_models_take(w.ignored);
    }
}

static void
names(const char *dir, bool expected)
{
    unsigned before = w.lines;

    tree_dir(w.tree, dir);
    take_all();
    assert_int_equal(w.lines - before, expected);
    if (expected) {
        assert_non_null(strstr(w.last, tree_path(w.tree, dir)));
    }
}

static void
a_directory_is_named_once(void **state)
{
    (void) state;
    inf_ignored_models_watch(w.ignored, w.roots, 2);
    names("one/m", true);
    names("two/m", true);
    assert_int_equal(rmdir(tree_path(w.tree, "one/m")), 0);
    names("one/m", false);
}

static void
files_and_versions_are_not_named(void **state)
{
    (void) state;
    inf_ignored_models_watch(w.ignored, w.roots, 2);
    tree_file(w.tree, "one/readme", "");
    names("one/a/2", false);
}

static void
other_roots_are_watched_instead(void **state)
{
    (void) state;
    inf_ignored_models_watch(w.ignored, w.roots, 1);
    names("two/m", false);
    inf_ignored_models_watch(w.ignored, w.roots, 2);
    names("two/n", true);
    inf_ignored_models_watch(w.ignored, w.roots + 1, 1);
    names("one/m", false);
    inf_ignored_models_watch(w.ignored, NULL, 0);
    names("two/o", false);
}

static void
a_directory_with_two_names_is_one(void **state)
{
    (void) state;
    char *twice[2] = { w.roots[0], w.roots[0] };

    inf_ignored_models_watch(w.ignored, twice, 2);
    names("one/m", true);
}

static void
a_root_that_is_not_there_is_a_line(void **state)
{
    (void) state;
    char *roots[3] = { "/nowhere", "s3://bucket/models", w.roots[0] };

    inf_ignored_models_watch(w.ignored, roots, 3);
    assert_int_equal(w.lines, 1);
    assert_non_null(strstr(w.last, "'/nowhere' is not watched"));
    names("one/m", true);
}

static void
a_bound_ends_the_watch(void **state)
{
    (void) state;
    char dir[32];

    inf_ignored_models_watch(w.ignored, w.roots, 1);
    for (unsigned i = 0; i < INF_IGNORED_MODELS_MAX; i++) {
        snprintf(dir, sizeof(dir), "one/m%u", i);
        tree_dir(w.tree, dir);
    }
    take_all();
    assert_int_equal(w.lines, INF_IGNORED_MODELS_MAX + 1);
    assert_non_null(strstr(w.last, "further"));
    names("one/more", false);
    inf_ignored_models_watch(w.ignored, w.roots, 1);
    names("one/even_more", false);
}

static void
without_inotify_there_is_a_reason(void **state)
{
    (void) state;
    struct rlimit old, none;
    inf_ignored_models_t *more;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    inf_err_t *err = inf_ignored_models_new(&more);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), "inotify"));
    inf_err_free(err);
}

int
main(void)
{
    inf_log_set_sink(keep_line, NULL);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_directory_is_named_once),
        T(files_and_versions_are_not_named),
        T(other_roots_are_watched_instead),
        T(a_directory_with_two_names_is_one),
        T(a_root_that_is_not_there_is_a_line),
        T(a_bound_ends_the_watch),
        T(without_inotify_there_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
