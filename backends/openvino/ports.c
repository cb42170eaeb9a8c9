/* ports.c - see ports.h */

#include "ports.h"

#include <inttypes.h>
#include <string.h>

/* Inputs or outputs, with the library's functions for them. */
typedef struct {
    const char               *what;
    const bk_tensor_config_t *config;
    uint32_t                  config_count;
    bool                      input;
    ov_status_e             (*size)(const ov_model_t *m, size_t *n);
    ov_status_e             (*at)(const ov_model_t *m, const size_t i,
        ov_output_const_port_t **port);
    ov_status_e             (*named)(const ov_model_t *m, const char *name,
        ov_output_const_port_t **port);
} side_t;

typedef struct {
    const vino_runtime_t    *rt;
    const ov_model_t        *model;
    const bk_model_config_t *config;
    side_t                   inputs;
    side_t                   outputs;
} reader_t;

static void reader_init(reader_t *r, const vino_runtime_t *rt,
    const ov_model_t *model, const bk_model_config_t *config);
static TRITONSERVER_Error *side_size(const reader_t *r, const side_t *side,
    uint32_t *count);
static TRITONSERVER_Error *side_read(const reader_t *r, const side_t *side,
    bk_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *tensor_read(const reader_t *r, const side_t *side,
    uint32_t i, bk_tensor_t *t);
static TRITONSERVER_Error *tensor_read_port(const reader_t *r,
    const side_t *side, const ov_output_const_port_t *port, const char *name,
    bk_tensor_t *t);
static const char *name_in_config(const reader_t *r, const side_t *side,
    const char *name);
static TRITONSERVER_Error *dims_read(const reader_t *r, const side_t *side,
    const char *name, const ov_partial_shape_t *shape, int64_t *dims,
    uint32_t *count);
static TRITONSERVER_Error *port_shape(const vino_runtime_t *rt,
    ov_status_e got, ov_output_const_port_t *port, ov_partial_shape_t *shape);

TRITONSERVER_Error *
vino_ports_describe(const vino_runtime_t *rt, const ov_model_t *model,
    const bk_model_config_t *config, bk_tensors_t *tensors)
{
    uint32_t inputs = 0;
    uint32_t outputs = 0;
    reader_t r;

    reader_init(&r, rt, model, config);
    TRITONSERVER_Error *err = side_size(&r, &r.inputs, &inputs);
    if (err == NULL) {
        err = side_size(&r, &r.outputs, &outputs);
    }
    if (err != NULL) {
        return err;
    }

    bk_tensors_fini(tensors);
    err = bk_tensors_init(tensors, inputs, 0, outputs);
    if (err == NULL) {
        err = side_read(&r, &r.inputs, tensors->inputs, inputs);
    }
    if (err == NULL) {
        err = side_read(&r, &r.outputs, tensors->outputs, outputs);
    }

    return err;
}

TRITONSERVER_Error *
vino_ports_input_shape(const vino_runtime_t *rt, const ov_model_t *model,
    uint32_t i, ov_partial_shape_t *shape)
{
    ov_output_const_port_t *port = NULL;

    ov_status_e got = rt->f.ov_model_const_input_by_index(model, i, &port);
    return port_shape(rt, got, port, shape);
}

TRITONSERVER_Error *
vino_ports_output_shape(const vino_runtime_t *rt, const ov_model_t *model,
    uint32_t i, ov_partial_shape_t *shape)
{
    ov_output_const_port_t *port = NULL;

    ov_status_e got = rt->f.ov_model_const_output_by_index(model, i, &port);
    return port_shape(rt, got, port, shape);
}

const bk_tensor_config_t *
vino_ports_config(const bk_tensor_config_t *list, uint32_t count,
    const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }

    return NULL;
}

bool
vino_ports_batched(const bk_model_config_t *config, const char *name)
{
    const bk_tensor_config_t *c = vino_ports_config(config->inputs,
        config->input_count, name);

    return (c == NULL || !c->ragged)
        && bk_batch_input_find(&config->batch, name) == NULL;
}

static void
reader_init(reader_t *r, const vino_runtime_t *rt, const ov_model_t *model,
    const bk_model_config_t *config)
{
    const vino_functions_t *f = &rt->f;

    *r = (reader_t) {
        .rt = rt,
        .model = model,
        .config = config,
        .inputs = {
            .what = "input", .config = config->inputs,
            .config_count = config->input_count, .input = true,
            .size = f->ov_model_inputs_size,
            .at = f->ov_model_const_input_by_index,
            .named = f->ov_model_const_input_by_name
        },
        .outputs = {
            .what = "output", .config = config->outputs,
            .config_count = config->output_count,
            .size = f->ov_model_outputs_size,
            .at = f->ov_model_const_output_by_index,
            .named = f->ov_model_const_output_by_name
        }
    };
}

