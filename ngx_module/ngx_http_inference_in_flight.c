/*
 * In-flight requests: for each slot of a channel, the submission and the
 * completions still to come.
 */

#include "ngx_module/ngx_http_inference_client.h"
#include "ngx_module/ngx_http_inference_counters.h"

#include "core/base/points.h"


static ngx_http_inference_submission_state_e ngx_http_inference_in_flight_after(
    ngx_http_inference_in_flight_t *in_flight, uint32_t flags);
static void ngx_http_inference_in_flight_stop(
    ngx_http_inference_in_flight_t *in_flight);
static void ngx_http_inference_in_flight_begun(
    ngx_http_inference_in_flight_t *in_flight, ngx_uint_t begun);
static void ngx_http_inference_in_flight_lost(
    ngx_http_inference_in_flight_t *in_flight,
    ngx_http_inference_submission_t *submission);
static void ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n);


ngx_int_t
ngx_http_inference_in_flight_submit(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission, inf_submission_t *s,
    inf_region_t *const *regions, ngx_uint_t count)
{
    ngx_uint_t                       i;
    inf_slot_id_t                    name;
    inf_client_result_t              rc;
    ngx_http_inference_counters_t   *counters;
    ngx_http_inference_in_flight_t  *in_flight;

    counters = ngx_http_inference_counters();

    if (count > NGX_HTTP_INFERENCE_REGIONS) {
        return NGX_ERROR;
    }

    if (s->op == INF_SUBMIT_CALL
        ? !inf_client_take_call(ch->client, NULL, &name)
        : !inf_client_take(ch->client, NULL, &name))
    {
        (void) ngx_atomic_fetch_add(&counters->ring_full, 1);
        return NGX_BUSY;
    }

    in_flight = &ch->in_flight[name.slot];
    inf_client_set_userp(ch->client, name, in_flight);

    s->slot = name.slot;
    s->generation = name.generation;

    rc = inf_client_submit(ch->client, s);

    if (rc != INF_CLIENT_OK) {
        inf_client_give(ch->client, name);

        if (rc == INF_CLIENT_BROKEN) {
            ngx_http_inference_channel_break(ch);
            return NGX_ERROR;
        }

        (void) ngx_atomic_fetch_add(&counters->ring_full, 1);
        return NGX_BUSY;
    }

    INF_POINT(ENTRY_WRITTEN);

    ngx_memzero(in_flight, sizeof(ngx_http_inference_in_flight_t));
    in_flight->channel = ch;
    in_flight->submission = submission;
    in_flight->name = name;
    in_flight->state = NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED;

    /* one wake of the core for all submissions of this turn */

    ngx_post_event(&ch->drain, &ngx_posted_events);

    for (i = 0; i < count; i++) {
        submission->regions[i] = regions[i];
    }

    submission->nregions = count;
    submission->slot = name.slot;
    submission->generation = name.generation;
    submission->epoch = ch->epoch;
    submission->state = NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED;

    if (s->op == INF_SUBMIT_INFER) {
        (void) ngx_atomic_fetch_add(&counters->requests, 1);
    }

    return NGX_OK;
}


void
ngx_http_inference_in_flight_abandon(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission)
{
    ngx_uint_t                       i;
    ngx_http_inference_in_flight_t  *in_flight;

    ngx_http_inference_in_flight_forget(ch, submission);

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
        return;
    }

    in_flight = &ch->in_flight[submission->slot];
    ngx_http_inference_in_flight_begun(in_flight, 0);
    in_flight->submission = NULL;

    for (i = 0; i < submission->nregions; i++) {
        in_flight->regions[i] = submission->regions[i];
    }

    in_flight->nregions = submission->nregions;

    submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
    submission->nregions = 0;

    ngx_http_inference_in_flight_stop(in_flight);
}


void
ngx_http_inference_in_flight_cancel(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission)
{
    ngx_http_inference_in_flight_stop(&ch->in_flight[submission->slot]);
}


static void
ngx_http_inference_in_flight_stop(ngx_http_inference_in_flight_t *in_flight)
{
    ngx_http_inference_channel_t  *ch;

    if (in_flight->cancelled
        || in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_FINAL)
    {
        return;
    }

    in_flight->cancelled = 1;
    ch = in_flight->channel;

    inf_client_cancel(ch->client, in_flight->name);
    ngx_post_event(&ch->drain, &ngx_posted_events);
    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->cancelled, 1);
}


void
ngx_http_inference_in_flight_forget(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission)
{
    submission->keep = 0;

    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE
        || submission->state == NGX_HTTP_INFERENCE_SUBMISSION_RELEASED)
    {
        ngx_http_inference_free_regions(ch, submission->regions,
                                        &submission->nregions);
    }
}


