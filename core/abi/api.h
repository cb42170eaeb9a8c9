/*
 * api.h - objects of the in-process C API.
 *
 * Owner    The client owns options, allocators, requests and the responses it
 *          received.  A run is shared by its request, which may cancel it, and
 *          its factory, which ends with the last response.
 * Thread   as the ABI says: one thread at a time for an object, except cancel.
 * Units    the ABI's.
 * Errors   the ABI's.
 * Route    client -> api_request -> runtime -> backend -> [run's sink] ->
 *          client's callbacks
 */

#ifndef INF_ABI_API_H
#define INF_ABI_API_H

#include "core/abi/objects.h"
#include "core/abi/trace.h"
#include "core/base/buf.h"
#include "core/server/server.h"

INF_ABI_OBJECT(TRITONSERVER_Server, inf_server_t, as_server)
INF_ABI_OBJECT(TRITONSERVER_InferenceResponse, inf_response_t,
    as_client_response)

struct TRITONSERVER_ServerOptions {
    inf_core_config_t *config;      /* not shared with a server              */
    double             min_compute;
    bool               has_min_compute;
    bool               exit_on_error;
    bool               several_caches;  /* the first one is in config        */
};

struct TRITONSERVER_ResponseAllocator {
    TRITONSERVER_ResponseAllocatorAllocFn_t            alloc;
    TRITONSERVER_ResponseAllocatorReleaseFn_t          release;
    TRITONSERVER_ResponseAllocatorStartFn_t            start;
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes;
    TRITONSERVER_ResponseAllocatorQueryFn_t            query;
};

/* The client's response callbacks and allocator; a run has a copy. */
typedef struct {
    TRITONSERVER_ResponseAllocator             *allocator;
    void                                       *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t  complete;
    void                                       *userp;
} inf_api_target_t;

typedef struct inf_api_run_s inf_api_run_t;

/* The last run often ends just after its request was submitted again. */
#define INF_API_SPARE_RUNS 4

/* Spare runs, shared by a request and its runs. */
typedef struct {
    _Atomic uint32_t         refs;  /* up relaxed, down acq_rel              */
    _Atomic(inf_api_run_t *) spare[INF_API_SPARE_RUNS]; /* seq_cst: taken by
                                                           exchange          */
} inf_api_pool_t;

/* The part of a submit that outlives its request: the source of its
   responses. */
struct inf_api_run_s {
    inf_factory_t     factory;
    _Atomic uint32_t  refs;         /* the factory's and the request's; up
                                       relaxed, down acq_rel                 */
    inf_trace_t      *trace;        /* a reference while the factory lives   */
    bool              submitted;    /* the client waits for FINAL            */
    inf_api_target_t  target;
    inf_buf_t         id;
    inf_api_pool_t   *pool;         /* a reference unless spare              */
};

/* new: NULL: out of memory. */
inf_api_pool_t *inf_api_pool_new(void);
void inf_api_pool_unref(inf_api_pool_t *pool);

/*
 * Returns a run with a reference for the caller, and with a factory that has
 * another one, for a request of model (which gets a reference).  NULL: out of
 * memory.
 */
inf_api_run_t *inf_api_run_take(inf_api_pool_t *pool, inf_model_t *model,
    const char *id, const inf_api_target_t *target);
void inf_api_run_unref(inf_api_run_t *run);

/* Report to a request's trace: at its submit, for a response, and for the steps
   of an ensemble. */
void inf_api_trace_submit(inf_trace_t *trace, const inf_request_t *r);
void inf_api_trace_inputs(inf_trace_t *trace, const inf_request_t *r);
void inf_api_trace_outputs(inf_trace_t *trace, const inf_response_t *response);
extern const struct inf_trace_ops_s inf_api_trace_ops;

/* Finds a READY model; *out is a reference; version -1: by policy. */
INF_CHECK inf_err_t *inf_api_find_model(inf_server_t *server,
    const char *name, int64_t version, inf_model_t **out);

/* Makes the configuration of a server from options; *out is a reference. */
INF_CHECK inf_err_t *inf_api_options_config(
    const TRITONSERVER_ServerOptions *options, inf_core_config_t **out);

#endif /* INF_ABI_API_H */
