/* batch_request.c - see batch_request.h */

#include "batch_request.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *request_read(gpu_batch_request_t *req,
    const gpu_program_t *program);
static TRITONSERVER_Error *read_input(gpu_batch_request_t *req, uint32_t i,
    const gpu_program_t *program);
static TRITONSERVER_Error *check_shape(const bk_input_t *in,
    const gpu_tensor_t *t, bool batching);
static TRITONSERVER_Error *count_rows(gpu_batch_request_t *req,
    const bk_input_t *in, int64_t most);
static TRITONSERVER_Error *read_outputs(gpu_batch_request_t *req,
    const gpu_program_t *program);

void
gpu_batch_request_open(gpu_batch_request_t *req, const gpu_program_t *program,
    TRITONBACKEND_Request *request)
{
    req->handle = request;
    req->response = NULL;
    req->rows = program->rows_most > 0 ? 0 : 1;
    memset(req->inputs, 0, program->input_count * sizeof(*req->inputs));
    memset(req->wanted, 0, (program->tensor_count - program->input_count)
        * sizeof(*req->wanted));
    memset(req->states, 0, (program->tensor_count - program->input_count)
        * sizeof(TRITONBACKEND_State *));

    req->err = TRITONBACKEND_ResponseNew(&req->response, request);
    if (req->err == NULL) {
        req->err = bk_request_check_cancelled(request);
    }
    if (req->err == NULL) {
        req->err = request_read(req, program);
    }
}

bool
gpu_batch_requests_compatible(const gpu_batch_request_t *first,
    const gpu_batch_request_t *req, int64_t rows, const gpu_program_t *program)
{
    if (program->rows_most == 0 || req->err != NULL
        || rows + req->rows > program->rows_most)
    {
        return false;
    }

    for (uint32_t i = 0; i < program->input_count; i++) {
        const bk_input_t *a = &first->inputs[i];
        const bk_input_t *b = &req->inputs[i];

        if ((a->handle == NULL) != (b->handle == NULL)
            || (a->handle != NULL && memcmp(a->shape + 1, b->shape + 1,
                program->tensors[i].dims_count * sizeof(*a->shape)) != 0))
        {
            return false;
        }
    }

    return true;
}

void
gpu_batch_requests_fail(gpu_batch_request_t *reqs, uint32_t count,
    TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (reqs[i].err == NULL) {
            reqs[i].err = bk_err_new(TRITONSERVER_ErrorCode(err), "%s",
                TRITONSERVER_ErrorMessage(err));
        }
    }
    bk_err_drop(err);
}

void
gpu_batch_request_keep_states(gpu_batch_request_t *req,
    const gpu_program_t *program)
{
    uint32_t outputs = program->tensor_count - program->input_count;

    for (uint32_t i = 0; req->err == NULL && i < outputs; i++) {
        req->err = req->states[i] == NULL ? NULL
            : TRITONBACKEND_StateUpdate(req->states[i]);
    }
}

void
gpu_batch_request_finish(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    bk_request_finish(req->handle, req->response, req->err, instance,
        times);
    req->response = NULL;
    req->err = NULL;
}

void
gpu_batch_request_answer_aside(gpu_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    bk_request_report(req->handle, req->err == NULL, instance, times);
    bk_request_fail(req->handle, req->err);
    req->err = NULL;
}

static TRITONSERVER_Error *
request_read(gpu_batch_request_t *req, const gpu_program_t *program)
{
    for (uint32_t i = 0; i < program->input_count; i++) {
        TRITONSERVER_Error *err = read_input(req, i, program);
        if (err != NULL) {
            return err;
        }
    }

    return read_outputs(req, program);
}

static TRITONSERVER_Error *
read_input(gpu_batch_request_t *req, uint32_t i, const gpu_program_t *program)
{
    const gpu_tensor_t *t = &program->tensors[i];
    bk_input_t *in = &req->inputs[i];
    bool batching = program->rows_most > 0;

    TRITONSERVER_Error *err = bk_input_open(in, req->handle, t->name);
    if (err != NULL) {
        TRITONSERVER_Error_Code code = TRITONSERVER_ErrorCode(err);

        in->handle = NULL;
        if (t->optional && (code == TRITONSERVER_ERROR_INVALID_ARG
            || code == TRITONSERVER_ERROR_NOT_FOUND))
        {
            bk_err_drop(err);
            err = NULL;
        }
        return err;
    }

    if (in->datatype != t->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" is %s, the model takes %s", t->name,
            TRITONSERVER_DataTypeString(in->datatype),
            TRITONSERVER_DataTypeString(t->datatype));
    }

    err = check_shape(in, t, batching);
    return err != NULL || !batching ? err
        : count_rows(req, in, program->rows_most);
}

static TRITONSERVER_Error *
check_shape(const bk_input_t *in, const gpu_tensor_t *t, bool batching)
{
    bool fits = in->dims_count == t->dims_count + batching;
    uint64_t bytes = t->size;

    for (uint32_t d = 0; fits && d < in->dims_count; d++) {
        int64_t dim = in->shape[d];
        int64_t configured = batching ? (d == 0 ? -1 : t->dims[d - 1])
            : t->dims[d];

        fits = dim >= 0 && (configured == -1 || configured == dim)
            && !__builtin_mul_overflow(bytes, (uint64_t) dim, &bytes);
    }
    if (!fits) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" does not have the shape of the configuration",
            t->name);
    }

    return bytes == in->len_bytes ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input \"%s\" has %"
            PRIu64 " bytes, its shape needs %" PRIu64, t->name, in->len_bytes,
            bytes);
}

static TRITONSERVER_Error *
count_rows(gpu_batch_request_t *req, const bk_input_t *in, int64_t most)
{
    int64_t rows = in->shape[0];

    if (rows < 1 || rows > most || (req->rows != 0 && req->rows != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input \"%s\" has %"
            PRId64 " rows; the model takes 1 to %" PRId64 ", the same of each"
            " input", in->name, rows, most);
    }

    req->rows = rows;
    return NULL;
}

static TRITONSERVER_Error *
read_outputs(gpu_batch_request_t *req, const gpu_program_t *program)
{
    uint32_t outputs = program->tensor_count - program->input_count;
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(req->handle,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(req->handle, i, &name);
        if (err != NULL) {
            break;
        }

        uint32_t k = gpu_tensor_find(program->tensors + program->input_count,
            outputs, (gpu_word_t) { name, strlen(name) });
        if (k == outputs) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "the model has no output \"%s\"", name);
        }
        req->wanted[k] = true;
    }

    /* optional inputs alone, all left out */
    if (err == NULL && req->rows == 0) {
        req->rows = 1;
    }
    return err;
}
