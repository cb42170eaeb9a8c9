#include "temp_tree.h"

#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/repository/scan.h"
#include "core/storage/storage_local.h"

static inf_storage_t *storage;

static int
open_storage(void **state)
{
    (void) state;
    assert_ok(inf_storage_local_open(&storage));
    return 0;
}

static int
close_storage(void **state)
{
    (void) state;
    inf_storage_close(storage);
    return 0;
}

static inf_scan_t
scan_one_root(const char *root)
{
    inf_scan_root_t roots[] = { { .storage = storage, .root = root } };
    inf_scan_t scan;
    assert_ok(inf_scan(roots, 1, &scan));
    return scan;
}

/* The problem of that level whose text has part; fails without. */
static const inf_scan_problem_t *
problem(const inf_scan_t *scan, inf_log_level_t level, const char *part)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        if (scan->problems[i].level == level
            && strstr(scan->problems[i].text, part) != NULL)
        {
            return &scan->problems[i];
        }
    }

    for (size_t i = 0; i < scan->problem_count; i++) {
        print_message("problem: %s\n", scan->problems[i].text);
    }

    fail_msg("no problem with: %s", part);
    return NULL;
}

static void
directories_are_models_and_files_are_not(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "b/1");
    tree_dir(tree, "a");
    tree_dir(tree, ".hidden/2");
    tree_file(tree, "file", "");
    tree_link(tree, "b", "link");

    inf_scan_t scan = scan_one_root(tree);
    static const char *const names[] = { ".hidden", "a", "b", "link" };

    assert_int_equal(scan.model_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(scan.models[i].name, names[i]);
        assert_string_equal(scan.models[i].dir, tree_path(tree, names[i]));
        assert_false(scan.models[i].duplicate
                     || scan.models[i].unreadable != NULL);
    }

    assert_int_equal(scan.problem_count, 0);
    assert_ptr_equal(inf_scan_find(&scan, "b"), &scan.models[2]);
    assert_null(inf_scan_find(&scan, "c"));
    assert_null(inf_scan_find(&scan, ""));
    assert_int_equal(inf_scan_find(&scan, "link")->version_count, 1);
    inf_scan_fini(&scan);
    tree_free(tree);
}

static void
odd_version_directories_are_ignored_with_a_reason(void **state)
{
    (void) state;
    char *tree = tree_new();
    static const char *const dirs[] = {
        "m/10", "m/9", "m/0", "m/1/deeper", "m/003", "m/abc", "m/1.bak",
        "m/-1", "m/1234567890123456789012345", "m/warmup", "m/configs",
        "m/initial_state", "m/bad\nname",
    };

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        tree_dir(tree, dirs[i]);
    }

    tree_file(tree, "m/2", "a file");
    tree_file(tree, "m/config.pbtxt", "");
    tree_link(tree, "9", "m/11");
    tree_link(tree, "nowhere", "m/12");
    tree_link(tree, "nowhere", "m/labels.txt");

    inf_scan_t scan = scan_one_root(tree);
    assert_int_equal(scan.model_count, 1);
    const inf_scan_model_t *m = &scan.models[0];

    assert_int_equal(m->version_count, 5);
    assert_true(m->versions[0] == 0 && m->versions[1] == 1
        && m->versions[2] == 9 && m->versions[3] == 10
        && m->versions[4] == 11);

    problem(&scan, INF_LOG_WARN, "model 'm': ignore version directory '003' "
        "which contains leading zeros in its directory name");
    problem(&scan, INF_LOG_WARN, "'abc' which fails to convert to integral "
        "number");
    problem(&scan, INF_LOG_WARN, "'1.bak' which fails");
    problem(&scan, INF_LOG_WARN, "'-1' which fails");
    problem(&scan, INF_LOG_WARN, "'1234567890123456789012345' whose number "
        "is above 9223372036854775807");
    problem(&scan, INF_LOG_WARN, "'bad\\x0aname' which fails");
    problem(&scan, INF_LOG_WARN, "'12' which can't be followed: No such "
        "file");
    assert_int_equal(scan.problem_count, 7);
    inf_scan_fini(&scan);
    tree_free(tree);
}

