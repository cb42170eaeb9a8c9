/* run.c - see run.h */

#include "run.h"

#include "binding.h"
#include "text.h"

#include <stdlib.h>

static TRITONSERVER_Error *run_make(void *self, bk_run_t *run);
static void run_done(void *self, bk_run_t *run);
static TRITONSERVER_Error *input_make(const ort_run_t *r,
    const bk_value_t *v, OrtValue **out);
static TRITONSERVER_Error *value_over(const ort_run_t *r,
    const bk_value_t *v, OrtValue **out);
static TRITONSERVER_Error *session_run(const ort_run_t *r);
static TRITONSERVER_Error *output_read(const ort_run_t *r, uint32_t i,
    bk_value_t *v);
static TRITONSERVER_Error *shape_read(const ort_run_t *r,
    const OrtTensorTypeAndShapeInfo *info, bk_value_t *v);
static TRITONSERVER_Error *text_size(void *self, const bk_value_t *v,
    uint64_t first, uint64_t count, uint64_t *len_bytes);
static TRITONSERVER_Error *text_write(void *self, const bk_value_t *v,
    uint64_t first, uint64_t count, void *to);

const bk_runtime_t ort_run_functions = {
    .run = run_make,
    .done = run_done,
    .text_size = text_size,
    .text_write = text_write
};

TRITONSERVER_Error *
ort_run_init(ort_run_t *r, const ort_session_t *session)
{
    size_t ins = (size_t) session->tensors.input_count + 1;
    size_t outs = (size_t) session->tensors.output_count + 1;

    *r = (ort_run_t) {
        .session = session,
        .input_names = calloc(ins, sizeof(*r->input_names)),
        .inputs = calloc(ins, sizeof(*r->inputs)),
        .output_names = calloc(outs, sizeof(*r->output_names)),
        .outputs = calloc(outs, sizeof(*r->outputs))
    };

    if (r->input_names == NULL || r->inputs == NULL
        || r->output_names == NULL || r->outputs == NULL)
    {
        ort_run_fini(r);
        return bk_err_nomem("tables of a run");
    }

    return NULL;
}

void
ort_run_fini(ort_run_t *r)
{
    free(r->input_names);
    free(r->inputs);
    free(r->output_names);
    free(r->outputs);
    *r = (ort_run_t) { 0 };
}

static TRITONSERVER_Error *
run_make(void *self, bk_run_t *run)
{
    ort_run_t *r = self;

    r->input_count = run->input_count;
    r->output_count = run->output_count;
    for (uint32_t i = 0; i < run->input_count; i++) {
        const bk_value_t *v = &run->inputs[i];

        r->input_names[i] = v->tensor->name;
        TRITONSERVER_Error *err = input_make(r, v, &r->inputs[i]);
        if (err != NULL) {
            return err;
        }
    }

    for (uint32_t i = 0; i < run->output_count; i++) {
        const bk_value_t *v = &run->outputs[i];

        r->output_names[i] = v->tensor->name;
        TRITONSERVER_Error *err = v->preallocated
            ? value_over(r, v, &r->outputs[i]) : NULL;
        if (err != NULL) {
            return bk_err_add(err, "output \"%s\"", v->tensor->name);
        }
    }

    TRITONSERVER_Error *err = session_run(r);
    for (uint32_t i = 0; err == NULL && i < run->output_count; i++) {
        bk_value_t *v = &run->outputs[i];

        err = v->preallocated ? NULL : output_read(r, i, v);
    }

    return err;
}

static void
run_done(void *self, bk_run_t *run)
{
    ort_run_t *r = self;
    const OrtApi *api = r->session->rt->api;

    (void) run;
    for (uint32_t i = 0; i < r->input_count; i++) {
        api->ReleaseValue(r->inputs[i]);
        r->inputs[i] = NULL;
    }
    for (uint32_t i = 0; i < r->output_count; i++) {
        api->ReleaseValue(r->outputs[i]);
        r->outputs[i] = NULL;
    }
    r->input_count = 0;
    r->output_count = 0;
}

static TRITONSERVER_Error *
input_make(const ort_run_t *r, const bk_value_t *v, OrtValue **out)
{
    if (v->tensor->datatype == TRITONSERVER_TYPE_BYTES) {
        return ort_text_new(r->session->rt, v, out);
    }

    TRITONSERVER_Error *err = value_over(r, v, out);
    return err == NULL ? NULL
        : bk_err_add(err, "input \"%s\"", v->tensor->name);
}

/* a tensor of the library over memory that is not its own */
static TRITONSERVER_Error *
value_over(const ort_run_t *r, const bk_value_t *v, OrtValue **out)
{
    const ort_runtime_t *rt = r->session->rt;

    return ort_err(rt, rt->api->CreateTensorWithDataAsOrtValue(
        v->on_device ? r->session->device : rt->cpu, v->data, v->len_bytes,
        v->dims, v->dims_count, (ONNXTensorElementDataType) v->tensor->type,
        out), "tensor");
}

static TRITONSERVER_Error *
session_run(const ort_run_t *r)
{
    const ort_session_t *s = r->session;

    if (s->device != NULL) {
        return ort_binding_run(s, r);
    }

    return ort_err(s->rt, s->rt->api->Run(s->handle, s->run_options,
        r->input_names, (const OrtValue *const *) r->inputs, r->input_count,
        r->output_names, r->output_count, r->outputs), "execution failed");
}

static TRITONSERVER_Error *
output_read(const ort_run_t *r, uint32_t i, bk_value_t *v)
{
    const ort_runtime_t *rt = r->session->rt;
    OrtTensorTypeAndShapeInfo *info = NULL;

    v->handle = r->outputs[i];
    TRITONSERVER_Error *err = ort_err(rt,
        rt->api->GetTensorTypeAndShape(v->handle, &info), "shape");
    if (err == NULL) {
        err = shape_read(r, info, v);
        rt->api->ReleaseTensorTypeAndShapeInfo(info);
    }
    if (err == NULL && v->tensor->datatype != TRITONSERVER_TYPE_BYTES) {
        err = ort_err(rt, rt->api->GetTensorMutableData(v->handle, &v->data),
            "data");
    }

    return err == NULL ? NULL
        : bk_err_add(err, "output \"%s\"", v->tensor->name);
}

static TRITONSERVER_Error *
shape_read(const ort_run_t *r, const OrtTensorTypeAndShapeInfo *info,
    bk_value_t *v)
{
    const ort_runtime_t *rt = r->session->rt;
    size_t n = 0;

    TRITONSERVER_Error *err = ort_err(rt,
        rt->api->GetDimensionsCount(info, &n), "rank");
    if (err == NULL && n > BK_MAX_DIMS) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%zu dimensions, more than %d", n, BK_MAX_DIMS);
    }
    if (err == NULL) {
        v->dims_count = (uint32_t) n;
        err = ort_err(rt, rt->api->GetDimensions(info, v->dims, n),
            "dimensions");
    }

    return err;
}

static TRITONSERVER_Error *
text_size(void *self, const bk_value_t *v, uint64_t first, uint64_t count,
    uint64_t *len_bytes)
{
    const ort_run_t *r = self;

    return ort_text_size(r->session->rt, v->handle, first, count, len_bytes);
}

static TRITONSERVER_Error *
text_write(void *self, const bk_value_t *v, uint64_t first, uint64_t count,
    void *to)
{
    const ort_run_t *r = self;

    return ort_text_write(r->session->rt, v->handle, first, count, to);
}
