/*
 * Requests on their way to the core and back: a flight for each slot of a
 * channel knows whose it is and what is still to come.
 */

#include "ngx_module/ngx_http_inference_client.h"


static void ngx_http_inference_flight_begun(
    ngx_http_inference_flight_t *flight, ngx_uint_t begun);
static ngx_uint_t ngx_http_inference_flight_of_sequence(
    ngx_http_inference_flight_t *flight);
static void ngx_http_inference_flight_give(
    ngx_http_inference_flight_t *flight);
static void ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n);


ngx_int_t
ngx_http_inference_submit(ngx_http_inference_ticket_t *ticket,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count)
{
    ngx_uint_t                      i;
    inf_ticket_t                    name;
    inf_client_result_t             rc;
    ngx_http_inference_flight_t    *flight;
    ngx_http_inference_channel_t   *ch;
    ngx_http_inference_counters_t  *counters;

    counters = ngx_http_inference_counters();
    ch = ngx_http_inference_client_channel();

    if (ch == NULL || ch->epoch != epoch
        || count > NGX_HTTP_INFERENCE_REGIONS)
    {
        return NGX_ERROR;
    }

    if (s->op == INF_SUBMIT_CALL
        ? !inf_client_take_call(ch->client, NULL, &name)
        : !inf_client_take(ch->client, NULL, &name))
    {
        (void) ngx_atomic_fetch_add(&counters->ring_full, 1);
        return NGX_BUSY;
    }

    flight = &ch->flights[name.slot];
    inf_client_set_userp(ch->client, name, flight);

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

    ngx_memzero(flight, sizeof(ngx_http_inference_flight_t));
    flight->channel = ch;
    flight->ticket = ticket;
    flight->name = name;
    flight->taken = 1;

    /* one wake of the core for all that this turn submits */

    ngx_post_event(&ch->drain, &ngx_posted_events);

    for (i = 0; i < count; i++) {
        ticket->regions[i] = regions[i];
    }

    ticket->nregions = count;
    ticket->slot = name.slot;
    ticket->generation = name.generation;
    ticket->epoch = epoch;
    ticket->submitted = 1;
    ticket->final = 0;
    ticket->released = 0;

    if (s->op == INF_SUBMIT_INFER) {
        (void) ngx_atomic_fetch_add(&counters->requests, 1);
    }

    ngx_http_inference_client_plan_sweep();

    return NGX_OK;
}


void
ngx_http_inference_abandon(ngx_http_inference_ticket_t *ticket)
{
    ngx_uint_t                     i;
    ngx_http_inference_flight_t   *flight;
    ngx_http_inference_channel_t  *ch;

    if (ticket->waiting) {
        ngx_queue_remove(&ticket->queue);
        ticket->waiting = 0;
    }

    if (!ticket->submitted && ticket->nregions == 0) {
        return;
    }

    ch = ngx_http_inference_client_find(ticket->epoch);

    if (ch == NULL) {
        /* the worker is leaving, its memory has gone */
        ticket->submitted = 0;
        ticket->nregions = 0;
        return;
    }

    if (!ticket->submitted || ticket->released) {
        ngx_http_inference_free_regions(ch, ticket->regions,
                                        &ticket->nregions);
    }

    if (!ticket->submitted) {
        return;
    }

    flight = &ch->flights[ticket->slot];
    ngx_http_inference_flight_begun(flight, 0);
    flight->ticket = NULL;

    for (i = 0; i < ticket->nregions; i++) {
        flight->regions[i] = ticket->regions[i];
    }

    flight->nregions = ticket->nregions;

    ticket->submitted = 0;
    ticket->nregions = 0;

    if (!flight->final) {
        inf_client_cancel(ch->client, flight->name);
        ngx_post_event(&ch->drain, &ngx_posted_events);
        (void) ngx_atomic_fetch_add(
                   &ngx_http_inference_counters()->cancelled, 1);
        ngx_http_inference_client_plan_sweep();
    }
}