static void
bad_entries_are_problems_and_hold_up_nobody(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "good/1");
    tree_dir(tree, "bad\tname");
    tree_dir(tree, "bad\xff" "utf8");
    tree_dir(tree, "gr\xc3\xbc\xc3\x9f" "e");
    tree_link(tree, "nowhere", "dangling");
    tree_link(tree, "loop", "loop");

    inf_scan_t scan = scan_one_root(tree);
    assert_int_equal(scan.model_count, 2);
    assert_non_null(inf_scan_find(&scan, "good"));
    assert_non_null(inf_scan_find(&scan, "gr\xc3\xbc\xc3\x9f" "e"));

    const inf_scan_problem_t *p = problem(&scan, INF_LOG_ERROR,
        "bad\\x09name' can't be a model, its name is invalid: it must not "
        "contain control characters");
    assert_string_equal(p->model, "bad\\x09name");
    problem(&scan, INF_LOG_ERROR, "bad\\xffutf8' can't be a model, its name "
        "is invalid: it must be valid UTF-8");
    p = problem(&scan, INF_LOG_ERROR, "/dangling' can't be followed: No such "
        "file or directory");
    assert_string_equal(p->model, "dangling");
    problem(&scan, INF_LOG_ERROR, "/loop' can't be followed: Too many levels "
        "of symbolic links");
    assert_int_equal(scan.problem_count, 4);
    assert_false(scan.root_failed[0]);
    inf_scan_fini(&scan);
    tree_free(tree);
}

static void
names_are_checked(void **state)
{
    (void) state;
    char longest[256];
    memset(longest, 'x', sizeof(longest));

    assert_null(inf_model_name_problem(longest, 255));
    assert_non_null(strstr(inf_model_name_problem(longest, 256), "255"));
    assert_non_null(inf_model_name_problem("", 0));
    assert_non_null(inf_model_name_problem(".", 1));
    assert_non_null(inf_model_name_problem("..", 2));
    assert_non_null(inf_model_name_problem("a/b", 3));
    assert_non_null(inf_model_name_problem("a\0b", 3));
    assert_non_null(inf_model_name_problem("a\x7f", 2));
    assert_non_null(inf_model_name_problem("\xc0\xaf", 2));
    assert_non_null(inf_model_name_problem("\xed\xa0\x80", 3));
    assert_null(inf_model_name_problem("...", 3));
    assert_null(inf_model_name_problem(".git", 4));
    assert_null(inf_model_name_problem("a b", 3));
    assert_null(inf_model_name_problem("\xf0\x9f\x98\x80", 4));
}

static void
one_name_in_two_repositories_is_marked(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "r0/both/1");
    tree_dir(tree, "r0/only0/1");
    tree_dir(tree, "r1/both/2");
    tree_dir(tree, "r1/only1/1");

    char *r0 = strdup(tree_path(tree, "r0"));
    char *r1 = strdup(tree_path(tree, "r1"));
    inf_scan_root_t roots[] = {
        { .storage = storage, .root = r0 },
        { .storage = storage, .root = r1 },
        { .storage = storage, .root = r0 },
    };
    inf_scan_t scan;

    assert_ok(inf_scan(roots, 3, &scan));
    assert_int_equal(scan.model_count, 4);

    const inf_scan_model_t *both = inf_scan_find(&scan, "both");
    assert_true(both[0].duplicate && both[1].duplicate);
    assert_int_equal(both[0].repository, 0);
    assert_int_equal(both[1].repository, 1);
    assert_false(inf_scan_find(&scan, "only0")->duplicate);
    assert_int_equal(inf_scan_find(&scan, "only1")->repository, 1);

    const inf_scan_problem_t *p = problem(&scan, INF_LOG_ERROR,
        "failed to poll model 'both': not unique across all model "
        "repositories: ");
    assert_string_equal(p->model, "both");
    assert_int_equal(scan.problem_count, 1);
    inf_scan_fini(&scan);
    free(r0);
    free(r1);
    tree_free(tree);
}

static void
a_repository_that_fails_leaves_the_others(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "good/m/1");
    tree_file(tree, "file", "");
    char *good = strdup(tree_path(tree, "good"));
    char *gone = strdup(tree_path(tree, "gone"));
    char *file = strdup(tree_path(tree, "file"));
    inf_scan_root_t roots[] = {
        { .storage = storage, .root = gone },
        { .storage = storage, .root = good },
        { .storage = storage, .root = file },
    };
    inf_scan_t scan;

    assert_ok(inf_scan(roots, 3, &scan));
    assert_true(scan.root_failed[0] && scan.root_failed[2]);
    assert_false(scan.root_failed[1]);
    assert_int_equal(scan.model_count, 1);
    assert_int_equal(scan.models[0].repository, 1);
    assert_null(problem(&scan, INF_LOG_ERROR, "/gone' can't be listed: "
        "failed to open directory")->model);
    problem(&scan, INF_LOG_ERROR, "Not a directory");
    inf_scan_fini(&scan);

    assert_ok(inf_scan(roots, 0, &scan));
    assert_int_equal(scan.model_count, 0);
    inf_scan_fini(&scan);
    free(good);
    free(gone);
    free(file);
    tree_free(tree);
}

