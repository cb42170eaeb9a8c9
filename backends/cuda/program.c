/* program.c - see program.h */

#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/unused_fields.h"

#define KERNELS_MAX 256
#define KEY_MAX     256
#define TIMEOUT_MS  60000
#define TIMEOUT_TOP 86400000
#define GRAPHS      16
#define GRAPHS_TOP  1024

static gpu_names_t names_of(const gpu_program_t *p);
static gpu_names_t inputs_of(const gpu_program_t *p);
static const char *behind(const char *key, const char *prefix);
static TRITONSERVER_Error *check_inputs(const gpu_program_t *p,
    const gpu_shapes_t *known);
static TRITONSERVER_Error *load_tensors(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_inputs(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_outputs(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_tensor(gpu_tensor_t *t,
    const bk_tensor_config_t *c, const char *kind);
static TRITONSERVER_Error *add_tensor(gpu_program_t *p, uint32_t first,
    const gpu_tensor_t *t, const char *kind);
static TRITONSERVER_Error *check_tensor(gpu_tensor_t *t, const char *kind);
static TRITONSERVER_Error *check_names(const gpu_program_t *p);
static TRITONSERVER_Error *load_rules(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_requirements(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_weights(gpu_program_t *p,
    const bk_model_config_t *c, const gpu_model_file_t *file);
static TRITONSERVER_Error *load_scratch(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *load_kernels(gpu_program_t *p,
    const bk_model_config_t *c);
static TRITONSERVER_Error *check_keys(const gpu_program_t *p,
    const bk_model_config_t *c);

TRITONSERVER_Error *
gpu_program_load(gpu_program_t *p, const bk_model_config_t *c,
    const gpu_model_file_t *file)
{
    *p = (gpu_program_t) {
        .rows_most = c->max_batch_size, .timeout_ms = TIMEOUT_MS,
        .graphs_most = GRAPHS
    };

    const char *options = bk_model_config_parameter(c, "compile_options");
    p->compile_options = options != NULL ? options : "";

    TRITONSERVER_Error *err = bk_model_config_parameter_int(c, "timeout", 0,
        TIMEOUT_TOP, &p->timeout_ms);
    if (err == NULL) {
        err = bk_model_config_parameter_bool(c, "INFERENCE_WRITABLE_INPUTS",
            &p->writes_inputs);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_int(c, "memory", 1, INT64_MAX,
            &p->memory_most);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_int(c, "graphs", 0, GRAPHS_TOP,
            &p->graphs_most);
    }
    if (err == NULL) {
        err = load_tensors(p, c);
    }
    if (err == NULL) {
        err = load_weights(p, c, file);
    }
    if (err == NULL) {
        err = load_rules(p, c);
    }
    if (err == NULL) {
        err = load_requirements(p, c);
    }
    if (err == NULL) {
        err = load_scratch(p, c);
    }
    if (err == NULL) {
        err = load_kernels(p, c);
    }
    return err != NULL ? err : check_keys(p, c);
}

void
gpu_program_fini(gpu_program_t *p)
{
    for (uint32_t i = 0; i < p->kernel_count; i++) {
        gpu_kernel_fini(&p->kernels[i]);
    }
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        gpu_buffer_fini(&p->buffers[i]);
    }
    for (uint32_t i = 0; i < p->requirement_count; i++) {
        gpu_requirement_fini(&p->requirements[i]);
    }
    for (uint32_t i = p->input_count; i < p->tensor_count; i++) {
        gpu_rule_fini(&p->rules[i - p->input_count]);
    }
    free(p->kernels);
    free(p->buffers);
    free(p->requirements);
    free(p->rules);
    free(p->tensors);
    *p = (gpu_program_t) { 0 };
}

TRITONSERVER_Error *
gpu_program_shape(const gpu_program_t *p, int64_t batch, gpu_shape_t *tensors)
{
    gpu_shapes_t known = { .batch = batch, .tensors = tensors };

    for (uint32_t i = 0; i < p->tensor_count; i++) {
        const gpu_tensor_t *t = &p->tensors[i];
        TRITONSERVER_Error *err = i < p->input_count ? NULL
            : gpu_rule_apply(&p->rules[i - p->input_count], t, &known,
                &tensors[i]);
        if (err == NULL && tensors[i].absent) {
            tensors[i] = (gpu_shape_t) { .absent = true };
        } else if (err == NULL && !gpu_shape_count(&tensors[i], t, batch)) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "tensor \"%s\": its elements cannot be counted", t->name);
        }
        if (err == NULL && i + 1 == p->input_count) {
            err = check_inputs(p, &known);
        }
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
check_inputs(const gpu_program_t *p, const gpu_shapes_t *known)
{
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < p->requirement_count; i++) {
        err = gpu_requirement_check(&p->requirements[i], known);
    }
    return err;
}

static TRITONSERVER_Error *
load_tensors(gpu_program_t *p, const bk_model_config_t *c)
{
    uint32_t more = c->sequence.control_count + 2 * c->sequence.state_count;

    if (c->input_count == 0 || c->output_count == 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the configuration"
            " must list inputs and outputs: kernels do not tell them");
    }
    if (c->batch.input_count > 0 || c->batch.output_count > 0) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "batch_input and batch_output are not supported by backend cuda");
    }

    p->tensors = calloc((size_t) c->input_count + c->output_count + more,
        sizeof(*p->tensors));
    p->rules = calloc((size_t) c->output_count + more, sizeof(*p->rules));
    if (p->tensors == NULL || p->rules == NULL) {
        return bk_err_nomem("tensors of a model");
    }

    TRITONSERVER_Error *err = load_inputs(p, c);
    p->input_count = p->tensor_count;
    if (err == NULL) {
        err = load_outputs(p, c);
    }
    return err != NULL ? err : check_names(p);
}

static TRITONSERVER_Error *
load_inputs(gpu_program_t *p, const bk_model_config_t *c)
{
    static const int64_t one = 1;       /* element of a control              */
    const bk_sequence_tensors_t *all = &c->sequence;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < c->input_count; i++) {
        err = load_tensor(&p->tensors[p->tensor_count++], &c->inputs[i],
            "input");
    }
    for (uint32_t i = 0; err == NULL && i < all->control_count; i++) {
        err = add_tensor(p, 0, &(gpu_tensor_t) {
            .name = all->controls[i].name, .dims = &one, .dims_count = 1,
            .datatype = all->controls[i].datatype
        }, "control input");
    }
    for (uint32_t i = 0; err == NULL && i < all->state_count; i++) {
        err = add_tensor(p, 0, &(gpu_tensor_t) {
            .name = all->states[i].input, .dims = all->states[i].dims,
            .dims_count = all->states[i].dims_count,
            .datatype = all->states[i].datatype
        }, "state");
    }
    return err;
}

