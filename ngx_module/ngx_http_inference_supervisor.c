/*
 * The supervisor: an nginx helper process that starts the core, watches it,
 * cleans up after its exit and starts the next.  Stock nginx spawns and
 * respawns the helper because cycle->paths holds a path with a manager.
 *
 * The process that has locked the lease is the core.  So a new supervisor,
 * after a reload or a crash of the old one, finds the running core without a
 * pid file, and two supervisors at once do no harm.
 */

#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_supervisor.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/include/build_id.h"
#include "core/include/channel.h"
#include "core/wire/sockets.h"


#define NGX_HTTP_INFERENCE_LONG_WAIT    (60 * 60 * 1000)
#define NGX_HTTP_INFERENCE_SHORT_WAIT   50
#define NGX_HTTP_INFERENCE_FIRST_PAUSE  250
#define NGX_HTTP_INFERENCE_MAX_PAUSE    5000


typedef struct {
    ngx_log_t         *log;
    ngx_str_t          program;
    ngx_msec_t         hang;        /* limit of a hang; 0: none              */

    ngx_pid_t          pid;         /* of the watched core                   */
    int                pidfd;
    ngx_connection_t  *watch;       /* NULL: no core is watched              */
    ngx_uint_t         child;       /* the core is our child                 */

    ngx_uint_t         early;       /* exits in a row without an answer      */
    ngx_event_t        find;        /* looks for a core, or starts one       */
    ngx_event_t        tell;        /* sends the configuration again         */
    ngx_connection_t   dummy;

    unsigned           started:1;
} ngx_http_inference_supervisor_t;


static void ngx_http_inference_supervisor_keep(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);
static void ngx_http_inference_supervisor_program(ngx_str_t *program,
    ngx_log_t *log);
static void ngx_http_inference_supervisor_replaced(ngx_str_t *program,
    ngx_log_t *log);
static char *ngx_http_inference_supervisor_how(ngx_log_t *log);
static ngx_int_t ngx_http_inference_supervisor_add_helper(ngx_cycle_t *cycle);
static void ngx_http_inference_supervisor_hide(
    ngx_http_inference_main_conf_t *imcf, ngx_log_t *log);
static ngx_msec_t ngx_http_inference_supervisor_manager(void *data);
static ngx_int_t ngx_http_inference_supervisor_start(ngx_cycle_t *cycle);
static void ngx_http_inference_supervisor_tie_to_master(ngx_log_t *log);
static void ngx_http_inference_supervisor_find(ngx_event_t *ev);
static ngx_pid_t ngx_http_inference_supervisor_holder(void);
static void ngx_http_inference_supervisor_spawn(
    ngx_http_inference_supervisor_t *s);
static void ngx_http_inference_supervisor_adopt(
    ngx_http_inference_supervisor_t *s, ngx_pid_t pid);
static ngx_int_t ngx_http_inference_supervisor_watch(
    ngx_http_inference_supervisor_t *s, ngx_pid_t pid);
static void ngx_http_inference_supervisor_unwatch(
    ngx_http_inference_supervisor_t *s);
static void ngx_http_inference_supervisor_tell(ngx_event_t *ev);
static void ngx_http_inference_supervisor_core_exited(ngx_event_t *ev);
static void ngx_http_inference_supervisor_clean_up(
    ngx_http_inference_supervisor_t *s, int pidfd);
static ngx_uint_t ngx_http_inference_supervisor_report(
    ngx_http_inference_supervisor_t *s);
static ngx_uint_t ngx_http_inference_supervisor_answered(
    ngx_http_inference_supervisor_t *s);
static ngx_msec_t ngx_http_inference_supervisor_pause(
    ngx_http_inference_supervisor_t *s);


static ngx_http_inference_supervisor_t  ngx_http_inference_supervisor;


