/* Real processes of this program stand for a backend's: they are watched, die
   in several ways, and are reaped by nobody but the test. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/log.h"
#include "core/repository/children.h"

typedef struct {
    inf_model_t         model;
    inf_instance_spec_t spec;
    inf_instance_t      instance;
    pthread_mutex_t     lock;
    pthread_cond_t      changed;
    int                 deaths;
    char                why[256];
    inf_children_t     *children;
} world_t;

static void
died(void *userp, inf_model_t *model, const char *why)
{
    world_t *w = userp;

    pthread_mutex_lock(&w->lock);
    assert_ptr_equal(model, &w->model);
    w->deaths++;
    snprintf(w->why, sizeof(w->why), "%s", why);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void
open_world(world_t *w)
{
    memset(w, 0, sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->model.name = "m";
    w->model.version = 1;
    w->spec.name = "m_0";
    w->instance.model = &w->model;
    w->instance.spec = &w->spec;
    assert_null(inf_children_new(died, w, &w->children));
}

static void
wait_deaths(world_t *w, int count)
{
    pthread_mutex_lock(&w->lock);
    while (w->deaths < count) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Ends by itself with status, or sleeps (-1).  Nothing is written twice: the
   child leaves with _exit. */
static pid_t
child(int status)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (status < 0) {
            for (;;) {
                pause();
            }
        }
        _exit(status);
    }
    return pid;
}

/* One that this thread starts while an instance is initialised. */
static pid_t
watched(world_t *w, int status)
{
    inf_pid_list_t before = { .pids = NULL };

    inf_pid_list_add_children(&before, gettid());
    pid_t pid = child(status);
    inf_children_watch(w->children, &w->instance, &before);
    inf_pid_list_fini(&before);
    return pid;
}

static void
close_world(world_t *w, pid_t pid)
{
    inf_leftovers_remove(inf_children_forget(w->children, &w->model,
        NULL), true);
    inf_children_free(w->children);
    if (pid > 0) {
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

static void
a_killed_child_is_told_with_its_signal_and_not_reaped(void **state)
{
    (void) state;
    char text[300];
    world_t w;

    open_world(&w);
    pid_t pid = watched(&w, -1);
    assert_true(inf_children_any(w.children, &w.model));
    inf_children_arm(w.children, &w.model);
    kill(pid, SIGKILL);
    wait_deaths(&w, 1);
    snprintf(text, sizeof(text), "process %d (", (int) pid);
    assert_non_null(strstr(w.why, text));
    assert_non_null(strstr(w.why,
        ") of instance 'm_0' was killed by signal 9 (Killed)"));
    close_world(&w, pid);           /* waits for it: it is still there       */
}

static void
a_child_that_fails_is_told_with_its_status(void **state)
{
    (void) state;
    world_t w;

    open_world(&w);
    pid_t pid = watched(&w, 3);
    inf_children_arm(w.children, &w.model);
    wait_deaths(&w, 1);
    assert_non_null(strstr(w.why, "exited with status 3"));
    close_world(&w, pid);
}

static void
a_death_before_the_model_serves_is_told_when_it_does(void **state)
{
    (void) state;
    world_t w;
    siginfo_t info;

    open_world(&w);
    pid_t pid = watched(&w, -1);
    kill(pid, SIGTERM);
    assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(w.deaths, 0);
    inf_children_arm(w.children, &w.model);
    wait_deaths(&w, 1);
    assert_non_null(strstr(w.why, "signal 15"));
    close_world(&w, pid);
}

/* The second death is only there to know that the first was handled. */
static void
exit_is_ignored(world_t *w, bool reaped)
{
    siginfo_t info;
    pid_t good = watched(w, 0);

    assert_int_equal(waitid(P_PID, (id_t) good, &info, WEXITED
        | (reaped ? 0 : WNOWAIT)), 0);
    inf_children_arm(w->children, &w->model);
    pid_t bad = watched(w, 1);
    inf_children_arm(w->children, &w->model);
    wait_deaths(w, 1);
    assert_non_null(strstr(w->why, "exited with status 1"));
    assert_int_equal(w->deaths, 1);
    if (!reaped) {
        assert_int_equal(waitpid(good, NULL, 0), good);
    }
    close_world(w, bad);
}

static void
a_child_that_has_done_its_work_is_no_loss(void **state)
{
    (void) state;
    world_t w;

    open_world(&w);
    exit_is_ignored(&w, false);
}

static void
one_that_its_backend_has_reaped_is_no_loss(void **state)
{
    (void) state;
    world_t w;

    open_world(&w);
    exit_is_ignored(&w, true);
}

static void
a_child_from_before_is_somebody_else_s(void **state)
{
    (void) state;
    world_t w;

    open_world(&w);
    pid_t old = child(-1);
    inf_pid_list_t before = { .pids = NULL };
    inf_pid_list_add_children(&before, gettid());
    assert_true(before.count >= 1);
    inf_children_watch(w.children, &w.instance, &before);
    inf_pid_list_fini(&before);
    assert_false(inf_children_any(w.children, &w.model));
    close_world(&w, old);
}

static void
a_forgotten_child_may_die(void **state)
{
    (void) state;
    world_t w, other;

    open_world(&w);
    pid_t pid = watched(&w, -1);
    inf_children_arm(w.children, &w.model);
    assert_null(inf_children_forget(w.children, &w.model, NULL));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);

    /* and the watch goes on for others */
    open_world(&other);
    pid_t second = watched(&other, 1);
    inf_children_arm(other.children, &other.model);
    wait_deaths(&other, 1);
    assert_int_equal(w.deaths, 0);
    close_world(&other, second);
    close_world(&w, 0);
}

static void
a_model_is_stranded_when_its_last_process_is_gone(void **state)
{
    (void) state;
    world_t w;
    siginfo_t info;

    open_world(&w);
    assert_false(inf_children_stranded(w.children, &w.model));
    pid_t first = watched(&w, -1);
    pid_t second = watched(&w, -1);
    inf_children_arm(w.children, &w.model);
    inf_children_let_go(w.children, &w.model, NULL);
    kill(first, SIGKILL);
    assert_int_equal(waitpid(first, NULL, 0), first);
    assert_false(inf_children_stranded(w.children, &w.model));
    kill(second, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t) second, &info, WEXITED | WNOWAIT),
        0);
    assert_true(inf_children_stranded(w.children, &w.model));
    assert_null(inf_children_forget(w.children, &w.model, NULL));
    assert_false(inf_children_stranded(w.children, &w.model));
    assert_int_equal(w.deaths, 0);
    close_world(&w, second);
}

