/*
 * request.h - one request as a backend sees it: inputs in, outputs out.
 *
 * Owner    The backend owns the request from Execute until its release, which
 *          ends the memory that bk_input_t points to, too.
 * Thread   one request, one thread.
 * Units    sizes in bytes, timestamps in ns on the monotonic clock.
 * Errors   INVALID_ARG: a tensor is missing or inconsistent.  UNSUPPORTED:
 *          memory that the CPU cannot reach, named in the text.
 * Route    Execute -> [request] -> response -> release
 *
 * Instances of KIND_CPU and KIND_MODEL have all tensors in CPU memory: the core
 * copies those that lie on a GPU.  Instances of KIND_GPU use bk_input_buffer
 * and bk_output_buffer, which know the memory type; the other functions reject
 * memory of a GPU.
 */

#ifndef BK_REQUEST_H
#define BK_REQUEST_H

#include "error.h"

typedef struct {
    TRITONBACKEND_Input   *handle;
    const char            *name;
    const int64_t         *shape;           /* with the batch dimension      */
    uint64_t               len_bytes;       /* sum over all buffers          */
    TRITONSERVER_DataType  datatype;
    uint32_t               dims_count;
    uint32_t               buffer_count;
} bk_input_t;

/* A buffer and its memory type; id: the GPU's number, for GPU memory. */
typedef struct {
    void                    *base;
    uint64_t                 len_bytes;
    TRITONSERVER_MemoryType  type;
    int64_t                  id;
} bk_buffer_t;

/* The times of an execution, for the statistics. */
typedef struct {
    uint64_t start_ns;
    uint64_t compute_start_ns;
    uint64_t compute_end_ns;
    uint64_t end_ns;
} bk_times_t;

/* The monotonic clock. */
uint64_t bk_now_ns(void);

/* Opens the request's input name. */
BK_CHECK TRITONSERVER_Error *bk_input_open(bk_input_t *in,
    TRITONBACKEND_Request *request, const char *name);

/* Opens the request's input at index, in the core's order. */
BK_CHECK TRITONSERVER_Error *bk_input_open_at(bk_input_t *in,
    TRITONBACKEND_Request *request, uint32_t index);

/* The buffer at index; its base may be NULL when it is empty. */
BK_CHECK TRITONSERVER_Error *bk_input_buffer(const bk_input_t *in,
    uint32_t index, bk_buffer_t *buffer);

/* *data is the data in place, or NULL if the input is empty or consists of
 * several buffers. */
BK_CHECK TRITONSERVER_Error *bk_input_view(const bk_input_t *in,
    const void **data);

/* Copies all buffers to dst, in->len_bytes bytes in all. */
BK_CHECK TRITONSERVER_Error *bk_input_copy(const bk_input_t *in, void *dst);

/* Adds an output to response and allocates len_bytes for it in CPU memory;
 * *data may be NULL when len_bytes is 0. */
BK_CHECK TRITONSERVER_Error *bk_output_new(TRITONBACKEND_Response *response,
    const char *name, TRITONSERVER_DataType datatype, const int64_t *shape,
    uint32_t dims_count, uint64_t len_bytes, void **data);

/* As bk_output_new, in memory of any type: buffer has len_bytes and the
 * preferred type and id, and gets base and the actual type and id. */
BK_CHECK TRITONSERVER_Error *bk_output_buffer(TRITONBACKEND_Response *response,
    const char *name, TRITONSERVER_DataType datatype, const int64_t *shape,
    uint32_t dims_count, bk_buffer_t *buffer);

/* Sends the final response, or err in place of its outputs.  Takes both. */
void bk_response_send(TRITONBACKEND_Response *response,
    TRITONSERVER_Error *err);

/* Sends err as the only response.  Takes err, not request. */
void bk_request_fail(TRITONBACKEND_Request *request, TRITONSERVER_Error *err);

/* Reports the times of a successful or failed request. */
void bk_request_report(TRITONBACKEND_Request *request, bool success,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

/* Ends a request: reports the times, sends the final response, or err in place
 * of its outputs, and releases the request.  Takes all three; response may be
 * NULL if it could not be created. */
void bk_request_finish(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, TRITONSERVER_Error *err,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times);

/* Gives the request back to the core. */
void bk_request_release(TRITONBACKEND_Request *request);

/* A sample of the warm-up is in none, and leaves no state. */
bool bk_request_in_sequence(TRITONBACKEND_Request *request);

/* A CANCELLED error when the client has given up, else NULL. */
BK_CHECK TRITONSERVER_Error *bk_request_check_cancelled(
    TRITONBACKEND_Request *request);

#endif /* BK_REQUEST_H */
