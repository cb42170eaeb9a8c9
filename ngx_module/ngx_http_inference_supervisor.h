/*
 * ngx_http_inference_supervisor.h - what the supervisor's files share.
 *
 * Owner    The master keeps the descriptors; each cycle that needs a core
 *          holds one reference, and the last one closes them.
 * Thread   master: init_module and exit_master.  The rest: the supervisor's
 *          event loop.
 * Units    ms; bytes.
 * Errors   nginx return codes, logged where they arise.  Nothing here ends the
 *          master of a running server: a reload goes on with what there was.
 * Route    supervisor -> keep, core_config, environment -> spawn -> core;
 *          core -> core_log -> error_log.
 */

#ifndef NGX_HTTP_INFERENCE_SUPERVISOR_H
#define NGX_HTTP_INFERENCE_SUPERVISOR_H

#include "ngx_module/ngx_http_inference.h"


/* descriptors that the master keeps across reloads, binary upgrades and core
   exits */

typedef enum {
    /* registration socket: workers' end, core's end */
    NGX_HTTP_INFERENCE_KEEP_REGISTRATION = 0,
    NGX_HTTP_INFERENCE_KEEP_REGISTRATION_CORE,

    /* socket for new configurations: supervisor's end, core's end */
    NGX_HTTP_INFERENCE_KEEP_CONFIGURE,
    NGX_HTTP_INFERENCE_KEEP_CONFIGURE_CORE,

    /* memory file locked by the running core; holds its pid */
    NGX_HTTP_INFERENCE_KEEP_LEASE,

    /* memory file with the CoreConfig */
    NGX_HTTP_INFERENCE_KEEP_CONFIG,

    /* log records, and stdout with stderr: supervisor's end, core's end */
    NGX_HTTP_INFERENCE_KEEP_RECORDS,
    NGX_HTTP_INFERENCE_KEEP_RECORDS_CORE,
    NGX_HTTP_INFERENCE_KEEP_OUTPUT,
    NGX_HTTP_INFERENCE_KEEP_OUTPUT_CORE,

    NGX_HTTP_INFERENCE_KEEP_JOURNAL,
    NGX_HTTP_INFERENCE_KEEP_CRASH_PAGE,

    /* environment of nginx's start, and the core's environment */
    NGX_HTTP_INFERENCE_KEEP_START_ENV,
    NGX_HTTP_INFERENCE_KEEP_CORE_ENV,

    NGX_HTTP_INFERENCE_KEPT
} ngx_http_inference_kept_e;


/* numbers of the core's descriptors */

#define NGX_HTTP_INFERENCE_CORE_FD_REGISTRATION  3
#define NGX_HTTP_INFERENCE_CORE_FD_LEASE         4
#define NGX_HTTP_INFERENCE_CORE_FD_CONFIG        5
#define NGX_HTTP_INFERENCE_CORE_FD_RECORDS       6
#define NGX_HTTP_INFERENCE_CORE_FD_JOURNAL       7
#define NGX_HTTP_INFERENCE_CORE_FD_CRASH_PAGE    8
#define NGX_HTTP_INFERENCE_CORE_FD_CONFIGURE     9
#define NGX_HTTP_INFERENCE_CORE_FDS              10


/* prefix of names in /dev/shm of the core with this pid and its children */

#define NGX_HTTP_INFERENCE_SHM_PREFIX            "inference-core.%P."


/* ---- keep ---------------------------------------------------------------- */

/* Creates, inherits or shares the kept descriptors; the cycle's pool releases
   them. */
ngx_int_t ngx_http_inference_keep(ngx_cycle_t *cycle);

/* For a cycle without a core: closes descriptors inherited from an old
   binary. */
void ngx_http_inference_keep_disown(ngx_cycle_t *cycle);

/* Names the descriptors in the environment of the next binary. */
ngx_int_t ngx_http_inference_keep_pass_on(ngx_cycle_t *cycle);

/* In a child of the master, or at its end: closes all kept descriptors except
   those in mask (bits of kept_e), and sets FD_CLOEXEC on the rest. */
void ngx_http_inference_keep_only(ngx_uint_t mask);

/* The kept descriptor, or -1. */
ngx_fd_t ngx_http_inference_kept(ngx_http_inference_kept_e what);

/* Sets and gets the pid of the core last started or adopted; 0: cleaned up. */
void ngx_http_inference_keep_core(ngx_pid_t pid, ngx_log_t *log);
ngx_pid_t ngx_http_inference_kept_core(ngx_log_t *log);

/* Whether the core has recorded in the lease that it was told to end. */
ngx_uint_t ngx_http_inference_kept_core_leaves(ngx_pid_t pid, ngx_log_t *log);

/* The program file of the kept core, and its version (INF_PROGRAM_SIZE bytes).
   NGX_DECLINED: no core, or one that does not record them. */
