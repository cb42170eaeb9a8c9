/*
 * Requests on their way to the core and back: a flight for each slot of a
 * channel knows whose it is and what is still to come.
 */

#include "ngx_module/ngx_http_inference_client.h"


static ngx_http_inference_ticket_state_e ngx_http_inference_flight_after(
    ngx_http_inference_flight_t *flight, uint32_t flags);
static void ngx_http_inference_flight_begun(
    ngx_http_inference_flight_t *flight, ngx_uint_t begun);
static ngx_uint_t ngx_http_inference_flight_of_sequence(
    ngx_http_inference_flight_t *flight);
static void ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n);


ngx_int_t
ngx_http_inference_flight_submit(ngx_http_inference_channel_t *ch,
    ngx_http_inference_ticket_t *ticket, inf_submission_t *s,
    inf_region_t *const *regions, ngx_uint_t count)
{
    ngx_uint_t                      i;
    inf_ticket_t                    name;
    inf_client_result_t             rc;
    ngx_http_inference_flight_t    *flight;
    ngx_http_inference_counters_t  *counters;

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
    flight->state = NGX_HTTP_INFERENCE_TICKET_SUBMITTED;

    /* one wake of the core for all that this turn submits */

    ngx_post_event(&ch->drain, &ngx_posted_events);

    for (i = 0; i < count; i++) {
        ticket->regions[i] = regions[i];
    }

    ticket->nregions = count;
    ticket->slot = name.slot;
    ticket->generation = name.generation;
    ticket->epoch = ch->epoch;
    ticket->state = NGX_HTTP_INFERENCE_TICKET_SUBMITTED;

    if (s->op == INF_SUBMIT_INFER) {
        (void) ngx_atomic_fetch_add(&counters->requests, 1);
    }

    return NGX_OK;
}


void
ngx_http_inference_flight_abandon(ngx_http_inference_channel_t *ch,
    ngx_http_inference_ticket_t *ticket)
{
    ngx_uint_t                    i;
    ngx_http_inference_flight_t  *flight;

    if (ticket->state == NGX_HTTP_INFERENCE_TICKET_FREE
        || ticket->state == NGX_HTTP_INFERENCE_TICKET_RELEASED)
    {
        ngx_http_inference_free_regions(ch, ticket->regions,
                                        &ticket->nregions);
    }

    if (ticket->state == NGX_HTTP_INFERENCE_TICKET_FREE) {
        return;
    }

    flight = &ch->flights[ticket->slot];
    ngx_http_inference_flight_begun(flight, 0);
    flight->ticket = NULL;

    for (i = 0; i < ticket->nregions; i++) {
        flight->regions[i] = ticket->regions[i];
    }

    flight->nregions = ticket->nregions;

    ticket->state = NGX_HTTP_INFERENCE_TICKET_FREE;
    ticket->nregions = 0;

    if (flight->state != NGX_HTTP_INFERENCE_TICKET_FINAL) {
        inf_client_cancel(ch->client, flight->name);
        ngx_post_event(&ch->drain, &ngx_posted_events);
        (void) ngx_atomic_fetch_add(
                   &ngx_http_inference_counters()->cancelled, 1);
    }
}


void
ngx_http_inference_flight_completion(const inf_completion_t *c, void *userp)
{
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

    flight->state = ngx_http_inference_flight_after(flight, c->flags);

    if (ticket != NULL) {
        ticket->state = flight->state;
    }

    if (c->flags & INF_COMPLETE_RELEASED) {

        if (ticket == NULL) {
            ngx_http_inference_free_regions(ch, flight->regions,
                                            &flight->nregions);

        } else if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }
    }

    if (flight->state == NGX_HTTP_INFERENCE_TICKET_FREE) {
        inf_client_give(ch->client, flight->name);
        flight->ticket = NULL;
    }

    if (ticket != NULL) {
        ticket->answer(ticket, c);
    }
}


/* FINAL and RELEASED come in any order, or as one. */

static ngx_http_inference_ticket_state_e
ngx_http_inference_flight_after(ngx_http_inference_flight_t *flight,
    uint32_t flags)
{
    ngx_uint_t  final, released;

    final = (flags & INF_COMPLETE_FINAL)
            || flight->state == NGX_HTTP_INFERENCE_TICKET_FINAL;

    released = (flags & INF_COMPLETE_RELEASED)
               || flight->state == NGX_HTTP_INFERENCE_TICKET_RELEASED;

    if (final) {
        return released ? NGX_HTTP_INFERENCE_TICKET_FREE
                        : NGX_HTTP_INFERENCE_TICKET_FINAL;
    }

    return released ? NGX_HTTP_INFERENCE_TICKET_RELEASED
                    : NGX_HTTP_INFERENCE_TICKET_SUBMITTED;
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

        if (flight->state == NGX_HTTP_INFERENCE_TICKET_FREE) {
            continue;
        }

        ngx_http_inference_flight_begun(flight, 0);

        ticket = flight->ticket;
        flight->ticket = NULL;
        flight->state = NGX_HTTP_INFERENCE_TICKET_FREE;

        ngx_http_inference_free_regions(ch, flight->regions,
                                        &flight->nregions);

        if (ticket == NULL) {
            continue;
        }

        if (!ticket->keep) {
            ngx_http_inference_free_regions(ch, ticket->regions,
                                            &ticket->nregions);
        }

        if (ticket->state == NGX_HTTP_INFERENCE_TICKET_FINAL) {
            /* it has its answer */
            ticket->state = NGX_HTTP_INFERENCE_TICKET_FREE;
            continue;
        }

        ticket->sequence = ngx_http_inference_flight_of_sequence(flight);
        ngx_queue_insert_tail(lost, &ticket->queue);
        ticket->state = NGX_HTTP_INFERENCE_TICKET_QUEUED;
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

    if (flight->begun || flight->ticket == NULL
        || flight->state == NGX_HTTP_INFERENCE_TICKET_FINAL)
    {
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
ngx_http_inference_free_regions(ngx_http_inference_channel_t *ch,
    inf_region_t **regions, ngx_uint_t *n)
{
    while (*n > 0) {
        (*n)--;
        inf_client_free_region(ch->client, regions[*n]);
        regions[*n] = NULL;
    }
}
