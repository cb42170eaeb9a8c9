/*
 * ngx_http_inference_supervisor.h - what the supervisor's files share.
 *
 * Owner    The master keeps the descriptors; each cycle that needs a core
 *          holds one reference, and the last one closes them.
 * Thread   master: init_module.  The rest: the supervisor's event loop.
 * Units    ms; bytes.
 * Errors   nginx return codes, logged where they arise.  Nothing here ends the
 *          master of a running server: a reload goes on with what there was.
 * Route    supervisor -> keep, core_config, environment -> spawn -> core;
 *          core -> core_log -> error_log.
 */

#ifndef NGX_HTTP_INFERENCE_SUPERVISOR_H
#define NGX_HTTP_INFERENCE_SUPERVISOR_H

#include "ngx_module/ngx_http_inference.h"


/* what the master keeps: survives reloads, binary upgrades, core deaths */

typedef enum {
    /* workers' end, core's end */
    NGX_HTTP_INFERENCE_KEEP_REGISTRATION = 0,
    NGX_HTTP_INFERENCE_KEEP_REGISTRATION_CORE,

    /* new configurations; supervisor's end, core's end */
    NGX_HTTP_INFERENCE_KEEP_CONFIGURE,
    NGX_HTTP_INFERENCE_KEEP_CONFIGURE_CORE,

    /* locked by the living core; holds its pid */
    NGX_HTTP_INFERENCE_KEEP_LEASE,

    /* CoreConfig */
    NGX_HTTP_INFERENCE_KEEP_CONFIG,

    /* log records, and stdout with stderr; supervisor's end, core's end */
    NGX_HTTP_INFERENCE_KEEP_RECORDS,
    NGX_HTTP_INFERENCE_KEEP_RECORDS_CORE,
    NGX_HTTP_INFERENCE_KEEP_OUTPUT,
    NGX_HTTP_INFERENCE_KEEP_OUTPUT_CORE,

    NGX_HTTP_INFERENCE_KEEP_JOURNAL,
    NGX_HTTP_INFERENCE_KEEP_CRASH_PAGE,

    /* what nginx was started with; that and inference_env */
    NGX_HTTP_INFERENCE_KEEP_START_ENV,
    NGX_HTTP_INFERENCE_KEEP_CORE_ENV,

    NGX_HTTP_INFERENCE_KEPT
} ngx_http_inference_kept_e;


/* the core finds its descriptors at these numbers */

#define NGX_HTTP_INFERENCE_CORE_FD_REGISTRATION  3
#define NGX_HTTP_INFERENCE_CORE_FD_LEASE         4
#define NGX_HTTP_INFERENCE_CORE_FD_CONFIG        5
#define NGX_HTTP_INFERENCE_CORE_FD_RECORDS       6
#define NGX_HTTP_INFERENCE_CORE_FD_JOURNAL       7
#define NGX_HTTP_INFERENCE_CORE_FD_CRASH_PAGE    8
#define NGX_HTTP_INFERENCE_CORE_FD_CONFIGURE     9
#define NGX_HTTP_INFERENCE_CORE_FDS              10


/* names in /dev/shm that a core of this pid and its children may leave */

#define NGX_HTTP_INFERENCE_SHM_PREFIX            "inference-core.%P."


/* ---- keep ---------------------------------------------------------------- */

/* Makes or inherits what is kept, or shares what there is; until the cycle's
   pool goes. */
ngx_int_t ngx_http_inference_keep(ngx_cycle_t *cycle);

/* For a cycle without a core: lets go of what an old binary passed on. */
void ngx_http_inference_keep_disown(ngx_cycle_t *cycle);

/* Names the descriptors in the environment of the next binary. */
ngx_int_t ngx_http_inference_keep_pass_on(ngx_cycle_t *cycle);

/* A child of the master: closes what is not in mask (bits of kept_e), and
   nothing of the rest gets into programs it starts. */
void ngx_http_inference_keep_only(ngx_uint_t mask);

/* -1: there is none. */
ngx_fd_t ngx_http_inference_kept(ngx_http_inference_kept_e what);

/* The core that was last started or adopted; 0: cleaned up. */
void ngx_http_inference_keep_core(ngx_pid_t pid, ngx_log_t *log);
ngx_pid_t ngx_http_inference_kept_core(ngx_log_t *log);

