#include "core/service/core_main.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/abi/execute.h"
#include "core/base/clock.h"
#include "core/base/log_stream.h"
#include "core/include/build_id.h"
#include "core/include/channel.h"
#include "core/server/core_config.h"
#include "core/server/crash_page.h"
#include "core/server/server.h"
#include "core/service/check_main.h"
#include "core/service/intake.h"
#include "core/service/last_words.h"

#define RESPONSE_BOUND_DEFAULT (UINT64_C(1) << 30)

/* The external socket. */
typedef struct {
    int                fd;              /* -1: none                          */
    dev_t              device;          /* of its name, when it was bound    */
    ino_t              inode;
} listener_t;

typedef struct {
    inf_core_config_t *start;           /* a reference                       */
    inf_core_config_t *now;             /* a reference; replaced by reloads  */
    uint64_t           generation;
    inf_server_t      *server;          /* NULL: none now                    */
    uint64_t           beats;           /* counted so far                    */
    uint64_t           left_ns;         /* start of the exit; 0: none        */
    listener_t         listener;
    bool               busy;            /* threads still use its objects     */
} core_t;

static inf_intake_t *volatile core_intake;  /* for the signal handlers   */
static volatile sig_atomic_t  core_order;   /* last signal to end the core;
                                               0: none                   */
static inf_crash_page_t *core_page;
static int               core_journal_fd;   /* 0: none                       */
static pid_t             core_pid;      /* differs in a child of a backend    */
static bool              core_supervised;

static int usage(const char *program);
static void set_dump(bool on);
static inf_err_t *start_supervised(inf_core_config_t **config);
static inf_err_t *start_alone(const char *path, inf_core_config_t **config,
    listener_t *listener);
static inf_err_t *take_lease(void);
static void note_program(void);
static inf_err_t *listen_at(const char *path, bool others,
    listener_t *listener);
static void stop_listening(const char *path, const listener_t *listener);
static inf_err_t *find_users(const NginxInference__CoreConfig *config,
    uid_t **out);
static void close_on_exec(void);
static void install_signals(void);
static void on_order(int signo);
static void obey(void);
static void note_end(uint64_t pid);
static void on_pipe(int signo);
static void on_crash(int signo, siginfo_t *info, void *context);
static void log_to_socket(void *userp, inf_log_level_t level,
    const char *file, int line_no, const char *line);
static inf_err_t *run(core_t *core);
static void configure(void *userp, int fd, uint64_t generation);
static void beat(void *userp);
static void end_for_gpu(const inf_model_t *guilty, bool loading,
    const char *why);
static uint64_t leaves(void *userp);
static uint64_t drain_left_ns(const core_t *core);
static inf_err_t *take_over(core_t *core, const inf_core_config_t *wanted);

int
inf_core_main(int argc, char *const *argv)
{
    core_t core = { .listener.fd = -1 };
    inf_err_t *err;

    set_dump(false);   /* before secrets are read                   */
    close_on_exec();

    if (argc == 2 && strcmp(argv[1], "--supervised") == 0) {
        core_supervised = true;
        err = start_supervised(&core.start);
    } else if (argc == 3 && strcmp(argv[1], "--config") == 0) {
        err = start_alone(argv[2], &core.start, &core.listener);
    } else if (argc <= 3 && argc > 1 && strcmp(argv[1], "--check") == 0) {
        return inf_check_main(argc == 3 ? argv[2] : NULL);
    } else if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts(INF_BUILD);
        return 0;
    } else {
        return usage(argc > 0 ? argv[0] : "inference-core");
    }

    if (err == NULL) {
        core.now = inf_core_config_ref(core.start);
        core.generation = core.start->values->generation;
        set_dump(core.start->values->dump);
        inf_core_config_apply_log(core.start);
        install_signals();
        err = run(&core);
    }

    if (core.listener.fd >= 0) {
        stop_listening(core.start->values->external_path, &core.listener);
    }
    inf_core_config_unref(core.start);
    inf_core_config_unref(core.now);
    int status = err != NULL;
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "the core can't run"));
    } else {
        inf_log(INF_LOG_NOTICE, "the core has ended");
    }
    if (core.busy) {            /* exit() would free objects that these threads
                                   still use                                 */
        _exit(status);
    }
    return status;
}

