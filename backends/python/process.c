/* process.c - see process.h */

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FD  3
#define FDS       5         /* the last one becomes stderr, too              */
#define REAP_LIMIT_MS 5000
#define REAP_PAUSE_MS 10

static void reap(py_process_t *p, char *how, size_t size);
static void wait_killed(const py_process_t *p, siginfo_t *info);
static int spawn_with(pid_t *pid, const char *const *arguments,
    char *const *variables, const int *fds);
static int spawn(pid_t *pid, const char *const *arguments,
    char *const *variables, const int *fds);
static void fd_close(int *fd);

TRITONSERVER_Error *
py_process_start(py_process_t *p, const char *name,
    const char *const *arguments, char *const *variables, int channel,
    int event)
{
    int pair[2] = { -1, -1 };
    int writer = -1;
    char text[128];

    *p = (py_process_t) { .fd = -1, .socket = -1 };
    int rc = py_stderr_open(&p->errors, name, &writer);
    if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
        pair) != 0)
    {
        rc = errno;
    }
    if (rc == 0) {
        rc = spawn_with(&p->pid, arguments, variables, (int[]) { channel,
            event, pair[1], STDERR_FILENO, writer });
        p->pid = rc == 0 ? p->pid : 0;
    }
    if (rc == 0) {
        p->fd = pidfd_open(p->pid, 0);
        rc = p->fd == -1 ? errno : 0;
    }

    fd_close(&pair[1]);
    fd_close(&writer);
    p->socket = pair[0];
    if (rc == 0) {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "cannot start the interpreter \"%s\": %s", arguments[0],
        strerror_r(rc, text, sizeof(text)));
    py_process_end(p, text, sizeof(text));
    return err;
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
    snprintf(how, size, "ended");
    if (p->pid != 0) {
        reap(p, how, size);
    }

    py_stderr_read(&p->errors);
    py_stderr_close(&p->errors);
    fd_close(&p->socket);
    fd_close(&p->fd);
}

static void
reap(py_process_t *p, char *how, size_t size)
{
    siginfo_t info = { 0 };

    /* read its status first: the rest of its group is killed afterwards */
    if (p->fd == -1 || waitid(P_PIDFD, (id_t) p->fd, &info,
        WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    {
        py_process_kill(p);
    }
    (void) kill(-p->pid, SIGKILL);
    wait_killed(p, &info);
    p->pid = 0;

    if (info.si_code == CLD_EXITED) {
        snprintf(how, size, "exited with status %d", info.si_status);
    } else if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
        snprintf(how, size, "was ended by signal %d (%s)", info.si_status,
            strsignal(info.si_status));
    }
}

/* Waits for the status of a killed process.  A tracer can keep the status, and
   a driver the process, for ever: the process is left as it is then. */
static void
wait_killed(const py_process_t *p, siginfo_t *info)
{
    for (int ms = 0; ms < REAP_LIMIT_MS; ms += REAP_PAUSE_MS) {
        *info = (siginfo_t) { 0 };
        if (waitid(P_PID, (id_t) p->pid, info, WEXITED | WNOHANG) != 0
            || info->si_pid != 0)
        {
            return;
        }
        (void) poll(NULL, 0, REAP_PAUSE_MS);
    }
    bk_log(TRITONSERVER_LOG_WARN, "instance %s: the killed process %d has not "
        "ended within %d s; it is left", p->errors.name, (int) p->pid,
        REAP_LIMIT_MS / 1000);
}

/* Spawns with copies of fds, whose numbers do not overlap the target
   numbers. */
static int
spawn_with(pid_t *pid, const char *const *arguments, char *const *variables,
    const int *fds)
{
    int copies[FDS] = { -1, -1, -1, -1, -1 };
    int rc = 0;

    for (int i = 0; i < FDS && rc == 0; i++) {
        copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + FDS);
        rc = copies[i] == -1 ? errno : 0;
    }
    if (rc == 0) {
        rc = spawn(pid, arguments, variables, copies);
    }

    for (int i = 0; i < FDS; i++) {
        fd_close(&copies[i]);
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
        rc = posix_spawn_file_actions_adddup2(&actions, fds[FDS - 1],
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

static void
fd_close(int *fd)
{
    if (*fd != -1) {
        (void) close(*fd);
        *fd = -1;
    }
}
