/*
 * Moves messages of the core to nginx's error_log: records with a level from
 * its log, and lines from its stdout and stderr, to which backends and their
 * runtimes write.  Messages beyond a limit per second are counted and dropped.
 */

#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core/base/log.h"

#include <poll.h>


#define NGX_HTTP_INFERENCE_LOG_LINE      2000
#define NGX_HTTP_INFERENCE_LOG_BATCH     256
#define NGX_HTTP_INFERENCE_LOG_PER_SEC   5000
#define NGX_HTTP_INFERENCE_LOG_ROUNDS    16         /* after the core's end  */


typedef struct {
    ngx_log_t         *log;
    ngx_connection_t  *records;
    ngx_connection_t  *output;

    size_t             len;                 /* of the unfinished line        */
    ngx_str_t          last_words;

    time_t             second;
    ngx_uint_t         written;             /* in this second                */
    ngx_uint_t         dropped;             /* since the last summary        */
    ngx_event_t        summary;
    ngx_connection_t   dummy;

    unsigned           no_timers:1;         /* in the master                 */

    u_char             line[NGX_HTTP_INFERENCE_LOG_LINE];
    u_char             last[NGX_HTTP_INFERENCE_LOG_LINE];
} ngx_http_inference_core_log_t;


static ngx_connection_t *ngx_http_inference_core_log_watch(ngx_fd_t fd,
    ngx_event_handler_pt handler, ngx_log_t *log);
static ngx_uint_t ngx_http_inference_core_log_wait(struct pollfd *fds,
    ngx_msec_t end);
static void ngx_http_inference_core_log_rest(void);
static void ngx_http_inference_core_log_records(ngx_event_t *ev);
static ngx_int_t ngx_http_inference_core_log_read_records(ngx_fd_t fd);
static ngx_uint_t ngx_http_inference_core_log_level(u_char level);
static void ngx_http_inference_core_log_output(ngx_event_t *ev);
static ngx_int_t ngx_http_inference_core_log_read_output(ngx_fd_t fd);
static ngx_int_t ngx_http_inference_core_log_read(ngx_fd_t fd);
static void ngx_http_inference_core_log_line(u_char *data, size_t len);
static void ngx_http_inference_core_log_write(ngx_uint_t level, u_char *data,
    size_t len);
static void ngx_http_inference_core_log_summary(ngx_event_t *ev);


/* used in the supervisor, and in the master when it ends */
static ngx_http_inference_core_log_t  ngx_http_inference_sink;


ngx_int_t
ngx_http_inference_core_log_start(ngx_cycle_t *cycle)
{
    ngx_fd_t                        fd;
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    sink->log = cycle->log;
    sink->last_words.data = sink->last;

    sink->dummy.fd = (ngx_socket_t) -1;
    sink->summary.handler = ngx_http_inference_core_log_summary;
    sink->summary.data = &sink->dummy;
    sink->summary.log = cycle->log;
    sink->summary.cancelable = 1;

    fd = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_RECORDS);
    sink->records = ngx_http_inference_core_log_watch(fd,
                        ngx_http_inference_core_log_records, cycle->log);

    fd = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_OUTPUT);
    sink->output = ngx_http_inference_core_log_watch(fd,
                        ngx_http_inference_core_log_output, cycle->log);

    if (sink->records == NULL || sink->output == NULL) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_inference_core_log_flush(void)
{
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    if (sink->records == NULL || sink->output == NULL) {
        return;
    }

    ngx_http_inference_core_log_records(sink->records->read);
    ngx_http_inference_core_log_output(sink->output->read);
    ngx_http_inference_core_log_rest();
}


/*
 * The master has neither events nor timers, and blocks its signals, which come
 * in ppoll() alone.  A process that the core has left behind may write on, so
 * the rounds after the core's end are counted.
 */

ngx_int_t
ngx_http_inference_core_log_last(int pidfd, ngx_msec_t limit, ngx_log_t *log)
{
    ngx_msec_t                      end;
    ngx_uint_t                      rounds;
    struct pollfd                   fds[3];
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    sink->log = log;
    sink->last_words.data = sink->last;
    sink->no_timers = 1;

    fds[0].fd = pidfd;
    fds[1].fd = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_RECORDS);
    fds[2].fd = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_OUTPUT);

    rounds = 0;

    ngx_time_update();

    end = (limit == 0) ? NGX_TIMER_INFINITE : ngx_current_msec + limit;

    while (ngx_http_inference_core_log_wait(fds, end) && !ngx_terminate) {

        if (fds[0].revents) {
            if (rounds++ == NGX_HTTP_INFERENCE_LOG_ROUNDS) {
                break;
            }

        } else if (end != NGX_TIMER_INFINITE && ngx_current_msec >= end) {
            return NGX_AGAIN;
        }
    }

    ngx_http_inference_core_log_rest();

    if (sink->dropped > 0) {
        ngx_http_inference_core_log_summary(&sink->summary);
    }

    return fds[0].revents ? NGX_OK : NGX_ABORT;
}


/* Waits for lines until end, and logs them; 0: the core has ended, and all is
   read. */

static ngx_uint_t
ngx_http_inference_core_log_wait(struct pollfd *fds, ngx_msec_t end)
{
    int               n;
    sigset_t          set;
    ngx_uint_t        i;
    ngx_msec_t        left;
    struct timespec   ts;

    for (i = 0; i < 3; i++) {
        fds[i].events = POLLIN;
        fds[i].revents = 0;
    }

    sigemptyset(&set);

    left = (end > ngx_current_msec) ? end - ngx_current_msec : 0;

    ts.tv_sec = (time_t) (left / 1000);
    ts.tv_nsec = (long) (left % 1000) * 1000000;

    n = ppoll(fds, 3, (end == NGX_TIMER_INFINITE) ? NULL : &ts, &set);

    ngx_time_update();

    if (n == -1) {
        return ngx_errno == NGX_EINTR;
    }

    /* a socket without a writer is readable for ever */

    if (fds[1].revents
        && ngx_http_inference_core_log_read_records(fds[1].fd) == NGX_DONE)
    {
        fds[1].fd = -1;
    }

    if (fds[2].revents
        && ngx_http_inference_core_log_read_output(fds[2].fd) == NGX_DONE)
    {
        fds[2].fd = -1;
    }

    return !fds[0].revents || n > 1;
}