static void
nobody_watches(void **state)
{
    (void) state;
    inf_pid_list_t before = { .pids = NULL };

    inf_children_watch(NULL, NULL, &before);
    assert_false(inf_children_any(NULL, NULL));
    inf_children_let_go(NULL, NULL, NULL);
    assert_null(inf_children_forget(NULL, NULL, NULL));
    inf_leftovers_remove(NULL, false);
    inf_children_stop(NULL);
    inf_children_free(NULL);
}

/* ---- shared memory ---- */

static void *
map_name(const char *name)
{
    int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(p != MAP_FAILED);
    close(fd);
    return p;
}

/* It works with us: by every end of it the instance is broken. */
static void
one_that_shares_memory_is_a_loss_in_any_case(void **state)
{
    (void) state;
    char name[64];

    snprintf(name, sizeof(name), "/inf-unit-%d-any", (int) getpid());
    for (int reaped = 0; reaped < 2; reaped++) {
        world_t w;
        siginfo_t info;

        open_world(&w);
        void *p = map_name(name);
        pid_t pid = watched(&w, -1);
        kill(pid, SIGKILL);
        assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED
            | (reaped ? 0 : WNOWAIT)), 0);
        inf_children_arm(w.children, &w.model);
        wait_deaths(&w, 1);
        assert_non_null(strstr(w.why, reaped ? "has ended" : "signal 9"));
        munmap(p, 4096);
        close_world(&w, reaped ? 0 : pid);
        assert_int_equal(shm_unlink(name), -1);
    }
}

static bool
exists(const char *name)
{
    int fd = shm_open(name, O_RDONLY, 0);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void
names_shared_with_a_dead_child_go_when_nobody_maps_them(void **state)
{
    (void) state;
    char ours[64], mine[64];
    world_t w;

    snprintf(ours, sizeof(ours), "/inf-unit-%d-ours", (int) getpid());
    snprintf(mine, sizeof(mine), "/inf-unit-%d-mine", (int) getpid());
    open_world(&w);
    void *a = map_name(ours);
    void *b = map_name(mine);

    inf_pid_list_t before = { .pids = NULL };
    inf_pid_list_add_children(&before, gettid());
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        munmap(b, 4096);            /* shares the first one only             */
        if (write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    char x;
    assert_int_equal(read(ready[0], &x, 1), 1);
    inf_children_watch(w.children, &w.instance, &before);
    inf_pid_list_fini(&before);
    inf_children_arm(w.children, &w.model);
    kill(pid, SIGKILL);
    wait_deaths(&w, 1);

    inf_leftovers_t *left = inf_children_forget(w.children, &w.model, NULL);
    assert_non_null(left);
    inf_leftovers_remove(left, false);
    assert_true(exists(ours));      /* we still map it                       */

    open_world(&w);
    inf_pid_list_add_children(&before, gettid());
    pid_t second = fork();
    if (second == 0) {
        munmap(b, 4096);
        if (write(ready[1], "x", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ready[0], &x, 1), 1);
    inf_children_watch(w.children, &w.instance, &before);
    inf_pid_list_fini(&before);
    inf_children_arm(w.children, &w.model);
    kill(second, SIGKILL);
    wait_deaths(&w, 1);
    left = inf_children_forget(w.children, &w.model, NULL);
    munmap(a, 4096);
    inf_leftovers_remove(left, false);
    assert_false(exists(ours));
    assert_true(exists(mine));

    munmap(b, 4096);
    shm_unlink(mine);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close_world(&w, 0);
    assert_int_equal(waitpid(second, NULL, 0), second);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_killed_child_is_told_with_its_signal_and_not_reaped),
        cmocka_unit_test(a_child_that_fails_is_told_with_its_status),
        cmocka_unit_test(a_death_before_the_model_serves_is_told_when_it_does),
        cmocka_unit_test(a_child_that_has_done_its_work_is_no_loss),
        cmocka_unit_test(one_that_its_backend_has_reaped_is_no_loss),
        cmocka_unit_test(one_that_shares_memory_is_a_loss_in_any_case),
        cmocka_unit_test(a_child_from_before_is_somebody_else_s),
        cmocka_unit_test(a_forgotten_child_may_die),
        cmocka_unit_test(a_model_is_stranded_when_its_last_process_is_gone),
        cmocka_unit_test(nobody_watches),
        cmocka_unit_test(
            names_shared_with_a_dead_child_go_when_nobody_maps_them)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
