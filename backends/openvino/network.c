/* network.c - see network.h */

#include "network.h"

#include "certain_rows.h"
#include "conversions.h"
#include "ports.h"

#include "common/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *compile(vino_network_t *n,
    const vino_options_t *options);
static TRITONSERVER_Error *network_open(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);
static TRITONSERVER_Error *core_with_extension(vino_network_t *n,
    const char *path);
static TRITONSERVER_Error *network_adapt_to(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);
static bool file_is_fixed(const vino_network_t *n,
    const bk_model_config_t *config);
static bool outputs_are_fixed(const vino_network_t *n,
    const bk_model_config_t *config);
static TRITONSERVER_Error *shapes_adapt(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);
static TRITONSERVER_Error *shape_adapt(const vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options,
    uint32_t i, ov_partial_shape_t *shape, bool *changed);
static TRITONSERVER_Error *rank_set(const vino_runtime_t *rt, uint32_t rank,
    ov_partial_shape_t *shape);
static TRITONSERVER_Error *shape_from_config(const bk_tensor_t *t,
    const bk_tensor_config_t *c, uint32_t first, ov_partial_shape_t *shape);
static TRITONSERVER_Error *types_adapt(vino_network_t *n,
    const bk_model_config_t *config);
static void fixed_open(bk_tensor_t *list, uint32_t count, int64_t rows);
static void compile_threads_log(const vino_network_t *n,
    const vino_options_t *options);
static void properties_log(const vino_network_t *n,
    const vino_options_t *options);

TRITONSERVER_Error *
vino_network_read(vino_network_t **out, const vino_runtime_t *rt,
    const bk_model_config_t *config, const vino_options_t *options,
    const char *path)
{
    vino_network_t *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return bk_err_nomem("state of a model file");
    }

    n->rt = rt;
    n->path = path;
    pthread_mutex_init(&n->lock, NULL);
    TRITONSERVER_Error *err = network_open(n, config, options);
    if (err != NULL) {
        vino_network_free(n);
        return err;
    }

    *out = n;
    return NULL;
}