static int
usage(const char *program)
{
    fprintf(stderr, "usage: %s --config FILE | --check [FILE] | --supervised |"
        " --version\n", program);
    return 2;
}

/*
 * Sets whether other processes of this user may read our memory, environment
 * and descriptors, and whether a core dump is written.
 */
static void
set_dump(bool on)
{
    if (prctl(PR_SET_DUMPABLE, on ? 1 : 0, 0, 0, 0) != 0) {
        inf_err_log(inf_err_os(errno, "prctl(PR_SET_DUMPABLE)"));
    }
}

static inf_err_t *
start_supervised(inf_core_config_t **config)
{
    int fd = INF_CORE_FD_LOG;
    if (fcntl(fd, F_GETFD) >= 0) {
        inf_log_set_sink(log_to_socket, (void *) (intptr_t) fd);
    }

    inf_err_t *err = take_lease();
    if (err == NULL) {
        note_program();
        err = inf_core_config_from_fd(INF_CORE_FD_CONFIG, config);
    }
    if (err == NULL) {
        fcntl(INF_CORE_FD_REGISTRATION, F_SETFL, O_NONBLOCK);
        if (fcntl(INF_CORE_FD_JOURNAL, F_GETFD) >= 0) {
            core_journal_fd = INF_CORE_FD_JOURNAL;
        }
        if (fcntl(INF_CORE_FD_CRASH_PAGE, F_GETFD) >= 0) {
            inf_err_log(inf_crash_page_open(INF_CORE_FD_CRASH_PAGE,
                &core_page));
        }
    }
    return err;
}

static inf_err_t *
start_alone(const char *path, inf_core_config_t **config, listener_t *listener)
{
    inf_err_t *err = inf_core_config_from_file(path, config);
    if (err != NULL) {
        return err;
    }

    const NginxInference__CoreConfig *c = (*config)->values;
    if (c->external_path[0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s: external_path: the path"
            " of the socket to listen at is missing", path);
    }

    for (size_t i = 0; i < c->n_environment; i++) {
        char *entry = strdup(c->environment[i]);
        if (entry == NULL || putenv(entry) != 0) {
            return inf_err_os(errno, "%s: environment", path);
        }
    }
    return listen_at(c->external_path, c->n_external_users > 0, listener);
}

/* Locks the lease: one core per lease.  The lock shows that the core lives, and
   vanishes at its exit. */
static inf_err_t *
take_lease(void)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(INF_CORE_FD_LEASE, F_SETLK, &lock) == 0 ? NULL
        : inf_err_os(errno, "another core holds the lease");
}

/* Records the program's file, so that nginx's master notices its
   replacement. */
static void
note_program(void)
{
    char line[INF_PROGRAM_SIZE] = "";
    struct stat st;

    if (stat("/proc/self/exe", &st) == 0) {
        snprintf(line, sizeof(line), "%d %llu %llu " INF_BUILD, getpid(),
            (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
    }

    if (pwrite(INF_CORE_FD_LEASE, line, sizeof(line), INF_PROGRAM_OFFSET)
        != sizeof(line))
    {
        inf_err_log(inf_err_os(errno, "cannot note the core's program"));
    }
}

/* Listens at path; others: users other than ours may connect.  The uid of each
   connection is checked. */
static inf_err_t *
listen_at(const char *path, bool others, listener_t *listener)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "external_path: \"%s\" is"
            " longer than %zu bytes", path, sizeof(address.sun_path) - 1);
    }
    strcpy(address.sun_path, path);

    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0) {
        return inf_err_os(errno, "socket");
    }

    struct stat st;
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        unlink(path);           /* of a core that has gone                   */
    }

    mode_t mask = umask(others ? 0111 : 0177);
    int rc = bind(s, (struct sockaddr *) &address, sizeof(address));
    int error = errno;
    umask(mask);
    if (rc != 0 || listen(s, 16) != 0 || lstat(path, &st) != 0) {
        error = rc != 0 ? error : errno;
        if (rc == 0) {
            unlink(path);
        }
        close(s);
        return inf_err_os(error, "cannot listen at \"%s\"", path);
    }

    *listener = (listener_t) { s, st.st_dev, st.st_ino };
    return NULL;
}

