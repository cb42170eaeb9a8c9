/* slot.c - see slot.h */

#include "slot.h"

#include "device.h"

#include <inttypes.h>
#include <string.h>

#define TEXT_MAX 512

static TRITONSERVER_Error *slot_read(bk_slot_t *slot,
    const bk_slot_rules_t *rules);
static TRITONSERVER_Error *slot_read_input(bk_slot_t *slot, uint32_t i,
    const bk_slot_rules_t *rules);
static TRITONSERVER_Error *slot_check_input(const bk_input_t *in,
    const bk_tensor_t *t);
static TRITONSERVER_Error *slot_count_rows(bk_slot_t *slot,
    const bk_input_t *in);
static TRITONSERVER_Error *slot_read_outputs(bk_slot_t *slot,
    const bk_slot_rules_t *rules);

void
bk_slot_open(bk_slot_t *slot, const bk_slot_rules_t *rules,
    TRITONBACKEND_Request *request)
{
    slot->request = request;
    slot->response = NULL;
    slot->rows = rules->batching ? 0 : 1;
    slot->on_device = false;
    memset(slot->inputs, 0,
        rules->tensors->input_count * sizeof(*slot->inputs));
    memset(slot->wanted, 0,
        rules->tensors->output_count * sizeof(*slot->wanted));

    slot->err = TRITONBACKEND_ResponseNew(&slot->response, request);
    if (slot->err == NULL) {
        slot->err = slot_read(slot, rules);
    }
}

void
bk_slot_check_cancelled(bk_slot_t *slot)
{
    if (slot->err == NULL) {
        slot->err = bk_request_check_cancelled(slot->request);
    }
}

bool
bk_slot_joins(const bk_slot_t *a, const bk_slot_t *b,
    const bk_tensors_t *tensors)
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
bk_slot_restart(bk_slot_t *slot)
{
    bk_err_log(TRITONBACKEND_ResponseDelete(slot->response),
        "cannot delete a response");
    slot->response = NULL;
    slot->err = TRITONBACKEND_ResponseNew(&slot->response, slot->request);
}

void
bk_slot_finish(bk_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const bk_times_t *times)
{
    bk_request_finish(slot->request, slot->response, slot->err, instance,
        times);
    slot->response = NULL;
    slot->err = NULL;
}

static TRITONSERVER_Error *
slot_read(bk_slot_t *slot, const bk_slot_rules_t *rules)
{
    for (uint32_t i = 0; i < rules->tensors->input_count; i++) {
        TRITONSERVER_Error *err = slot_read_input(slot, i, rules);
        if (err != NULL) {
            return err;
        }
    }

    return slot_read_outputs(slot, rules);
}

static TRITONSERVER_Error *
slot_read_input(bk_slot_t *slot, uint32_t i, const bk_slot_rules_t *rules)
{
    const bk_tensor_t *t = &rules->tensors->inputs[i];
    bk_input_t *in = &slot->inputs[i];
    const void *data = NULL;

    if (t->made != NULL) {
        return NULL;                    /* by the batch                      */
    }

    TRITONSERVER_Error *err = bk_input_open(in, slot->request, t->name);
    if (err != NULL && t->has_default) {
        bk_err_drop(err);
        in->handle = NULL;
        return NULL;
    }

    if (err == NULL) {
        err = slot_check_input(in, t);
    }
    if (err == NULL && rules->batching) {
        err = slot_count_rows(slot, in);
    }
    if (err == NULL) {
        err = bk_device_input(in, rules->device_id, &data);
        slot->on_device = slot->on_device || data != NULL;
    }

    return err;
}

static TRITONSERVER_Error *
slot_check_input(const bk_input_t *in, const bk_tensor_t *t)
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
        && !bk_shape_fits(t, in->shape, in->dims_count))
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
slot_count_rows(bk_slot_t *slot, const bk_input_t *in)
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
slot_read_outputs(bk_slot_t *slot, const bk_slot_rules_t *rules)
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

        const bk_tensor_t *t = bk_tensors_output(rules->tensors, name);
        if (t == NULL || t->datatype == TRITONSERVER_TYPE_INVALID) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "the model has no output \"%s\" that a response can carry",
                name);
        }

        slot->wanted[t - rules->tensors->outputs] = true;
        slot->on_device = slot->on_device
            || bk_device_takes(slot->request, name, rules->device_id);
    }

    return err;
}