void
vino_network_free(vino_network_t *n)
{
    if (n == NULL) {
        return;
    }

    if (n->compiled != NULL) {
        n->rt->f.ov_compiled_model_free(n->compiled);
    }
    if (n->source != NULL) {
        n->rt->f.ov_model_free(n->source);
    }
    if (n->own_core != NULL) {
        n->rt->f.ov_core_free(n->own_core);
    }
    bk_tensors_fini(&n->tensors);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* A file that is made for max_batch_size rows, and whose outputs stay fixed to
 * them when its inputs are opened, runs with them, as in Triton's backend. */
TRITONSERVER_Error *
vino_network_adapt(vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options)
{
    bool may_be_fixed = file_is_fixed(n, config);
    vino_options_t chosen = *options;

    chosen.fixed_batch = options->fixed_batch || n->fixed_rows != 0;
    TRITONSERVER_Error *err = network_adapt_to(n, config, &chosen);
    if (chosen.fixed_batch || !may_be_fixed
        || (err == NULL && !outputs_are_fixed(n, config)))
    {
        return err;
    }

    bk_err_drop(err);
    chosen.fixed_batch = true;
    bk_log(TRITONSERVER_LOG_INFO, "model '%s' is made for batches of %" PRId64
        " rows and takes no others", config->name, config->max_batch_size);
    return network_adapt_to(n, config, &chosen);
}

static TRITONSERVER_Error *
network_adapt_to(vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options)
{
    bool fixed = options->fixed_batch && config->max_batch_size > 0;

    TRITONSERVER_Error *err = shapes_adapt(n, config, options);
    if (err == NULL) {
        err = types_adapt(n, config);
    }
    if (err == NULL) {
        err = vino_ports_describe(n->rt, n->source, config, &n->tensors);
    }
    if (err != NULL) {
        return bk_err_add(err, "\"%s\"", n->path);
    }

    if (fixed) {
        n->fixed_rows = config->max_batch_size;
        fixed_open(n->tensors.inputs, n->tensors.input_count, n->fixed_rows);
        fixed_open(n->tensors.outputs, n->tensors.output_count,
            n->fixed_rows);
    }

    return NULL;
}

static bool
file_is_fixed(const vino_network_t *n, const bk_model_config_t *config)
{
    bool fixed = config->max_batch_size > 0 && n->tensors.input_count > 0;

    for (uint32_t i = 0; i < n->tensors.input_count; i++) {
        const bk_tensor_t *t = &n->tensors.inputs[i];

        fixed = fixed && (!vino_ports_batched(config, t->name)
            || (t->dims_count > 0 && t->dims[0] == config->max_batch_size));
    }

    return fixed;
}

static bool
outputs_are_fixed(const vino_network_t *n, const bk_model_config_t *config)
{
    bool fixed = false;

    for (uint32_t i = 0; i < n->tensors.output_count; i++) {
        const bk_tensor_t *t = &n->tensors.outputs[i];

        fixed = fixed || (t->dims_count > 0
            && t->dims[0] == config->max_batch_size
            && (config->output_count == 0 || vino_ports_config(
            config->outputs, config->output_count, t->name) != NULL));
    }

    return fixed;
}

TRITONSERVER_Error *
vino_network_compile(vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options)
{
    compile_threads_log(n, options);
    TRITONSERVER_Error *err = compile(n, options);
    if (err != NULL) {
        return err;
    }

    n->options = options;
    properties_log(n, options);
    return config->max_batch_size == 0 || n->fixed_rows != 0 ? NULL
        : vino_certain_rows_mark(n->rt, n->source, config, &n->tensors);
}

void
vino_network_use(vino_network_t *n, int change)
{
    pthread_mutex_lock(&n->lock);
    n->instances += (uint32_t) change;
    pthread_mutex_unlock(&n->lock);
}

TRITONSERVER_Error *
vino_network_request(vino_network_t *n, ov_infer_request_t **request,
    uint64_t *generation)
{
    pthread_mutex_lock(&n->lock);
    TRITONSERVER_Error *err = n->compiled != NULL ? NULL
        : compile(n, n->options);
    if (err == NULL) {
        *generation = n->generation;
        err = vino_err(n->rt, n->rt->f.ov_compiled_model_create_infer_request(
            n->compiled, request), "cannot make a request");
    }
    pthread_mutex_unlock(&n->lock);

    return err;
}

bool
vino_network_is_current(vino_network_t *n, uint64_t generation)
{
    pthread_mutex_lock(&n->lock);
    bool current = n->generation == generation;
    pthread_mutex_unlock(&n->lock);

    return current;
}

/* Requests that run keep the compiled model. */
bool
vino_network_invalidate(vino_network_t *n, uint64_t generation)
{
    ov_compiled_model_t *old = NULL;

    pthread_mutex_lock(&n->lock);
    bool first = n->generation == generation;
    if (first) {
        old = n->compiled;
        n->compiled = NULL;
        n->generation++;
    }
    pthread_mutex_unlock(&n->lock);

    if (old != NULL) {
        n->rt->f.ov_compiled_model_free(old);
    }
    return first;
}

bool
vino_network_may_cancel(vino_network_t *n, uint64_t since_ns)
{
    pthread_mutex_lock(&n->lock);
    bool may = n->instances == 1 && bk_now_ns() - since_ns >= n->compile_ns;
    pthread_mutex_unlock(&n->lock);

    return may;
}

static TRITONSERVER_Error *
compile(vino_network_t *n, const vino_options_t *options)
{
    uint64_t begin_ns = bk_now_ns();

    TRITONSERVER_Error *err = vino_err(n->rt,
        n->rt->f.ov_core_compile_model_props(
        n->own_core != NULL ? n->own_core : n->rt->core, n->source,
        options->device, options->property_count, options->properties,
        &n->compiled), "cannot compile \"%s\" for device %s", n->path,
        options->device);
    n->compile_ns = bk_now_ns() - begin_ns;

    return err;
}

static TRITONSERVER_Error *
network_open(vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options)
{
    const vino_functions_t *f = &n->rt->f;

    if (options->extension != NULL) {
        TRITONSERVER_Error *err = core_with_extension(n, options->extension);
        if (err != NULL) {
            return err;
        }
    }

    TRITONSERVER_Error *err = vino_err(n->rt, f->ov_core_read_model(
        n->own_core != NULL ? n->own_core : n->rt->core, n->path, NULL,
        &n->source), "cannot load \"%s\"", n->path);
    if (err != NULL) {
        return err;
    }

    err = vino_ports_describe(n->rt, n->source, config, &n->tensors);
    return err == NULL ? NULL : bk_err_add(err, "\"%s\"", n->path);
}

/* An extension would change what other models of the same core run. */
static TRITONSERVER_Error *
core_with_extension(vino_network_t *n, const char *path)
{
    TRITONSERVER_Error *err = vino_err(n->rt,
        n->rt->f.ov_core_create(&n->own_core), "core object");
    if (err != NULL) {
        return err;
    }

    return vino_err(n->rt, n->rt->f.ov_core_add_extension(n->own_core, path),
        "parameter 'CPU_EXTENSION_PATH': cannot load \"%s\"", path);
}

static TRITONSERVER_Error *
shapes_adapt(vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options)
{
    uint32_t count = n->tensors.input_count;
    TRITONSERVER_Error *err = NULL;
    bool changed = false;
    uint32_t made = 0;

    ov_partial_shape_t *shapes = calloc(count + 1, sizeof(*shapes));
    size_t *indexes = calloc(count + 1, sizeof(*indexes));
    if (shapes == NULL || indexes == NULL) {
        err = bk_err_nomem("shapes of a model");
    }

    while (err == NULL && made < count) {
        indexes[made] = made;
        err = vino_ports_input_shape(n->rt, n->source, made, &shapes[made]);
        if (err == NULL) {
            made++;
            err = shape_adapt(n, config, options, made - 1, &shapes[made - 1],
                &changed);
        }
    }

    if (err == NULL && changed) {
        err = vino_err(n->rt, n->rt->f.ov_model_reshape_by_port_indexes(
            n->source, indexes, shapes, count), "the model cannot take %s",
            options->reshape ? "the shapes of the configuration"
            : options->fixed_batch ? "batches of max_batch_size"
            : "batches of any size (see SKIP_OV_DYNAMIC_BATCHSIZE)");
    }

    while (made > 0) {
        n->rt->f.ov_partial_shape_free(&shapes[--made]);
    }
    free(shapes);
    free(indexes);
    return err;
}

static TRITONSERVER_Error *
shape_adapt(const vino_network_t *n, const bk_model_config_t *config,
    const vino_options_t *options, uint32_t i, ov_partial_shape_t *shape,
    bool *changed)
{
    const bk_tensor_t *t = &n->tensors.inputs[i];
    const bk_tensor_config_t *c = vino_ports_config(config->inputs,
        config->input_count, t->name);
    bool batched = config->max_batch_size > 0 && vino_ports_batched(config,
        t->name);

    if (shape->rank.min != shape->rank.max) {
        TRITONSERVER_Error *err = rank_set(n->rt, t->dims_count, shape);
        if (err != NULL) {
            return err;
        }
        *changed = true;
    }
    if (shape->rank.min == 0) {
        return NULL;
    }

    if (options->reshape && c != NULL) {
        TRITONSERVER_Error *err = shape_from_config(t, c, batched ? 1 : 0,
            shape);
        if (err != NULL) {
            return err;
        }
        *changed = true;
    }

    if (!batched) {
        return NULL;
    }

    if (options->fixed_batch) {
        shape->dims[0] = (ov_dimension_t) {
            config->max_batch_size, config->max_batch_size
        };
        *changed = true;

    } else if (shape->dims[0].min == shape->dims[0].max) {
        shape->dims[0] = (ov_dimension_t) { -1, -1 };
        *changed = true;
    }

    return NULL;
}

/* Devices need the number of dimensions, which may be open in the file. */
static TRITONSERVER_Error *
rank_set(const vino_runtime_t *rt, uint32_t rank, ov_partial_shape_t *shape)
{
    ov_dimension_t dims[BK_MAX_DIMS];
    ov_partial_shape_t open;

    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = (ov_dimension_t) { -1, -1 };
    }

    TRITONSERVER_Error *err = vino_err(rt, rt->f.ov_partial_shape_create(rank,
        dims, &open), "shape of an input");
    if (err == NULL) {
        rt->f.ov_partial_shape_free(shape);
        *shape = open;
    }

    return err;
}

