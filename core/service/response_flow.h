/*
 * response_flow.h - flow control of a call's responses: a backend that is
 *                   faster than the client waits.  All requests on one stream
 *                   share a flow, and each has a turn in it; a request to a
 *                   decoupled model outside a stream has its own flow.
 *
 * Owner    References of the flow: the session's for each stream, and one for
 *          each turn.  A turn lasts until its request has ended and the worker
 *          has released its responses.
 * Thread   any.  admit may be called by several threads that send responses of
 *          the call, but not by the thread with the intake role, which takes
 *          the releases.
 * Units    bytes, ns.
 * Errors   none.
 * Route    backend -> infer's sink -> [response_flow] -> channel -> worker ->
 *          release -> [response_flow]
 *
 * Responses of models that are not decoupled are sent in the order of their
 * requests, so the worker keeps those that are early.  A backend waits only
 * while the worker has a response that its client may take.
 */

#ifndef INF_SERVICE_RESPONSE_FLOW_H
#define INF_SERVICE_RESPONSE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Limit of bytes held by worker and core, from which on a backend waits, and
   the overhead counted for each region (a record or an output).  With 256
   requests in flight, of about 8 KiB in a worker, a call holds 8 MiB. */
#define INF_RESPONSE_FLOW_MAX    (UINT64_C(6) << 20)
#define INF_RESPONSE_FLOW_REGION UINT64_C(512)

/* Interval at which a waiting thread polls for releases: a worker does not wake
   the core for them. */
#define INF_RESPONSE_FLOW_POLL_NS UINT64_C(10000000)

/* A worker submits a request again within 1 s, unless it is busy. */
#define INF_RESPONSE_FLOW_AGAIN_NS UINT64_C(5000000000)

typedef struct inf_response_flow_s inf_response_flow_t;
typedef struct inf_response_turn_s inf_response_turn_t;

/* Parameters of a wait for a client. */
typedef struct {
    uint64_t   patience_ns;     /* limit of time without a release           */
    void     (*poll)(void *userp);  /* makes the intake take the releases    */
    void      *userp;
} inf_response_patience_t;

/* One reference; NULL: out of memory.  again_ns: time for which a request that
   is to be submitted again keeps its place. */
inf_response_flow_t *inf_response_flow_new(uint64_t again_ns);

/* Adds a reference; flow may not be NULL. */
inf_response_flow_t *inf_response_flow_ref(inf_response_flow_t *flow);

/* flow may be NULL. */
void inf_response_flow_unref(inf_response_flow_t *flow);

/* Adds a request to the flow and takes the caller's reference.  order: its
   position among the requests, which may be added in any order; 0: none, its
   responses are sent as they come.  NULL: out of memory, the reference is
   dropped. */
inf_response_turn_t *inf_response_turn_new(inf_response_flow_t *flow,
    uint64_t order);

/* Marks the model as decoupled: the responses are sent as they come. */
void inf_response_turn_unorder(inf_response_turn_t *turn);

/* Waits until worker and core hold no more than the limit, or only responses
   that wait for an earlier request; bytes, which the response has, count from
   here on.  False: the worker has released nothing for the time in patience;
   further calls do not wait until it has released something. */
bool inf_response_turn_admit(inf_response_turn_t *turn, uint64_t bytes,
    const inf_response_patience_t *patience);

/* Likewise without a wait: false only if calls do not wait. */
bool inf_response_turn_may_send(inf_response_turn_t *turn);

/* Notes a response of so many bytes that is sent, or none (0 bytes).  admitted:
   the bytes with which it was admitted, or 0; final: it is the request's
   last. */
void inf_response_turn_send(inf_response_turn_t *turn, uint64_t admitted,
    uint64_t bytes, bool final);

/* Notes that a response was released.  turn: inf_response_turn_t. */
void inf_response_turn_release(void *turn, uint64_t bytes);

/* Ends the request; without a final response its worker submits it again.  turn
   may be NULL. */
void inf_response_turn_end(inf_response_turn_t *turn);

#endif /* INF_SERVICE_RESPONSE_FLOW_H */