static TRITONSERVER_Error *
load_outputs(gpu_program_t *p, const bk_model_config_t *c)
{
    const bk_sequence_tensors_t *all = &c->sequence;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < c->output_count; i++) {
        err = load_tensor(&p->tensors[p->tensor_count++], &c->outputs[i],
            "output");
    }
    for (uint32_t i = 0; err == NULL && i < all->state_count; i++) {
        err = add_tensor(p, p->input_count, &(gpu_tensor_t) {
            .name = all->states[i].output, .dims = all->states[i].dims,
            .dims_count = all->states[i].dims_count,
            .datatype = all->states[i].datatype, .state = true
        }, "state");
    }
    return err;
}

/* Unless the configuration lists it among the tensors behind the first, too,
   as clients may want to see it. */
static TRITONSERVER_Error *
add_tensor(gpu_program_t *p, uint32_t first, const gpu_tensor_t *t,
    const char *kind)
{
    uint32_t i = first + gpu_tensor_find(p->tensors + first,
        p->tensor_count - first, (gpu_word_t) { t->name, strlen(t->name) });

    if (i < p->tensor_count) {
        p->tensors[i].state = t->state;
        return p->tensors[i].datatype == t->datatype ? NULL
            : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s \"%s\" has"
                " another datatype among the model's inputs or outputs", kind,
                t->name);
    }

    p->tensors[p->tensor_count++] = *t;
    return check_tensor(&p->tensors[i], kind);
}

