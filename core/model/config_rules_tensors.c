/* config_rules_tensors.c - rules of inputs, outputs, batch inputs/outputs. */

#include "core/model/config_validate.h"

#include <string.h>

#include "core/include/datatype.h"
#include "core/model/config_names.h"
#include "core/proto/message_utf8.h"

/* The common fields of inputs and outputs. */
typedef struct {
    const Inference__ModelConfig        *msg;
    const char                          *side;      /* "input", "output"   */
    size_t                               index;
    const char                          *name;
    unsigned                             data_type;
    const int64_t                       *dims;
    size_t                               dim_count;
    const Inference__ModelTensorReshape *reshape;
    bool                                 shape_tensor;
    bool                                 non_linear;
} io_t;

/* The source_input list of a batch input or output. */
typedef struct {
    const char  *list;              /* "input", "output"                   */
    size_t       index;
    const char  *kind;
    char *const *names;
    size_t       count;
} source_t;

static void find_inputs(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_outputs(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_io(const io_t *io, inf_findings_t *f);
static void find_tensorrt_only(const io_t *io, inf_findings_t *f);
static void find_shape(const io_t *io, inf_findings_t *f);
static bool dims_are_valid(const int64_t *dims, size_t count);
static void find_reshape(const io_t *io, inf_findings_t *f);
static const char *reshape_problem(const io_t *io);
static bool segment_next(const int64_t *dims, size_t count, size_t *at,
    int64_t *product);
static size_t wildcards(const int64_t *dims, size_t count);
static bool elements_overflow(const int64_t *dims, size_t count);
static void add_io(const io_t *io, const char *field, inf_findings_t *f,
    const char *text);
static void add_tensorrt_only(const io_t *io, const char *field,
    inf_findings_t *f, const char *text);
static void find_batch(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_batch_inputs(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, inf_findings_t *f);
static void find_batch_outputs(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, const inf_config_names_t *outputs,
    inf_findings_t *f);
static void find_sources(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, const source_t *s, inf_findings_t *f);
static void find_targets(const Inference__ModelConfig *msg, size_t index,
    const inf_config_names_t *outputs, inf_config_names_t *seen,
    inf_findings_t *f);
static bool names_of_inputs(const Inference__ModelConfig *msg,
    inf_config_names_t *names);
static bool names_of_outputs(const Inference__ModelConfig *msg,
    inf_config_names_t *names);

static const char *const batch_input_kinds[] = {
    "BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE",
    "BATCH_ITEM_SHAPE_FLATTEN"
};

/* the generated name does not fit on a line */
#define BATCH_OUTPUT_SCATTER                                                 \
INFERENCE__BATCH_OUTPUT__KIND__BATCH_SCATTER_WITH_INPUT_SHAPE

#define BATCH_INPUT_KINDS                                                    \
    (sizeof(batch_input_kinds) / sizeof(batch_input_kinds[0]))

void
inf_config_find_tensors(const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    find_inputs(msg, f);
    find_outputs(msg, f);
    find_batch(msg, f);
}

static void
find_inputs(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < msg->n_input; i++) {
        const Inference__ModelInput *in = msg->input[i];
        io_t io = {
            .msg = msg, .side = "input", .index = i, .name = in->name,
            .data_type = (unsigned) in->data_type, .dims = in->dims,
            .dim_count = in->n_dims, .reshape = in->reshape,
            .shape_tensor = in->is_shape_tensor,
            .non_linear = in->is_non_linear_format_io,
        };

        find_io(&io, f);

        bool image = in->format == INFERENCE__MODEL_INPUT__FORMAT__FORMAT_NHWC
            || in->format == INFERENCE__MODEL_INPUT__FORMAT__FORMAT_NCHW;
        if (image && in->n_dims != 3) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "input[%zu].dims", i),
                "model input NHWC/NCHW require 3 dims for %s, '%s' has %zu",
                msg->name, in->name, in->n_dims);
        }

        find_tensorrt_only(&io, f);
    }
}

static void
find_outputs(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    for (size_t i = 0; i < msg->n_output; i++) {
        const Inference__ModelOutput *o = msg->output[i];
        io_t io = {
            .msg = msg, .side = "output", .index = i, .name = o->name,
            .data_type = (unsigned) o->data_type, .dims = o->dims,
            .dim_count = o->n_dims, .reshape = o->reshape,
            .shape_tensor = o->is_shape_tensor,
            .non_linear = o->is_non_linear_format_io,
        };

        find_io(&io, f);
        find_tensorrt_only(&io, f);
    }
}

static void
find_io(const io_t *io, inf_findings_t *f)
{
    if (io->name[0] == '\0') {
        add_io(io, "name", f, "must specify 'name'");
    }
    if (!inf_utf8_valid(inf_slice_str(io->name))) {
        add_io(io, "name", f, "must have a 'name' that is valid UTF-8");
    }

    if (io->data_type == INFERENCE__DATA_TYPE__TYPE_INVALID) {
        add_io(io, "data_type", f, "must specify 'data_type'");
    }

    find_shape(io, f);
}

