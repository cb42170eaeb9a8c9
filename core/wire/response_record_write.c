#include "core/wire/response_record.h"

#include <assert.h>
#include <string.h>

#define RECORD_ALIGN 8u

/* Position of a writer. */
typedef struct {
    unsigned char *base;
    uint64_t       table;       /* next table                              */
    uint64_t       text;        /* next text                               */
} record_writer_t;

static uint64_t builder_tables(const inf_response_builder_t *b);
static uint64_t builder_texts(const inf_response_builder_t *b);
static uint32_t writer_table(record_writer_t *w, uint64_t size);
static inf_ref_t writer_text(record_writer_t *w, inf_slice_t text);
static void write_output(record_writer_t *w, inf_response_output_t *to,
    const inf_response_output_desc_t *o);
static void write_parameter(record_writer_t *w, inf_record_parameter_t *to,
    const inf_response_parameter_desc_t *p);

inf_err_t *
inf_response_builder_size(const inf_response_builder_t *b, uint64_t *size)
{
    *size = builder_tables(b) + builder_texts(b);

    if (*size > INF_RECORD_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a response's names, shapes and labels take %llu bytes, more than"
            " %u", (unsigned long long) *size, INF_RECORD_MAX);
    }

    return NULL;
}

void
inf_response_builder_write(const inf_response_builder_t *b, void *dst,
    uint64_t size)
{
    assert((uintptr_t) dst % RECORD_ALIGN == 0);

    record_writer_t w = {
        .base = dst,
        .table = sizeof(inf_response_record_t),
        .text = builder_tables(b)
    };

    inf_response_record_t *r = dst;
    *r = (inf_response_record_t) {
        .size = (uint32_t) size,
        .status = b->status,
        .error = writer_text(&w, b->error),
        .model_name = writer_text(&w, b->model_name),
        .model_version = b->model_version,
        .id = writer_text(&w, b->id),
        .backend = writer_text(&w, b->backend),
        .instance = writer_text(&w, b->instance),
        .output_count = b->output_count,
        .output_offset = writer_table(&w,
            b->output_count * sizeof(inf_response_output_t)),
        .parameter_count = b->parameter_count,
        .parameter_offset = writer_table(&w,
            b->parameter_count * sizeof(inf_record_parameter_t)),
        .batch_dim = b->batch_dim,
        .ranked = b->ranked,
        .kv_utilization = b->kv_utilization,
        .kv_max_tokens = b->kv_max_tokens,
        .kv_reported = b->kv_reported
    };

    inf_response_output_t *outputs = (void *) (w.base + r->output_offset);
    for (uint32_t i = 0; i < b->output_count; i++) {
        write_output(&w, &outputs[i], &b->outputs[i]);
    }

    inf_record_parameter_t *parameters =
        (void *) (w.base + r->parameter_offset);
    for (uint32_t i = 0; i < b->parameter_count; i++) {
        write_parameter(&w, &parameters[i], &b->parameters[i]);
    }

    assert(w.text == size);
}

/* The size of the head and all tables. */
static uint64_t
builder_tables(const inf_response_builder_t *b)
{
    uint64_t size = sizeof(inf_response_record_t)
        + b->output_count * (uint64_t) sizeof(inf_response_output_t)
        + b->parameter_count * (uint64_t) sizeof(inf_record_parameter_t);

    for (uint32_t i = 0; i < b->output_count; i++) {
        size += b->outputs[i].dim_count * (uint64_t) sizeof(int64_t);
        size += b->outputs[i].label_count * (uint64_t) sizeof(inf_ref_t);
    }

    return size;
}

static uint64_t
builder_texts(const inf_response_builder_t *b)
{
    uint64_t size = b->error.len + b->model_name.len + b->id.len
        + b->backend.len + b->instance.len;

    for (uint32_t i = 0; i < b->output_count; i++) {
        const inf_response_output_desc_t *o = &b->outputs[i];
        size += o->name.len;
        for (uint32_t k = 0; k < o->label_count; k++) {
            size += o->labels[k].len;
        }
    }

    for (uint32_t i = 0; i < b->parameter_count; i++) {
        size += b->parameters[i].name.len + b->parameters[i].text.len;
    }

    return size;
}

static uint32_t
writer_table(record_writer_t *w, uint64_t size)
{
    uint32_t at = (uint32_t) w->table;

    w->table += size;
    return at;
}

static inf_ref_t
writer_text(record_writer_t *w, inf_slice_t text)
{
    inf_ref_t ref = { (uint32_t) w->text, (uint32_t) text.len };

    if (text.len > 0) {
        memcpy(w->base + w->text, text.data, text.len);
    }

    w->text += text.len;
    return ref;
}

static void
write_output(record_writer_t *w, inf_response_output_t *to,
    const inf_response_output_desc_t *o)
{
    *to = (inf_response_output_t) {
        .name = writer_text(w, o->name),
        .datatype = o->datatype,
        .dim_count = o->dim_count,
        .shape_offset = writer_table(w, o->dim_count * sizeof(int64_t)),
        .label_count = o->label_count,
        .label_offset = writer_table(w, o->label_count * sizeof(inf_ref_t)),
        .data_kind = o->data_kind,
        .data_offset = o->data_offset,
        .data_length = o->data_length
    };

    if (o->dim_count > 0) {
        memcpy(w->base + to->shape_offset, o->shape,
            o->dim_count * sizeof(int64_t));
    }

    inf_ref_t *labels = (void *) (w->base + to->label_offset);
    for (uint32_t i = 0; i < o->label_count; i++) {
        labels[i] = writer_text(w, o->labels[i]);
    }
}

static void
write_parameter(record_writer_t *w, inf_record_parameter_t *to,
    const inf_response_parameter_desc_t *p)
{
    *to = (inf_record_parameter_t) {
        .name = writer_text(w, p->name),
        .type = (uint32_t) p->type,
        .text = writer_text(w, p->text)
    };

    if (p->type == INF_PARAMETER_DOUBLE) {
        to->number.d = p->d;
    } else {
        to->number.i = p->i;
    }
}
