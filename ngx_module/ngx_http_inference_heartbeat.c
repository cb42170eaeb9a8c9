/*
 * The heartbeat: ends a core that takes no message from its supervisor for too
 * long.
 *
 * At each tick the supervisor sends a question over the configuration socket,
 * and the thread with the core's intake role increments a count in the lease's
 * file.  Ticks, not a clock, measure the time: a suspended machine has no more
 * ticks than its core could answer.  A core without any beat so far is
 * starting, or is of a version that does not count; it is not judged.  The
 * first question waits in the socket, so a core that serves has answered it.
 * An exiting core limits its own time.
 */

#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core/include/build_id.h"
#include "core/include/channel.h"
#include "core/wire/sockets.h"


#define NGX_HTTP_INFERENCE_HEARTBEAT_TICKS  4       /* within the bound      */
#define NGX_HTTP_INFERENCE_HEARTBEAT_GRACE  5000    /* ms: SIGABRT to SIGKILL */


typedef struct {
    ngx_event_t       tick;
    ngx_connection_t  dummy;
    ngx_pid_t         pid;
    int               pidfd;
    ngx_msec_t        bound;        /* 0: no heartbeat                       */
    uint64_t          count;        /* of beats, at the last tick            */
    ngx_uint_t        missed;       /* ticks without a beat                  */
    unsigned          asked:1;
    unsigned          beats:1;      /* had a beat                            */
    unsigned          aborted:1;
} ngx_http_inference_heartbeat_t;


static void ngx_http_inference_heartbeat_tick(ngx_event_t *ev);
static ngx_uint_t ngx_http_inference_heartbeat_ends(
    ngx_http_inference_heartbeat_t *h, ngx_log_t *log);
static void ngx_http_inference_heartbeat_kill(ngx_pid_t pid, int pidfd,
    ngx_log_t *log);
static uint64_t ngx_http_inference_heartbeat_count(
    ngx_http_inference_heartbeat_t *h);
static void ngx_http_inference_heartbeat_ask(
    ngx_http_inference_heartbeat_t *h, ngx_log_t *log);


static ngx_http_inference_heartbeat_t  ngx_http_inference_heartbeat;


void
ngx_http_inference_heartbeat_start(ngx_pid_t pid, int pidfd, ngx_msec_t bound,
    ngx_log_t *log)
{
    ngx_http_inference_heartbeat_t  *h;

    h = &ngx_http_inference_heartbeat;

    ngx_http_inference_heartbeat_stop();

    h->pid = pid;
    h->pidfd = pidfd;
    h->bound = bound;
    h->count = ngx_http_inference_heartbeat_count(h);
    h->missed = 0;
    h->asked = 0;
    h->beats = (h->count != 0);
    h->aborted = 0;

    if (bound == 0) {
        return;
    }

    h->dummy.fd = (ngx_socket_t) -1;
    h->tick.handler = ngx_http_inference_heartbeat_tick;
    h->tick.data = &h->dummy;
    h->tick.log = log;
    h->tick.cancelable = (ngx_process != NGX_PROCESS_HELPER);

    ngx_http_inference_heartbeat_ask(h, log);

    ngx_add_timer(&h->tick, bound / NGX_HTTP_INFERENCE_HEARTBEAT_TICKS + 1);
}


void
ngx_http_inference_heartbeat_stop(void)
{
    if (ngx_http_inference_heartbeat.tick.timer_set) {
        ngx_del_timer(&ngx_http_inference_heartbeat.tick);
    }
}


ngx_int_t
ngx_http_inference_heartbeat_last(ngx_pid_t pid, int pidfd, ngx_msec_t bound,
    ngx_log_t *log)
{
    ngx_int_t                        rc;
    ngx_http_inference_heartbeat_t  *h;

    h = &ngx_http_inference_heartbeat;
    h->pid = pid;

    rc = ngx_http_inference_core_log_last(pidfd, bound, log);

    if (rc == NGX_AGAIN && !ngx_http_inference_heartbeat_ends(h, log)) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "inference: core %P has not begun to end for %M ms, it "
                      "is ended", pid, bound);

        ngx_http_inference_signal(pid, pidfd, SIGABRT, log);

        rc = ngx_http_inference_core_log_last(
                               pidfd, NGX_HTTP_INFERENCE_HEARTBEAT_GRACE, log);

        if (rc == NGX_AGAIN) {
            ngx_http_inference_heartbeat_kill(pid, pidfd, log);
        }
    }

    return (rc == NGX_AGAIN) ? ngx_http_inference_core_log_last(pidfd, 0, log)
                             : rc;
}