static void
find_tensorrt_only(const io_t *io, inf_findings_t *f)
{
    bool tensorrt = strcmp(io->msg->platform, "tensorrt_plan") == 0;

    if (io->shape_tensor && !tensorrt) {
        add_tensorrt_only(io, "is_shape_tensor", f,
            "shape tensors are only supported for TensorRT platform");
    }

    if (io->non_linear && !tensorrt) {
        add_tensorrt_only(io, "is_non_linear_format_io", f, "Non-linear IO "
            "format is only supported for the TensorRT platform");

    } else if (io->non_linear && io->dim_count != 3) {
        add_io(io, "dims", f, "Non-linear IO format requires 3 dims");
    }
}

static void
find_shape(const io_t *io, inf_findings_t *f)
{
    if (io->dim_count == 0) {
        add_io(io, "dims", f, "must specify 'dims'");
        return;
    }

    /* one dimension is reserved for the batch */
    if (io->dim_count > INF_MAX_DIMS - 1) {
        add_io(io, "dims", f, "has more than 63 dimensions");
        return;
    }

    if (!dims_are_valid(io->dims, io->dim_count)) {
        add_io(io, "dims", f, "dimension must be integer >= 1, or -1 to "
            "indicate a variable-size dimension");
        return;
    }

    if (elements_overflow(io->dims, io->dim_count)) {
        add_io(io, "dims", f, "element count for tensor exceeds maximum size "
            "of 9223372036854775807");
        return;
    }

    if (io->reshape != NULL) {
        find_reshape(io, f);
    }
}

static bool
dims_are_valid(const int64_t *dims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (dims[i] < 1 && dims[i] != -1) {
            return false;
        }
    }

    return true;
}

static void
find_reshape(const io_t *io, inf_findings_t *f)
{
    const char *problem = reshape_problem(io);
    if (problem != NULL) {
        add_io(io, "reshape", f, problem);
    }
}

/* Why the reshape is invalid: between two wildcards both shapes must have
   equally many elements.  NULL: it is valid. */
static const char *
reshape_problem(const io_t *io)
{
    const int64_t *shape = io->reshape->shape;
    size_t count = io->reshape->n_shape;

    if (count == 0 && io->msg->max_batch_size == 0) {
        return "cannot have empty reshape for non-batching model as scalar "
            "tensors are not supported";
    }

    if (count > INF_MAX_DIMS - 1) {
        return "reshape has more than 63 dimensions";
    }

    if (!dims_are_valid(shape, count)) {
        return "reshape dimensions must be integer >= 1, or -1 to indicate a "
            "variable-size dimension";
    }

    if (elements_overflow(shape, count)) {
        return "element count for tensor's reshape exceeds maximum size of "
            "9223372036854775807";
    }

    size_t free_dims = wildcards(io->dims, io->dim_count);
    size_t free_shape = wildcards(shape, count);
    if ((free_dims == 0) != (free_shape == 0)) {
        return "has different size for dims and reshape";
    }

    if (free_dims != free_shape) {
        return "has different number of variable-size dimensions for dims "
            "and reshape";
    }

    size_t at_dims = 0;
    size_t at_shape = 0;
    for (bool more = true; more;) {
        int64_t a;
        int64_t b;
        more = segment_next(io->dims, io->dim_count, &at_dims, &a);
        (void) segment_next(shape, count, &at_shape, &b);
        if (a != b) {
            return "has different size for dims and reshape";
        }
    }

    return NULL;
}

/* The product of dims up to the next wildcard, which is skipped; false after
   the last segment.  The product of all dims fits, so this one does. */
static bool
segment_next(const int64_t *dims, size_t count, size_t *at, int64_t *product)
{
    *product = 1;

    while (*at < count) {
        int64_t dim = dims[(*at)++];
        if (dim == -1) {
            return true;
        }

        *product *= dim;
    }

    return false;
}

static size_t
wildcards(const int64_t *dims, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        n += dims[i] == -1;
    }

    return n;
}

static bool
elements_overflow(const int64_t *dims, size_t count)
{
    int64_t product = 1;

    for (size_t i = 0; i < count; i++) {
        if (dims[i] != -1
            && __builtin_mul_overflow(product, dims[i], &product))
        {
            return true;
        }
    }

    return false;
}

/* Adds "model input 'INPUT0' <text> for <model>". */
static void
add_io(const io_t *io, const char *field, inf_findings_t *f,
    const char *text)
{
    char key[INF_KEY_MAX];
    inf_key(key, "%s[%zu].%s", io->side, io->index, field);

    if (io->name[0] == '\0') {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "model %s %s for %s",
            io->side, text, io->msg->name);
        return;
    }

    inf_findings_add(f, INF_ERR_INVALID_ARG, key, "model %s '%s' %s for %s",
        io->side, io->name, text, io->msg->name);
}

/* Adds "<text> for <model>: input 'INPUT0'". */
static void
add_tensorrt_only(const io_t *io, const char *field, inf_findings_t *f,
    const char *text)
{
    char key[INF_KEY_MAX];

    inf_findings_add(f, INF_ERR_INVALID_ARG,
        inf_key(key, "%s[%zu].%s", io->side, io->index, field),
        "%s for %s: %s '%s'", text, io->msg->name, io->side, io->name);
}