/* Removes the socket, unless another core has bound the path meanwhile. */
static void
stop_listening(const char *path, const listener_t *listener)
{
    struct stat st;

    if (lstat(path, &st) == 0 && st.st_dev == listener->device
        && st.st_ino == listener->inode)
    {
        unlink(path);
    }
    close(listener->fd);
}

/* Looks up n_external_users users; *out is to be freed. */
static inf_err_t *
find_users(const NginxInference__CoreConfig *config, uid_t **out)
{
    uid_t *uids = calloc(config->n_external_users + 1, sizeof(*uids));
    if (uids == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < config->n_external_users; i++) {
        const char *name = config->external_users[i];
        const struct passwd *user = getpwnam(name);
        char *end;

        errno = 0;
        unsigned long uid = strtoul(name, &end, 10);
        if (user != NULL) {
            uids[i] = user->pw_uid;
        } else if (name[0] >= '0' && name[0] <= '9' && *end == '\0'
            && errno == 0 && uid < (uid_t) -1)
        {
            uids[i] = (uid_t) uid;
        } else {
            free(uids);
            return inf_err_new(INF_ERR_INVALID_ARG, "external_users: there is"
                " no user \"%s\"", name);
        }
    }

    *out = uids;
    return NULL;
}

/* Sets FD_CLOEXEC on all descriptors, so that processes started by backends do
   not inherit them. */
static void
close_on_exec(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0) {
            fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
}

/* Installs handlers and no mask, because children inherit a mask. */
static void
install_signals(void)
{
    struct sigaction sa = { .sa_handler = on_order, .sa_flags = SA_RESTART };

    core_pid = getpid();
    sigemptyset(&sa.sa_mask);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGQUIT, &sa, NULL);

    /* output after the last nginx process has gone must not end the core; a
       handler, because backends' children would inherit SIG_IGN */
    sa.sa_handler = on_pipe;
    sigaction(SIGPIPE, &sa, NULL);

    /* recorded, then the default action: a core dump, and the next core */
    const int crashes[] = { SIGABRT,
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        SIGSEGV, SIGBUS, SIGFPE, SIGILL
#endif
    };
    sa.sa_sigaction = on_crash;
    /* threads that execute or load have a signal stack */
    sa.sa_flags = (int) (SA_RESETHAND | SA_SIGINFO | SA_ONSTACK);
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        sigaction(crashes[i], &sa, NULL);
    }
}

static void
on_pipe(int signo)
{
    (void) signo;
}

/* Records a crash.  A signal sent by another process is not a crash. */
static void
on_crash(int signo, siginfo_t *info, void *context)
{
    (void) context;
    bool certain;

    if (getpid() != core_pid) { /* a child of a backend, before its exec()   */
        raise(signo);
        return;
    }
    bool own = info->si_code > 0 || info->si_pid == core_pid;
    if (own) {
        inf_crash_page_note_signal(core_page, signo);
        const inf_model_t *model = inf_execution_culprit(&certain);
        if (model != NULL) {
            inf_crash_page_note_execution(core_page,
                inf_lifecycle_title(model), model->version, certain);
        }
    }
    note_end(0);                /* even after an order to end, this is a
                                   crash                                     */
    if (own) {
        inf_last_words_say(core_page);
    }
    raise(signo);
}

static void
on_order(int signo)
{
    int saved = errno;

    note_end((uint64_t) getpid());
    core_order = signo;
    obey();
    errno = saved;
}

/* Passes an order to end to the intake, once it exists.  As in nginx, QUIT lets
   executions end first. */
static void
obey(void)
{
    if (core_intake == NULL || core_order == 0) {
        return;
    }
    if (core_order == SIGQUIT) {
        inf_intake_leave(core_intake);
    } else {
        inf_intake_stop(core_intake);
    }
}

