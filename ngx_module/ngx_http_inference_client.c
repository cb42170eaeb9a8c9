/*
 * This worker's channel to the core: created when the worker starts, replaced
 * when the core has exited, with the submissions that wait for it.
 *
 * A channel of an exited core stays mapped while memory of it is in use: by a
 * response being sent, or by a body that may be handed on.
 */

#include "ngx_module/ngx_http_inference_client.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include <sys/wait.h>

#include "core/base/clock.h"
#include "core/base/points.h"


#define NGX_HTTP_INFERENCE_PATIENCE    10000    /* ms without a channel     */
#define NGX_HTTP_INFERENCE_GRACE       1000     /* ms, of a new worker      */
#define NGX_HTTP_INFERENCE_MIN_PAUSE   10
#define NGX_HTTP_INFERENCE_MAX_PAUSE   1000
#define NGX_HTTP_INFERENCE_SWEEP       1000
#define NGX_HTTP_INFERENCE_FLUSH       10
#define NGX_HTTP_INFERENCE_WHY         256      /* bytes, with a NUL         */


typedef struct {
    ngx_log_t                           *log;
    ngx_http_inference_main_conf_t      *imcf;      /* NULL: no core         */

    ngx_http_inference_channel_t        *channel;
    ngx_queue_t                          dead;
    uint64_t                             epoch;

    ngx_queue_t                          waiting;   /* submissions           */
    ngx_msec_t                           down;      /* since this time       */
    ngx_msec_t                           pause;     /* before the next try   */
    ngx_uint_t                           failures;  /* consecutive           */
    unsigned                             met:1;     /* there was a channel   */
    u_char                               why[NGX_HTTP_INFERENCE_WHY];
                                                    /* why the core rejects us
                                                       or is unreachable; "":
                                                       not known */

    u_char                               crash[INF_CRASH_MAX + 2];
    ngx_str_t                            last_crash;

    ngx_event_t                          retry;
    ngx_event_t                          patience;
    ngx_event_t                          sweep;
    ngx_connection_t                     dummy;
} ngx_http_inference_client_t;


static ngx_http_inference_channel_t *ngx_http_inference_client_channel(void);
static ngx_http_inference_channel_t *ngx_http_inference_client_find(
    uint64_t epoch);
static void ngx_http_inference_client_event(ngx_event_t *ev,
    ngx_event_handler_pt handler);
static void ngx_http_inference_client_retry(ngx_event_t *ev);
static void ngx_http_inference_client_later(ngx_http_inference_channel_t *ch,
    const char *what);
static void ngx_http_inference_client_rejected(const char *why);
static ngx_uint_t ngx_http_inference_client_level(void);
static void ngx_http_inference_client_again(ngx_http_inference_channel_t *ch);
static void ngx_http_inference_client_up(ngx_http_inference_channel_t *ch);
static void ngx_http_inference_client_core_exited(
    ngx_http_inference_channel_t *ch, const char *why);
static void ngx_http_inference_client_crash(ngx_http_inference_channel_t *ch);
static void ngx_http_inference_wake_waiting(ngx_int_t rc);
static void ngx_http_inference_client_patience(ngx_event_t *ev);
static void ngx_http_inference_client_sweep(ngx_event_t *ev);


static ngx_http_inference_client_t  ngx_http_inference_client;

static const ngx_http_inference_channel_handlers_t
    ngx_http_inference_client_handlers =
{
    ngx_http_inference_client_up,
    ngx_http_inference_client_again,
    ngx_http_inference_client_rejected,
    ngx_http_inference_client_later,
    ngx_http_inference_client_core_exited,
    ngx_http_inference_client_level,
    ngx_http_inference_in_flight_completion
};


