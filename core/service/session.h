/*
 * session.h - one nginx worker as the core sees it: its channel and what is
 *             in flight on it.
 *
 * Owner    The intake holds a reference; every request in flight holds one.
 * Thread   take, by_slot: the intake role.  Flights end on any thread.
 * Units    none.
 * Errors   none.
 * Route    intake -> [session] -> infer, calls
 */

#ifndef INF_SERVICE_SESSION_H
#define INF_SERVICE_SESSION_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/sched/suspects.h"
#include "core/service/response_flow.h"
#include "core/tensor/request.h"
#include "core/tensor/response.h"
#include "core/tensor/shm_region.h"
#include "core/wire/request_record.h"
#include "core/wire/response_record.h"
#include "core/wire/server.h"

typedef struct inf_session_s inf_session_t;
typedef struct inf_in_flight_s  inf_in_flight_t;

/* Where an output of a request is to be written. */
typedef struct {
    const char             *name;           /* of the output                 */
    const inf_shm_region_t *region;         /* the request in flight has the
                                               reference                     */
    uint64_t                offset;
    uint64_t                size;
} inf_in_flight_place_t;

/* Ends that its worker has been told of, or soon is.  FINAL and RELEASED come
   in any order; a value is the sum of both. */
typedef enum {
    INF_IN_FLIGHT_OPEN = 0,
    INF_IN_FLIGHT_ANSWERED = 1,             /* FINAL                         */
    INF_IN_FLIGHT_RELEASED = 2,             /* RELEASED                      */
    INF_IN_FLIGHT_OVER = 3                  /* the slot is the worker's      */
} inf_in_flight_state_t;

/* One inference on its way.  Taken and set up by the intake; used again when
   its request was released and its last response and factory are gone. */
struct inf_in_flight_s {
    inf_in_flight_t          *next;         /* on a free list                */
    inf_session_t            *session;      /* a reference while in use      */
    uint32_t                  slot;
    uint32_t                  generation;
    _Atomic uint32_t          parts;        /* request and factory: 2, 1, 0;
                                               acq_rel                       */
    _Atomic(inf_in_flight_state_t) state;   /* acquire; moved by
                                               inf_in_flight_move alone      */
    _Atomic bool              reading;      /* seq_cst, as the factory's
                                               cancelled beside it: a control
                                               thread is to submit it        */
    _Atomic bool              reported;     /* relaxed: so was the load      */
    struct {
        inf_suspect_t         place;        /* the intake role's             */
        _Atomic bool          under_way;    /* relaxed: without a response   */
    } suspect;
    uint8_t                   retry;        /* INF_SLOT_RETRYABLE or
                                               INF_SLOT_SEQUENCE             */
    const inf_infer_record_t *record;       /* in the request's arena        */
    uint32_t                  call;         /* the submission's              */
    inf_response_turn_t      *turn;         /* set with the request; NULL: one
                                               response, on no stream        */
    _Atomic bool              stalled;      /* relaxed: its client has been
                                               told that it took too long    */
    struct TRITONSERVER_InferenceTrace *trace;  /* a reference, or NULL; set
                                               with the request              */
    struct inf_trace_record_s *traced;      /* the trace's                   */
    inf_shm_region_t        **regions;      /* references: of inputs, then of
                                               places; in the request's
                                               arena, NULL: none             */
    inf_in_flight_place_t    *places;       /* likewise                      */
    uint32_t                  region_count;
    uint32_t                  place_count;
    inf_request_t             request;
    inf_factory_t             factory;
};

#define INF_SESSION_CALL_QUEUES 7u      /* one for each control thread       */

/* Calls that wait for one control thread; under its lock.  Each call has a
   reference of the session. */
typedef struct {
    inf_link_t turn;                        /* while there are calls         */
    inf_link_t calls;
} inf_session_calls_t;

struct inf_session_s {
    _Atomic uint32_t         refs;          /* up relaxed, down acq_rel      */
    inf_channel_t           *channel;       /* a reference                   */
    struct inf_tracer_s     *tracer;        /* of the server; set before the
                                               first request, NULL: none     */
    inf_shm_regions_t       *regions;       /* the server's; set at once     */
    const _Atomic uint64_t  *max_json_bytes;    /* relaxed; the server's; set at
                                                   once                      */
    struct inf_suspect_queue_s *suspects;   /* the intake's; set at once     */
    inf_in_flight_t        **by_slot;       /* the last one of each slot     */
    inf_response_flow_t    **flows;         /* of calls, by number less 1; a
                                               reference each, once it is
                                               used; the intake's own        */
    uint32_t                 slots;         /* entries of by_slot and flows  */
    inf_response_patience_t  patience;      /* of a backend, with a client
                                               that takes no responses       */
    inf_in_flight_t         *free;          /* the intake's own              */
    _Atomic(inf_in_flight_t *) returned;    /* release push, acquire take    */
    _Atomic uint32_t         made;          /* relaxed: objects ever         */
    _Atomic uint32_t         calls;         /* relaxed: under way            */
    _Atomic uint32_t         ready_calls;   /* relaxed: the same, for
                                               readiness                     */
    inf_session_calls_t      queues[INF_SESSION_CALL_QUEUES];
    _Atomic bool             core_leaves;   /* relaxed: the core ends, and
                                               what has not begun is the next
                                               core's                        */
};

/* Takes the reference of channel. */
INF_CHECK inf_err_t *inf_session_new(inf_channel_t *channel,
    const inf_response_patience_t *patience, inf_session_t **out);

/* ref returns s; with the last reference the session is freed. */
inf_session_t *inf_session_ref(inf_session_t *s);
void inf_session_unref(inf_session_t *s);

/* Whether the worker has yet to hear FINAL or RELEASED of that slot: then it
   may not use the slot for another request. */
bool inf_session_slot_taken(const inf_session_t *s, uint32_t slot);

/* An object for the submitted request; NULL: out of memory. */
inf_in_flight_t *inf_session_take(inf_session_t *s, uint32_t slot,
    uint32_t generation);

/* The request of slot and generation if it may still be under way. */
inf_in_flight_t *inf_session_find(inf_session_t *s, uint32_t slot,
    uint32_t generation);

/* A reference of the flow of all requests on that call, by the intake role; on
   call 0: a new one, by any thread.  NULL: out of memory. */
inf_response_flow_t *inf_session_flow(inf_session_t *s, uint32_t call);

/* Adds ANSWERED or RELEASED to the state, before the worker is told. */
void inf_in_flight_move(inf_in_flight_t *in_flight, inf_in_flight_state_t by);

/* One of the two parts of the request has ended. */
void inf_in_flight_part_done(inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_SESSION_H */
