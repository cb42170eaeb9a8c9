/*
 * Starts a core, and cleans up after its exit.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"

#include <dirent.h>
#include <sys/syscall.h>


#define NGX_HTTP_INFERENCE_SHM_DIRECTORY  "/dev/shm"

/* flag in /proc/PID/stat, unchanged in all kernels */
#define NGX_HTTP_INFERENCE_PF_EXITING    0x4UL

/* Linux 6.9; the C library does not know it yet */
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP       (1UL << 2)
#endif


static void ngx_http_inference_spawn_child(char *program, char **env,
    ngx_fd_t *fds);
static void ngx_http_inference_spawn_report(ngx_fd_t records,
    const char *what, const char *name);
static void ngx_http_inference_spawn_signals(void);
static ngx_int_t ngx_http_inference_spawn_place(ngx_fd_t *fds);
static ngx_int_t ngx_http_inference_close_listed(int first);
static ngx_int_t ngx_http_inference_spawn_lock(void);
static ngx_uint_t ngx_http_inference_is_alive(ngx_pid_t pid);
static void ngx_http_inference_kill_group(ngx_pid_t pid, int pidfd,
    ngx_log_t *log);
static void ngx_http_inference_remove_shm(ngx_pid_t pid, ngx_log_t *log);


ngx_pid_t
ngx_http_inference_spawn(ngx_str_t *program, ngx_log_t *log)
{
    char       **env;
    u_char      *block;
    ngx_fd_t     fds[NGX_HTTP_INFERENCE_CORE_FDS];
    ngx_pid_t    pid;

    env = ngx_http_inference_environment(&block, log);
    if (env == NULL) {
        ngx_log_error(NGX_LOG_ALERT, log, 0,
                      "inference: no environment for the core");
        return NGX_INVALID_PID;
    }

    fds[0] = -1;
    fds[1] = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_OUTPUT_CORE);
    fds[2] = fds[1];
    fds[NGX_HTTP_INFERENCE_CORE_FD_REGISTRATION] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_REGISTRATION_CORE);
    fds[NGX_HTTP_INFERENCE_CORE_FD_LEASE] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);
    fds[NGX_HTTP_INFERENCE_CORE_FD_CONFIG] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CONFIG);
    fds[NGX_HTTP_INFERENCE_CORE_FD_RECORDS] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_RECORDS_CORE);
    fds[NGX_HTTP_INFERENCE_CORE_FD_JOURNAL] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_JOURNAL);
    fds[NGX_HTTP_INFERENCE_CORE_FD_CRASH_PAGE] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CRASH_PAGE);

    fds[NGX_HTTP_INFERENCE_CORE_FD_CONFIGURE] =
        ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CONFIGURE_CORE);

    pid = fork();

    if (pid == 0) {
        ngx_http_inference_spawn_child((char *) program->data, env, fds);
    }

    if (pid == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: fork() for the core failed");
        pid = NGX_INVALID_PID;
    }

    ngx_free(env);
    ngx_free(block);

    return pid;
}


void
ngx_http_inference_clean_up(ngx_pid_t pid, int pidfd, ngx_log_t *log)
{
    if (pidfd == -1 && ngx_http_inference_is_alive(pid)) {
        return;
    }

    ngx_http_inference_kill_group(pid, pidfd, log);
    ngx_http_inference_remove_shm(pid, log);
}


/*
 * Whether pid names a living process.  The kernel does not reuse a number while
 * a process group has it, so another process of this number means that the
 * core's group is gone.
 */

static ngx_uint_t
ngx_http_inference_is_alive(ngx_pid_t pid)
{
    char           path[sizeof("/proc//stat") + NGX_INT64_LEN], stat[256], *p;
    char           state;
    int            fd;
    ssize_t        n;
    unsigned long  flags;

    (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);

    fd = open(path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return 0;
    }

    n = read(fd, stat, sizeof(stat) - 1);
    (void) close(fd);

    if (n <= 0) {
        return 0;
    }

    /*
     * The line is "pid (name) state ppid pgrp session tty tpgid flags ...", and
     * the name may contain anything.  An exiting core releases the lease before
     * it is a zombie.
     */

    stat[n] = '\0';
    p = strrchr(stat, ')');

    if (p == NULL
        || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) != 2)
    {
        return 1;
    }

    return state != 'Z' && (flags & NGX_HTTP_INFERENCE_PF_EXITING) == 0;
}


/* Executes the program.  Never returns. */

static void
ngx_http_inference_spawn_child(char *program, char **env, ngx_fd_t *fds)
{
    char  *argv[3];

    ngx_http_inference_spawn_signals();

    /* not a session: autogroups would divide the CPU by sessions */
    (void) setpgid(0, 0);

    if (ngx_http_inference_spawn_place(fds) != NGX_OK) {
        ngx_http_inference_spawn_report(
            fds[NGX_HTTP_INFERENCE_CORE_FD_RECORDS],
            "cannot place the descriptors of", program);

        _exit(126);
    }

    if (ngx_http_inference_close_from(NGX_HTTP_INFERENCE_CORE_FDS) != NGX_OK) {
        ngx_http_inference_spawn_report(NGX_HTTP_INFERENCE_CORE_FD_RECORDS,
                            "cannot close nginx's descriptors for", program);

        _exit(126);
    }

    /*
     * The core would lock the lease itself; locked here, no second supervisor
     * finds it free while the program loads.
     */

    if (ngx_http_inference_spawn_lock() != NGX_OK) {
        _exit(0);
    }

    argv[0] = (char *) "inference-core";
    argv[1] = (char *) "--supervised";
    argv[2] = NULL;

    (void) execve(program, argv, env);

    ngx_http_inference_spawn_report(NGX_HTTP_INFERENCE_CORE_FD_RECORDS,
                                    "cannot run", program);

    _exit(NGX_HTTP_INFERENCE_NOT_RUN);
}