ngx_int_t
ngx_http_inference_client_init(ngx_cycle_t *cycle)
{
    ngx_http_inference_client_t     *client;
    ngx_http_inference_main_conf_t  *imcf;

    client = &ngx_http_inference_client;

    client->log = cycle->log;
    client->dummy.fd = (ngx_socket_t) -1;
    ngx_queue_init(&client->dead);
    ngx_queue_init(&client->waiting);
    ngx_http_inference_leaving_init();

    ngx_http_inference_client_event(&client->retry,
                                    ngx_http_inference_client_retry);
    ngx_http_inference_client_event(&client->patience,
                                    ngx_http_inference_client_patience);
    ngx_http_inference_client_event(&client->sweep,
                                    ngx_http_inference_client_sweep);

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    imcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_inference_module);

    if (imcf == NULL || !imcf->used
        || (imcf->external.len == 0
            && ngx_http_inference_registration() == (ngx_socket_t) -1))
    {
        return NGX_OK;
    }

    /* a crashed worker may have used this slot */
    ngx_http_inference_set_gauges(0, 0, 0);

    client->imcf = imcf;
    client->down = ngx_current_msec;
    client->pause = NGX_HTTP_INFERENCE_MIN_PAUSE;

    ngx_http_inference_client_retry(&client->retry);

    return NGX_OK;
}


void
ngx_http_inference_client_exit(ngx_cycle_t *cycle)
{
    ngx_queue_t                   *q;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return;
    }

    client->imcf = NULL;
    ngx_http_inference_set_gauges(0, 0, 0);

    if (client->channel != NULL) {
        ch = client->channel;
        client->channel = NULL;
        ngx_http_inference_channel_unlink(ch);
        ngx_http_inference_channel_free(ch);
    }

    while (!ngx_queue_empty(&client->dead)) {
        q = ngx_queue_head(&client->dead);
        ngx_queue_remove(q);
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);
        ngx_http_inference_channel_free(ch);
    }
}


ngx_int_t
ngx_http_inference_wait_ready(ngx_http_inference_submission_t *submission)
{
    ngx_msec_t                    waited;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_channel(NULL) != NULL) {
        return NGX_OK;
    }

    /* the exit of a broken channel's core is counted later */

    waited = client->channel != NULL
             && client->channel->state == ngx_http_inference_channel_broken
             ? 0 : ngx_current_msec - client->down;

    if (waited >= NGX_HTTP_INFERENCE_PATIENCE) {
        return NGX_ERROR;
    }

    if (submission->state != NGX_HTTP_INFERENCE_SUBMISSION_QUEUED) {
        ngx_queue_insert_tail(&client->waiting, &submission->queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_QUEUED;
    }

    if (!client->patience.timer_set) {
        ngx_add_timer(&client->patience, NGX_HTTP_INFERENCE_PATIENCE - waited);
    }

    return NGX_AGAIN;
}


ngx_msec_t
ngx_http_inference_grace(void)
{
    ngx_msec_t                    waited;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL || client->met) {
        return 0;
    }

    waited = ngx_current_msec - client->down;

    return waited < NGX_HTTP_INFERENCE_GRACE
           ? NGX_HTTP_INFERENCE_GRACE - waited : 0;
}


ngx_str_t *
ngx_http_inference_why_no_channel(void)
{
    int                                  status;
    u_char                              *p;
    ngx_http_inference_counters_t       *counters;

    static u_char     buf[NGX_HTTP_INFERENCE_WHY + 2];
    static ngx_str_t  text = { 0, buf };

    p = buf;
    counters = ngx_http_inference_counters();

    if (ngx_http_inference_client.why[0] != '\0') {
        p = ngx_sprintf(p, ": %s", ngx_http_inference_client.why);

    } else if (counters->core_failed > 0) {
        status = (int) (counters->core_failed - 1);

        if (WIFSIGNALED(status)) {
            p = ngx_sprintf(p, ": it exited on signal %d", WTERMSIG(status));

        } else if (WEXITSTATUS(status) == NGX_HTTP_INFERENCE_NOT_RUN) {
            p = ngx_sprintf(p, ": its program cannot be run");

        } else {
            p = ngx_sprintf(p, ": it exited with code %d",
                            WEXITSTATUS(status));
        }
    }

    text.len = (size_t) (p - buf);

    return &text;
}


ngx_str_t *
ngx_http_inference_last_crash(void)
{
    return &ngx_http_inference_client.last_crash;
}


inf_client_t *
ngx_http_inference_channel(uint64_t *epoch)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client_channel();

    if (ch == NULL) {
        return NULL;
    }

    if (epoch != NULL) {
        *epoch = ch->epoch;
    }

    return ch->client;
}