ngx_int_t
ngx_http_inference_supervisor_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                       reload;
    ngx_core_conf_t                 *ccf;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    if (ngx_test_config) {
        return imcf == NULL || !imcf->used || imcf->external.len > 0
               ? NGX_OK : ngx_http_inference_check(cycle, imcf);
    }

    if (imcf && imcf->used) {
        ngx_http_inference_leaving_number();
    }

    if (imcf == NULL || !imcf->used || imcf->external.len > 0) {
        ngx_http_inference_keep_disown(cycle);
        return NGX_OK;
    }

    reload = !ngx_is_init_cycle(cycle->old_cycle);

    if (ngx_http_inference_keep(cycle) != NGX_OK
        || ngx_http_inference_environment_capture(cycle->log) != NGX_OK)
    {
        /* an error would end the master of a running server */
        return reload ? NGX_OK : NGX_ERROR;
    }

    ngx_http_inference_supervisor_keep(cycle, imcf);

    if (ngx_http_inference_keep_pass_on(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (!ccf->master) {
        return NGX_OK;
    }

    return ngx_http_inference_supervisor_add_helper(cycle);
}


ngx_int_t
ngx_http_inference_supervisor_process(ngx_cycle_t *cycle)
{
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    if (imcf == NULL || !imcf->used || imcf->external.len > 0) {
        return NGX_OK;
    }

    switch (ngx_process) {

    case NGX_PROCESS_WORKER:
        ngx_http_inference_keep_only(1 << NGX_HTTP_INFERENCE_KEEP_REGISTRATION);
        ngx_http_inference_environment_wipe(cycle, imcf);
        return NGX_OK;

    case NGX_PROCESS_HELPER:

        /* this may be nginx's cache loader: the manager starts the core */

        ngx_http_inference_keep_only(~(ngx_uint_t) 0);
        ngx_http_inference_supervisor_hide(imcf, cycle->log);
        return NGX_OK;

    case NGX_PROCESS_SINGLE:
        ngx_http_inference_keep_only(~(ngx_uint_t) 0);
        return ngx_http_inference_supervisor_start(cycle);

    default:
        return NGX_OK;
    }
}


/*
 * The master of nginx that ends gracefully waits until the core has finalized
 * its models: their output is logged, and a container would end with the
 * master.  The core ends when no nginx process has the registration socket any
 * more, so not while another binary runs.
 */

void
ngx_http_inference_supervisor_exit(ngx_cycle_t *cycle)
{
    int                               pidfd;
    ngx_pid_t                         pid;
    inf_err_t                        *err;
    ngx_file_info_t                   fi;
    ngx_core_conf_t                  *ccf;
    ngx_http_inference_main_conf_t   *imcf;
    ngx_http_inference_supervisor_t  *s;

    s = &ngx_http_inference_supervisor;
    s->log = cycle->log;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (!ngx_quit || ngx_terminate || ngx_new_binary != 0
        || ngx_file_info(ccf->oldpid.data, &fi) != NGX_FILE_ERROR
        || ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE) == -1)
    {
        return;
    }

    pid = ngx_http_inference_supervisor_holder();

    if (pid == 0 || pid == NGX_INVALID_PID) {
        return;
    }

    err = inf_pidfd_open((int) pid, &pidfd);
    if (err != NULL) {                  /* it has just ended                 */
        inf_err_free(err);
        return;
    }

    ngx_http_inference_keep_only(1 << NGX_HTTP_INFERENCE_KEEP_LEASE
                                 | 1 << NGX_HTTP_INFERENCE_KEEP_RECORDS
                                 | 1 << NGX_HTTP_INFERENCE_KEEP_OUTPUT);

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    if (ngx_http_inference_heartbeat_last(pid, pidfd,
                                          (ngx_msec_t) imcf->config.hang_ms,
                                          s->log)
        == NGX_OK)
    {
        ngx_http_inference_clean_up(pid, pidfd, s->log);

        ngx_log_error(NGX_LOG_NOTICE, s->log, 0,
                      "inference: core %P has ended", pid);
    }

    (void) close(pidfd);
}


/*
 * Makes the supervisor undumpable: a worker of the same user could otherwise
 * trace it, and it starts the core and has its environment.  nginx makes its
 * children dumpable before this call.
 */

