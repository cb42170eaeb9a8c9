/*
 * infer_tables.c - see infer_tables.h.
 */

#include <string.h>

#include "core/proto/infer_quick.h"
#include "core/proto/infer_tables.h"
#include "core/proto/json_doc.h"

#define FIRST_TABLE     8u
#define PARSE_FAILED    "failed to parse the request JSON buffer: "

static inf_walk_t piece_walk(const inf_infer_tables_t *t,
    const inf_piece_t *piece);
static bool take_piece(inf_infer_tables_t *t, const inf_piece_t *piece,
    inf_slice_t members, size_t *used, inf_err_t **err);
static inf_err_t *parse_error(inf_err_t *err, const inf_piece_t *piece,
    uint32_t index);
static inf_err_t *walk_piece(inf_infer_tables_t *t, const inf_piece_t *piece,
    const inf_walk_t *walk);
static inf_err_t *add_input(inf_infer_tables_t *t, inf_infer_input_t *in);
static inf_err_t *add_output(inf_infer_tables_t *t,
    const inf_infer_output_t *out);
static inf_err_t *table_add(inf_infer_tables_t *t, inf_infer_table_t *table,
    void **item);

void
inf_tables_init(inf_infer_tables_t *t, inf_arena_t *arena,
    const inf_infer_limits_t *limits)
{
    t->arena = arena;
    t->max_bytes = limits->max_json_bytes;
    t->quick = true;
    t->inputs.item_size = sizeof(inf_infer_input_t);
    t->inputs.max = limits->max_inputs;
    t->outputs.item_size = sizeof(inf_infer_output_t);
    t->outputs.max = limits->max_outputs;
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
}

static inf_walk_t
piece_walk(const inf_infer_tables_t *t, const inf_piece_t *piece)
{
    return (inf_walk_t) {
        .arena = t->arena,
        .bigs = piece->bigs,
        .big_count = piece->big_count,
        .max_bytes = t->max_bytes,
        .index = piece->kind == INF_PIECE_INPUT ? t->inputs.count
                                                : t->outputs.count
    };
}

/* ---- the quick way ---- */

bool
inf_tables_take(inf_infer_tables_t *t, const inf_piece_t *piece, size_t *used,
    inf_err_t **err)
{
    inf_slice_t members = inf_slice(piece->text.data + 1,
                                    piece->text.len - 1);

    if (!t->quick || !take_piece(t, piece, members, used, err)) {
        return false;
    }

    *used += 1;
    return true;
}

static bool
take_piece(inf_infer_tables_t *t, const inf_piece_t *piece,
    inf_slice_t members, size_t *used, inf_err_t **err)
{
    inf_walk_t walk = piece_walk(t, piece);
    inf_infer_input_t in;
    inf_infer_output_t out;

    switch (piece->kind) {

    case INF_PIECE_INPUT:
        if (!inf_quick_input(&walk, members, piece->span, &in, used, err)) {
            return false;
        }

        *err = *err != NULL ? *err : add_input(t, &in);
        return true;

    case INF_PIECE_OUTPUT:
        if (!inf_quick_output(&walk, members, &out, used, err)) {
            return false;
        }

        *err = *err != NULL ? *err : add_output(t, &out);
        return true;

    case INF_PIECE_TOP:
        break;
    }

    return inf_quick_top(&walk, members, &t->request, used, err);
}

/* ---- by a document ---- */

inf_err_t *
inf_tables_walk(inf_infer_tables_t *t, const inf_piece_t *piece)
{
    inf_walk_t walk = piece_walk(t, piece);
    inf_json_doc_t doc;
    inf_err_t *err = inf_json_doc_parse(&doc, piece->text,
                                        INF_JSON_DOC_NO_DUPLICATES);

    if (err != NULL) {
        return parse_error(err, piece, walk.index);
    }

    walk.root = doc.root;
    err = walk_piece(t, piece, &walk);
    inf_json_doc_fini(&doc);
    return err;
}

static inf_err_t *
parse_error(inf_err_t *err, const inf_piece_t *piece, uint32_t index)
{
    if (piece->kind == INF_PIECE_TOP) {
        return inf_err_add(err, PARSE_FAILED "id and parameters");
    }

    return inf_err_add(err, PARSE_FAILED "%s %u",
                       piece->kind == INF_PIECE_INPUT ? "input" : "output",
                       index);
}

static inf_err_t *
walk_piece(inf_infer_tables_t *t, const inf_piece_t *piece,
    const inf_walk_t *walk)
{
    inf_infer_input_t in;
    inf_infer_output_t out;
    inf_err_t *err;

    switch (piece->kind) {

    case INF_PIECE_INPUT:
        err = inf_walk_input(walk, piece->span, &in);
        return err != NULL ? err : add_input(t, &in);

    case INF_PIECE_OUTPUT:
        err = inf_walk_output(walk, &out);
        return err != NULL ? err : add_output(t, &out);

    case INF_PIECE_TOP:
        break;
    }

    return inf_walk_top(walk, &t->request);
}

/* ---- rows ---- */

static inf_err_t *
add_input(inf_infer_tables_t *t, inf_infer_input_t *in)
{
    void *item;
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

    err = table_add(t, &t->inputs, &item);
    if (err == NULL) {
        memcpy(item, in, sizeof(*in));
    }

    return err;
}

static inf_err_t *
add_output(inf_infer_tables_t *t, const inf_infer_output_t *out)
{
    void *item;
    bool fresh;
    inf_err_t *err = inf_names_add(&t->output_names, out->name,
                                   t->outputs.count, &fresh);

    if (err != NULL) {
        return err;
    }

    if (!fresh) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "output '%.*s' already requested",
                           (int) out->name.len, out->name.data);
    }

    err = table_add(t, &t->outputs, &item);
    if (err == NULL) {
        memcpy(item, out, sizeof(*out));
    }

    return err;
}

static inf_err_t *
table_add(inf_infer_tables_t *t, inf_infer_table_t *table, void **item)
{
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity == 0 ? FIRST_TABLE
                                                 : table->capacity * 2;
        void *items = inf_arena_alloc(t->arena, capacity * table->item_size);

        if (items == NULL) {
            return inf_err_nomem();
        }

        if (table->count != 0) {
            memcpy(items, table->items, table->count * table->item_size);
        }

        table->items = items;
        table->capacity = capacity;
    }

    *item = (char *) table->items + table->count * table->item_size;
    table->count++;
    return NULL;
}