void
ngx_http_inference_in_flight_completion(const inf_completion_t *c, void *userp)
{
    ngx_http_inference_channel_t     *ch;
    ngx_http_inference_in_flight_t   *in_flight;
    ngx_http_inference_submission_t  *submission;

    INF_POINT(COMPLETION_TAKEN);

    in_flight = userp;
    ch = in_flight->channel;
    submission = in_flight->submission;

    ngx_http_inference_in_flight_begun(in_flight, c->batch_size > 0);

    if (!ch->answered) {
        ch->answered = 1;
        ngx_http_inference_counters()->answered =
            inf_client_core_pid(ch->client);
    }

    if ((c->flags & INF_COMPLETE_RESPONSE) && c->length > 0) {

        if (submission != NULL) {
            ch->held++;

        } else {
            inf_client_release(ch->client, c->offset);
        }
    }

    in_flight->state = ngx_http_inference_in_flight_after(in_flight, c->flags);

    if (submission != NULL) {
        submission->state = in_flight->state;
    }

    if (c->flags & INF_COMPLETE_RELEASED) {

        if (submission == NULL) {
            ngx_http_inference_free_regions(ch, in_flight->regions,
                                            &in_flight->nregions);

        } else if (!submission->keep) {
            ngx_http_inference_free_regions(ch, submission->regions,
                                            &submission->nregions);
        }
    }

    if (in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
        inf_client_give(ch->client, in_flight->name);
        in_flight->submission = NULL;
    }

    if (submission != NULL) {
        submission->answer(submission, c);
    }
}


/* The state after a completion; FINAL and RELEASED come in any order, or
   together. */

static ngx_http_inference_submission_state_e
ngx_http_inference_in_flight_after(ngx_http_inference_in_flight_t *in_flight,
    uint32_t flags)
{
    ngx_uint_t  final, released;

    final = (flags & INF_COMPLETE_FINAL)
            || in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_FINAL;

    released = (flags & INF_COMPLETE_RELEASED)
               || in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_RELEASED;

    if (final) {
        return released ? NGX_HTTP_INFERENCE_SUBMISSION_FREE
                        : NGX_HTTP_INFERENCE_SUBMISSION_FINAL;
    }

    return released ? NGX_HTTP_INFERENCE_SUBMISSION_RELEASED
                    : NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED;
}


ngx_uint_t
ngx_http_inference_in_flight_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost)
{
    ngx_uint_t                        i, n;
    ngx_http_inference_in_flight_t   *in_flight;
    ngx_http_inference_submission_t  *submission;

    n = 0;

    for (i = 0; i < INF_MAX_SLOTS; i++) {
        in_flight = &ch->in_flight[i];

        if (in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
            continue;
        }

        ngx_http_inference_in_flight_begun(in_flight, 0);

        submission = in_flight->submission;
        in_flight->submission = NULL;
        in_flight->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;

        ngx_http_inference_free_regions(ch, in_flight->regions,
                                        &in_flight->nregions);

        if (submission == NULL) {
            continue;
        }

        if (!submission->keep) {
            ngx_http_inference_free_regions(ch, submission->regions,
                                            &submission->nregions);
        }

        if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FINAL) {
            /* answered already */
            submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
            continue;
        }

        ngx_http_inference_in_flight_lost(in_flight, submission);
        ngx_queue_insert_tail(lost, &submission->queue);
        submission->state = NGX_HTTP_INFERENCE_SUBMISSION_QUEUED;
        n++;
    }

    return n;
}


/* Counts the execution once, as reported by the core or by the slot. */

static void
ngx_http_inference_in_flight_begun(ngx_http_inference_in_flight_t *in_flight,
    ngx_uint_t begun)
{
    uint8_t  state;

    if (in_flight->begun || in_flight->submission == NULL
        || in_flight->state == NGX_HTTP_INFERENCE_SUBMISSION_FINAL)
    {
        return;
    }

    if (!begun) {
        state = inf_client_slot_state(in_flight->channel->client,
                                      in_flight->name)
                & INF_SLOT_STATE_MASK;
        begun = (state == INF_SLOT_EXECUTING);
    }

    if (begun) {
        in_flight->begun = 1;
        in_flight->submission->begun++;
    }
}


/* Reads from the slot how far the request got before the core's exit. */

static void
ngx_http_inference_in_flight_lost(ngx_http_inference_in_flight_t *in_flight,
    ngx_http_inference_submission_t *submission)
{
    uint8_t  state;

    state = inf_client_slot_state(in_flight->channel->client, in_flight->name);

    if ((state & INF_SLOT_STATE_MASK) == INF_SLOT_ANSWERED
        && !in_flight->begun)
    {
        /* the answer was not read */
        in_flight->begun = 1;
        submission->begun++;
    }

    if (in_flight->begun && submission->begun == 1
        && inf_client_has_suspect(in_flight->channel->client))
    {
        /* the request itself was no suspect */
        submission->excused = 1;
    }

    submission->exits++;
    submission->taken |= (state & INF_SLOT_STATE_MASK) != INF_SLOT_FREE;
    submission->sequence = (state & INF_SLOT_SEQUENCE) != 0;
}


static void
ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n)
{
    while (*n > 0) {
        (*n)--;
        inf_client_free_region(ch->client, regions[*n]);
        regions[*n] = NULL;
    }
}