static TRITONSERVER_Error *
shape_from_config(const bk_tensor_t *t, const bk_tensor_config_t *c,
    uint32_t first, ov_partial_shape_t *shape)
{
    char configured[256];
    char found[256];

    bool fits = shape->rank.min == (int64_t) c->model_dims_count + first;
    for (uint32_t d = 0; fits && d < c->model_dims_count; d++) {
        fits = c->model_dims[d] > 0 || c->model_dims[d] == -1;
        shape->dims[first + d] = (ov_dimension_t) {
            c->model_dims[d], c->model_dims[d]
        };
    }

    return fits ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "parameter 'RESHAPE_IO_LAYERS': input \"%s\" of shape %s cannot take "
        "dims %s%s: they need as many dimensions, each -1 or positive",
        t->name, bk_dims_text(t->dims, t->dims_count, found, sizeof(found)),
        bk_dims_text(c->model_dims, c->model_dims_count, configured,
        sizeof(configured)), first == 1 ? " after the batch dimension" : "");
}

/* Numbers of another type than the file's are converted by the library. */
static TRITONSERVER_Error *
types_adapt(vino_network_t *n, const bk_model_config_t *config)
{
    vino_conversions_t c = { 0 };

    TRITONSERVER_Error *err = vino_conversions_open(&c, n->rt, n->source);
    for (uint32_t i = 0; err == NULL && i < n->tensors.input_count; i++) {
        err = vino_conversions_add(&c, vino_ports_config(config->inputs,
            config->input_count, n->tensors.inputs[i].name),
            &n->tensors.inputs[i], i, true);
    }
    for (uint32_t i = 0; err == NULL && i < n->tensors.output_count; i++) {
        err = vino_conversions_add(&c, vino_ports_config(config->outputs,
            config->output_count, n->tensors.outputs[i].name),
            &n->tensors.outputs[i], i, false);
    }
    if (err == NULL) {
        err = vino_conversions_apply(&c, &n->source);
    }

    vino_conversions_close(&c);
    return err;
}

