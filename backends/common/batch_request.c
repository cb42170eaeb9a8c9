/* batch_request.c - see batch_request.h */

#include "batch_request.h"

#include "device.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 512

static TRITONSERVER_Error *request_read(bk_batch_request_t *req,
    const bk_instance_config_t *config);
static TRITONSERVER_Error *request_read_input(bk_batch_request_t *req,
    uint32_t i, const bk_instance_config_t *config);
static TRITONSERVER_Error *request_check_input(const bk_input_t *in,
    const bk_tensor_t *t);
static TRITONSERVER_Error *request_count_rows(bk_batch_request_t *req,
    const bk_input_t *in);
static TRITONSERVER_Error *request_read_outputs(bk_batch_request_t *req,
    const bk_instance_config_t *config);

void
bk_batch_request_open(bk_batch_request_t *req,
    const bk_instance_config_t *config, TRITONBACKEND_Request *request)
{
    req->handle = request;
    req->response = NULL;
    req->rows = config->batching ? 0 : 1;
    req->on_device = false;
    memset(req->inputs, 0,
        config->tensors->input_count * sizeof(*req->inputs));
    memset(req->wanted, 0,
        config->tensors->output_count * sizeof(*req->wanted));

    req->err = TRITONBACKEND_ResponseNew(&req->response, request);
    if (req->err == NULL) {
        req->err = request_read(req, config);
    }
}

void
bk_batch_request_check_cancelled(bk_batch_request_t *req)
{
    if (req->err == NULL) {
        req->err = bk_request_check_cancelled(req->handle);
    }
}

bool
bk_batch_requests_compatible(const bk_batch_request_t *a,
    const bk_batch_request_t *b, const bk_tensors_t *tensors)
{
    if (a->on_device || b->on_device) {
        return false;
    }

    for (uint32_t i = 0; i < tensors->input_count; i++) {
        const bk_input_t *x = &a->inputs[i];
        const bk_input_t *y = &b->inputs[i];

        if ((x->handle == NULL) != (y->handle == NULL)) {
            return false;
        }

        if (x->handle == NULL || tensors->inputs[i].ragged) {
            continue;
        }

        if (x->dims_count != y->dims_count || x->dims_count == 0
            || memcmp(x->shape + 1, y->shape + 1,
                (x->dims_count - 1) * sizeof(*x->shape)) != 0)
        {
            return false;
        }
    }

    return true;
}

void
bk_batch_request_restart(bk_batch_request_t *req)
{
    bk_err_log(TRITONBACKEND_ResponseDelete(req->response),
        "cannot delete a response");
    req->response = NULL;
    req->err = TRITONBACKEND_ResponseNew(&req->response, req->handle);
}

void
bk_batch_request_finish(bk_batch_request_t *req,
    TRITONBACKEND_ModelInstance *instance, const bk_times_t *times)
{
    bk_request_finish(req->handle, req->response, req->err, instance,
        times);
    req->response = NULL;
    req->err = NULL;
}

static TRITONSERVER_Error *
request_read(bk_batch_request_t *req, const bk_instance_config_t *config)
{
    for (uint32_t i = 0; i < config->tensors->input_count; i++) {
        TRITONSERVER_Error *err = request_read_input(req, i, config);
        if (err != NULL) {
            return err;
        }
    }

    return request_read_outputs(req, config);
}

static TRITONSERVER_Error *
request_read_input(bk_batch_request_t *req, uint32_t i,
    const bk_instance_config_t *config)
{
    const bk_tensor_t *t = &config->tensors->inputs[i];
    bk_input_t *in = &req->inputs[i];
    const void *data = NULL;

    if (t->batch_input != NULL) {
        return NULL;                    /* by the batch                      */
    }

    TRITONSERVER_Error *err = bk_input_open(in, req->handle, t->name);
    if (err != NULL && t->has_default) {
        bk_err_drop(err);
        in->handle = NULL;
        return NULL;
    }

    if (err == NULL) {
        err = request_check_input(in, t);
    }
    if (err == NULL && config->batching) {
        err = request_count_rows(req, in);
    }
    if (err == NULL) {
        err = bk_device_input(in, config->device_id, &data);
        req->on_device = req->on_device || data != NULL;
    }

    return err;
}

static TRITONSERVER_Error *
request_check_input(const bk_input_t *in, const bk_tensor_t *t)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    uint64_t elements;
    char expected[TEXT_MAX];
    char got[TEXT_MAX];

    if (in->datatype != t->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" is %s, the model takes %s", t->name,
            TRITONSERVER_DataTypeString(in->datatype),
            TRITONSERVER_DataTypeString(t->datatype));
    }

    if ((!t->ragged && !t->control
        && !bk_shape_matches(t, in->shape, in->dims_count))
        || !bk_elements(in->shape, in->dims_count, &elements))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has shape %s, the model takes %s", t->name,
            bk_dims_text(in->shape, in->dims_count, got, sizeof(got)),
            bk_dims_text(t->dims, t->dims_count, expected,
            sizeof(expected)));
    }

    /* the core makes it, [1] or, in a batch, [1,1] */
    if (t->control && elements != 1) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "control input \"%s\" has %" PRIu64 " elements in one request",
            t->name, elements);
    }

    uint64_t bytes;
    if (size != 0 && (__builtin_mul_overflow(elements, size, &bytes)
        || bytes != in->len_bytes))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has %" PRIu64 " bytes, its shape %s needs %" PRIu64
            " elements of %" PRIu32, t->name, in->len_bytes,
            bk_dims_text(in->shape, in->dims_count, got, sizeof(got)),
            elements, size);
    }

    return NULL;
}

static TRITONSERVER_Error *
request_count_rows(bk_batch_request_t *req, const bk_input_t *in)
{
    uint64_t rows = in->dims_count == 0 ? 0 : (uint64_t) in->shape[0];

    if (rows == 0 || (req->rows != 0 && req->rows != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has a batch of %" PRIu64 " rows, the inputs before "
            "it %" PRIu64, in->name, rows, req->rows);
    }

    req->rows = rows;
    return NULL;
}

static TRITONSERVER_Error *
request_read_outputs(bk_batch_request_t *req,
    const bk_instance_config_t *config)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(req->handle,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(req->handle, i, &name);
        if (err != NULL) {
            break;
        }

        const bk_tensor_t *t = bk_tensors_output(config->tensors, name);
        if (t == NULL || t->datatype == TRITONSERVER_TYPE_INVALID) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "the model has no output \"%s\" that a response can carry",
                name);
        }

        req->wanted[t - config->tensors->outputs] = true;
        req->on_device = req->on_device
            || bk_device_accepts(req->handle, name, config->device_id);
    }

    return err;
}