/* In a child, because root may read everything. */
static void
an_unreadable_model_is_known_but_its_versions_are_not(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "locked/1");
    tree_dir(tree, "open/1");
    assert_int_equal(chmod(tree, 0755), 0);
    assert_int_equal(chmod(tree_path(tree, "locked"), 0), 0);

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) {
            _exit(9);
        }

        inf_scan_t scan;
        inf_scan_root_t roots[] = { { .storage = storage, .root = tree } };
        inf_err_t *err = inf_scan(roots, 1, &scan);
        const inf_scan_model_t *m = err != NULL ? NULL
            : inf_scan_find(&scan, "locked");
        bool right = m != NULL && m->unreadable != NULL
            && strstr(m->unreadable, "Permission denied") != NULL
            && strstr(m->unreadable, m->dir) != NULL
            && m->version_count == 0
            && scan.model_count == 2 && scan.problem_count == 1
            && scan.problems[0].level == INF_LOG_ERROR
            && strstr(scan.problems[0].text, "Permission denied") != NULL
            && !scan.root_failed[0];
        _exit(right ? 0 : 1);
    }

    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(chmod(tree_path(tree, "locked"), 0755), 0);
    tree_free(tree);
}

static void
one_model_is_looked_up_in_all_repositories(void **state)
{
    (void) state;
    char *tree = tree_new();

    tree_dir(tree, "r0/m/1");
    tree_dir(tree, "r1/m/2");
    tree_dir(tree, "r1/n/3");
    tree_file(tree, "r0/n", "a file");
    tree_link(tree, "nowhere", "r0/dangling");

    char *r0 = strdup(tree_path(tree, "r0"));
    char *r1 = strdup(tree_path(tree, "r1"));
    inf_scan_root_t roots[] = {
        { .storage = storage, .root = r0 },
        { .storage = storage, .root = r1 },
    };
    inf_scan_t scan;

    assert_ok(inf_scan_one(roots, 2, "n", &scan));
    assert_int_equal(scan.model_count, 1);
    assert_int_equal(scan.models[0].repository, 1);
    assert_true(scan.models[0].versions[0] == 3);
    inf_scan_fini(&scan);

    assert_ok(inf_scan_one(roots, 2, "m", &scan));
    assert_int_equal(scan.model_count, 2);
    assert_true(scan.models[0].duplicate);
    inf_scan_fini(&scan);

    assert_ok(inf_scan_one(roots, 2, "absent", &scan));
    assert_int_equal(scan.model_count, 0);
    assert_int_equal(scan.problem_count, 0);
    inf_scan_fini(&scan);

    assert_ok(inf_scan_one(roots, 2, "dangling", &scan));
    assert_int_equal(scan.model_count, 0);
    problem(&scan, INF_LOG_ERROR, "failed to follow link");
    inf_scan_fini(&scan);

    static const char *const bad[] = { "", "..", ".", "../r0/m", "a\nb" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_ok(inf_scan_one(roots, 2, bad[i], &scan));
        assert_int_equal(scan.model_count, 0);
        problem(&scan, INF_LOG_ERROR, "invalid model name");
        inf_scan_fini(&scan);
    }

    free(r0);
    free(r1);
    tree_free(tree);
}

static void
a_thousand_models_take_well_under_a_second(void **state)
{
    (void) state;
    char *tree = tree_new();
    char name[64];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "model%d/1", i);
        tree_dir(tree, name);
        snprintf(name, sizeof(name), "model%d/config.pbtxt", i);
        tree_file(tree, name, "");
    }

    uint64_t start = inf_clock_ns();
    inf_scan_t scan = scan_one_root(tree);
    uint64_t spent_ms = (inf_clock_ns() - start) / 1000000;

    assert_int_equal(scan.model_count, 1000);
    for (int i = 0; i < 1000; i += 37) {
        snprintf(name, sizeof(name), "model%d", i);
        assert_int_equal(inf_scan_find(&scan, name)->version_count, 1);
    }

    print_message("1000 models scanned in %u ms\n", (unsigned) spent_ms);
    assert_true(spent_ms < 1000);
    inf_scan_fini(&scan);
    tree_free(tree);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_models_and_files_are_not),
        cmocka_unit_test(odd_version_directories_are_ignored_with_a_reason),
        cmocka_unit_test(bad_entries_are_problems_and_hold_up_nobody),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(one_name_in_two_repositories_is_marked),
        cmocka_unit_test(a_repository_that_fails_leaves_the_others),
        cmocka_unit_test(
            an_unreadable_model_is_known_but_its_versions_are_not),
        cmocka_unit_test(one_model_is_looked_up_in_all_repositories),
        cmocka_unit_test(a_thousand_models_take_well_under_a_second),
    };

    return cmocka_run_group_tests(tests, open_storage, close_storage);
}