static void
ngx_http_inference_supervisor_hide(ngx_http_inference_main_conf_t *imcf,
    ngx_log_t *log)
{
    if (!imcf->config.dump && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: prctl(PR_SET_DUMPABLE) failed");
    }
}


ngx_socket_t
ngx_http_inference_registration(void)
{
    return ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_REGISTRATION);
}


/* Updates the kept descriptors for this cycle. */

static void
ngx_http_inference_supervisor_keep(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_int_t  rc;

    rc = ngx_http_inference_core_config_update(imcf, cycle->log);

    if (rc == NGX_OK) {
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "inference: configuration %uL",
                      ngx_http_inference_core_config_generation(cycle->log));

    } else if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "inference: cannot keep the core's configuration");
    }

    rc = ngx_http_inference_environment_update(imcf, cycle->log);

    if (rc == NGX_OK && ngx_http_inference_kept_core(cycle->log) > 0) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "inference: the core's environment has changed, which "
                      "waits for the next core%s",
                      ngx_http_inference_supervisor_how(cycle->log));

    } else if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "inference: cannot keep the core's environment");
    }

    ngx_http_inference_supervisor_program(&imcf->core, cycle->log);
}


static void
ngx_http_inference_supervisor_program(ngx_str_t *program, ngx_log_t *log)
{
    static char  last[NGX_MAX_PATH + 1];

    if (last[0] != '\0'
        && ngx_strncmp(last, program->data, sizeof(last)) != 0)
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "inference: the core program has changed from \"%s\" to "
                      "\"%V\", which waits for the next core%s", last,
                      program, ngx_http_inference_supervisor_how(log));

    } else {
        ngx_http_inference_supervisor_replaced(program, log);
    }

    (void) ngx_cpystrn((u_char *) last, program->data, sizeof(last));
}


/* Logs that the program file was replaced: a package's upgrade reloads nginx or
   replaces its binary, but the core keeps running. */

static void
ngx_http_inference_supervisor_replaced(ngx_str_t *program, ngx_log_t *log)
{
    int                  pid;
    char                 build[INF_PROGRAM_SIZE];
    unsigned long long   device, inode;
    ngx_file_info_t      fi;

    if (ngx_http_inference_kept_program(&pid, &device, &inode, build, log)
        != NGX_OK
        || ngx_file_info(program->data, &fi) == NGX_FILE_ERROR
        || (fi.st_dev == device && fi.st_ino == inode))
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "inference: the program \"%V\" has been replaced, core %d of "
                  "%s goes on, and the new program waits for the next core%s",
                  program, pid, build,
                  ngx_http_inference_supervisor_how(log));
}


/* The command that replaces the running core, for the log. */

static char *
ngx_http_inference_supervisor_how(ngx_log_t *log)
{
    u_char       *p;
    ngx_pid_t     pid;
    static char   how[sizeof(": \"kill -QUIT \" starts it") + NGX_INT64_LEN];

    pid = ngx_http_inference_kept_core(log);

    p = pid > 0 ? ngx_sprintf((u_char *) how,
                              ": \"kill -QUIT %P\" starts it", pid)
                : (u_char *) how;
    *p = '\0';

    return how;
}


/*
 * Adds the helper's path behind nginx's own paths, after nginx has created
 * their directories: it gets a manager process, but no directory.
 */

static ngx_int_t
ngx_http_inference_supervisor_add_helper(ngx_cycle_t *cycle)
{
    ngx_path_t  *path, **slot;

    path = ngx_pcalloc(cycle->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_ERROR;
    }

    slot = ngx_array_push(&cycle->paths);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&path->name, "inference");
    path->manager = ngx_http_inference_supervisor_manager;
    path->data = cycle;

    *slot = path;

    return NGX_OK;
}


/* The helper's manager; first called after 0 ms. */

static ngx_msec_t
ngx_http_inference_supervisor_manager(void *data)
{
    ngx_cycle_t *cycle = data;

    if (!ngx_http_inference_supervisor.started
        && ngx_http_inference_supervisor_start(cycle) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "inference: the supervisor cannot start");

        /* the master starts another helper */
        exit(1);
    }

    return NGX_HTTP_INFERENCE_LONG_WAIT;
}


