/*
 * inference-server.c - takes tritonserver's command line and runs nginx.
 *
 * The program writes an nginx.conf from the options into its own directory
 * (options.c, places.c, nginx_conf.c), runs nginx in the foreground, logs the
 * tables of models and options when the models are loaded (start_log.c), and
 * ends with nginx's status, or with 1 where Triton does.  SIGTERM, SIGINT and
 * SIGQUIT stop nginx gracefully, and so does the end of the terminal; a SIGINT
 * after that immediately.  SIGHUP and SIGUSR1 are passed on.  nginx ends when
 * this program is killed, and nginx's workers end when its master is.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "die.h"
#include "first_load.h"
#include "nginx_conf.h"
#include "options.h"
#include "own_socket.h"
#include "pieces.h"
#include "places.h"
#include "run_as.h"
#include "services.h"
#include "start_log.h"

#define GRACE_SECS 5        /* added to exit-timeout-secs, then SIGTERM */
#define LOOK_MS 200         /* between two polls of the first loads */

/* In the order of a run, which comparisons use. */
typedef enum {
    WATCH_LOADS,                        /* loads of the start are pending    */
    WATCH_SERVES,
    WATCH_STOPS,
    WATCH_CUT                           /* stopped immediately               */
} watch_state_t;

/* The state of the launcher while nginx runs. */
typedef struct {
    options_t  *options;
    FILE       *log;                /* for lines of the start                */
    char        path[SOCKET_PATH_MAX];  /* its socket                        */
    bool        terminal;           /* SIGHUP comes when it ends, too        */
    watch_state_t state;
    long        stopped_ms;         /* time of the stop, monotonic clock     */
    long        deadline_ms;        /* nginx is ended then                   */
    bool        failed;             /* exit status is 1, like Triton's       */
    char       *failures;           /* of the loads, told last               */
} watch_t;

static void open_streams(void);
static void print_config(const options_t *o, const pieces_t *p);
static void write_config(const options_t *o, const pieces_t *p);
static FILE *open_log(const options_t *o);
static bool has_terminal(void);
static void block_signals(sigset_t *signals);
static void clean_up(void);
static pid_t spawn_nginx(const char *dir, const pieces_t *p);
static int wait_for_nginx(watch_t *w, pid_t nginx, const sigset_t *signals);
static int next_signal(const watch_t *w, const sigset_t *signals);
static void ask(watch_t *w, pid_t nginx);
static void stop(watch_t *w, pid_t nginx);
static void explain_lines(const watch_t *w, int status);
static void explain_pattern(const char *option, const char *pattern);
static int exit_status(const watch_t *w, int status);
static long monotonic_ms(void);

/* Removed at every exit of the program. */
static places_t places;
static run_as_t who;

int
main(int argc, char **argv)
{
    options_t options;
    pieces_t  pieces;
    sigset_t  signals;
    char      why[512];
    watch_t   watch = { .options = &options };

    /* a closed log must not end the program */
    signal(SIGPIPE, SIG_IGN);
    open_streams();

    options_take(&options, argc, argv);
    pieces_find(&pieces);
    if (run_as_find(&who, options.user, options.repositories.value,
                    options.repositories.n, why, sizeof(why)) != 0)
    {
        die("%s", why);
    }
    if (options.print_config) {
        print_config(&options, &pieces);
        return 0;
    }

    services_try(&options);
    watch.log = open_log(&options);
    watch.terminal = has_terminal() && signal(SIGHUP, SIG_DFL) != SIG_IGN;
    block_signals(&signals);
    atexit(clean_up);
    places_make(&places, &who);
    socket_path(watch.path, &places);
    write_config(&options, &pieces);

    pid_t nginx = spawn_nginx(places.own, &pieces);

    return wait_for_nginx(&watch, nginx, &signals);
}

/* Opens standard streams that are closed; other files would take their
   descriptors, and get the log. */
static void
open_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

static void
clean_up(void)
{
    places_remove(&places);
}

/* Prints nginx.conf, except for names of directories created at a start. */
static void
print_config(const options_t *o, const pieces_t *p)
{
    places_name(&places);
    nginx_conf_write(stdout, &places, o, p, &who);
}

static void
write_config(const options_t *o, const pieces_t *p)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/nginx.conf", places.own);

    FILE *f = fopen(path, "we");

    if (f == NULL) {
        die("cannot write %s: %s", path, strerror(errno));
    }
    nginx_conf_write(f, &places, o, p, &who);
    fclose(f);
}

/* The file of nginx's log. */
static FILE *
open_log(const options_t *o)
{
    FILE *f = o->log_file == NULL ? stderr : fopen(o->log_file, "ae");

    if (f == NULL) {
        die("cannot open --log-file=%s: %s", o->log_file, strerror(errno));
    }
    return f;
}

/* Whether the process can be sent signals by a terminal. */
static bool
has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* Blocks the signals, which next_signal takes one by one.  nginx starts with
   them blocked too, and receives signals of its start time when it unblocks
   them. */
static void
block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGQUIT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
    sigaddset(signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, signals, NULL);
}