/* Requests of fewer rows are padded, so to clients the dimension is open. */
static void
fixed_open(bk_tensor_t *list, uint32_t count, int64_t rows)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].dims_count > 0 && list[i].dims[0] == rows) {
            list[i].dims[0] = -1;
        }
    }
}

static void
compile_threads_log(const vino_network_t *n, const vino_options_t *options)
{
    if (options->compile_threads >= 0
        && strcmp(options->device, "CPU") == 0)
    {
        bk_log(TRITONSERVER_LOG_WARN, "\"%s\": parameter "
            "'COMPILATION_NUM_THREADS' has no effect: the library has no "
            "such setting for device CPU", n->path);
    }
}

/* The result of hints and defaults; of virtual devices some are unknown. */
static void
properties_log(const vino_network_t *n, const vino_options_t *options)
{
    static const char *const keys[] = {
        "NUM_STREAMS", "INFERENCE_NUM_THREADS", "PERFORMANCE_HINT",
        "INFERENCE_PRECISION_HINT"
    };
    char text[256] = "";

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        size_t len = strlen(text);
        char *value = NULL;

        TRITONSERVER_Error *err = vino_err(n->rt,
            n->rt->f.ov_compiled_model_get_property(n->compiled, keys[i],
            &value), "%s", keys[i]);
        if (err == NULL) {
            snprintf(text + len, sizeof(text) - len, " %s=%s", keys[i],
                value);
        }
        bk_err_drop(err);
        n->rt->f.ov_free(value);
    }

    bk_log(TRITONSERVER_LOG_INFO, "\"%s\" is compiled for device %s:%s",
        n->path, options->device, text);
}
