/* batch_tensors.c - see batch_tensors.h */

#include "batch_tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INT32_TOP UINT64_C(0x7fffffff)
#define FP32_TOP  (UINT64_C(1) << 24)   /* whole numbers are exact up to it  */

static const char *const kinds[] = {
    "BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE",
    "BATCH_ITEM_SHAPE_FLATTEN"
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* Where the next value goes. */
typedef struct {
    const bk_batch_input_t *in;
    void                   *to;
    uint64_t                at;
    uint64_t                end;
} writer_t;

static uint32_t targets_count(const bk_json_t *list);
static TRITONSERVER_Error *input_load(const bk_json_t *v,
    bk_batch_input_t *in);
static const char *source_of(const bk_json_t *v);
static TRITONSERVER_Error *put(writer_t *w, uint64_t value);
static TRITONSERVER_Error *put_counts(writer_t *w,
    const bk_batch_source_t *sources, uint32_t count);
static TRITONSERVER_Error *put_shapes(writer_t *w,
    const bk_batch_source_t *sources, uint32_t count, uint32_t from);

TRITONSERVER_Error *
bk_batch_tensors_load(bk_batch_tensors_t *t, const bk_json_t *config)
{
    const bk_json_t *inputs = bk_json_member(config, "batch_input");
    const bk_json_t *outputs = bk_json_member(config, "batch_output");

    *t = (bk_batch_tensors_t) {
        .inputs = calloc(targets_count(inputs) + (size_t) 1,
            sizeof(*t->inputs)),
        .outputs = calloc(bk_json_count(outputs) + 1, sizeof(*t->outputs))
    };
    if (t->inputs == NULL || t->outputs == NULL) {
        return bk_err_nomem("batch tensors");
    }

    for (size_t i = 0; i < bk_json_count(inputs); i++) {
        const bk_json_t *v = bk_json_at(inputs, i);
        const bk_json_t *names = bk_json_member(v, "target_name");
        bk_batch_input_t in;

        TRITONSERVER_Error *err = input_load(v, &in);
        if (err != NULL) {
            return err;
        }
        for (size_t k = 0; k < bk_json_count(names); k++) {
            in.target = bk_json_string(bk_json_at(names, k), "");
            t->inputs[t->input_count++] = in;
        }
    }

    /* of several targets the first alone is meant, as in Triton */
    for (size_t i = 0; i < bk_json_count(outputs); i++) {
        const bk_json_t *v = bk_json_at(outputs, i);
        const char *target = bk_json_string(bk_json_at(
            bk_json_member(v, "target_name"), 0), NULL);

        if (target == NULL || source_of(v) == NULL) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "batch_output %zu needs a target_name and a source_input", i);
        }
        t->outputs[t->output_count++] = (bk_batch_output_t) {
            .target = target, .source = source_of(v)
        };
    }

    return NULL;
}

void
bk_batch_tensors_fini(bk_batch_tensors_t *t)
{
    free(t->inputs);
    free(t->outputs);
    *t = (bk_batch_tensors_t) { 0 };
}

const bk_batch_input_t *
bk_batch_input_find(const bk_batch_tensors_t *t, const char *target)
{
    for (uint32_t i = 0; i < t->input_count; i++) {
        if (strcmp(t->inputs[i].target, target) == 0) {
            return &t->inputs[i];
        }
    }

    return NULL;
}

const bk_batch_output_t *
bk_batch_output_find(const bk_batch_tensors_t *t, const char *target)
{
    for (uint32_t i = 0; i < t->output_count; i++) {
        if (strcmp(t->outputs[i].target, target) == 0) {
            return &t->outputs[i];
        }
    }

    return NULL;
}

uint32_t
bk_batch_input_rank(const bk_batch_input_t *in)
{
    return in->kind == BK_ITEM_SHAPE ? 2 : 1;
}

TRITONSERVER_Error *
bk_batch_input_shape(const bk_batch_input_t *in,
    const bk_batch_source_t *sources, uint32_t count, bool batching,
    int64_t dims[2], uint64_t *elements)
{
    uint64_t rank = sources[0].dims_count - (batching ? 1 : 0);
    uint64_t rows = 0;
    uint64_t most = 0;

    for (uint32_t i = 0; i < count; i++) {
        rows += sources[i].rows;
        most = sources[i].elements > most ? sources[i].elements : most;
        if (sources[i].dims_count != sources[0].dims_count) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "batch input \"%s\": requests differ in the dimensions of "
                "\"%s\"", in->target, in->source);
        }
    }

    dims[1] = 1;
    switch (in->kind) {
    case BK_ELEMENT_COUNT:
    case BK_ACCUMULATED_COUNT:
        dims[0] = count;
        break;
    case BK_ACCUMULATED_COUNT_WITH_ZERO:
        dims[0] = (int64_t) count + 1;
        break;
    case BK_MAX_COUNT_AS_SHAPE:
        dims[0] = (int64_t) most;
        break;
    case BK_ITEM_SHAPE:
        dims[0] = (int64_t) rows;
        dims[1] = (int64_t) rank;
        break;
    case BK_ITEM_SHAPE_FLATTEN:
        dims[0] = (int64_t) (rows * rank);
        break;
    }

    *elements = (uint64_t) dims[0] * (uint64_t) dims[1];
    return NULL;
}

