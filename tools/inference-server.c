/*
 * inference-server.c - takes tritonserver's command line and runs nginx.
 *
 * It writes the nginx.conf that the options mean into a directory of its own
 * (options.c, places.c, nginx_conf.c), runs nginx in the foreground and ends
 * with nginx's status.  SIGTERM and SIGINT become a graceful stop, a second
 * one an immediate stop; SIGHUP and SIGUSR1 are handed on.  nginx ends when
 * this program is killed.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "first_load.h"
#include "nginx_conf.h"
#include "options.h"
#include "pieces.h"
#include "places.h"
#include "run_as.h"

#define GRACE_SECS 5        /* on top of exit-timeout-secs, then SIGTERM */
#define LOOK_NS 200000000   /* between two looks at the first loads */

static void check_socket(options_t *o, const places_t *places);
static void block_signals(sigset_t *signals, sigset_t *old);
static pid_t spawn_nginx(const char *dir, const pieces_t *p,
    const sigset_t *old);
static int wait_for_nginx(pid_t nginx, const sigset_t *signals,
    const options_t *o, const places_t *places);
static int next_signal(const sigset_t *signals, bool stopping, bool looking,
    const options_t *o);
static bool any_remote(const options_t *o);

int
main(int argc, char **argv)
{
    options_t options;
    pieces_t  pieces;
    places_t  places;
    run_as_t  who;
    sigset_t  signals, old;
    char      why[512];

    options_take(&options, argc, argv);
    pieces_find(&pieces);
    if (run_as_find(&who, options.user, options.repositories.value,
                    options.repositories.n, why, sizeof(why)) != 0)
    {
        die("%s", why);
    }

    places_make(&places, &who);
    check_socket(&options, &places);
    nginx_conf_write(&places, &options, &pieces, &who);

    block_signals(&signals, &old);
    pid_t nginx = spawn_nginx(places.own, &pieces, &old);
    int   status = wait_for_nginx(nginx, &signals, &options, &places);

    places_remove(&places, &who);
    return status;
}

/* nginx is asked over it how the loads at the start ended. */
static void
check_socket(options_t *o, const places_t *places)
{
    char path[PATH_MAX + sizeof("/" OWN_SOCKET)];

    if (o->exit_on_error && socket_path(path, sizeof(path), places) != 0) {
        fprintf(stderr, "inference-server: --exit-on-error has no effect: "
                "the path of TMPDIR is too long for a socket\n");
        o->exit_on_error = false;
    }
}

/* They are taken one by one (next_signal). */
static void
block_signals(sigset_t *signals, sigset_t *old)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
    sigaddset(signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, signals, old);
}

static pid_t
spawn_nginx(const char *dir, const pieces_t *p, const sigset_t *old)
{
    char  conf[PATH_MAX + 16];
    char *argv[] = { (char *) p->nginx, "-p", (char *) dir, "-c", conf,
                     "-e", "stderr", NULL };
    pid_t launcher = getpid();

    snprintf(conf, sizeof(conf), "%s/nginx.conf", dir);

    pid_t pid = fork();

    if (pid < 0) {
        die("cannot fork: %s", strerror(errno));
    }
    if (pid > 0) {
        return pid;
    }

    /* A terminal's Ctrl-C is for the launcher, which makes it graceful. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != launcher) {
        _exit(1);
    }

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    sigprocmask(SIG_SETMASK, old, NULL);
    execv(p->nginx, argv);
    fprintf(stderr, "inference-server: cannot run %s: %s\n", p->nginx,
            strerror(errno));
    _exit(127);
}

static int
wait_for_nginx(pid_t nginx, const sigset_t *signals, const options_t *o,
    const places_t *places)
{
    bool stopping = false;
    bool failed = false;
    bool looking = o->exit_on_error;
    char path[PATH_MAX + sizeof("/" OWN_SOCKET)];

    (void) socket_path(path, sizeof(path), places);

    for (;;) {
        int status;
        int sig = next_signal(signals, stopping, looking, o);

        if (sig < 0 && errno == EAGAIN && looking && !stopping) {
            first_load_t verdict = first_load_ask(path, any_remote(o));

            looking = verdict == FIRST_LOAD_PENDING;
            if (verdict == FIRST_LOAD_FAILED) {
                fprintf(stderr, "inference-server: failed to load all models, "
                        "and --exit-on-error is true\n");
                kill(nginx, SIGQUIT);
                stopping = true;
                failed = true;
            }
            continue;
        }
        if (sig < 0 && errno == EAGAIN) {
            fprintf(stderr, "inference-server: work in flight did not end in "
                    "time; stopping at once\n");
            kill(nginx, SIGTERM);
            continue;
        }

        switch (sig) {

        case SIGTERM:
        case SIGINT:
            kill(nginx, stopping ? SIGTERM : SIGQUIT);
            stopping = true;
            break;

        case SIGHUP:
        case SIGUSR1:
            kill(nginx, sig);
            break;

        default:
            break;
        }

        if (waitpid(nginx, &status, WNOHANG) == nginx) {
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                   : failed ? 1 : WEXITSTATUS(status);
        }
    }
}

/* -1 with EAGAIN: none came while there was patience. */
static int
next_signal(const sigset_t *signals, bool stopping, bool looking,
    const options_t *o)
{
    struct timespec patience = {
        .tv_sec = stopping ? o->exit_timeout_secs + GRACE_SECS : 0,
        .tv_nsec = stopping ? 0 : LOOK_NS
    };

    return stopping || looking ? sigtimedwait(signals, NULL, &patience)
                               : sigwaitinfo(signals, NULL);
}

static bool
any_remote(const options_t *o)
{
    for (size_t i = 0; i < o->repositories.n; i++) {
        if (strncmp(o->repositories.value[i], "s3://", 5) == 0) {
            return true;
        }
    }
    return false;
}