static ngx_int_t
ngx_http_inference_supervisor_start(ngx_cycle_t *cycle)
{
    ngx_http_inference_main_conf_t   *imcf;
    ngx_http_inference_supervisor_t  *s;

    s = &ngx_http_inference_supervisor;
    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    s->log = cycle->log;
    s->program = imcf->core;
    s->hang = (ngx_msec_t) imcf->config.hang_ms;
    s->dummy.fd = (ngx_socket_t) -1;

    s->find.handler = ngx_http_inference_supervisor_find;
    s->find.data = &s->dummy;
    s->find.log = cycle->log;

    s->tell.handler = ngx_http_inference_supervisor_tell;
    s->tell.data = &s->dummy;
    s->tell.log = cycle->log;

    if (ngx_process == NGX_PROCESS_HELPER) {
        ngx_http_inference_supervisor_tie_to_master(cycle->log);

    } else {
        s->find.cancelable = 1;
        s->tell.cancelable = 1;
    }

    /* the pidfd reports the core's exit; nginx would log it as an alert */

    (void) signal(SIGCHLD, SIG_DFL);

    if (ngx_http_inference_core_log_start(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    s->started = 1;
    ngx_http_inference_supervisor_find(&s->find);

    return NGX_OK;
}


/* Ends the helper when the master is killed; workers go on. */

static void
ngx_http_inference_supervisor_tie_to_master(ngx_log_t *log)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == -1) {
        ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                      "inference: prctl(PR_SET_PDEATHSIG) failed");
    }

    if (getppid() != ngx_parent) {
        exit(0);
    }
}


static void
ngx_http_inference_supervisor_find(ngx_event_t *ev)
{
    ngx_pid_t                         pid;
    ngx_http_inference_supervisor_t  *s;

    s = &ngx_http_inference_supervisor;

    if (s->watch != NULL) {
        return;
    }

    pid = ngx_http_inference_supervisor_holder();

    if (pid == NGX_INVALID_PID) {
        ngx_add_timer(&s->find, NGX_HTTP_INFERENCE_MAX_PAUSE);

    } else if (pid == 0) {
        ngx_http_inference_supervisor_clean_up(s, -1);
        ngx_http_inference_supervisor_spawn(s);

    } else {
        ngx_http_inference_supervisor_adopt(s, pid);
    }
}


/* The process that has locked the lease; 0: none. */

static ngx_pid_t
ngx_http_inference_supervisor_holder(void)
{
    ngx_fd_t      lease;
    struct flock  fl;

    ngx_memzero(&fl, sizeof(struct flock));
    fl.l_type = F_WRLCK;
    fl.l_whence = SEEK_SET;

    lease = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);

    if (fcntl(lease, F_GETLK, &fl) == -1) {
        ngx_log_error(NGX_LOG_ALERT, ngx_http_inference_supervisor.log,
                      ngx_errno, "inference: cannot read the lease");
        return NGX_INVALID_PID;
    }

    return fl.l_type == F_UNLCK ? 0 : fl.l_pid;
}


static void
ngx_http_inference_supervisor_spawn(ngx_http_inference_supervisor_t *s)
{
    ngx_pid_t  pid;

    pid = ngx_http_inference_spawn(&s->program, s->log);

    if (pid == NGX_INVALID_PID
        || ngx_http_inference_supervisor_watch(s, pid) != NGX_OK)
    {
        ngx_add_timer(&s->find, NGX_HTTP_INFERENCE_MAX_PAUSE);
        return;
    }

    s->child = 1;
    ngx_http_inference_keep_core(pid, s->log);

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->core_starts,
                                1);

    ngx_log_error(NGX_LOG_NOTICE, s->log, 0, "inference: core %P started",
                  pid);
}