static void
find_batch(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    inf_config_names_t inputs;
    inf_config_names_t outputs;

    if (msg->n_batch_input == 0 && msg->n_batch_output == 0) {
        return;
    }

    bool ready = names_of_inputs(msg, &inputs);
    ready = names_of_outputs(msg, &outputs) && ready;
    if (ready) {
        find_batch_inputs(msg, &inputs, f);
        find_batch_outputs(msg, &inputs, &outputs, f);

    } else {
        f->lost++;
    }

    inf_config_names_fini(&outputs);
    inf_config_names_fini(&inputs);
}

static void
find_batch_inputs(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, inf_findings_t *f)
{
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < msg->n_batch_input; i++) {
        const Inference__BatchInput *b = msg->batch_input[i];

        if ((unsigned) b->kind >= BATCH_INPUT_KINDS) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "batch_input[%zu].kind", i),
                "unknown batch input kind %u for %s", (unsigned) b->kind,
                msg->name);

        } else {
            source_t source = { "input", i, batch_input_kinds[b->kind],
                b->source_input, b->n_source_input };
            find_sources(msg, inputs, &source, f);
        }

        if (b->data_type != INFERENCE__DATA_TYPE__TYPE_INT32
            && b->data_type != INFERENCE__DATA_TYPE__TYPE_FP32)
        {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "batch_input[%zu].data_type", i),
                "batch input data type must be TYPE_INT32 or TYPE_FP32 for "
                "%s", msg->name);
        }
    }
}

static void
find_batch_outputs(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, const inf_config_names_t *outputs,
    inf_findings_t *f)
{
    char key[INF_KEY_MAX];
    inf_config_names_t seen;

    inf_config_names_init(&seen);
    for (size_t i = 0; i < msg->n_batch_output; i++) {
        const Inference__BatchOutput *b = msg->batch_output[i];

        if (b->kind != BATCH_OUTPUT_SCATTER) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "batch_output[%zu].kind", i),
                "unknown batch output kind %u for %s", (unsigned) b->kind,
                msg->name);

        } else {
            source_t source = { "output", i,
                "BATCH_SCATTER_WITH_INPUT_SHAPE", b->source_input,
                b->n_source_input };
            find_sources(msg, inputs, &source, f);
        }

        find_targets(msg, i, outputs, &seen, f);
    }

    inf_config_names_fini(&seen);
}

static void
find_sources(const Inference__ModelConfig *msg,
    const inf_config_names_t *inputs, const source_t *s, inf_findings_t *f)
{
    char key[INF_KEY_MAX];
    inf_key(key, "batch_%s[%zu].source_input", s->list, s->index);

    if (s->count != 1) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key,
            "batch %s kind '%s' expects 1 source input, got %zu for %s",
            s->list, s->kind, s->count, msg->name);
        return;
    }

    if (inf_config_names_find(inputs, inf_slice_str(s->names[0]))
        == INF_CONFIG_NAMES_NONE)
    {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key,
            "unknown source input name '%s' for %s", s->names[0], msg->name);
    }
}

static void
find_targets(const Inference__ModelConfig *msg, size_t index,
    const inf_config_names_t *outputs, inf_config_names_t *seen,
    inf_findings_t *f)
{
    const Inference__BatchOutput *b = msg->batch_output[index];
    char key[INF_KEY_MAX];

    for (size_t k = 0; k < b->n_target_name; k++) {
        const char *name = b->target_name[k];
        inf_key(key, "batch_output[%zu].target_name[%zu]", index, k);

        if (inf_config_names_find(outputs, inf_slice_str(name))
            == INF_CONFIG_NAMES_NONE)
        {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key,
                "unknown target output name '%s' for %s", name, msg->name);
        }

        switch (inf_config_names_add(seen, inf_slice_str(name), 0)) {
        case INF_CONFIG_NAMES_ADDED:
            break;
        case INF_CONFIG_NAMES_KNOWN:
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "target output "
                "name '%s' can only be specified once for %s", name,
                msg->name);
            break;
        case INF_CONFIG_NAMES_NOMEM:
            f->lost++;
            break;
        }
    }
}

/* Collects names; false when out of memory, names may then only be freed. */
static bool
names_of_inputs(const Inference__ModelConfig *msg, inf_config_names_t *names)
{
    inf_config_names_init(names);
    for (size_t i = 0; i < msg->n_input; i++) {
        if (inf_config_names_add(names, inf_slice_str(msg->input[i]->name), 0)
            == INF_CONFIG_NAMES_NOMEM)
        {
            return false;
        }
    }

    return true;
}

static bool
names_of_outputs(const Inference__ModelConfig *msg,
    inf_config_names_t *names)
{
    inf_config_names_init(names);
    for (size_t i = 0; i < msg->n_output; i++) {
        if (inf_config_names_add(names, inf_slice_str(msg->output[i]->name),
            0) == INF_CONFIG_NAMES_NOMEM)
        {
            return false;
        }
    }

    return true;
}