/* Logs the unfinished line. */

static void
ngx_http_inference_core_log_rest(void)
{
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    if (sink->len > 0) {
        ngx_http_inference_core_log_line(sink->line, sink->len);
        sink->len = 0;
    }
}


ngx_str_t *
ngx_http_inference_core_log_last_words(void)
{
    return &ngx_http_inference_sink.last_words;
}


static ngx_connection_t *
ngx_http_inference_core_log_watch(ngx_fd_t fd, ngx_event_handler_pt handler,
    ngx_log_t *log)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        return NULL;
    }

    c->read->handler = handler;
    c->read->log = log;
    c->read->channel = 1;
    c->write->channel = 1;

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_free_connection(c);
        return NULL;
    }

    return c;
}


static void
ngx_http_inference_core_log_records(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    (void) ngx_http_inference_core_log_read_records(c->fd);
}


/* Logs records; a datagram is one record of a level and a text.  NGX_DONE: no
   more can come. */

static ngx_int_t
ngx_http_inference_core_log_read_records(ngx_fd_t fd)
{
    u_char      buf[NGX_HTTP_INFERENCE_LOG_LINE + 1];
    ssize_t     n;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_INFERENCE_LOG_BATCH; i++) {
        n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

        if (n <= 0) {
            return (n == -1 && ngx_socket_errno == NGX_EAGAIN) ? NGX_DECLINED
                                                               : NGX_DONE;
        }

        ngx_http_inference_core_log_write(
            ngx_http_inference_core_log_level(buf[0]), buf + 1,
            (size_t) n - 1);
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_inference_core_log_level(u_char level)
{
    switch (level) {

    case 'E':
        return NGX_LOG_ERR;

    case 'W':
        return NGX_LOG_WARN;

    case 'N':
        return NGX_LOG_NOTICE;

    default:
        return NGX_LOG_INFO;
    }
}


static void
ngx_http_inference_core_log_output(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    (void) ngx_http_inference_core_log_read_output(c->fd);
}


/* Logs lines.  NGX_DONE: no more can come. */

static ngx_int_t
ngx_http_inference_core_log_read_output(ngx_fd_t fd)
{
    ngx_int_t   rc;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_INFERENCE_LOG_BATCH; i++) {
        rc = ngx_http_inference_core_log_read(fd);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return NGX_OK;
}


/* Reads into the room behind the unfinished line and logs complete lines. */

static ngx_int_t
ngx_http_inference_core_log_read(ngx_fd_t fd)
{
    u_char                         *p, *next, *last;
    size_t                          len;
    ssize_t                         n;
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    len = NGX_HTTP_INFERENCE_LOG_LINE - sink->len;
    n = recv(fd, sink->line + sink->len, len, MSG_DONTWAIT);

    if (n <= 0) {
        return (n == -1 && ngx_socket_errno == NGX_EAGAIN) ? NGX_DECLINED
                                                           : NGX_DONE;
    }

    sink->len += (size_t) n;
    next = sink->line;
    last = sink->line + sink->len;

    for ( ;; ) {
        p = ngx_strlchr(next, last, LF);
        if (p == NULL) {
            break;
        }

        len = (size_t) (p - next);
        ngx_http_inference_core_log_line(next, len);

        sink->len -= len + 1;
        next = p + 1;
    }

    ngx_memmove(sink->line, next, sink->len);

    if (sink->len == NGX_HTTP_INFERENCE_LOG_LINE) {
        ngx_http_inference_core_log_line(sink->line, sink->len);
        sink->len = 0;
    }

    return NGX_OK;
}


static void
ngx_http_inference_core_log_line(u_char *data, size_t len)
{
    ngx_http_inference_core_log_t  *sink;

    if (len == 0) {
        return;
    }

    sink = &ngx_http_inference_sink;

    ngx_http_inference_core_log_write(NGX_LOG_NOTICE, data, len);

    ngx_memcpy(sink->last, data, len);
    sink->last_words.len = len;
}


static void
ngx_http_inference_core_log_write(ngx_uint_t level, u_char *data, size_t len)
{
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    inf_log_blank((char *) data, len);

    if (sink->second != ngx_time()) {
        sink->second = ngx_time();
        sink->written = 0;
    }

    if (sink->written == NGX_HTTP_INFERENCE_LOG_PER_SEC) {
        sink->dropped++;
        (void) ngx_atomic_fetch_add(
                   &ngx_http_inference_counters()->log_dropped, 1);

        if (!sink->summary.timer_set && !sink->no_timers) {
            ngx_add_timer(&sink->summary, 1000);
        }

        return;
    }

    sink->written++;

    if (len > 0) {
        ngx_log_error(level, sink->log, 0, "core: %*s", len, data);
    }
}


static void
ngx_http_inference_core_log_summary(ngx_event_t *ev)
{
    ngx_http_inference_core_log_t  *sink;

    sink = &ngx_http_inference_sink;

    ngx_log_error(NGX_LOG_WARN, sink->log, 0,
                  "inference: %ui lines of the core's log were dropped, more "
                  "than %d in a second", sink->dropped,
                  NGX_HTTP_INFERENCE_LOG_PER_SEC);

    sink->dropped = 0;
}