inf_client_t *
ngx_http_inference_last_channel(uint64_t *epoch)
{
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;
    ch = client->channel;

    if (ch == NULL
        || (ch->state != ngx_http_inference_channel_up
            && ch->state != ngx_http_inference_channel_broken))
    {
        if (client->imcf == NULL || ngx_queue_empty(&client->dead)) {
            return NULL;
        }

        ch = ngx_queue_data(ngx_queue_last(&client->dead),
                            ngx_http_inference_channel_t, queue);
    }

    *epoch = ch->epoch;

    return ch->client;
}


ngx_int_t
ngx_http_inference_submit(ngx_http_inference_submission_t *submission,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count)
{
    ngx_int_t                      rc;
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client_channel();

    if (ch == NULL || ch->epoch != epoch) {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_in_flight_submit(ch, submission, s, regions, count);

    if (rc == NGX_OK) {
        ngx_http_inference_client_plan_sweep();
    }

    return rc;
}


void
ngx_http_inference_abandon(ngx_http_inference_submission_t *submission)
{
    ngx_http_inference_channel_t  *ch;

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_QUEUED) {
        ngx_queue_remove(&submission->queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
    }

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE
        && submission->nregions == 0)
    {
        return;
    }

    ch = ngx_http_inference_client_find(submission->epoch);

    if (ch == NULL) {
        /* the worker exits, its channel is freed */
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
        submission->nregions = 0;
        return;
    }

    ngx_http_inference_in_flight_abandon(ch, submission);
    ngx_http_inference_client_plan_sweep();
}


void
ngx_http_inference_cancel(ngx_http_inference_submission_t *submission)
{
    ngx_http_inference_channel_t  *ch;

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_QUEUED) {
        ngx_queue_remove(&submission->queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
    }

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
        return;
    }

    ch = ngx_http_inference_client_find(submission->epoch);

    if (ch) {
        ngx_http_inference_in_flight_cancel(ch, submission);
    }
}


void
ngx_http_inference_forget(ngx_http_inference_submission_t *submission)
{
    ngx_http_inference_channel_t  *ch;

    if (submission->nregions == 0) {
        submission->keep = 0;
        return;
    }

    ch = ngx_http_inference_client_find(submission->epoch);

    if (ch) {
        ngx_http_inference_in_flight_forget(ch, submission);
    }
}


void
ngx_http_inference_release(uint64_t epoch, uint64_t offset, ngx_uint_t notify)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client_find(epoch);

    if (ch == NULL) {
        return;
    }

    ch->held--;

    if (ch->state == ngx_http_inference_channel_up) {
        inf_client_release(ch->client, offset);

        if (notify) {
            inf_client_flush(ch->client);
        }

        ngx_http_inference_client_plan_sweep();
    }
}


const void *
ngx_http_inference_response(uint64_t epoch, uint64_t offset, uint64_t len)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client_find(epoch);

    return ch != NULL ? inf_client_response(ch->client, offset, len) : NULL;
}


static ngx_http_inference_channel_t *
ngx_http_inference_client_channel(void)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client.channel;

    return ch != NULL && ch->state == ngx_http_inference_channel_up ? ch
                                                                    : NULL;
}


static void
ngx_http_inference_client_event(ngx_event_t *ev, ngx_event_handler_pt handler)
{
    ngx_memzero(ev, sizeof(ngx_event_t));

    ev->handler = handler;
    ev->data = &ngx_http_inference_client.dummy;
    ev->log = ngx_http_inference_client.log;
    ev->cancelable = 1;
}


/* Retries the connection to the core after a pause. */

static void
ngx_http_inference_client_retry(ngx_event_t *ev)
{
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (ngx_exiting) {
        /* no channel exists whose handler would report it */
        ngx_http_inference_leaving();
    }

    if (client->channel == NULL) {
        client->channel = ngx_http_inference_channel_new(client->imcf,
                                  ++client->epoch,
                                  &ngx_http_inference_client_handlers,
                                  client->log);

        if (client->channel == NULL) {
            ngx_http_inference_client_later(NULL, NULL);
            return;
        }
    }

    if (client->channel->state == ngx_http_inference_channel_greeting) {
        ngx_http_inference_channel_hello(client->channel);
    }
}


