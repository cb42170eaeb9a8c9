/* tables.c - see tables.h */

#include "tables.h"

#include <inttypes.h>
#include <string.h>

/* A place in a table that is being filled. */
typedef struct {
    bk_tensor_t *next;
    bool         batching;
} table_t;

static TRITONSERVER_Error *fill_inputs(bk_tensors_t *t,
    const bk_model_config_t *config);
static TRITONSERVER_Error *put_inputs(table_t *f,
    const bk_model_config_t *config, bool optional);
static TRITONSERVER_Error *put_sequence_inputs(table_t *f,
    const bk_model_config_t *config);
static TRITONSERVER_Error *put_batch_inputs(table_t *f,
    const bk_model_config_t *config);
static TRITONSERVER_Error *fill_outputs(bk_tensors_t *t,
    const bk_model_config_t *config);
static TRITONSERVER_Error *put(table_t *f, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *dims, uint32_t count);
static TRITONSERVER_Error *put_open(table_t *f, const char *name,
    TRITONSERVER_DataType datatype, uint32_t rank);
static bool is_output(const bk_model_config_t *config, const char *name);

TRITONSERVER_Error *
pt_tables_read(bk_tensors_t *t, const bk_model_config_t *config)
{
    uint32_t optional = 0;
    uint32_t outputs = config->output_count;

    if (config->input_count == 0 || config->output_count == 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "model configuration must contain at least one %s, none were "
            "specified: the model's file does not say what it takes and gives",
            config->input_count == 0 ? "input" : "output");
    }

    for (uint32_t i = 0; i < config->input_count; i++) {
        optional += config->inputs[i].optional;
    }
    for (uint32_t i = 0; i < config->sequence.state_count; i++) {
        outputs += !is_output(config, config->sequence.states[i].output);
    }

    TRITONSERVER_Error *err = bk_tensors_init(t, config->input_count
        - optional + config->sequence.control_count
        + config->sequence.state_count + config->batch.input_count, optional,
        outputs);
    if (err == NULL) {
        err = fill_inputs(t, config);
    }

    return err != NULL ? err : fill_outputs(t, config);
}

/* those of the configuration's list come first, optional ones last */
static TRITONSERVER_Error *
fill_inputs(bk_tensors_t *t, const bk_model_config_t *config)
{
    table_t f = { t->inputs, config->max_batch_size > 0 };

    TRITONSERVER_Error *err = put_inputs(&f, config, false);
    if (err == NULL) {
        err = put_sequence_inputs(&f, config);
    }
    if (err == NULL) {
        err = put_batch_inputs(&f, config);
    }

    return err != NULL ? err : put_inputs(&f, config, true);
}

static TRITONSERVER_Error *
put_inputs(table_t *f, const bk_model_config_t *config, bool optional)
{
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < config->input_count; i++) {
        const bk_tensor_config_t *c = &config->inputs[i];

        if (c->optional != optional) {
            continue;
        }
        err = c->ragged && f->batching
            ? put_open(f, c->name, c->datatype, 1)
            : put(f, c->name, c->datatype, c->model_dims,
                c->model_dims_count);
    }

    return err;
}

static TRITONSERVER_Error *
put_sequence_inputs(table_t *f, const bk_model_config_t *config)
{
    static const int64_t one = 1;

    const bk_sequence_tensors_t *s = &config->sequence;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < s->control_count; i++) {
        err = put(f, s->controls[i].name, s->controls[i].datatype, &one, 1);
    }
    for (uint32_t i = 0; err == NULL && i < s->state_count; i++) {
        err = put(f, s->states[i].input, s->states[i].datatype,
            s->states[i].dims, s->states[i].dims_count);
    }

    return err;
}

static TRITONSERVER_Error *
put_batch_inputs(table_t *f, const bk_model_config_t *config)
{
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < config->batch.input_count; i++) {
        const bk_batch_input_t *in = &config->batch.inputs[i];
        err = put_open(f, in->target, in->datatype, bk_batch_input_rank(in));
    }

    return err;
}

static TRITONSERVER_Error *
fill_outputs(bk_tensors_t *t, const bk_model_config_t *config)
{
    table_t f = { t->outputs, config->max_batch_size > 0 };
    const bk_sequence_tensors_t *s = &config->sequence;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < config->output_count; i++) {
        const bk_tensor_config_t *c = &config->outputs[i];
        err = put(&f, c->name, c->datatype, c->model_dims,
            c->model_dims_count);
    }
    for (uint32_t i = 0; err == NULL && i < s->state_count; i++) {
        if (!is_output(config, s->states[i].output)) {
            err = put(&f, s->states[i].output, s->states[i].datatype,
                s->states[i].dims, s->states[i].dims_count);
        }
    }

    return err;
}

static TRITONSERVER_Error *
put(table_t *f, const char *name, TRITONSERVER_DataType datatype,
    const int64_t *dims, uint32_t count)
{
    int64_t all[BK_MAX_DIMS] = { -1 };
    uint32_t first = f->batching ? 1 : 0;

    if (count > BK_MAX_DIMS - first) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has %" PRIu32 " dimensions, more than %d", name,
            count, BK_MAX_DIMS - 1);
    }

    memcpy(all + first, dims, count * sizeof(*dims));
    return bk_tensor_set(f->next++, name, datatype, all, count + first);
}

static TRITONSERVER_Error *
put_open(table_t *f, const char *name, TRITONSERVER_DataType datatype,
    uint32_t rank)
{
    static const int64_t open[2] = { -1, -1 };

    return bk_tensor_set(f->next++, name, datatype, open, rank);
}

static bool
is_output(const bk_model_config_t *config, const char *name)
{
    for (uint32_t i = 0; i < config->output_count; i++) {
        if (strcmp(config->outputs[i].name, name) == 0) {
            return true;
        }
    }

    return false;
}