/* Whether this core ends because it was told to, as it says itself. */
ngx_uint_t ngx_http_inference_kept_core_leaves(ngx_pid_t pid, ngx_log_t *log);

/* The file that the kept core was started from, and the version that it says
   (INF_PROGRAM_SIZE bytes); NGX_DECLINED: there is no core, or it is older than
   this. */
ngx_int_t ngx_http_inference_kept_program(int *pid, unsigned long long *device,
    unsigned long long *inode, char *build, ngx_log_t *log);

/* A memory file with these bytes, which nobody can change, takes the place of
   what there was. */
ngx_int_t ngx_http_inference_keep_bytes(ngx_http_inference_kept_e what,
    const char *name, const void *data, size_t len, ngx_log_t *log);

/* All bytes of a kept memory file, malloc'ed; NULL if there are none. */
u_char *ngx_http_inference_kept_bytes(ngx_http_inference_kept_e what,
    size_t *len, ngx_log_t *log);


/* ---- core_config --------------------------------------------------------- */

/* NGX_OK: a new generation is kept.  NGX_DECLINED: nothing has changed. */
ngx_int_t ngx_http_inference_core_config_update(
    ngx_http_inference_main_conf_t *imcf, ngx_log_t *log);

/* The same serialised, with the models that directives name, for the check;
   NULL: failed. */
u_char *ngx_http_inference_core_config_bytes(
    ngx_http_inference_main_conf_t *imcf, size_t *len, ngx_pool_t *pool);

/* Of the CoreConfig that is kept. */
uint64_t ngx_http_inference_core_config_generation(ngx_log_t *log);


/* ---- check --------------------------------------------------------------- */

#define NGX_HTTP_INFERENCE_CHECK_OFF     0
#define NGX_HTTP_INFERENCE_CHECK_WARN    1
#define NGX_HTTP_INFERENCE_CHECK_STRICT  2

/* For nginx -t; NGX_ERROR fails the test. */
ngx_int_t ngx_http_inference_check(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);


/* ---- environment --------------------------------------------------------- */

#define NGX_HTTP_INFERENCE_VAR  "NGX_INFERENCE"

/* Keeps this process's environment as START_ENV, where none is kept yet. */
ngx_int_t ngx_http_inference_environment_capture(ngx_log_t *log);

/* NGX_OK: another CORE_ENV is kept.  NGX_DECLINED: nothing has changed. */
ngx_int_t ngx_http_inference_environment_update(
    ngx_http_inference_main_conf_t *imcf, ngx_log_t *log);

/* For execve(); *block holds the strings.  Both are malloc'ed. */
char **ngx_http_inference_environment(u_char **block, ngx_log_t *log);

/* Workers don't need what may be secret. */
void ngx_http_inference_environment_wipe(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);


/* ---- spawn --------------------------------------------------------------- */

/* The pid, or NGX_INVALID_PID. */
ngx_pid_t ngx_http_inference_spawn(ngx_str_t *program, ngx_log_t *log);

/* For a child before execve(): closes every descriptor from first on. */
ngx_int_t ngx_http_inference_close_from(int first);

/*
 * After a death: ends what the core has started, removes what it has left.
 * pidfd -1: nobody saw it die; if the number is another process's by now,
 * nothing is done.
 */
void ngx_http_inference_clean_up(ngx_pid_t pid, int pidfd, ngx_log_t *log);


/* pidfd: of the process that pid was; -1: none is known. */
void ngx_http_inference_signal(ngx_pid_t pid, int pidfd, int signo,
    ngx_log_t *log);


/* ---- heartbeat ----------------------------------------------------------- */

/* Watches the core; bound 0: does not.  Until stop, or the next start. */
void ngx_http_inference_heartbeat_start(ngx_pid_t pid, int pidfd,
    ngx_msec_t bound, ngx_log_t *log);
void ngx_http_inference_heartbeat_stop(void);


/* ---- core_log ------------------------------------------------------------ */

/* In the supervisor: reads the core's records and output from now on. */
ngx_int_t ngx_http_inference_core_log_start(ngx_cycle_t *cycle);

/* Writes out what has come so far, an unfinished line too. */
void ngx_http_inference_core_log_flush(void);

/* The last line of the core's output, for the message about its death. */
ngx_str_t *ngx_http_inference_core_log_last_words(void);


#endif /* NGX_HTTP_INFERENCE_SUPERVISOR_H */