TRITONSERVER_Error *
bk_batch_input_write(const bk_batch_input_t *in,
    const bk_batch_source_t *sources, uint32_t count, bool batching,
    void *to, uint64_t elements)
{
    writer_t w = { .in = in, .to = to, .end = elements };

    memset(to, 0, elements * 4);
    switch (in->kind) {
    case BK_ELEMENT_COUNT:
    case BK_ACCUMULATED_COUNT:
    case BK_ACCUMULATED_COUNT_WITH_ZERO:
        return put_counts(&w, sources, count);
    case BK_MAX_COUNT_AS_SHAPE:
        return NULL;
    case BK_ITEM_SHAPE:
    case BK_ITEM_SHAPE_FLATTEN:
        return put_shapes(&w, sources, count, batching ? 1 : 0);
    }

    return NULL;
}

static uint32_t
targets_count(const bk_json_t *list)
{
    size_t n = 0;

    for (size_t i = 0; i < bk_json_count(list); i++) {
        n += bk_json_count(bk_json_member(bk_json_at(list, i),
            "target_name"));
    }

    return (uint32_t) n;
}

static TRITONSERVER_Error *
input_load(const bk_json_t *v, bk_batch_input_t *in)
{
    const char *kind = bk_json_string(bk_json_member(v, "kind"), kinds[0]);
    const char *type = bk_json_string(bk_json_member(v, "data_type"), "");

    *in = (bk_batch_input_t) { .source = source_of(v) };
    in->datatype = strcmp(type, "TYPE_INT32") == 0 ? TRITONSERVER_TYPE_INT32
        : strcmp(type, "TYPE_FP32") == 0 ? TRITONSERVER_TYPE_FP32
        : TRITONSERVER_TYPE_INVALID;
    while (in->kind < KIND_COUNT && strcmp(kinds[in->kind], kind) != 0) {
        in->kind++;
    }

    if (in->source == NULL || in->kind == KIND_COUNT
        || in->datatype == TRITONSERVER_TYPE_INVALID)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "batch_input of kind \"%s\" and data_type \"%s\" from \"%s\" is "
            "not known", kind, type, in->source != NULL ? in->source : "");
    }

    return NULL;
}

static const char *
source_of(const bk_json_t *v)
{
    return bk_json_string(bk_json_at(bk_json_member(v, "source_input"), 0),
        NULL);
}

static TRITONSERVER_Error *
put(writer_t *w, uint64_t value)
{
    bool whole = w->in->datatype == TRITONSERVER_TYPE_INT32;

    if (value > (whole ? INT32_TOP : FP32_TOP) || w->at == w->end) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "batch input \"%s\" cannot hold %" PRIu64, w->in->target, value);
    }

    if (whole) {
        ((int32_t *) w->to)[w->at] = (int32_t) value;
    } else {
        ((float *) w->to)[w->at] = (float) value;
    }
    w->at++;
    return NULL;
}

static TRITONSERVER_Error *
put_counts(writer_t *w, const bk_batch_source_t *sources, uint32_t count)
{
    bool adds = w->in->kind != BK_ELEMENT_COUNT;
    uint64_t sum = 0;
    TRITONSERVER_Error *err = NULL;

    if (w->in->kind == BK_ACCUMULATED_COUNT_WITH_ZERO) {
        err = put(w, 0);
    }
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        sum = adds ? sum + sources[i].elements : sources[i].elements;
        err = put(w, sum);
    }

    return err;
}

static TRITONSERVER_Error *
put_shapes(writer_t *w, const bk_batch_source_t *sources, uint32_t count,
    uint32_t from)
{
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; i < count; i++) {
        for (uint64_t row = 0; row < sources[i].rows; row++) {
            for (uint32_t d = from; d < sources[i].dims_count; d++) {
                err = put(w, (uint64_t) sources[i].shape[d]);
                if (err != NULL) {
                    return err;
                }
            }
        }
    }

    return err;
}