static void
ngx_http_inference_supervisor_adopt(ngx_http_inference_supervisor_t *s,
    ngx_pid_t pid)
{
    if (ngx_http_inference_supervisor_watch(s, pid) != NGX_OK) {
        ngx_add_timer(&s->find, NGX_HTTP_INFERENCE_SHORT_WAIT);
        return;
    }

    /* the pid may have been reused before the pidfd was opened */

    if (ngx_http_inference_supervisor_holder() != pid) {
        ngx_http_inference_supervisor_unwatch(s);
        (void) close(s->pidfd);
        ngx_add_timer(&s->find, NGX_HTTP_INFERENCE_SHORT_WAIT);
        return;
    }

    s->child = 0;
    ngx_http_inference_keep_core(pid, s->log);

    ngx_log_error(NGX_LOG_NOTICE, s->log, 0, "inference: core %P is watched",
                  pid);

    ngx_http_inference_supervisor_tell(&s->tell);
}


static ngx_int_t
ngx_http_inference_supervisor_watch(ngx_http_inference_supervisor_t *s,
    ngx_pid_t pid)
{
    inf_err_t  *err;

    err = inf_pidfd_open((int) pid, &s->pidfd);
    if (err != NULL) {
        ngx_log_error(NGX_LOG_INFO, s->log, 0, "inference: %s",
                      inf_err_msg(err));
        inf_err_free(err);
        return NGX_ERROR;
    }

    s->watch = ngx_get_connection(s->pidfd, s->log);
    if (s->watch == NULL) {
        (void) close(s->pidfd);
        return NGX_ERROR;
    }

    s->watch->read->handler = ngx_http_inference_supervisor_core_exited;
    s->watch->read->log = s->log;
    s->watch->read->channel = 1;
    s->watch->write->channel = 1;

    if (ngx_add_event(s->watch->read, NGX_READ_EVENT, NGX_LEVEL_EVENT)
        != NGX_OK)
    {
        ngx_free_connection(s->watch);
        s->watch = NULL;
        (void) close(s->pidfd);
        return NGX_ERROR;
    }

    s->pid = pid;

    ngx_http_inference_heartbeat_start(pid, s->pidfd, s->hang, s->log);

    return NGX_OK;
}


static void
ngx_http_inference_supervisor_unwatch(ngx_http_inference_supervisor_t *s)
{
    ngx_http_inference_heartbeat_stop();

    (void) ngx_del_event(s->watch->read, NGX_READ_EVENT, 0);

    ngx_free_connection(s->watch);
    s->watch->fd = (ngx_socket_t) -1;
    s->watch = NULL;

    if (s->tell.timer_set) {
        ngx_del_timer(&s->tell);
    }
}


/* Sends the configuration to a core that another supervisor started with an
   older one. */

static void
ngx_http_inference_supervisor_tell(ngx_event_t *ev)
{
    int                               fd;
    inf_err_t                        *err;
    inf_hello_t                       hello;
    inf_socket_result_t               result;
    ngx_http_inference_supervisor_t  *s;

    s = &ngx_http_inference_supervisor;

    ngx_memzero(&hello, sizeof(inf_hello_t));

    hello.magic = INF_CHANNEL_MAGIC;
    hello.version = INF_CHANNEL_VERSION;
    hello.min_version = INF_CHANNEL_MIN_VERSION;
    hello.size = sizeof(inf_hello_t);
    hello.kind = INF_HELLO_CONFIG;
    hello.pid = (uint32_t) ngx_pid;
    hello.generation = ngx_http_inference_core_config_generation(s->log);
    ngx_memcpy(hello.build, INF_BUILD, sizeof(INF_BUILD));

    fd = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CONFIG);

    err = inf_socket_send(
              ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CONFIGURE),
              &hello, sizeof(inf_hello_t), &fd, INF_HELLO_CONFIG_FDS,
              &result);

    if (err != NULL) {
        ngx_log_error(NGX_LOG_ERR, s->log, 0,
                      "inference: cannot send the configuration to core %P: "
                      "%s", s->pid, inf_err_msg(err));
        inf_err_free(err);
        return;
    }

    if (result == INF_SOCKET_AGAIN) {
        ngx_add_timer(&s->tell, NGX_HTTP_INFERENCE_SHORT_WAIT);
    }
}