/* Records in the lease that this pid ends on order: neither a crash nor a hang.
   Async-signal-safe. */
static void
note_end(uint64_t pid)
{
    if (core_supervised && getpid() == core_pid) {
        (void) !pwrite(INF_CORE_FD_LEASE, &pid, sizeof(pid),
            INF_LEAVES_OFFSET);
    }
}

/*
 * Sends a log record: a letter for the level, then the text; does not wait.
 * nginx adds its own time; a configured log format with a time is included in
 * the text.
 */
static void
log_to_socket(void *userp, inf_log_level_t level, const char *file,
    int line_no, const char *line)
{
    static _Atomic uint32_t dropped;
    char record[INF_LOG_MAX + 320];
    char text[INF_LOG_STREAM_MAX];
    int fd = (int) (intptr_t) userp;

    if (inf_log_stream_format() == INF_LOG_ISO8601) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        size_t n = inf_log_stream_line(text, INF_LOG_ISO8601, false, &now,
            (int) getpid(), level, file, line_no, line);
        text[n - 1] = '\0';             /* instead of the newline            */
        line = text;
    }

    uint32_t lost = atomic_exchange_explicit(&dropped, 0,
        memory_order_relaxed);
    int n = lost == 0
        ? snprintf(record, sizeof(record), "%c%s", "IWEVN"[level], line)
        : snprintf(record, sizeof(record), "%c%s (%u records before this one"
            " were lost)", "IWEVN"[level], line, lost);

    size_t len = n < (int) sizeof(record) ? (size_t) n : sizeof(record) - 1;
    if (send(fd, record, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        atomic_fetch_add_explicit(&dropped, lost + 1, memory_order_relaxed);
    }
}

static inf_err_t *
run(core_t *core)
{
    const NginxInference__CoreConfig *config = core->start->values;
    uint64_t bound = config->response_arena_bytes;
    uid_t *users = NULL;
    inf_err_t *err = find_users(config, &users);
    if (err != NULL) {
        return err;
    }

    const inf_intake_options_t options = {
        .registration_fd = core_supervised ? INF_CORE_FD_REGISTRATION : -1,
        .configure_fd = core_supervised ? INF_CORE_FD_CONFIGURE : -1,
        .listen_fd = core->listener.fd,
        .users = users,
        .user_count = config->n_external_users,
        .response_bound = bound != 0 ? bound : RESPONSE_BOUND_DEFAULT,
        .pinned_bytes = config->pinned_arena_bytes,
        .spin_ns = config->spin_us * 1000,
        .response_wait_ns = config->response_wait_ms * 1000000,
        .generation = core->generation,
        .configure = configure,
        .beat = beat,
        .leaves = leaves,
        .userp = core
    };
    inf_intake_t *intake;
    inf_server_t *server = NULL;

    inf_log(INF_LOG_NOTICE, "%s: core %d starts", INF_BUILD, (int) getpid());

    err = inf_intake_new(&options, &intake);
    if (err != NULL) {
        free(users);
        return err;
    }
    core_intake = intake;
    obey();

    inf_server_host_t host = inf_intake_host;
    host.journal_fd = core_journal_fd;
    host.gpu_failed = end_for_gpu;
    host.follows = !core_supervised || inf_crash_page_restarted(core_page);
    err = inf_server_start(core->start, &host, intake, core_page, &server);
    if (err == NULL) {
        core->server = server;          /* instance threads may have the role
                                           from here on                      */
        err = inf_intake_attach(intake, server);
    }
    if (err == NULL) {
        inf_intake_run(intake);
        note_end((uint64_t) getpid());  /* also where nginx is gone          */
        if (core->left_ns != 0) {       /* workers that see no core give up  */
            inf_server_end_loads(server, drain_left_ns(core));
        }
    }
    core->server = NULL;

    core_intake = NULL;
    inf_intake_close(intake);
    free(users);
    core->busy = !inf_server_stop(server, drain_left_ns(core));

    inf_crash_page_t *page = core_page;
    core_page = NULL;
    if (!core->busy) {
        inf_intake_free(intake);
        inf_crash_page_close(page);
    }
    return err;
}

