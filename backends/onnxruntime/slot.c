/* slot.c - see slot.h */

#include "slot.h"

#include "device.h"
#include "fit.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 512

static TRITONSERVER_Error *slot_read(ort_slot_t *slot,
    const ort_model_t *model, const ort_session_t *session);
static TRITONSERVER_Error *slot_read_input(ort_slot_t *slot, uint32_t i,
    const ort_model_t *model, const ort_session_t *session);
static TRITONSERVER_Error *slot_check_input(const bk_input_t *in,
    const ort_tensor_t *t);
static TRITONSERVER_Error *slot_count_rows(ort_slot_t *slot,
    const bk_input_t *in);
static TRITONSERVER_Error *slot_read_outputs(ort_slot_t *slot,
    const ort_session_t *session);

void
ort_slot_open(ort_slot_t *slot, const ort_model_t *model,
    const ort_session_t *session, TRITONBACKEND_Request *request)
{
    slot->request = request;
    slot->response = NULL;
    slot->rows = model->config.max_batch_size > 0 ? 0 : 1;
    slot->on_device = false;
    memset(slot->inputs, 0, session->input_count * sizeof(*slot->inputs));
    memset(slot->wanted, 0, session->output_count * sizeof(*slot->wanted));

    slot->err = TRITONBACKEND_ResponseNew(&slot->response, request);
    if (slot->err == NULL) {
        slot->err = bk_request_check_cancelled(request);
    }
    if (slot->err == NULL) {
        slot->err = slot_read(slot, model, session);
    }
}

bool
ort_slot_joins(const ort_slot_t *a, const ort_slot_t *b,
    const ort_session_t *session)
{
    if (a->on_device || b->on_device) {
        return false;
    }

    for (uint32_t i = 0; i < session->input_count; i++) {
        const bk_input_t *x = &a->inputs[i];
        const bk_input_t *y = &b->inputs[i];

        if ((x->handle == NULL) != (y->handle == NULL)) {
            return false;
        }

        if (x->handle == NULL || session->inputs[i].ragged) {
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
ort_slot_restart(ort_slot_t *slot)
{
    bk_err_log(TRITONBACKEND_ResponseDelete(slot->response),
        "cannot delete a response");
    slot->response = NULL;
    slot->err = TRITONBACKEND_ResponseNew(&slot->response, slot->request);
}

/*
 * The figures are reported before the response leaves, so that a client that
 * has its answer also finds it counted.
 */
void
ort_slot_finish(ort_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const ort_times_t *times)
{
    bk_err_log(TRITONBACKEND_ModelInstanceReportStatistics(instance,
        slot->request, slot->err == NULL, times->start_ns,
        times->compute_start_ns, times->compute_end_ns, times->end_ns),
        "statistics");

    if (slot->response != NULL) {
        bk_response_send(slot->response, slot->err);

    } else {
        bk_err_log(slot->err, "cannot answer a request");
    }

    slot->response = NULL;
    slot->err = NULL;
    bk_request_release(slot->request);
}

bool
ort_elements(const int64_t *shape, uint32_t dims_count, uint64_t *elements)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < dims_count; i++) {
        if (shape[i] < 0
            || __builtin_mul_overflow(n, (uint64_t) shape[i], &n))
        {
            return false;
        }
    }

    *elements = n;
    return true;
}

static TRITONSERVER_Error *
slot_read(ort_slot_t *slot, const ort_model_t *model,
    const ort_session_t *session)
{
    for (uint32_t i = 0; i < session->input_count; i++) {
        TRITONSERVER_Error *err = slot_read_input(slot, i, model, session);
        if (err != NULL) {
            return err;
        }
    }

    return slot_read_outputs(slot, session);
}

static TRITONSERVER_Error *
slot_read_input(ort_slot_t *slot, uint32_t i, const ort_model_t *model,
    const ort_session_t *session)
{
    const ort_tensor_t *t = &session->inputs[i];
    bk_input_t *in = &slot->inputs[i];
    const void *data = NULL;

    if (t->made != NULL) {
        return NULL;                    /* by the batch                      */
    }

    TRITONSERVER_Error *err = bk_input_open(in, slot->request, t->name);
    if (err != NULL && t->initializer) {
        bk_err_drop(err);
        in->handle = NULL;
        return NULL;
    }

    if (err == NULL) {
        err = slot_check_input(in, t);
    }
    if (err == NULL && model->config.max_batch_size > 0) {
        err = slot_count_rows(slot, in);
    }
    if (err == NULL) {
        err = ort_device_input(session, in, &data);
        slot->on_device = slot->on_device || data != NULL;
    }

    return err;
}

static TRITONSERVER_Error *
slot_check_input(const bk_input_t *in, const ort_tensor_t *t)
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

    if ((!t->ragged && !ort_shape_fits(t, in->shape, in->dims_count))
        || !ort_elements(in->shape, in->dims_count, &elements))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has shape %s, the model takes %s", t->name,
            ort_dims_text(in->shape, in->dims_count, got, sizeof(got)),
            ort_dims_text(t->dims, t->dims_count, expected,
            sizeof(expected)));
    }

    uint64_t bytes;
    if (size != 0 && (__builtin_mul_overflow(elements, size, &bytes)
        || bytes != in->len_bytes))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has %" PRIu64 " bytes, its shape %s needs %" PRIu64
            " elements of %" PRIu32, t->name, in->len_bytes,
            ort_dims_text(in->shape, in->dims_count, got, sizeof(got)),
            elements, size);
    }

    return NULL;
}

static TRITONSERVER_Error *
slot_count_rows(ort_slot_t *slot, const bk_input_t *in)
{
    uint64_t rows = in->dims_count == 0 ? 0 : (uint64_t) in->shape[0];

    if (rows == 0 || (slot->rows != 0 && slot->rows != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has a batch of %" PRIu64 " rows, the inputs before "
            "it %" PRIu64, in->name, rows, slot->rows);
    }

    slot->rows = rows;
    return NULL;
}

static TRITONSERVER_Error *
slot_read_outputs(ort_slot_t *slot, const ort_session_t *session)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(slot->request,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(slot->request, i, &name);
        if (err != NULL) {
            break;
        }

        const ort_tensor_t *t = ort_session_output(session, name);
        if (t == NULL || t->datatype == TRITONSERVER_TYPE_INVALID) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "the model has no output \"%s\" that a response can carry",
                name);
        }

        slot->wanted[t - session->outputs] = true;
        slot->on_device = slot->on_device
            || ort_device_takes(session, slot->request, name);
    }

    return err;
}