/* An argument of a kernel is a name. */
static TRITONSERVER_Error *
check_names(const gpu_program_t *p)
{
    for (uint32_t i = p->input_count; i < p->tensor_count; i++) {
        const char *name = p->tensors[i].name;

        if (gpu_tensor_find(p->tensors, i, (gpu_word_t) { name,
            strlen(name) }) < i)
        {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "output \"%s\""
                " has the name of another tensor: kernels could not be given"
                " both", name);
        }
    }
    return NULL;
}

static TRITONSERVER_Error *
load_tensor(gpu_tensor_t *t, const bk_tensor_config_t *c, const char *kind)
{
    *t = (gpu_tensor_t) {
        .name = c->name, .dims = c->model_dims,
        .dims_count = c->model_dims_count, .datatype = c->datatype,
        .optional = c->optional
    };

    return !c->ragged ? check_tensor(t, kind)
        : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%s \"%s\":"
            " allow_ragged_batch is not supported by backend cuda", kind,
            t->name);
}

/* Fills in the size of an element. */
static TRITONSERVER_Error *
check_tensor(gpu_tensor_t *t, const char *kind)
{
    t->size = TRITONSERVER_DataTypeByteSize(t->datatype);
    if (t->size == 0) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s \"%s\" has strings; kernels take numbers", kind, t->name);
    }
    return t->dims_count <= GPU_DIMS_MAX ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s \"%s\" has more than %d dimensions", kind, t->name,
            GPU_DIMS_MAX);
}

