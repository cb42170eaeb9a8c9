/*
 * held_process.h - a program that is started by posix_spawn and stays until it
 *                  is let go.
 *
 * Owner    the test: start, end.
 * Thread   one at a time.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_BASE_OS_HELD_PROCESS_H
#define INF_T_BASE_OS_HELD_PROCESS_H

#include "temp_tree.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/os/pid_list.h"

typedef struct {
    pid_t pid;
    int   held;                         /* its end of input lets it go       */
} held_process_t;

static inline void
held_process_start(held_process_t *h)
{
    char *const argv[] = { "sh", "-c", "cat; :", NULL };
    char *const none[] = { "PATH=/usr/bin:/bin", NULL };
    posix_spawn_file_actions_t actions;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[0], 0),
        0);
    assert_int_equal(posix_spawn(&h->pid, "/bin/sh", &actions, NULL, argv,
        none), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    h->held = ends[1];
}

/* The one that it has started itself. */
static inline pid_t
held_process_child(const held_process_t *h)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    inf_pid_list_t list = { .pids = NULL };

    for (;;) {
        inf_pid_list_add_children(&list, h->pid);
        if (list.count > 0) {
            break;
        }
        nanosleep(&pause, NULL);
    }

    pid_t child = list.pids[0];
    inf_pid_list_fini(&list);
    return child;
}

static inline void
held_process_end(held_process_t *h)
{
    close(h->held);
    assert_int_equal(waitpid(h->pid, NULL, 0), h->pid);
}

#endif /* INF_T_BASE_OS_HELD_PROCESS_H */
