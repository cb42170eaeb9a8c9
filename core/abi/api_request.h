/*
 * api_request.h - a request of the C API.  The client's fields are kept apart
 *                 from the request object that each submit builds.
 *
 * Owner    The client, from creation to deletion; in flight the request object
 *          is the core's.
 * Thread   As the ABI says: one at a time, except cancel.
 * Units    bytes; timeouts are us.
 * Errors   The ABI's.
 * Route    client -> [api request] -> entrance
 */

#ifndef INF_ABI_API_REQUEST_H
#define INF_ABI_API_REQUEST_H

#include "core/abi/api.h"

typedef struct {
    inf_buffer_t buffer;
    bool         has_ipc_handle;
    uint8_t      ipc_handle[64];
} inf_api_chunk_t;

/* The chunks of an input: the default ones, or those for one host policy. */
typedef struct inf_api_data_s {
    struct inf_api_data_s *next;
    char                  *policy;
    inf_api_chunk_t       *chunks;
    uint32_t               count;
    uint32_t               cap;
} inf_api_data_t;

typedef struct {
    inf_buf_t       name;
    bool            raw;            /* name, datatype and shape come from the
                                       model                                 */
    inf_datatype_t  datatype;
    int64_t        *shape;
    uint32_t        dim_count;
    uint32_t        dim_cap;
    inf_api_data_t  data;           /* data.next: by host policy             */
} inf_api_input_t;

typedef struct {
    inf_request_t      request;     /* first: the backend's view; in flight it
                                       is the core's                         */
    inf_server_t      *server;
    inf_model_t       *model;       /* a reference                           */
    inf_api_pool_t    *pool;        /* a reference                           */
    inf_api_run_t     *run;         /* of the last submit; a reference       */

    inf_api_target_t   target;
    TRITONSERVER_InferenceRequestReleaseFn_t release;
    void              *release_userp;

    inf_buf_t          id;
    uint32_t           flags;
    uint64_t           correlation_id;
    inf_buf_t          correlation_text;
    bool               correlation_is_text;
    uint64_t           priority;
    uint64_t           timeout_us;

    inf_api_input_t   *inputs;      /* entries from input_count on are spare */
    uint32_t           input_count;
    uint32_t           input_cap;
    inf_buf_t         *outputs;     /* likewise                              */
    uint32_t           output_count;
    uint32_t           output_cap;
    inf_arena_t        arena;       /* of parameters, which are only added   */
    inf_parameter_list_t parameters;
} inf_api_request_t;

INF_ABI_OBJECT(TRITONSERVER_InferenceRequest, inf_api_request_t,
    as_client_request)

/* Sets b to text and a NUL that its length does not count. */
INF_CHECK inf_err_t *inf_api_set_text(inf_buf_t *b, const char *text);

/* Removes the data of the input; in->data itself is kept. */
void inf_api_clear_data(inf_api_input_t *in);

#endif /* INF_ABI_API_REQUEST_H */