static TRITONSERVER_Error *
side_size(const reader_t *r, const side_t *side, uint32_t *count)
{
    size_t n = 0;

    TRITONSERVER_Error *err = vino_err(r->rt, side->size(r->model, &n),
        "number of %ss", side->what);
    if (err == NULL && n > INT32_MAX / 2) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%zu %ss", n,
            side->what);
    }

    *count = (uint32_t) n;
    return err;
}

static TRITONSERVER_Error *
side_read(const reader_t *r, const side_t *side, bk_tensor_t *list,
    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_Error *err = tensor_read(r, side, i, &list[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
tensor_read(const reader_t *r, const side_t *side, uint32_t i,
    bk_tensor_t *t)
{
    ov_output_const_port_t *port = NULL;
    char *name = NULL;

    TRITONSERVER_Error *err = vino_err(r->rt, side->at(r->model, i, &port),
        "%s %" PRIu32, side->what, i);
    if (err != NULL) {
        return err;
    }

    err = vino_err(r->rt, r->rt->f.ov_port_get_any_name(port, &name),
        "%s %" PRIu32 " has no name", side->what, i);
    if (err == NULL) {
        err = tensor_read_port(r, side, port, name_in_config(r, side, name),
            t);
    }

    r->rt->f.ov_free(name);
    r->rt->f.ov_output_const_port_free(port);
    return err;
}

static TRITONSERVER_Error *
tensor_read_port(const reader_t *r, const side_t *side,
    const ov_output_const_port_t *port, const char *name, bk_tensor_t *t)
{
    ov_partial_shape_t shape = { 0 };
    int64_t dims[BK_MAX_DIMS];
    ov_element_type_e type = DYNAMIC;
    uint32_t count = 0;

    TRITONSERVER_Error *err = vino_err(r->rt,
        r->rt->f.ov_port_get_element_type(port, &type),
        "type of %s \"%s\"", side->what, name);
    if (err == NULL && side->input
        && vino_datatype(type) == TRITONSERVER_TYPE_INVALID)
    {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "input \"%s\" of the model is of a type that no request can "
            "carry (element type %d)", name, (int) type);
    }
    if (err == NULL) {
        err = vino_err(r->rt, r->rt->f.ov_port_get_partial_shape(port,
            &shape), "shape of %s \"%s\"", side->what, name);
    }
    if (err != NULL) {
        return err;
    }

    err = dims_read(r, side, name, &shape, dims, &count);
    r->rt->f.ov_partial_shape_free(&shape);
    if (err == NULL) {
        err = bk_tensor_set(t, name, vino_datatype(type), dims, count);
        t->type = (int) type;
    }

    return err;
}

/* A tensor may have several names; those of other tensors are not found. */
static const char *
name_in_config(const reader_t *r, const side_t *side, const char *name)
{
    const vino_functions_t *f = &r->rt->f;
    const char *found = name;

    if (vino_ports_config(side->config, side->config_count, name) != NULL) {
        return name;
    }

    for (uint32_t i = 0; i < side->config_count && found == name; i++) {
        ov_output_const_port_t *port = NULL;
        char *any = NULL;

        ov_status_e status = side->named(r->model, side->config[i].name,
            &port);
        if (status == OK) {
            status = f->ov_port_get_any_name(port, &any);
        }
        if (status == OK && strcmp(any, name) == 0) {
            found = side->config[i].name;
        }

        bk_err_drop(vino_err(r->rt, status, "name"));
        f->ov_free(any);
        if (port != NULL) {
            f->ov_output_const_port_free(port);
        }
    }

    return found;
}

static TRITONSERVER_Error *
dims_read(const reader_t *r, const side_t *side, const char *name,
    const ov_partial_shape_t *shape, int64_t *dims, uint32_t *count)
{
    const bk_tensor_config_t *c = vino_ports_config(side->config,
        side->config_count, name);
    /* ov_rank_is_dynamic() takes a scalar's for open */
    bool open = shape->rank.min != shape->rank.max;

    if (open && c == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s \"%s\" of the model has no number of dimensions; the "
            "configuration must list it with its dims", side->what, name);
    }

    int64_t rank = !open ? shape->rank.min
        : (int64_t) c->model_dims_count + (r->config->max_batch_size > 0);
    if (rank > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s \"%s\" has %" PRId64 " dimensions, more than %d", side->what,
            name, rank, BK_MAX_DIMS);
    }

    for (int64_t d = 0; d < rank; d++) {
        dims[d] = !open && shape->dims[d].min == shape->dims[d].max
            ? shape->dims[d].min : -1;
    }

    *count = (uint32_t) rank;
    return NULL;
}

/* Takes port, which is there if got is OK. */
static TRITONSERVER_Error *
port_shape(const vino_runtime_t *rt, ov_status_e got,
    ov_output_const_port_t *port, ov_partial_shape_t *shape)
{
    TRITONSERVER_Error *err = vino_err(rt, got, "shape of a tensor");
    if (err != NULL) {
        return err;
    }

    err = vino_err(rt, rt->f.ov_port_get_partial_shape(port, shape),
        "shape of a tensor");
    rt->f.ov_output_const_port_free(port);
    return err;
}