/* Sends a log record that says why there is no core; uses errno. */

static void
ngx_http_inference_spawn_report(ngx_fd_t records, const char *what,
    const char *name)
{
    int   n;
    char  text[NGX_MAX_PATH + 128];

    n = snprintf(text, sizeof(text), "E%s \"%s\": %s", what, name,
                 strerror(errno));

    (void) send(records, text, ngx_min((size_t) n, sizeof(text) - 1),
                MSG_DONTWAIT|MSG_NOSIGNAL);
}


/* Resets ignored signals and the mask, which execve() keeps. */

static void
ngx_http_inference_spawn_signals(void)
{
    int       signo;
    sigset_t  set;

    for (signo = 1; signo < NSIG; signo++) {
        (void) signal(signo, SIG_DFL);
    }

    sigemptyset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);
}


/* Moves the descriptors above their targets first, then to their targets. */

static ngx_int_t
ngx_http_inference_spawn_place(ngx_fd_t *fds)
{
    int  i, high[NGX_HTTP_INFERENCE_CORE_FDS];

    fds[0] = open("/dev/null", O_RDONLY);
    if (fds[0] == -1) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_INFERENCE_CORE_FDS; i++) {
        high[i] = fcntl(fds[i], F_DUPFD, NGX_HTTP_INFERENCE_CORE_FDS);

        if (high[i] == -1) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < NGX_HTTP_INFERENCE_CORE_FDS; i++) {
        if (dup2(high[i], i) == -1) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_inference_close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
        return NGX_OK;
    }
#endif

    return ngx_http_inference_close_listed(first);
}


/* Fallback without close_range(): a kernel before Linux 5.9, or a sandbox. */

static ngx_int_t
ngx_http_inference_close_listed(int first)
{
    int             fd;
    DIR            *dir;
    struct dirent  *entry;

    dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return NGX_ERROR;
    }

    while ((entry = readdir(dir)) != NULL) {
        fd = ngx_atoi((u_char *) entry->d_name, ngx_strlen(entry->d_name));

        if (fd >= first && fd != dirfd(dir)) {
            (void) close(fd);
        }
    }

    (void) closedir(dir);

    return NGX_OK;
}


/* Locks the lease.  The lock survives execve(), and ends with the process or
   with any close() of the file. */

static ngx_int_t
ngx_http_inference_spawn_lock(void)
{
    struct flock  fl;

    ngx_memzero(&fl, sizeof(struct flock));
    fl.l_type = F_WRLCK;
    fl.l_whence = SEEK_SET;

    if (fcntl(NGX_HTTP_INFERENCE_CORE_FD_LEASE, F_SETLK, &fl) == -1) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_inference_signal(ngx_pid_t pid, int pidfd, int signo, ngx_log_t *log)
{
    int  rc;

#ifdef SYS_pidfd_send_signal
    rc = pidfd != -1 ? (int) syscall(SYS_pidfd_send_signal, pidfd, signo, NULL,
                                     0)
                     : kill(pid, signo);
#else
    rc = kill(pid, signo);
#endif

    if (rc == -1 && ngx_errno != NGX_ESRCH) {
        ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                      "inference: cannot send signal %d to core %P", signo,
                      pid);
    }
}


/*
 * Kills the core's process group, with the stubs forked by backends.  The pidfd
 * names the group even if the number belongs to another process now.
 */

static void
ngx_http_inference_kill_group(ngx_pid_t pid, int pidfd, ngx_log_t *log)
{
#ifdef SYS_pidfd_send_signal
    if (pidfd != -1
        && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL,
                   PIDFD_SIGNAL_PROCESS_GROUP)
           == 0)
    {
        return;
    }

    if (pidfd != -1 && ngx_errno == ESRCH) {
        return;
    }
#endif

    if (kill(-pid, SIGKILL) == -1 && ngx_errno != NGX_ESRCH) {
        ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                      "inference: cannot end the process group of core %P",
                      pid);
    }
}


static void
ngx_http_inference_remove_shm(ngx_pid_t pid, ngx_log_t *log)
{
    DIR            *dir;
    size_t          len;
    u_char         *p, prefix[NGX_INT64_LEN
                             + sizeof(NGX_HTTP_INFERENCE_SHM_PREFIX)];
    struct dirent  *entry;

    dir = opendir(NGX_HTTP_INFERENCE_SHM_DIRECTORY);
    if (dir == NULL) {
        return;
    }

    p = ngx_sprintf(prefix, NGX_HTTP_INFERENCE_SHM_PREFIX, pid);
    len = (size_t) (p - prefix);

    for ( ;; ) {
        entry = readdir(dir);
        if (entry == NULL) {
            break;
        }

        if (ngx_strncmp(entry->d_name, prefix, len) == 0
            && unlinkat(dirfd(dir), entry->d_name, 0) == -1
            && ngx_errno != NGX_ENOENT)
        {
            ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                          "inference: cannot remove \"%s\" of core %P from "
                          NGX_HTTP_INFERENCE_SHM_DIRECTORY, entry->d_name, pid);
        }
    }

    (void) closedir(dir);
}
