/*
 * request_record_write.c - see request_record.h.
 *
 * The record is the fixed part, the tables in the order of their fields, then
 * the texts.  One function does the layout; without a destination it only
 * counts.
 */

#include <string.h>

#include "core/wire/request_record.h"

typedef struct {
    char    *dst;               /* NULL: only counting                       */
    uint64_t used;
} layout_t;

static uint64_t lay_out(const inf_infer_request_t *req,
    const inf_infer_target_t *target, char *dst);
static uint64_t take_table(layout_t *l, uint64_t count, size_t item_size);
static void put_inputs(layout_t *l, const inf_infer_request_t *req,
    const inf_infer_target_t *target, uint64_t table, uint64_t shapes);
static void put_outputs(layout_t *l, const inf_infer_request_t *req,
    uint64_t table);
static void put_parameters(layout_t *l, const inf_infer_request_t *req,
    uint64_t table);

__attribute__((always_inline)) static inline inf_ref_t
put_text(layout_t *l, inf_slice_t text)
{
    inf_ref_t ref = { (uint32_t) l->used, (uint32_t) text.len };

    if (l->dst != NULL && text.len != 0) {
        memcpy(l->dst + l->used, text.data, text.len);
    }

    l->used += text.len;
    return ref;
}

inf_err_t *
inf_infer_record_size(const inf_infer_request_t *req,
    const inf_infer_target_t *target, size_t *size)
{
    uint64_t needed = lay_out(req, target, NULL);

    if (needed > INF_RECORD_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "the request's names and parameters need %llu "
                           "bytes, more than the allowed %u",
                           (unsigned long long) needed, INF_RECORD_MAX);
    }

    *size = (size_t) needed;
    return NULL;
}

void
inf_infer_record_write(const inf_infer_request_t *req,
    const inf_infer_target_t *target, void *dst, size_t size)
{
    memset(dst, 0, size);
    (void) lay_out(req, target, dst);
}

static uint64_t
lay_out(const inf_infer_request_t *req, const inf_infer_target_t *target,
    char *dst)
{
    layout_t l = { dst, sizeof(inf_infer_record_t) };
    uint64_t dims = 0;

    for (uint32_t i = 0; i < req->input_count; i++) {
        dims += req->inputs[i].dim_count;
    }

    uint64_t inputs = take_table(&l, req->input_count,
                                 sizeof(inf_record_input_t));
    uint64_t outputs = take_table(&l, req->output_count,
                                  sizeof(inf_record_output_t));
    uint64_t parameters = take_table(&l, req->parameter_count,
                                     sizeof(inf_record_parameter_t));
    uint64_t shapes = take_table(&l, dims, sizeof(int64_t));

    inf_infer_record_t head = {
        .protocol = target->protocol,
        .flags = req->flags,
        .model_name = put_text(&l, target->model_name),
        .model_version = target->model_version,
        .id = put_text(&l, req->id),
        .correlation_text = put_text(&l, req->correlation_text),
        .correlation_id = req->correlation_id,
        .priority = req->priority,
        .timeout_us = req->timeout_us,
        .input_count = req->input_count,
        .input_offset = (uint32_t) inputs,
        .output_count = req->output_count,
        .output_offset = (uint32_t) outputs,
        .parameter_count = req->parameter_count,
        .parameter_offset = (uint32_t) parameters
    };

    put_inputs(&l, req, target, inputs, shapes);
    put_outputs(&l, req, outputs);
    put_parameters(&l, req, parameters);

    l.used = (l.used + 7) & ~UINT64_C(7);
    if (dst != NULL) {
        head.size = (uint32_t) l.used;
        memcpy(dst, &head, sizeof(head));
    }

    return l.used;
}

/* Reserves a table; all sizes before the texts are multiples of 8. */
static uint64_t
take_table(layout_t *l, uint64_t count, size_t item_size)
{
    uint64_t at = l->used;

    l->used += count * item_size;
    return at;
}

static void
put_inputs(layout_t *l, const inf_infer_request_t *req,
    const inf_infer_target_t *target, uint64_t table, uint64_t shapes)
{
    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_infer_input_t *in = &req->inputs[i];
        size_t shape_len = in->dim_count * sizeof(int64_t);
        inf_record_input_t row = {
            .name = put_text(l, in->name),
            .datatype = in->datatype,
            .dim_count = in->dim_count,
            .shape_offset = (uint32_t) shapes,
            .shm_region = put_text(l, in->shm_region),
            .data_length = in->byte_size
        };

        if (in->source == INF_SOURCE_SHM) {
            row.data_kind = INF_DATA_SHM_REGION;
            row.data_offset = in->shm_offset;
        } else if (l->dst != NULL) {
            row.data_kind = INF_DATA_ARENA;
            row.data_offset = target->data_offsets[i];
        }

        if (l->dst != NULL) {
            memcpy(l->dst + table + i * sizeof(row), &row, sizeof(row));
            if (shape_len != 0) {
                memcpy(l->dst + shapes, in->shape, shape_len);
            }
        }

        shapes += shape_len;
    }
}

static void
put_outputs(layout_t *l, const inf_infer_request_t *req, uint64_t table)
{
    for (uint32_t i = 0; i < req->output_count; i++) {
        const inf_infer_output_t *out = &req->outputs[i];
        inf_record_output_t row = {
            .name = put_text(l, out->name),
            .classification = out->classification,
            .data_kind = out->shm_region.len != 0 ? INF_DATA_SHM_REGION
                                                  : INF_DATA_ARENA,
            .shm_region = put_text(l, out->shm_region),
            .shm_offset = out->shm_offset,
            .shm_length = out->shm_byte_size
        };

        if (l->dst != NULL) {
            memcpy(l->dst + table + i * sizeof(row), &row, sizeof(row));
        }
    }
}

static void
put_parameters(layout_t *l, const inf_infer_request_t *req, uint64_t table)
{
    for (uint32_t i = 0; i < req->parameter_count; i++) {
        const inf_infer_parameter_t *p = &req->parameters[i];
        inf_record_parameter_t row = {
            .name = put_text(l, p->name),
            .type = p->type,
            .text = put_text(l, p->text)
        };

        if (p->type == INF_PARAMETER_DOUBLE) {
            row.number.d = p->real;
        } else {
            row.number.i = p->integer;
        }

        if (l->dst != NULL) {
            memcpy(l->dst + table + i * sizeof(row), &row, sizeof(row));
        }
    }
}
