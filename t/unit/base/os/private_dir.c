#include "temp_tree.h"

#include <sys/wait.h>

#include "core/base/log.h"
#include "core/base/os/private_dir.h"

static void
a_directory_is_ours_alone_and_goes_with_its_content(void **state)
{
    (void) state;
    inf_private_dir_t *d;
    struct stat st;

    assert_ok(inf_private_dir_new(NULL, &d));
    assert_int_equal(stat(d->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    tree_file(d->path, "m/1/file", "x");
    tree_link(d->path, "/tmp", "m/link");       /* is removed, not followed  */
    char *path = strdup(d->path);
    inf_private_dir_free(d);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access("/tmp", F_OK), 0);
    free(path);
    inf_private_dir_free(NULL);
}

static void
it_lies_where_the_environment_says(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_private_dir_t *d;

    setenv("TMPDIR", tree, 1);
    assert_ok(inf_private_dir_new(NULL, &d));
    assert_int_equal(strncmp(d->path, tree, strlen(tree)), 0);
    inf_private_dir_free(d);

    setenv("TMPDIR", "/nonexistent/inf", 1);
    assert_error(inf_private_dir_new(NULL, &d), INF_ERR_INTERNAL,
        "cannot create a directory in /nonexistent/inf: No such file");
    inf_private_dir_sweep(NULL);
    unsetenv("TMPDIR");
    assert_int_equal(rmdir(tree), 0);
    free(tree);
}

/* Names alike, but no directories of ours; and one that is in use. */
static void
a_sweep_leaves_what_is_not_left(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_private_dir_t *d;

    setenv("TMPDIR", tree, 1);
    tree_dir(tree, "inference-model-abcdefg/kept");
    tree_file(tree, "inference-model-abcdef", "x");
    tree_dir(tree, "target/inner");
    tree_link(tree, "target", "inference-model-123456");
    assert_ok(inf_private_dir_new(NULL, &d));
    inf_private_dir_sweep(NULL);
    assert_int_equal(access(d->path, F_OK), 0);
    const char *kept[] = {
        "inference-model-abcdefg/kept", "inference-model-abcdef",
        "target/inner", "inference-model-123456"
    };
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        assert_int_equal(access(tree_path(tree, kept[i]), F_OK), 0);
    }
    inf_private_dir_free(d);
    unsetenv("TMPDIR");
    tree_free(tree);
}

/* In /tmp anybody may make a directory of such a name. */
static void
a_sweep_leaves_what_is_another_users(void **state)
{
    (void) state;
    if (geteuid() != 0) {
        print_message("this needs root, to give a directory away\n");
        skip();
    }

    char *tree = tree_new();
    tree_dir(tree, "inference-model-theirs/kept");
    tree_dir(tree, "inference-model-ourown/gone");
    assert_int_equal(chown(tree_path(tree, "inference-model-theirs"), 65534,
        65534), 0);
    inf_private_dir_sweep(tree);
    assert_int_equal(access(tree_path(tree, "inference-model-theirs/kept"),
        F_OK), 0);
    assert_int_equal(access(tree_path(tree, "inference-model-ourown"), F_OK),
        -1);
    tree_free(tree);
}

static void
what_a_dead_process_left_is_swept_away(void **state)
{
    (void) state;
    inf_private_dir_t *mine;
    char path[64] = "";
    int ends[2];

    assert_ok(inf_private_dir_new(NULL, &mine));
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        inf_private_dir_t *d;
        assert_ok(inf_private_dir_new(NULL, &d));
        tree_file(d->path, "m/1/file", "x");
        _exit(write(ends[1], d->path, strlen(d->path)) > 0 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(read(ends[0], path, sizeof(path) - 1) > 0);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(access(path, F_OK), 0);

    inf_private_dir_sweep(NULL);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(mine->path, F_OK), 0);      /* its owner lives   */
    inf_private_dir_free(mine);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_ours_alone_and_goes_with_its_content),
        cmocka_unit_test(it_lies_where_the_environment_says),
        cmocka_unit_test(a_sweep_leaves_what_is_not_left),
        cmocka_unit_test(a_sweep_leaves_what_is_another_users),
        cmocka_unit_test(what_a_dead_process_left_is_swept_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