static pid_t
spawn_nginx(const char *dir, const pieces_t *p)
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

    /* Ctrl-C of a terminal is sent only to the launcher, which stops
       gracefully. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != launcher) {
        _exit(1);
    }

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    execv(p->nginx, argv);
    fprintf(stderr, "inference-server: cannot run %s: %s\n", p->nginx,
            strerror(errno));
    _exit(127);
}

static int
wait_for_nginx(watch_t *w, pid_t nginx, const sigset_t *signals)
{
    for (;;) {
        int   status;
        pid_t pid;
        int   sig = next_signal(w, signals);

        if (sig < 0 && errno == EAGAIN && w->state == WATCH_LOADS) {
            ask(w, nginx);
            continue;
        }
        if (sig < 0 && errno == EAGAIN) {
            fprintf(stderr, "inference-server: work in flight did not end in "
                    "time; stopping at once\n");
            kill(nginx, SIGTERM);
            w->deadline_ms += GRACE_SECS * 1000;
            continue;
        }

        if (sig == SIGHUP && w->terminal && !has_terminal()) {
            sig = SIGTERM;
        }

        switch (sig) {

        case SIGTERM:
        case SIGINT:
        case SIGQUIT:
            if (w->state < WATCH_STOPS) {
                stop(w, nginx);

            } else if (sig == SIGINT) {     /* Ctrl-C again                  */
                w->state = WATCH_CUT;
                kill(nginx, SIGTERM);
            }
            break;

        case SIGHUP:
        case SIGUSR1:
            kill(nginx, sig);
            break;

        default:
            break;
        }

        /* the first process of a container also inherits other children */
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            if (pid == nginx) {
                if (WIFSIGNALED(status)) {
                    kill(-nginx, SIGTERM);  /* its workers                   */
                }
                if (w->failed) {
                    fputs(w->failures, stderr);
                }
                explain_lines(w, status);
                return exit_status(w, status);
            }
        }
    }
}

/* The next signal; -1 with EAGAIN: none before the timeout. */
static int
next_signal(const watch_t *w, const sigset_t *signals)
{
    long left_ms = w->state < WATCH_STOPS ? LOOK_MS
                                          : w->deadline_ms - monotonic_ms();
    struct timespec patience = {
        .tv_sec = left_ms > 0 ? left_ms / 1000 : 0,
        .tv_nsec = left_ms > 0 ? left_ms % 1000 * 1000000 : 0
    };

    return w->state == WATCH_SERVES ? sigwaitinfo(signals, NULL)
                                    : sigtimedwait(signals, NULL, &patience);
}

/* Polls the result of the loads at the start. */
static void
ask(watch_t *w, pid_t nginx)
{
    const options_t *o = w->options;
    char            *index;
    first_load_t     verdict = first_load_ask(w->path, o, &index);

    if (verdict == FIRST_LOAD_PENDING) {
        return;
    }
    w->state = WATCH_SERVES;

    char *metadata = own_ask(w->path, "GET /v2 HTTP/1.0\r\n"
                             "Host: localhost\r\n\r\n");

    size_t size;
    FILE  *f = open_memstream(&w->failures, &size);

    if (f == NULL) {
        die("out of memory");
    }
    w->failed = first_load_explain(f, w->path, o, verdict, index)
        && o->exit_on_error;
    fclose(f);

    start_log_models(w->log, o, index);
    start_log_options(w->log, o, metadata);
    free(metadata);
    free(index);

    if (w->failed) {
        stop(w, nginx);

    } else {
        fputs(w->failures, stderr);
        start_log_services(w->log, o);
    }
    fflush(w->log);
}

static void
stop(watch_t *w, pid_t nginx)
{
    kill(nginx, SIGQUIT);
    w->state = WATCH_STOPS;
    w->stopped_ms = monotonic_ms();
    w->deadline_ms = w->stopped_ms
        + (w->options->exit_timeout_secs + GRACE_SECS) * 1000;
}

/* A configuration that nginx rejects ends it before it serves; its messages
   name lines of a file that is removed. */
static void
explain_lines(const watch_t *w, int status)
{
    if (w->state == WATCH_LOADS && WIFEXITED(status)
        && WEXITSTATUS(status) == 1)
    {
        explain_pattern("http-header-forward-pattern",
                        w->options->http_forward);
        explain_pattern("grpc-header-forward-pattern",
                        w->options->grpc_forward);
        fputs("inference-server: nginx did not start; the same options with "
              "--print-config print the nginx.conf whose lines it names\n",
              stderr);
    }
}

/* The only value that nginx alone can check. */
static void
explain_pattern(const char *option, const char *pattern)
{
    if (pattern != NULL) {
        fprintf(stderr, "inference-server: an error of "
                "\"inference_forward_header\" is about --%s=%s\n", option,
                pattern);
    }
}

/* 1, like Triton's, if models failed or work in progress was aborted; workers
   do the latter by themselves (worker_shutdown_timeout). */
static int
exit_status(const watch_t *w, int status)
{
    long secs = w->options->exit_timeout_secs;
    long patience_ms = (secs > 0 ? secs : 1) * 1000;    /* as of workers     */

    if (WIFSIGNALED(status)) {
        return 128 + WTERMSIG(status);
    }
    if (w->failed || w->state == WATCH_CUT || (w->state == WATCH_STOPS
            && monotonic_ms() - w->stopped_ms >= patience_ms))
    {
        return 1;
    }
    return WEXITSTATUS(status);
}

static long
monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
