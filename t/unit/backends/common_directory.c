/* private directories of a process, and those that a dead one has left */

#include "common_world.h"

#include "backends/common/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char parent[64];
static long behind_s;           /* of the C library's time                   */

time_t
time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= behind_s;
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

static int
parent_make(void **state)
{
    (void) state;
    strcpy(parent, "/tmp/common_directory_XXXXXX");
    return mkdtemp(parent) == NULL;
}

static int
parent_remove(void **state)
{
    (void) state;
    return rmdir(parent);
}

static bool
is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void
directory_is_private_and_removed_with_its_files(void **state)
{
    bk_directory_t d, other;
    char path[128];
    struct stat st;

    (void) state;
    expect_success(bk_directory_make(&d, parent, "kit-"));
    expect_success(bk_directory_make(&other, parent, "kit-"));
    assert_string_not_equal(d.path, other.path);
    assert_int_equal(strncmp(d.path + strlen(parent), "/kit-", 5), 0);
    assert_int_equal(stat(d.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    snprintf(path, sizeof(path), "%s/sub", d.path);
    assert_int_equal(mkdir(path, 0700), 0);
    strcat(path, "/file");
    assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    snprintf(path, sizeof(path), "%s", d.path);
    bk_directory_remove(&d);
    bk_directory_remove(&d);
    assert_false(is_there(path));
    assert_true(is_there(other.path));
    bk_directory_remove(&other);
}

/* The kernel's time of a directory may be in the next second already. */
static void
directory_may_be_newer_than_the_time(void **state)
{
    bk_directory_t d;

    (void) state;
    behind_s = 1;
    TRITONSERVER_Error *err = bk_directory_make(&d, parent, "kit-");
    behind_s = 0;
    expect_success(err);
    bk_directory_remove(&d);
}

static void
directory_needs_a_parent(void **state)
{
    bk_directory_t d;

    (void) state;
    expect_error(bk_directory_make(&d, "/nowhere/at/all", "kit-"),
        TRITONSERVER_ERROR_INTERNAL,
        "cannot make a directory in \"/nowhere/at/all\": No such file");
    bk_directory_remove(&d);
}

/* The path of a directory whose process has ended without removing it. */
static void
leave(char *path, size_t size)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        bk_directory_t d;
        bool made = bk_directory_make(&d, parent, "kit-") == NULL;

        _exit(!made || write(ends[1], d.path, strlen(d.path)) < 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ssize_t n = read(ends[0], path, size - 1);
    assert_true(n > 0);
    path[n] = '\0';
    close(ends[0]);
    close(ends[1]);
}

static void
sweep_removes_what_dead_processes_have_left(void **state)
{
    char left[128], like[128];
    bk_directory_t d;

    (void) state;
    expect_success(bk_directory_make(&d, parent, "kit-"));
    leave(left, sizeof(left));

    /* names that are not of this form are others' */
    snprintf(like, sizeof(like), "%s/kit-seven77", parent);
    assert_int_equal(mkdir(like, 0700), 0);

    bk_directory_sweep(parent, "kit-", 3600);
    assert_true(is_there(left));
    bk_directory_sweep(parent, "other-", 0);
    assert_true(is_there(left));
    bk_directory_sweep(parent, "kit-", 0);
    assert_false(is_there(left));
    assert_true(is_there(d.path));
    assert_true(is_there(like));

    bk_directory_sweep("/nowhere/at/all", "kit-", 0);
    assert_int_equal(rmdir(like), 0);
    bk_directory_remove(&d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directory_is_private_and_removed_with_its_files),
        cmocka_unit_test(directory_may_be_newer_than_the_time),
        cmocka_unit_test(directory_needs_a_parent),
        cmocka_unit_test(sweep_removes_what_dead_processes_have_left)
    };

    return cmocka_run_group_tests(tests, parent_make, parent_remove);
}