/* Whether the core has begun to end, or has not served so far. */

static ngx_uint_t
ngx_http_inference_heartbeat_ends(ngx_http_inference_heartbeat_t *h,
    ngx_log_t *log)
{
    return ngx_http_inference_kept_core_leaves(h->pid, log)
           || ngx_http_inference_heartbeat_count(h) == 0;
}


static void
ngx_http_inference_heartbeat_tick(ngx_event_t *ev)
{
    uint64_t                         count;
    ngx_http_inference_heartbeat_t  *h;

    h = &ngx_http_inference_heartbeat;

    if (h->aborted) {
        ngx_http_inference_heartbeat_kill(h->pid, h->pidfd, ev->log);
        return;
    }

    count = ngx_http_inference_heartbeat_count(h);

    if (count != h->count) {
        h->count = count;
        h->missed = 0;
        h->beats = 1;
        h->asked = 0;

    } else if (h->asked && h->beats
               && !ngx_http_inference_kept_core_leaves(h->pid, ev->log))
    {
        h->missed++;
    }

    if (h->missed > NGX_HTTP_INFERENCE_HEARTBEAT_TICKS) {
        ngx_log_error(NGX_LOG_ERR, ev->log, 0,
                      "inference: core %P has hung for %M ms, it is ended",
                      h->pid, h->bound);

        h->aborted = 1;
        (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->core_hangs,
                                    1);
        ngx_http_inference_signal(h->pid, h->pidfd, SIGABRT, ev->log);
        ngx_add_timer(ev, NGX_HTTP_INFERENCE_HEARTBEAT_GRACE);
        return;
    }

    if (!h->asked) {
        ngx_http_inference_heartbeat_ask(h, ev->log);
    }

    ngx_add_timer(ev, h->bound / NGX_HTTP_INFERENCE_HEARTBEAT_TICKS + 1);
}


/* Ends a core that hangs after it was aborted. */

static void
ngx_http_inference_heartbeat_kill(ngx_pid_t pid, int pidfd, ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "inference: core %P hangs on, it is killed", pid);

    ngx_http_inference_signal(pid, pidfd, SIGKILL, log);
}


/* The core's count of beats; 0: the lease is not of this core. */

static uint64_t
ngx_http_inference_heartbeat_count(ngx_http_inference_heartbeat_t *h)
{
    inf_beat_t  beat;

    if (pread(ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE), &beat,
              sizeof(inf_beat_t), INF_BEAT_OFFSET)
        != sizeof(inf_beat_t)
        || beat.pid != (uint64_t) h->pid)
    {
        return 0;
    }

    return beat.count;
}


/* Sends a question; a full socket already holds questions. */

static void
ngx_http_inference_heartbeat_ask(ngx_http_inference_heartbeat_t *h,
    ngx_log_t *log)
{
    inf_err_t            *err;
    inf_hello_t           hello;
    inf_socket_result_t   result;

    ngx_memzero(&hello, sizeof(inf_hello_t));

    hello.magic = INF_CHANNEL_MAGIC;
    hello.version = INF_CHANNEL_VERSION;
    hello.min_version = INF_CHANNEL_MIN_VERSION;
    hello.size = sizeof(inf_hello_t);
    hello.kind = INF_HELLO_BEAT;
    hello.pid = (uint32_t) ngx_pid;
    ngx_memcpy(hello.build, INF_BUILD, sizeof(INF_BUILD));

    err = inf_socket_send(
              ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_CONFIGURE),
              &hello, sizeof(inf_hello_t), NULL, 0, &result);

    if (err != NULL) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "inference: cannot ask core %P for its heartbeat: %s",
                      h->pid, inf_err_msg(err));
        inf_err_free(err);
        return;
    }

    h->asked = 1;
}