static void
ngx_http_inference_supervisor_core_exited(ngx_event_t *ev)
{
    ngx_pid_t                         pid;
    ngx_http_inference_supervisor_t  *s;

    s = &ngx_http_inference_supervisor;

    ngx_http_inference_supervisor_unwatch(s);

    /* the pid of a child is not reused before waitpid() */

    ngx_http_inference_supervisor_clean_up(s, s->pidfd);
    (void) close(s->pidfd);

    ngx_http_inference_core_log_flush();

    pid = ngx_http_inference_supervisor_holder();

    if (pid > 0 && pid != s->pid) {

        /* another core or supervisor was first */

        if (s->child) {
            (void) waitpid(s->pid, NULL, WNOHANG);
        }

        ngx_add_timer(&s->find, 0);
        return;
    }

    if (ngx_http_inference_supervisor_report(s)) {
        s->early = 0;
        ngx_add_timer(&s->find, 0);
        return;
    }

    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->core_deaths,
                                1);

    ngx_add_timer(&s->find, ngx_http_inference_supervisor_pause(s));
}


/* Cleans up after the kept core; pidfd -1: it exited together with its
   supervisor. */

static void
ngx_http_inference_supervisor_clean_up(ngx_http_inference_supervisor_t *s,
    int pidfd)
{
    ngx_pid_t  pid, last;

    last = ngx_http_inference_kept_core(s->log);
    pid = pidfd != -1 ? s->pid : last;

    if (pid > 0) {
        ngx_http_inference_clean_up(pid, pidfd, s->log);
    }

    if (last == pid) {
        ngx_http_inference_keep_core(0, s->log);
    }
}


/* Logs the core's exit.  Returns whether the core was told to end. */

static ngx_uint_t
ngx_http_inference_supervisor_report(ngx_http_inference_supervisor_t *s)
{
    int         status;
    u_char     *p, how[NGX_INT_T_LEN + sizeof("exited on signal ")];
    ngx_str_t  *words;

    words = ngx_http_inference_core_log_last_words();
    status = 0;

    if (!s->child || waitpid(s->pid, &status, WNOHANG) != s->pid) {
        p = ngx_sprintf(how, "ended");

    } else if (WIFSIGNALED(status)) {
        p = ngx_sprintf(how, "exited on signal %d", WTERMSIG(status));

    } else {
        p = ngx_sprintf(how, "exited with code %d", WEXITSTATUS(status));
    }

    *p = '\0';

    if (status == 0 && ngx_http_inference_kept_core_leaves(s->pid, s->log)) {
        ngx_log_error(NGX_LOG_NOTICE, s->log, 0,
                      "inference: core %P has ended as it was told to", s->pid);

        words->len = 0;
        return 1;
    }

    ngx_log_error(NGX_LOG_ERR, s->log, 0,
                  "inference: core %P %s, its last output was \"%V\"",
                  s->pid, how, words);

    words->len = 0;

    if (s->child && !ngx_http_inference_supervisor_answered(s)) {
        ngx_http_inference_counters()->core_failed =
            (ngx_atomic_uint_t) status + 1;
    }

    return 0;
}


static ngx_uint_t
ngx_http_inference_supervisor_answered(ngx_http_inference_supervisor_t *s)
{
    return ngx_http_inference_counters()->answered
           == (ngx_atomic_uint_t) s->pid;
}


/*
 * The pause before the next core: 0 unless cores exit one after another before
 * one has answered a worker.
 */

static ngx_msec_t
ngx_http_inference_supervisor_pause(ngx_http_inference_supervisor_t *s)
{
    ngx_msec_t  pause;

    if (ngx_http_inference_supervisor_answered(s)) {
        s->early = 0;
        return 0;
    }

    if (s->early++ == 0) {
        return 0;
    }

    pause = (ngx_msec_t) NGX_HTTP_INFERENCE_FIRST_PAUSE
            << ngx_min(s->early - 2, 8);

    return ngx_min(pause, NGX_HTTP_INFERENCE_MAX_PAUSE);
}
