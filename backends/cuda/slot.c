/* slot.c - see slot.h */

#include "slot.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *slot_read(gpu_slot_t *slot,
    const gpu_program_t *program);
static TRITONSERVER_Error *read_input(gpu_slot_t *slot, uint32_t i,
    const gpu_program_t *program);
static TRITONSERVER_Error *check_shape(const bk_input_t *in,
    const gpu_tensor_t *t, bool batching);
static TRITONSERVER_Error *count_rows(gpu_slot_t *slot, const bk_input_t *in,
    int64_t most);
static TRITONSERVER_Error *read_outputs(gpu_slot_t *slot,
    const gpu_program_t *program);

void
gpu_slot_open(gpu_slot_t *slot, const gpu_program_t *program,
    TRITONBACKEND_Request *request)
{
    slot->request = request;
    slot->response = NULL;
    slot->rows = program->rows_most > 0 ? 0 : 1;
    memset(slot->inputs, 0, program->input_count * sizeof(*slot->inputs));
    memset(slot->wanted, 0, (program->tensor_count - program->input_count)
        * sizeof(*slot->wanted));
    memset(slot->states, 0, (program->tensor_count - program->input_count)
        * sizeof(TRITONBACKEND_State *));

    slot->err = TRITONBACKEND_ResponseNew(&slot->response, request);
    if (slot->err == NULL) {
        slot->err = bk_request_check_cancelled(request);
    }
    if (slot->err == NULL) {
        slot->err = slot_read(slot, program);
    }
}

bool
gpu_slot_joins(const gpu_slot_t *first, const gpu_slot_t *slot, int64_t rows,
    const gpu_program_t *program)
{
    if (program->rows_most == 0 || slot->err != NULL
        || rows + slot->rows > program->rows_most)
    {
        return false;
    }

    for (uint32_t i = 0; i < program->input_count; i++) {
        const bk_input_t *a = &first->inputs[i];
        const bk_input_t *b = &slot->inputs[i];

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
gpu_slots_fail(gpu_slot_t *slots, uint32_t count, TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].err == NULL) {
            slots[i].err = bk_err_new(TRITONSERVER_ErrorCode(err), "%s",
                TRITONSERVER_ErrorMessage(err));
        }
    }
    bk_err_drop(err);
}

void
gpu_slot_keep_states(gpu_slot_t *slot, const gpu_program_t *program)
{
    uint32_t outputs = program->tensor_count - program->input_count;

    for (uint32_t i = 0; slot->err == NULL && i < outputs; i++) {
        slot->err = slot->states[i] == NULL ? NULL
            : TRITONBACKEND_StateUpdate(slot->states[i]);
    }
}

void
gpu_slot_finish(gpu_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const bk_times_t *times)
{
    bk_request_finish(slot->request, slot->response, slot->err, instance,
        times);
    slot->response = NULL;
    slot->err = NULL;
}

void
gpu_slot_answer_aside(gpu_slot_t *slot, TRITONBACKEND_ModelInstance *instance,
    const bk_times_t *times)
{
    bk_request_report(slot->request, slot->err == NULL, instance, times);
    bk_request_fail(slot->request, slot->err);
    slot->err = NULL;
}

static TRITONSERVER_Error *
slot_read(gpu_slot_t *slot, const gpu_program_t *program)
{
    for (uint32_t i = 0; i < program->input_count; i++) {
        TRITONSERVER_Error *err = read_input(slot, i, program);
        if (err != NULL) {
            return err;
        }
    }

    return read_outputs(slot, program);
}

static TRITONSERVER_Error *
read_input(gpu_slot_t *slot, uint32_t i, const gpu_program_t *program)
{
    const gpu_tensor_t *t = &program->tensors[i];
    bk_input_t *in = &slot->inputs[i];
    bool batching = program->rows_most > 0;

    TRITONSERVER_Error *err = bk_input_open(in, slot->request, t->name);
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
        : count_rows(slot, in, program->rows_most);
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
count_rows(gpu_slot_t *slot, const bk_input_t *in, int64_t most)
{
    int64_t rows = in->shape[0];

    if (rows < 1 || rows > most || (slot->rows != 0 && slot->rows != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input \"%s\" has %"
            PRId64 " rows; the model takes 1 to %" PRId64 ", the same of each"
            " input", in->name, rows, most);
    }

    slot->rows = rows;
    return NULL;
}

static TRITONSERVER_Error *
read_outputs(gpu_slot_t *slot, const gpu_program_t *program)
{
    uint32_t outputs = program->tensor_count - program->input_count;
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(slot->request,
        &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char *name;

        err = TRITONBACKEND_RequestOutputName(slot->request, i, &name);
        if (err != NULL) {
            break;
        }

        uint32_t k = gpu_tensor_find(program->tensors + program->input_count,
            outputs, (gpu_word_t) { name, strlen(name) });
        if (k == outputs) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "the model has no output \"%s\"", name);
        }
        slot->wanted[k] = true;
    }

    /* optional inputs alone, all left out */
    if (err == NULL && slot->rows == 0) {
        slot->rows = 1;
    }
    return err;
}
