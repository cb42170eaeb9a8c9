/*
 * infer_tables.c - see infer_tables.h.
 */

#include <string.h>

#include "core/proto/infer_tables.h"

static inf_err_t *add_input(inf_infer_tables_t *t, inf_infer_input_t *in);
static inf_err_t *add_output(inf_infer_tables_t *t,
    const inf_infer_output_t *out);
static inf_err_t *table_add(inf_infer_tables_t *t, inf_infer_table_t *table,
    const void *item);

void
inf_tables_init(inf_infer_tables_t *t, inf_arena_t *arena,
    const inf_infer_limits_t *limits)
{
    t->arena = arena;
    t->inputs.item_size = sizeof(inf_infer_input_t);
    t->inputs.max = limits->max_inputs;
    t->outputs.item_size = sizeof(inf_infer_output_t);
    t->outputs.max = limits->max_outputs;
    t->parameters.item_size = sizeof(inf_infer_parameter_t);
    inf_names_init(&t->input_names, arena);
    inf_names_init(&t->output_names, arena);
}

void
inf_tables_close(inf_infer_tables_t *t)
{
    t->request.inputs = t->inputs.items;
    t->request.input_count = t->inputs.count;
    t->request.outputs = t->outputs.items;
    t->request.output_count = t->outputs.count;
    t->request.parameters = t->parameters.items;
    t->request.parameter_count = t->parameters.count;
}

const inf_infer_table_t *
inf_tables_of(const inf_infer_tables_t *t, const inf_object_t *object)
{
    return object == &inf_object_input ? &t->inputs : &t->outputs;
}

inf_err_t *
inf_tables_add(inf_infer_tables_t *t, const inf_description_t *d)
{
    inf_infer_input_t in;
    inf_infer_output_t out;
    inf_err_t *err;

    if (d->object == &inf_object_input) {
        err = inf_description_input(d, &in);
        return err != NULL ? err : add_input(t, &in);
    }

    err = inf_description_output(d, &out);
    return err != NULL ? err : add_output(t, &out);
}

inf_err_t *
inf_tables_add_parameter(inf_infer_tables_t *t,
    const inf_infer_parameter_t *parameter)
{
    return table_add(t, &t->parameters, parameter);
}

static inf_err_t *
add_input(inf_infer_tables_t *t, inf_infer_input_t *in)
{
    bool fresh;
    inf_err_t *err = inf_names_add(&t->input_names, in->name,
                                   t->inputs.count, &fresh);

    if (err != NULL) {
        return err;
    }

    if (!fresh) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "input '%.*s' already exists in request",
                           (int) in->name.len, in->name.data);
    }

    if (in->source == INF_SOURCE_BINARY) {
        in->binary_offset = t->request.binary_size;
        if (__builtin_add_overflow(in->binary_offset, in->byte_size,
                                   &t->request.binary_size))
        {
            return inf_err_new(INF_ERR_INVALID_ARG,
                               "Unable to parse 'binary_data_size': the sum "
                               "overflows");
        }
    }

    return table_add(t, &t->inputs, in);
}

static inf_err_t *
add_output(inf_infer_tables_t *t, const inf_infer_output_t *out)
{
    bool fresh;
    inf_err_t *err = inf_names_add(&t->output_names, out->name,
                                   t->outputs.count, &fresh);

    if (err != NULL) {
        return err;
    }

    if (!fresh) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Duplicate output name '%.*s' is not allowed in a "
                           "request",
                           (int) out->name.len, out->name.data);
    }

    return table_add(t, &t->outputs, out);
}

static inf_err_t *
table_add(inf_infer_tables_t *t, inf_infer_table_t *table, const void *item)
{
    if (table->count == table->capacity) {
        void *items = inf_arena_grow(t->arena, table->items, table->count,
                                     &table->capacity, table->item_size);

        if (items == NULL) {
            return inf_err_nomem();
        }

        table->items = items;
    }

    memcpy((char *) table->items + table->count * table->item_size, item,
           table->item_size);
    table->count++;
    return NULL;
}