void
ngx_http_inference_release(uint64_t epoch, uint64_t offset)
{
    ngx_http_inference_channel_t  *ch;

    ch = ngx_http_inference_client_find(epoch);

    if (ch == NULL) {
        return;
    }

    ch->held--;

    if (ch->state == ngx_http_inference_channel_up) {
        inf_client_release(ch->client, offset);
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


void
ngx_http_inference_flight_completion(const inf_completion_t *c, void *userp)
{
    ngx_uint_t                     done;
    ngx_http_inference_flight_t   *flight;
    ngx_http_inference_ticket_t   *ticket;
    ngx_http_inference_channel_t  *ch;

    flight = userp;
    ch = flight->channel;
    ticket = flight->ticket;

    ngx_http_inference_flight_begun(flight, c->batch_size > 0);

    if (!ch->answered) {
        ch->answered = 1;
        ngx_http_inference_counters()->answered =
            inf_client_core_pid(ch->client);
    }

    if ((c->flags & INF_COMPLETE_RESPONSE) && c->length > 0) {

        if (ticket != NULL) {
            ch->held++;

        } else {
            inf_client_release(ch->client, c->offset);
        }
    }

    if (c->flags & INF_COMPLETE_FINAL) {
        flight->final = 1;
    }

    if (c->flags & INF_COMPLETE_RELEASED) {
        flight->released = 1;

        if (ticket == NULL) {
            ngx_http_inference_free_regions(ch, flight->regions,
                                            &flight->nregions);

        } else if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }
    }

    done = flight->final && flight->released;

    if (ticket != NULL) {
        ticket->final = flight->final;
        ticket->released = flight->released;
        ticket->submitted = !done;
    }

    if (done) {
        ngx_http_inference_flight_give(flight);
    }

    if (ticket != NULL) {
        ticket->answer(ticket, c);
    }
}


ngx_uint_t
ngx_http_inference_flights_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost)
{
    ngx_uint_t                    i, n;
    ngx_http_inference_flight_t  *flight;
    ngx_http_inference_ticket_t  *ticket;

    n = 0;

    for (i = 0; i < INF_MAX_SLOTS; i++) {
        flight = &ch->flights[i];

        if (!flight->taken) {
            continue;
        }

        ngx_http_inference_flight_begun(flight, 0);

        flight->taken = 0;
        ticket = flight->ticket;
        flight->ticket = NULL;

        ngx_http_inference_free_regions(ch, flight->regions,
                                        &flight->nregions);

        if (ticket == NULL) {
            continue;
        }

        ticket->submitted = 0;

        if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }

        if (ticket->final) {
            /* it has its answer */
            continue;
        }

        ticket->sequence = ngx_http_inference_flight_of_sequence(flight);
        ngx_queue_insert_tail(lost, &ticket->queue);
        ticket->waiting = 1;
        n++;
    }

    return n;
}


/* Counts its execution once: the core has said so, or its slot does. */

static void
ngx_http_inference_flight_begun(ngx_http_inference_flight_t *flight,
    ngx_uint_t begun)
{
    uint8_t  state;

    if (flight->begun || flight->final || flight->ticket == NULL) {
        return;
    }

    if (!begun) {
        state = inf_client_slot_state(flight->channel->client, flight->name)
                & INF_SLOT_STATE_MASK;
        begun = (state == INF_SLOT_EXECUTING);
    }

    if (begun) {
        flight->begun = 1;
        flight->ticket->begun++;
    }
}


static ngx_uint_t
ngx_http_inference_flight_of_sequence(ngx_http_inference_flight_t *flight)
{
    uint8_t  state;

    state = inf_client_slot_state(flight->channel->client, flight->name);

    return (state & INF_SLOT_SEQUENCE) != 0;
}


static void
ngx_http_inference_flight_give(ngx_http_inference_flight_t *flight)
{
    inf_client_give(flight->channel->client, flight->name);

    flight->ticket = NULL;
    flight->taken = 0;
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
