/* device.c - see device.h */

#include "device.h"

#include <inttypes.h>

static TRITONSERVER_Error *bind_all(const ort_session_t *s,
    const ort_run_t *run);
static TRITONSERVER_Error *take_outputs(const ort_session_t *s,
    const ort_run_t *run);

TRITONSERVER_Error *
ort_device_input(const ort_session_t *s, const bk_input_t *in,
    const void **data)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(in->datatype);

    *data = NULL;
    if (s->device == NULL) {
        return NULL;
    }

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
        int64_t id = s->device_id;
        uint64_t len_bytes = 0;
        const void *at;

        TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(in->handle, i,
            &at, &len_bytes, &type, &id);
        if (err != NULL) {
            return err;
        }
        if (type != TRITONSERVER_MEMORY_GPU || len_bytes == 0) {
            continue;
        }

        if (id != s->device_id) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in memory of GPU %" PRId64 ", the model's "
                "instance runs on GPU %" PRId32, in->name, id, s->device_id);
        }
        if (in->buffer_count != 1 || len_bytes != in->len_bytes || size == 0) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in GPU memory in %" PRIu32 " pieces; this "
                "backend reads a whole tensor there", in->name,
                in->buffer_count);
        }
        if ((uintptr_t) at % size != 0) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in GPU memory at an address that is no "
                "multiple of the %" PRIu32 " bytes of an element", in->name,
                size);
        }
        *data = at;
    }

    return NULL;
}

bool
ort_device_takes(const ort_session_t *s, TRITONBACKEND_Request *request,
    const char *output)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = s->device_id;

    if (s->device == NULL) {
        return false;
    }

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputBufferProperties(
        request, output, NULL, &type, &id);
    if (err != NULL) {                  /* nobody knows: the CPU, most often */
        bk_err_drop(err);
        return false;
    }

    return type == TRITONSERVER_MEMORY_GPU && id == s->device_id;
}

TRITONSERVER_Error *
ort_device_output(const ort_session_t *s, TRITONBACKEND_Response *response,
    const ort_tensor_t *t, const int64_t *shape, uint32_t dims_count,
    uint64_t len_bytes, void **data, const OrtMemoryInfo **memory)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    TRITONBACKEND_Output *output;
    int64_t id = s->device_id;

    *memory = s->rt->cpu;
    if (s->device == NULL) {
        return bk_output_new(response, t->name, t->datatype, shape,
            dims_count, len_bytes, data);
    }

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &output,
        t->name, t->datatype, shape, dims_count);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, data, len_bytes, &type, &id);
    }
    if (err != NULL) {
        return err;
    }

    if (len_bytes != 0 && *data == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
            "output \"%s\" was given no memory for its %" PRIu64 " bytes",
            t->name, len_bytes);
    }

    if (type != TRITONSERVER_MEMORY_GPU) {
        return NULL;
    }

    if (id != s->device_id) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "output \"%s\" was given memory of GPU %" PRId64 ", the model's "
            "instance runs on GPU %" PRId32, t->name, id, s->device_id);
    }

    *memory = s->device;
    return NULL;
}

TRITONSERVER_Error *
ort_device_run(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;

    TRITONSERVER_Error *err = bind_all(s, run);
    if (err == NULL) {
        err = ort_err(s->rt, api->RunWithBinding(s->handle, s->run_options,
            s->binding), "execution failed");
    }
    if (err == NULL) {
        err = take_outputs(s, run);
    }

    /* the tensors' memory is the requests', which end before the next run */
    api->ClearBoundInputs(s->binding);
    api->ClearBoundOutputs(s->binding);
    return err;
}

static TRITONSERVER_Error *
bind_all(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;

    for (uint32_t i = 0; i < run->input_count; i++) {
        TRITONSERVER_Error *err = ort_err(s->rt, api->BindInput(s->binding,
            run->input_names[i], run->inputs[i]), "input \"%s\"",
            run->input_names[i]);
        if (err != NULL) {
            return err;
        }
    }

    for (uint32_t i = 0; i < run->output_count; i++) {
        OrtStatus *status = run->outputs[i] != NULL
            ? api->BindOutput(s->binding, run->output_names[i],
            run->outputs[i])
            : api->BindOutputToDevice(s->binding, run->output_names[i],
            s->rt->cpu);

        TRITONSERVER_Error *err = ort_err(s->rt, status, "output \"%s\"",
            run->output_names[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* The library gives a value for each output, also for those it was given. */
static TRITONSERVER_Error *
take_outputs(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;
    OrtValue **values = NULL;
    size_t count = 0;

    TRITONSERVER_Error *err = ort_err(s->rt, api->GetBoundOutputValues(
        s->binding, s->rt->allocator, &values, &count), "outputs");
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < count; i++) {
        if (i < run->output_count && run->outputs[i] == NULL) {
            run->outputs[i] = values[i];
        } else {
            api->ReleaseValue(values[i]);
        }
    }

    s->rt->allocator->Free(s->rt->allocator, values);
    return count == run->output_count ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%zu outputs in place of %"
        PRIu32, count, run->output_count);
}