ngx_int_t ngx_http_inference_kept_program(int *pid, unsigned long long *device,
    unsigned long long *inode, char *build, ngx_log_t *log);

/* Replaces a kept memory file by a sealed one with these bytes. */
ngx_int_t ngx_http_inference_keep_bytes(ngx_http_inference_kept_e what,
    const char *name, const void *data, size_t len, ngx_log_t *log);

/* All bytes of a kept memory file, malloc'ed; NULL: none. */
u_char *ngx_http_inference_kept_bytes(ngx_http_inference_kept_e what,
    size_t *len, ngx_log_t *log);


/* ---- core_config --------------------------------------------------------- */

/* NGX_OK: a new generation is kept.  NGX_DECLINED: nothing has changed. */
ngx_int_t ngx_http_inference_core_config_update(
    ngx_http_inference_main_conf_t *imcf, ngx_log_t *log);

/* The same, serialised with the models that directives name, for the check.
   NULL: failed. */
u_char *ngx_http_inference_core_config_bytes(
    ngx_http_inference_main_conf_t *imcf, size_t *len, ngx_pool_t *pool);

/* The generation of the kept CoreConfig. */
uint64_t ngx_http_inference_core_config_generation(ngx_log_t *log);


/* ---- check --------------------------------------------------------------- */

#define NGX_HTTP_INFERENCE_CHECK_OFF     0
#define NGX_HTTP_INFERENCE_CHECK_WARN    1
#define NGX_HTTP_INFERENCE_CHECK_STRICT  2

/* Runs the core program for nginx -t.  NGX_ERROR: the test fails. */
ngx_int_t ngx_http_inference_check(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);


/* ---- environment --------------------------------------------------------- */

#define NGX_HTTP_INFERENCE_VAR  "NGX_INFERENCE"

/* Keeps this process's environment as START_ENV, unless one is kept. */
ngx_int_t ngx_http_inference_environment_capture(ngx_log_t *log);

/* NGX_OK: a new CORE_ENV is kept.  NGX_DECLINED: nothing has changed. */
ngx_int_t ngx_http_inference_environment_update(
    ngx_http_inference_main_conf_t *imcf, ngx_log_t *log);

/* The core's environment for execve(); *block holds the strings.  Both are
   malloc'ed. */
char **ngx_http_inference_environment(u_char **block, ngx_log_t *log);

/* In a worker: overwrites values of the environment that may be secret. */
void ngx_http_inference_environment_wipe(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);


/* ---- spawn --------------------------------------------------------------- */

/* Starts the core; returns the pid, or NGX_INVALID_PID. */
ngx_pid_t ngx_http_inference_spawn(ngx_str_t *program, ngx_log_t *log);

/* In a child before execve(): closes every descriptor from first on. */
ngx_int_t ngx_http_inference_close_from(int first);

/*
 * After the core's exit: ends its child processes and removes its names in
 * shared memory.  pidfd -1: the exit was not observed; nothing is done if pid
 * is another process by now.
 */
void ngx_http_inference_clean_up(ngx_pid_t pid, int pidfd, ngx_log_t *log);


/* Sends a signal to the process; pidfd -1: by pid alone. */
void ngx_http_inference_signal(ngx_pid_t pid, int pidfd, int signo,
    ngx_log_t *log);


/* ---- heartbeat ----------------------------------------------------------- */

/* Watches the core's heartbeat until stop, or the next start.  bound 0: does
   not watch. */
void ngx_http_inference_heartbeat_start(ngx_pid_t pid, int pidfd,
    ngx_msec_t bound, ngx_log_t *log);
void ngx_http_inference_heartbeat_stop(void);

/* In the master, when the core is to end by itself: waits, and ends a core that
   has not begun to end after bound; 0: it may take its time.  NGX_ABORT: nginx
   is told to terminate before. */
ngx_int_t ngx_http_inference_heartbeat_last(ngx_pid_t pid, int pidfd,
    ngx_msec_t bound, ngx_log_t *log);


/* ---- core_log ------------------------------------------------------------ */

/* In the supervisor: starts to read the core's records and output. */
ngx_int_t ngx_http_inference_core_log_start(ngx_cycle_t *cycle);

/* Logs everything received, including an unfinished line. */
void ngx_http_inference_core_log_flush(void);

/* In the master: logs what the core writes until it has ended.  NGX_ABORT:
   nginx is told to terminate before.  NGX_AGAIN: it has not ended after limit;
   0: none. */
ngx_int_t ngx_http_inference_core_log_last(int pidfd, ngx_msec_t limit,
    ngx_log_t *log);

/* The last line of the core's output, for the message about its exit. */
ngx_str_t *ngx_http_inference_core_log_last_words(void);


#endif /* NGX_HTTP_INFERENCE_SUPERVISOR_H */