static TRITONSERVER_Error *
load_rules(gpu_program_t *p, const bk_model_config_t *c)
{
    gpu_names_t inputs = inputs_of(p);
    char key[KEY_MAX];

    for (uint32_t i = p->input_count; i < p->tensor_count; i++) {
        const gpu_tensor_t *t = &p->tensors[i];

        if (snprintf(key, sizeof(key), "shape_%s", t->name)
            >= (int) sizeof(key))
        {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "output \"%s\": the name is too long", t->name);
        }

        TRITONSERVER_Error *err = gpu_rule_read(&p->rules[i - p->input_count],
            t, key, bk_model_config_parameter(c, key), &inputs);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
load_requirements(gpu_program_t *p, const bk_model_config_t *c)
{
    bk_json_t *all = bk_json_member(c->root, "parameters");
    bk_json_iter_t it = { .object = all };
    gpu_names_t inputs = inputs_of(p);
    TRITONSERVER_Error *err = NULL;

    p->requirements = calloc(bk_json_count(all) + 1,
        sizeof(*p->requirements));
    if (p->requirements == NULL) {
        return bk_err_nomem("requirements of a model");
    }

    while (err == NULL && bk_json_next(&it)) {
        if (behind(it.key, "require_") != NULL) {
            gpu_requirement_t *q = &p->requirements[p->requirement_count++];
            err = gpu_requirement_read(q, it.key,
                bk_model_config_parameter(c, it.key), &inputs);
            if (err == NULL) {
                err = gpu_requirement_check_certain(q, &inputs);
            }
        }
    }
    return err;
}

/* Before all that may name their bytes. */
static TRITONSERVER_Error *
load_weights(gpu_program_t *p, const bk_model_config_t *c,
    const gpu_model_file_t *file)
{
    bk_json_t *all = bk_json_member(c->root, "parameters");
    bk_json_iter_t it = { .object = all };
    TRITONSERVER_Error *err = NULL;

    p->buffers = calloc(bk_json_count(all) + 1, sizeof(*p->buffers));
    if (p->buffers == NULL) {
        return bk_err_nomem("buffers of a model");
    }

    while (err == NULL && bk_json_next(&it)) {
        const char *name = behind(it.key, "weights_");
        gpu_buffer_t *b = &p->buffers[p->buffer_count];
        gpu_names_t names = names_of(p);

        if (name == NULL) {
            continue;
        }
        err = gpu_buffer_read(b, it.key, name, true,
            bk_model_config_parameter(c, it.key), &names);
        if (err == NULL) {
            err = gpu_model_file_size(file, b->file, &b->file_bytes);
        }
        p->buffer_count += err == NULL;
    }
    return err;
}

static TRITONSERVER_Error *
load_scratch(gpu_program_t *p, const bk_model_config_t *c)
{
    bk_json_iter_t it = { .object = bk_json_member(c->root, "parameters") };
    TRITONSERVER_Error *err = NULL;

    while (err == NULL && bk_json_next(&it)) {
        const char *name = behind(it.key, "scratch_");
        gpu_names_t names = names_of(p);

        if (name != NULL) {
            err = gpu_buffer_read(&p->buffers[p->buffer_count], it.key, name,
                false, bk_model_config_parameter(c, it.key), &names);
            p->buffer_count += err == NULL;
        }
    }
    return err;
}

static TRITONSERVER_Error *
load_kernels(gpu_program_t *p, const bk_model_config_t *c)
{
    gpu_names_t names = names_of(p);
    TRITONSERVER_Error *err = NULL;

    p->kernels = calloc(KERNELS_MAX, sizeof(*p->kernels));
    if (p->kernels == NULL) {
        return bk_err_nomem("kernels of a model");
    }

    while (err == NULL && p->kernel_count < KERNELS_MAX) {
        char key[KEY_MAX];

        snprintf(key, sizeof(key), "kernel_%u", p->kernel_count + 1);
        const char *text = bk_model_config_parameter(c, key);
        if (text == NULL) {
            break;
        }
        err = gpu_kernel_read(&p->kernels[p->kernel_count++], key, text,
            &names);
    }
    return err;
}

/* A key with one of our words in front that was not read is a mistake. */
static TRITONSERVER_Error *
check_keys(const gpu_program_t *p, const bk_model_config_t *c)
{
    static const char *const known[] = {
        "kernel_*", "shape_*", "require_*", "scratch_*", "weights_*",
        "compile_options", "timeout", "memory", "graphs", NULL
    };
    bk_json_iter_t it = { .object = bk_json_member(c->root, "parameters") };

    bk_config_log_unknown(c, known);

    while (bk_json_next(&it)) {
        const char *kernel = behind(it.key, "kernel_");
        const char *output = behind(it.key, "shape_");
        char next[KEY_MAX];
        unsigned long n = 0;

        if (kernel != NULL) {
            n = strtoul(kernel, NULL, 10);
            snprintf(next, sizeof(next), "%lu", n);
        }
        if (kernel != NULL && (n == 0 || n > p->kernel_count
            || strcmp(next, kernel) != 0))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "parameter \"%s\": kernels are numbered from kernel_1 on,"
                " without gaps, to kernel_%d at most; there are %u", it.key,
                KERNELS_MAX, p->kernel_count);
        }
        if (output != NULL && gpu_tensor_find(p->tensors + p->input_count,
            p->tensor_count - p->input_count, (gpu_word_t) { output,
            strlen(output) }) == p->tensor_count - p->input_count)
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "parameter \"%s\": the model has no output \"%s\"", it.key,
                output);
        }
    }

    return NULL;
}

static gpu_names_t
names_of(const gpu_program_t *p)
{
    return (gpu_names_t) {
        .tensors = p->tensors, .tensor_count = p->tensor_count,
        .buffers = p->buffers, .buffer_count = p->buffer_count
    };
}

static gpu_names_t
inputs_of(const gpu_program_t *p)
{
    gpu_names_t names = names_of(p);

    names.tensor_count = p->input_count;
    return names;
}

/* Behind prefix; NULL: key has another. */
static const char *
behind(const char *key, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(key, prefix, len) == 0 ? key + len : NULL;
}