static void
ngx_http_inference_client_later(ngx_http_inference_channel_t *ch,
    const char *what)
{
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (what != NULL) {
        ngx_log_error(NGX_LOG_INFO, client->log, 0, "inference: %s", what);
    }

    if (ch != NULL) {
        client->channel = NULL;
        ngx_http_inference_channel_unlink(ch);
        ngx_http_inference_channel_free(ch);
    }

    ngx_add_timer(&client->retry, client->pause);

    client->pause = ngx_min(client->pause * 2, NGX_HTTP_INFERENCE_MAX_PAUSE);
}


static void
ngx_http_inference_client_rejected(const char *why)
{
    (void) ngx_cpystrn(ngx_http_inference_client.why, (u_char *) why,
                       NGX_HTTP_INFERENCE_WHY);
}


static ngx_uint_t
ngx_http_inference_client_level(void)
{
    return ngx_http_inference_client.failures++ == 0 ? NGX_LOG_ERR
                                                     : NGX_LOG_INFO;
}


static void
ngx_http_inference_client_again(ngx_http_inference_channel_t *ch)
{
    ngx_add_timer(&ngx_http_inference_client.retry,
                  NGX_HTTP_INFERENCE_MIN_PAUSE);
}


static void
ngx_http_inference_client_up(ngx_http_inference_channel_t *ch)
{
    ngx_http_inference_client_t  *client;

    INF_POINT(WELCOME_TAKEN);

    client = &ngx_http_inference_client;

    client->pause = NGX_HTTP_INFERENCE_MIN_PAUSE;
    client->failures = 0;
    client->met = 1;
    client->why[0] = '\0';

    ngx_http_inference_counters()->core_failed = 0;

    if (client->patience.timer_set) {
        ngx_del_timer(&client->patience);
    }

    ngx_http_inference_wake_waiting(NGX_OK);
}


static void
ngx_http_inference_client_core_exited(ngx_http_inference_channel_t *ch,
    const char *why)
{
    uint32_t                          pid;
    ngx_uint_t                        n;
    ngx_queue_t                       lost, *q;
    ngx_http_inference_client_t      *client;
    ngx_http_inference_submission_t  *submission;

    client = &ngx_http_inference_client;
    pid = inf_client_core_pid(ch->client);

    ngx_http_inference_channel_drain_last(ch);
    ngx_http_inference_channel_unlink(ch);

    ch->state = ngx_http_inference_channel_dead;
    client->channel = NULL;
    client->down = ngx_current_msec;
    ngx_queue_insert_tail(&client->dead, &ch->queue);

    ngx_queue_init(&lost);
    n = ngx_http_inference_in_flight_detach(ch, &lost);

    ngx_http_inference_client_crash(ch);

    ngx_log_error(NGX_LOG_WARN, client->log, 0,
                  "inference: core %uD is gone (%s) with %ui requests in "
                  "flight%V", pid, why, n, &client->last_crash);

    ngx_http_inference_client_plan_sweep();
    ngx_http_inference_client_retry(&client->retry);

    /* an answer may abandon others of the list, or wait for the next channel */

    while (!ngx_queue_empty(&lost)) {
        q = ngx_queue_head(&lost);
        ngx_queue_remove(q);

        submission = ngx_queue_data(q, ngx_http_inference_submission_t, queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
        submission->answer(submission, NULL);
    }
}


static void
ngx_http_inference_client_crash(ngx_http_inference_channel_t *ch)
{
    char                          text[INF_CRASH_MAX];
    u_char                       *p;
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    inf_client_crash(ch->client, text);

    p = client->crash;

    if (text[0] != '\0') {
        p = ngx_sprintf(p, ": %s", text);
    }

    client->last_crash.data = client->crash;
    client->last_crash.len = p - client->crash;
}


static ngx_http_inference_channel_t *
ngx_http_inference_client_find(uint64_t epoch)
{
    ngx_queue_t                   *q;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;

    if (client->imcf == NULL) {
        return NULL;
    }

    if (client->channel != NULL && client->channel->epoch == epoch) {
        return client->channel;
    }

    for (q = ngx_queue_head(&client->dead);
         q != ngx_queue_sentinel(&client->dead);
         q = ngx_queue_next(q))
    {
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);

        if (ch->epoch == epoch) {
            return ch;
        }
    }

    return NULL;
}