/* Applies the configuration of a reload, as far as it can change now. */
static void
configure(void *userp, int fd, uint64_t generation)
{
    core_t *core = userp;
    inf_core_config_t *wanted = NULL;

    inf_err_t *err = inf_core_config_from_fd(fd, &wanted);
    close(fd);
    if (err == NULL && generation > core->generation) {
        err = take_over(core, wanted);
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "new configuration is ignored"));
    } else if (generation > core->generation) {
        core->generation = generation;
        inf_log(INF_LOG_NOTICE, "configuration generation %llu is in force",
            (unsigned long long) generation);
    }
    inf_core_config_unref(wanted);
}

/* Increments the count that the supervisor watches. */
static void
beat(void *userp)
{
    core_t *core = userp;

    inf_server_check_gpus(core->server);

    const inf_beat_t now = {
        .pid = (uint64_t) getpid(),
        .count = ++core->beats
    };

    if (pwrite(INF_CORE_FD_LEASE, &now, sizeof(now), INF_BEAT_OFFSET)
        != sizeof(now))
    {
        inf_err_log(inf_err_os(errno, "heartbeat"));
    }
}

/* Ends the process after a GPU context has failed: the process cannot create
   another one, but the next core can.  Executing requests become suspects, as
   after a crash, and no finalizer waits for the GPU. */
static void
end_for_gpu(const inf_model_t *guilty, bool loading, const char *why)
{
    static atomic_flag ends = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ends)) {
        pause();                        /* another thread ends the process   */
    }

    bool several = false;
    const inf_model_t *model = guilty != NULL ? guilty
        : inf_execution_likely_culprit(&several);
    loading |= model == NULL && !several;   /* no other cause is possible    */
    inf_crash_page_note_gpu(core_page, loading);
    if (!loading && model != NULL) {
        inf_crash_page_note_execution(core_page, inf_lifecycle_title(model),
            model->version, guilty != NULL);
    }
    inf_log(INF_LOG_ERROR, "model=%s: %s; this core ends, and the next one"
        " opens the GPU again", model != NULL ? inf_lifecycle_title(model)
        : "?", why);
    note_end(0);                /* even after an order to end, this is a
                                   crash                                     */
    _exit(EXIT_FAILURE);
}

static uint64_t
leaves(void *userp)
{
    core_t *core = userp;

    core->left_ns = inf_clock_ns();
    return drain_left_ns(core);
}

/* The rest of the drain time, which begins when the core begins to end. */
static uint64_t
drain_left_ns(const core_t *core)
{
    uint64_t drain = core->now->values->drain_ms * 1000000;
    uint64_t spent = core->left_ns == 0 ? 0 : inf_clock_ns() - core->left_ns;

    return spent < drain ? drain - spent : 0;
}

static inf_err_t *
take_over(core_t *core, const inf_core_config_t *wanted)
{
    inf_core_config_t *before = core->now;
    char text[512];

    inf_err_t *err = inf_core_config_reload(before, wanted, &core->now);
    if (err != NULL) {
        core->now = before;
        return err;
    }

    set_dump(core->now->values->dump);

    bool log = inf_core_config_log_differs(before, core->now);
    if (log) {
        /* lines of this reload use it; the thread of clients' settings applies
           it again, between their calls */
        inf_core_config_apply_log(core->now);
    }
    inf_intake_configure(core_intake, core->now, log);
    inf_err_log(inf_err_add(core->server == NULL ? NULL
        : inf_server_reconfigure(core->server, before, core->now),
        "models and their repositories stay as they were"));
    inf_core_config_differences(core->start, wanted, INF_RELOAD_CORE, text,
        sizeof(text));
    if (text[0] != '\0') {
        inf_log(INF_LOG_WARN, "changed settings wait for the next core, which"
            " \"kill -QUIT %d\" starts: %s", (int) getpid(), text);
    }
    inf_core_config_unref(before);
    return NULL;
}
