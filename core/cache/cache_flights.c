#include "core/cache/cache_flights.h"

#include <assert.h>

static inf_cache_flight_t **find(inf_cache_flights_t *f, inf_cache_key_t key);
static void list(inf_cache_flights_t *f, inf_cache_flight_t *flight,
    inf_cache_key_t key);
static void unlist(inf_cache_flights_t *f, inf_cache_flight_t *flight);

void
inf_cache_flights_init(inf_cache_flights_t *f)
{
    *f = (inf_cache_flights_t) { .count = 0 };
}

bool
inf_cache_flights_join(inf_cache_flights_t *f, inf_cache_flight_t *flight,
    inf_cache_key_t key, inf_request_t *req)
{
    inf_cache_flight_t *led = *find(f, key);
    if (led == NULL) {
        list(f, flight, key);
        return true;
    }

    inf_request_move(req, INF_REQUEST_PARKED);
    inf_list_push_back(&led->followers, &req->link);
    return false;
}

void
inf_cache_flights_leave(inf_cache_flights_t *f, inf_cache_flight_t *flight,
    inf_link_t *to)
{
    if (!flight->listed) {
        return;
    }

    unlist(f, flight);
    inf_link_t *link;
    while ((link = inf_list_pop_front(&flight->followers)) != NULL) {
        inf_request_move(inf_link_entry(link, inf_request_t, link),
            INF_REQUEST_EXECUTING);
        inf_list_push_back(to, link);
    }
}

inf_request_t *
inf_cache_flights_pass(inf_cache_flights_t *f, inf_cache_flight_t *flight,
    inf_cache_flight_t *heir)
{
    if (!flight->listed) {
        return NULL;
    }

    unlist(f, flight);
    inf_link_t *link = inf_list_pop_front(&flight->followers);
    if (link == NULL) {
        return NULL;
    }

    list(f, heir, flight->key);
    inf_link_t *next;
    while ((next = inf_list_pop_front(&flight->followers)) != NULL) {
        inf_list_push_back(&heir->followers, next);
    }

    inf_request_t *req = inf_link_entry(link, inf_request_t, link);
    inf_request_move(req, INF_REQUEST_EXECUTING);
    return req;
}

/* Where the flight of key is linked from, or would be. */
static inf_cache_flight_t **
find(inf_cache_flights_t *f, inf_cache_key_t key)
{
    inf_cache_flight_t **at =
        &f->buckets[key.words[0] % INF_CACHE_FLIGHT_BUCKETS];
    while (*at != NULL && !inf_cache_key_eq(&(*at)->key, &key)) {
        at = &(*at)->next;
    }
    return at;
}

static void
list(inf_cache_flights_t *f, inf_cache_flight_t *flight, inf_cache_key_t key)
{
    inf_cache_flight_t **head =
        &f->buckets[key.words[0] % INF_CACHE_FLIGHT_BUCKETS];

    inf_link_init(&flight->followers);
    flight->key = key;
    flight->listed = true;
    flight->next = *head;
    *head = flight;
    f->count++;
}

static void
unlist(inf_cache_flights_t *f, inf_cache_flight_t *flight)
{
    inf_cache_flight_t **at = find(f, flight->key);
    assert(*at == flight);

    *at = flight->next;
    flight->next = NULL;
    flight->listed = false;
    f->count--;
}
