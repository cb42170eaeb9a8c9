/*
 * response_flow.h - how much of a call's decoupled responses waits for its
 *                   client: a backend that is faster than the client waits
 *                   here.  All requests on one stream share a flow; any other
 *                   request has its own.
 *
 * Owner    A reference each: the session for each stream, the in-flight
 *          request, and each response that the worker has not released.
 * Thread   any.  admit may be called by several threads that send responses of
 *          the call; never by the thread with the intake role, which takes the
 *          releases.
 * Units    bytes, ns.
 * Errors   none.
 * Route    backend -> infer's sink -> [response_flow] -> channel -> worker ->
 *          release -> [response_flow]
 */

#ifndef INF_SERVICE_RESPONSE_FLOW_H
#define INF_SERVICE_RESPONSE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that worker and core may hold before a backend waits, and the
   bookkeeping of each region (a record or an output) beside its bytes. */
#define INF_RESPONSE_FLOW_MAX    (UINT64_C(8) << 20)
#define INF_RESPONSE_FLOW_REGION UINT64_C(512)

typedef struct inf_response_flow_s inf_response_flow_t;

/* One reference; NULL: out of memory. */
inf_response_flow_t *inf_response_flow_new(void);

/* One more; flow may not be NULL. */
inf_response_flow_t *inf_response_flow_ref(inf_response_flow_t *flow);

/* flow may be NULL. */
void inf_response_flow_unref(inf_response_flow_t *flow);

/* Waits until worker and core hold less than the maximum.  False: the worker
   has released nothing for patience_ns; nobody waits again before it has
   released enough. */
bool inf_response_flow_admit(inf_response_flow_t *flow, uint64_t patience_ns);

/* A response of so many bytes is on its way; a reference is taken with it. */
void inf_response_flow_take(inf_response_flow_t *flow, uint64_t bytes);

/* The response is released; drops the reference.  flow: inf_response_flow_t. */
void inf_response_flow_give(void *flow, uint64_t bytes);

#endif /* INF_SERVICE_RESPONSE_FLOW_H */
