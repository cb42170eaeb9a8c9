/* process.c - see process.h */

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FD  3
#define SOCKET_FD 5
#define FDS       4
#define MESSAGES  1024      /* read in one go; more than a socket holds      */

static int spawn_with(pid_t *pid, const char *const *arguments,
    char *const *variables, const int *fds);
static int spawn(pid_t *pid, const char *const *arguments,
    char *const *variables, const int *fds);

TRITONSERVER_Error *
py_process_start(py_process_t *p, const char *const *arguments,
    char *const *variables, int channel, int event)
{
    int pair[2];
    char text[128];

    *p = (py_process_t) { .fd = -1, .socket = -1 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot make a socket: %s", strerror_r(errno, text,
            sizeof(text)));
    }

    int rc = spawn_with(&p->pid, arguments, variables, (int[]) { channel, event,
        pair[1], STDERR_FILENO });
    (void) close(pair[1]);
    if (rc != 0) {
        (void) close(pair[0]);
        p->pid = 0;
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "cannot start the "
            "interpreter \"%s\": %s", arguments[0], strerror_r(rc, text,
            sizeof(text)));
    }

    p->socket = pair[0];
    p->fd = pidfd_open(p->pid, 0);
    if (p->fd == -1) {
        TRITONSERVER_Error *err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot watch the interpreter: %s", strerror_r(errno, text,
            sizeof(text)));
        char how[64];
        py_process_end(p, how, sizeof(how));
        return err;
    }
    return NULL;
}

void
py_process_kill(const py_process_t *p)
{
    if (p->pid != 0) {
        (void) kill(-p->pid, SIGKILL);
        (void) kill(p->pid, SIGKILL);
    }
}

void
py_process_end(py_process_t *p, char *how, size_t size)
{
    siginfo_t info = { 0 };

    snprintf(how, size, "ended");
    if (p->pid == 0) {
        return;
    }

    /* read its status first: the rest of its group is killed afterwards */
    if (p->fd == -1 || waitid(P_PIDFD, (id_t) p->fd, &info,
        WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    {
        py_process_kill(p);
    }
    (void) kill(-p->pid, SIGKILL);
    while (waitid(P_PID, (id_t) p->pid, &info, WEXITED) != 0
        && errno == EINTR)
    {
        /* again */
    }

    if (info.si_code == CLD_EXITED) {
        snprintf(how, size, "exited with status %d", info.si_status);
    } else if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
        snprintf(how, size, "was ended by signal %d (%s)", info.si_status,
            strsignal(info.si_status));
    }

    (void) close(p->socket);
    if (p->fd != -1) {
        (void) close(p->fd);
    }
    *p = (py_process_t) { .fd = -1, .socket = -1 };
}

void
py_process_hear(py_process_t *p)
{
    const size_t room = sizeof(p->words) - 1;
    char message[4096];
    ssize_t n = 1;

    for (int i = 0; i < MESSAGES && n > 0; i++) {
        n = recv(p->socket, message, sizeof(message), MSG_DONTWAIT);
        if (n > 0) {
            size_t added = (size_t) n < room ? (size_t) n : room;
            size_t kept = p->len + added < room ? p->len : room - added;

            memmove(p->words, p->words + p->len - kept, kept);
            memcpy(p->words + kept, message + n - added, added);
            p->len = kept + added;
        }
    }
    p->silent = n == 0;
}

void
py_process_words(py_process_t *p, char *text)
{
    py_process_hear(p);

    size_t len = p->len;
    while (len > 0 && p->words[len - 1] == '\n') {
        len--;
    }
    memcpy(text, p->words, len);
    text[len] = '\0';
}

/* Spawns with copies of fds, whose numbers do not overlap the target
   numbers. */
static int
spawn_with(pid_t *pid, const char *const *arguments, char *const *variables,
    const int *fds)
{
    int copies[FDS] = { -1, -1, -1, -1 };
    int rc = 0;

    for (int i = 0; i < FDS && rc == 0; i++) {
        copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + FDS);
        rc = copies[i] == -1 ? errno : 0;
    }
    if (rc == 0) {
        rc = spawn(pid, arguments, variables, copies);
    }

    for (int i = 0; i < FDS; i++) {
        if (copies[i] != -1) {
            (void) close(copies[i]);
        }
    }
    return rc;
}

static int
spawn(pid_t *pid, const char *const *arguments, char *const *variables,
    const int *fds)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);

    int rc = 0;
    for (int i = 0; i < FDS && rc == 0; i++) {
        rc = posix_spawn_file_actions_adddup2(&actions, fds[i], FIRST_FD + i);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, SOCKET_FD,
            STDERR_FILENO);
    }
    if (rc == 0) {
        rc = posix_spawn_file_actions_addclosefrom_np(&actions,
            FIRST_FD + FDS);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setsigmask(&attributes, &none);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setsigdefault(&attributes, &all);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setpgroup(&attributes, 0);
    }
    if (rc == 0) {
        rc = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK
            | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    }
    if (rc == 0) {
        rc = posix_spawn(pid, arguments[0], &actions, &attributes,
            (char *const *) (uintptr_t) arguments, variables);
    }

    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}
