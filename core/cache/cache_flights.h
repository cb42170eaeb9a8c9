/*
 * cache_flights.h - identical requests that missed the response cache share
 *                   one execution: the first flies, the others wait for it.
 *
 * Owner    The cached model owns the table.  Flights are the caller's memory,
 *          listed from join to leave or pass.  Waiting requests belong to the
 *          table.
 * Thread   any, with the cached model's lock held.
 * Units    none.
 * Errors   none: nothing is allocated.
 * Route    lookup that missed -> [flights] -> runner; response -> [flights]
 *          -> the requests that waited
 */

#ifndef INF_CACHE_CACHE_FLIGHTS_H
#define INF_CACHE_CACHE_FLIGHTS_H

#include "core/cache/cache_key.h"

#define INF_CACHE_FLIGHT_BUCKETS 1024u

typedef struct inf_cache_flight_s {
    struct inf_cache_flight_s *next;        /* of the same bucket            */
    inf_cache_key_t            key;
    inf_link_t                 followers;   /* requests, first come first    */
    bool                       listed;
} inf_cache_flight_t;

typedef struct {
    inf_cache_flight_t *buckets[INF_CACHE_FLIGHT_BUCKETS];
    uint32_t            count;              /* flights                       */
} inf_cache_flights_t;

/* The caller's memory, with nothing listed. */
void inf_cache_flights_init(inf_cache_flights_t *f);

/* true: req leads, flight is listed for key.  false: it waits (state PARKED)
   for the request that leads, flight is as before. */
bool inf_cache_flights_join(inf_cache_flights_t *f, inf_cache_flight_t *flight,
    inf_cache_key_t key, inf_request_t *req);

/* The flight is over: unlists it and moves the requests that waited, state
   EXECUTING, to the end of list.  One that is not listed has none. */
void inf_cache_flights_leave(inf_cache_flights_t *f,
    inf_cache_flight_t *flight, inf_link_t *list);

/* The leader gave up: the first that waited, state EXECUTING, leads with heir
   as its flight and the others wait on.  NULL: nobody waited, the flight is
   over. */
inf_request_t *inf_cache_flights_pass(inf_cache_flights_t *f,
    inf_cache_flight_t *flight, inf_cache_flight_t *heir);

#endif /* INF_CACHE_CACHE_FLIGHTS_H */
