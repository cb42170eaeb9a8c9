/*
 * response_flow.h - how much of a call's responses waits for its client: a
 *                   backend that is faster than the client waits here.  All
 *                   requests on one stream share a flow, and each has a turn
 *                   in it; a request to a decoupled model that is on no stream
 *                   has a flow of its own.
 *
 * Owner    A reference of the flow each: the session for each stream, and each
 *          turn.  A turn lasts until its request has ended and the worker has
 *          released its responses.
 * Thread   any.  admit may be called by several threads that send responses of
 *          the call; never by the thread with the intake role, which takes the
 *          releases.
 * Units    bytes, ns.
 * Errors   none.
 * Route    backend -> infer's sink -> [response_flow] -> channel -> worker ->
 *          release -> [response_flow]
 *
 * Responses of models that are not decoupled leave in the order of their
 * requests, so the worker keeps those that were made too early.  The flow knows
 * which these are: only while the worker has a response that its client may
 * take does a backend wait.
 */

#ifndef INF_SERVICE_RESPONSE_FLOW_H
#define INF_SERVICE_RESPONSE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that worker and core may hold before a backend waits, and the
   bookkeeping of each region (a record or an output) beside its bytes. */
#define INF_RESPONSE_FLOW_MAX    (UINT64_C(8) << 20)
#define INF_RESPONSE_FLOW_REGION UINT64_C(512)

/* A thread that waits asks for the releases so often: a worker wakes nobody
   for them. */
#define INF_RESPONSE_FLOW_POLL_NS UINT64_C(10000000)

/* A worker submits a request again within 1 s, unless it is busy. */
#define INF_RESPONSE_FLOW_AGAIN_NS UINT64_C(5000000000)

typedef struct inf_response_flow_s inf_response_flow_t;
typedef struct inf_response_turn_s inf_response_turn_t;

/* How to wait for a client. */
typedef struct {
    uint64_t   patience_ns;     /* while nothing is released                 */
    void     (*poll)(void *userp);  /* has the releases taken soon           */
    void      *userp;
} inf_response_patience_t;

/* One reference; NULL: out of memory.  again_ns: how long a request that is to
   be submitted again keeps its place. */
inf_response_flow_t *inf_response_flow_new(uint64_t again_ns);

/* One more; flow may not be NULL. */
inf_response_flow_t *inf_response_flow_ref(inf_response_flow_t *flow);

/* flow may be NULL. */
void inf_response_flow_unref(inf_response_flow_t *flow);

/* A request of the flow, whose reference it takes.  order: its place among the
   requests, which need not come in that order; 0: it has none, its responses
   leave as they come.  NULL: out of memory, the reference is gone. */
inf_response_turn_t *inf_response_turn_new(inf_response_flow_t *flow,
    uint64_t order);

/* Its model is decoupled: the responses leave as they come. */
void inf_response_turn_unorder(inf_response_turn_t *turn);

/* Waits until worker and core hold less than the maximum, or hold only what
   waits for an earlier request.  False: the worker has released nothing for
   as long as patience says; nobody waits again before it has released
   enough. */
bool inf_response_turn_admit(inf_response_turn_t *turn,
    const inf_response_patience_t *patience);

/* The same without a wait: false only where nobody waits again. */
bool inf_response_turn_may_send(inf_response_turn_t *turn);

/* A response of so many bytes is on its way, or none (0 bytes); final: it is
   the request's last. */
void inf_response_turn_send(inf_response_turn_t *turn, uint64_t bytes,
    bool final);

/* A response is released.  turn: inf_response_turn_t. */
void inf_response_turn_release(void *turn, uint64_t bytes);

/* The request has ended; without a final response: its worker submits it
   again.  turn may be NULL. */
void inf_response_turn_end(inf_response_turn_t *turn);

#endif /* INF_SERVICE_RESPONSE_FLOW_H */