static void
ngx_http_inference_wake_waiting(ngx_int_t rc)
{
    ngx_queue_t                       woken, *q;
    ngx_http_inference_client_t      *client;
    ngx_http_inference_submission_t  *submission;

    client = &ngx_http_inference_client;

    if (ngx_queue_empty(&client->waiting)) {
        return;
    }

    /* a submission that waits again is not called in this round */

    ngx_queue_init(&woken);
    ngx_queue_add(&woken, &client->waiting);
    ngx_queue_init(&client->waiting);

    while (!ngx_queue_empty(&woken)) {
        q = ngx_queue_head(&woken);
        ngx_queue_remove(q);

        submission = ngx_queue_data(q, ngx_http_inference_submission_t, queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
        submission->ready(submission, rc);
    }
}


static void
ngx_http_inference_client_patience(ngx_event_t *ev)
{
    ngx_http_inference_client_t  *client;

    client = &ngx_http_inference_client;

    if (ngx_http_inference_channel(NULL) != NULL) {
        return;
    }

    if (!ngx_queue_empty(&client->waiting)) {
        ngx_log_error(NGX_LOG_ERR, client->log, 0,
                      "inference: the core is out of reach for %d s, requests "
                      "are rejected until it is back",
                      NGX_HTTP_INFERENCE_PATIENCE / 1000);
    }

    ngx_http_inference_wake_waiting(NGX_ERROR);
}


/* Frees memory and old channels, and submits postponed entries. */

static void
ngx_http_inference_client_sweep(ngx_event_t *ev)
{
    ngx_uint_t                     again;
    ngx_queue_t                   *q, *next;
    inf_client_t                  *c;
    const inf_regions_stats_t     *arena;
    ngx_http_inference_client_t   *client;
    ngx_http_inference_channel_t  *ch;

    client = &ngx_http_inference_client;
    c = ngx_http_inference_channel(NULL);

    for (q = ngx_queue_head(&client->dead);
         q != ngx_queue_sentinel(&client->dead);
         q = next)
    {
        next = ngx_queue_next(q);
        ch = ngx_queue_data(q, ngx_http_inference_channel_t, queue);

        if (c == NULL && next == ngx_queue_sentinel(&client->dead)) {
            /* it holds received bytes until the next channel is up */
            break;
        }

        if (ngx_http_inference_channel_idle(ch)) {
            ngx_queue_remove(q);
            ngx_http_inference_channel_free(ch);
        }
    }

    again = !ngx_queue_empty(&client->dead);

    if (c == NULL) {
        ngx_http_inference_set_gauges(0, 0, 0);

    } else {
        inf_client_flush(c);
        (void) inf_client_trim(c, inf_clock_ns());

        arena = inf_client_arena_stats(c);
        ngx_http_inference_set_gauges(arena->in_use, arena->reserved,
                                      inf_client_slots_taken(c));

        again |= arena->idle > 0
                 || arena->regions > 0
                 || inf_client_pending(c) > 0
                 || inf_client_slots_taken(c) > 0;
    }

    if (again) {
        ngx_http_inference_client_plan_sweep();
    }
}


void
ngx_http_inference_client_plan_sweep(void)
{
    ngx_msec_t     delay;
    inf_client_t  *c;

    c = ngx_http_inference_channel(NULL);

    delay = c != NULL && inf_client_pending(c) > 0 ? NGX_HTTP_INFERENCE_FLUSH
                                                   : NGX_HTTP_INFERENCE_SWEEP;

    if (ngx_http_inference_client.sweep.timer_set) {

        if (delay == NGX_HTTP_INFERENCE_SWEEP) {
            return;
        }

        ngx_del_timer(&ngx_http_inference_client.sweep);
    }

    ngx_add_timer(&ngx_http_inference_client.sweep, delay);
}
