/* request.c - see request.h */

#include "request.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

static TRITONSERVER_Error *input_read(bk_input_t *in);
static TRITONSERVER_Error *input_buffer(const bk_input_t *in, uint32_t index,
    const void **data, uint64_t *len_bytes);

uint64_t
bk_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

TRITONSERVER_Error *
bk_input_open(bk_input_t *in, TRITONBACKEND_Request *request,
    const char *name)
{
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, name,
        &in->handle);

    return err != NULL ? err : input_read(in);
}

TRITONSERVER_Error *
bk_input_open_at(bk_input_t *in, TRITONBACKEND_Request *request,
    uint32_t index)
{
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputByIndex(request,
        index, &in->handle);

    return err != NULL ? err : input_read(in);
}

TRITONSERVER_Error *
bk_input_buffer(const bk_input_t *in, uint32_t index, bk_buffer_t *buffer)
{
    const void *base;

    buffer->type = TRITONSERVER_MEMORY_CPU;
    buffer->id = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(in->handle, index,
        &base, &buffer->len_bytes, &buffer->type, &buffer->id);
    buffer->base = err == NULL ? (void *) (uintptr_t) base : NULL;
    return err;
}

TRITONSERVER_Error *
bk_input_view(const bk_input_t *in, const void **data)
{
    uint64_t len_bytes;

    *data = NULL;
    if (in->buffer_count != 1) {
        return NULL;
    }

    TRITONSERVER_Error *err = input_buffer(in, 0, data, &len_bytes);
    if (err == NULL && len_bytes != in->len_bytes) {
        *data = NULL;
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "input \"%s\" is said to have %" PRIu64 " bytes and has %" PRIu64,
            in->name, in->len_bytes, len_bytes);
    }

    return err;
}

TRITONSERVER_Error *
bk_input_copy(const bk_input_t *in, void *dst)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        const void *data;
        uint64_t len_bytes;

        TRITONSERVER_Error *err = input_buffer(in, i, &data, &len_bytes);
        if (err != NULL) {
            return err;
        }

        if (len_bytes > in->len_bytes - done) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "the buffers of input \"%s\" hold more than its %" PRIu64
                " bytes", in->name, in->len_bytes);
        }

        if (len_bytes != 0) {
            /* an output may be in the region of its input */
            memmove((char *) dst + done, data, len_bytes);
            done += len_bytes;
        }
    }

    if (done != in->len_bytes) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the buffers of input \"%s\" hold %" PRIu64 " of its %" PRIu64
            " bytes", in->name, done, in->len_bytes);
    }

    return NULL;
}

TRITONSERVER_Error *
bk_output_new(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    uint64_t len_bytes, void **data)
{
    bk_buffer_t buffer = {
        .len_bytes = len_bytes, .type = TRITONSERVER_MEMORY_CPU
    };

    TRITONSERVER_Error *err = bk_output_buffer(response, name, datatype, shape,
        dims_count, &buffer);
    if (err != NULL) {
        return err;
    }

    if (len_bytes != 0 && buffer.type == TRITONSERVER_MEMORY_GPU) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "output \"%s\" was given %s memory of device %" PRId64
            "; this backend writes CPU memory", name,
            TRITONSERVER_MemoryTypeString(buffer.type), buffer.id);
    }

    *data = buffer.base;
    return NULL;
}

TRITONSERVER_Error *
bk_output_buffer(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    bk_buffer_t *buffer)
{
    TRITONBACKEND_Output *output;

    buffer->base = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &output,
        name, datatype, shape, dims_count);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &buffer->base,
            buffer->len_bytes, &buffer->type, &buffer->id);
    }
    if (err == NULL && buffer->len_bytes != 0 && buffer->base == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "output \"%s\" was given no memory for its %" PRIu64 " bytes",
            name, buffer->len_bytes);
    }

    return err;
}

void
bk_response_send(TRITONBACKEND_Response *response, TRITONSERVER_Error *err)
{
    /* ResponseSend takes the response in any case, the error in none */
    bk_err_log(TRITONBACKEND_ResponseSend(response,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL, err), "cannot send a response");
    bk_err_drop(err);
}

void
bk_request_fail(TRITONBACKEND_Request *request, TRITONSERVER_Error *err)
{
    TRITONBACKEND_Response *response;

    TRITONSERVER_Error *cannot = TRITONBACKEND_ResponseNew(&response,
        request);
    if (cannot != NULL) {
        bk_err_log(cannot, "cannot answer a request");
        bk_err_log(err, "its error was");
        return;
    }

    bk_response_send(response, err);
}

void
bk_request_report(TRITONBACKEND_Request *request, bool success,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    bk_err_log(TRITONBACKEND_ModelInstanceReportStatistics(instance, request,
        success, times->start_ns, times->compute_start_ns,
        times->compute_end_ns, times->end_ns), "statistics");
}

/*
 * The figures are reported before the response leaves, so that a client that
 * has its answer also finds it counted.
 */
void
bk_request_finish(TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response, TRITONSERVER_Error *err,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    bk_request_report(request, err == NULL, instance, times);
    if (response != NULL) {
        bk_response_send(response, err);

    } else {
        bk_err_log(err, "cannot answer a request");
    }

    bk_request_release(request);
}

void
bk_request_release(TRITONBACKEND_Request *request)
{
    bk_err_log(TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_ALL), "cannot release a request");
}

bool
bk_request_in_sequence(TRITONBACKEND_Request *request)
{
    uint64_t id = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestCorrelationId(request,
        &id);
    bool text = err != NULL;            /* it has one, which is no number    */

    bk_err_drop(err);
    return text || id != 0;
}

TRITONSERVER_Error *
bk_request_check_cancelled(TRITONBACKEND_Request *request)
{
    bool cancelled = false;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestIsCancelled(request,
        &cancelled);
    if (err != NULL || !cancelled) {
        return err;
    }

    return bk_err_new(TRITONSERVER_ERROR_CANCELLED,
        "the request was cancelled");
}

static TRITONSERVER_Error *
input_read(bk_input_t *in)
{
    return TRITONBACKEND_InputProperties(in->handle, &in->name,
        &in->datatype, &in->shape, &in->dims_count, &in->len_bytes,
        &in->buffer_count);
}

static TRITONSERVER_Error *
input_buffer(const bk_input_t *in, uint32_t index, const void **data,
    uint64_t *len_bytes)
{
    bk_buffer_t buffer;

    TRITONSERVER_Error *err = bk_input_buffer(in, index, &buffer);
    if (err != NULL) {
        return err;
    }

    if (buffer.len_bytes != 0 && buffer.type == TRITONSERVER_MEMORY_GPU) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "input \"%s\" lies in %s memory of device %" PRId64
            "; this backend reads CPU memory", in->name,
            TRITONSERVER_MemoryTypeString(buffer.type), buffer.id);
    }

    *data = buffer.base;
    *len_bytes = buffer.len_bytes;
    return NULL;
}
