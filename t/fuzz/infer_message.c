/*
 * infer_message.c - any bytes as a ModelInferRequest: split, read and decoded
 *                   at once and in crumbs with the same outcome, compared
 *                   with what protobuf-c makes of them, and put into a record.
 *
 * The first two bytes choose slice and budget of the second reading.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/message.h"
#include "t/fuzz/check.h"
#include "t/fuzz/flat_record.h"
#include "t/unit/proto/call_read.h"

#include "grpc_service.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const inf_infer_limits_t limits = {
    .max_inputs = 40, .max_outputs = 40, .max_piece_bytes = 256
};

static void
check_text(inf_slice_t text, const char *other)
{
    check(inf_slice_eq(text, inf_slice_str(other)));
}

static uint64_t
contents_count(const Inference__InferTensorContents *c)
{
    return c->n_bool_contents + c->n_int_contents + c->n_int64_contents
           + c->n_uint_contents + c->n_uint64_contents + c->n_fp32_contents
           + c->n_fp64_contents + c->n_bytes_contents;
}

/* The first element's first byte. */
static uint8_t
contents_first(const Inference__InferTensorContents *c)
{
    float f = c->n_fp32_contents != 0 ? c->fp32_contents[0] : 0;
    double d = c->n_fp64_contents != 0 ? c->fp64_contents[0] : 0;
    uint8_t byte = 0;

    if (c->n_fp32_contents != 0) {
        memcpy(&byte, &f, 1);
        return byte;
    }

    if (c->n_fp64_contents != 0) {
        memcpy(&byte, &d, 1);
        return byte;
    }

    return (uint8_t) (c->n_int_contents != 0 ? (uint64_t) c->int_contents[0]
        : c->n_int64_contents != 0 ? (uint64_t) c->int64_contents[0]
        : c->n_uint_contents != 0 ? c->uint_contents[0]
        : c->n_uint64_contents != 0 ? c->uint64_contents[0]
        : c->bytes_contents[0].len);
}

static void
check_input(const call_read_t *c, uint32_t i,
    const Inference__ModelInferRequest *m)
{
    const inf_infer_input_t *in = &c->call->infer.inputs[i];
    const Inference__ModelInferRequest__InferInputTensor *t = m->inputs[i];

    check_text(in->name, t->name);
    check_text(inf_slice_str(inf_datatype_name(in->datatype)), t->datatype);
    check(in->dim_count == t->n_shape);
    for (uint32_t k = 0; k < in->dim_count; k++) {
        check(in->shape[k] == t->shape[k]);
    }

    check((in->source == INF_SOURCE_CONTENTS)
          == (t->contents != NULL));

    if (in->source == INF_SOURCE_RAW) {
        const ProtobufCBinaryData *raw = &m->raw_input_contents[in->raw_entry];

        check(in->byte_size == raw->len);
        check(raw->len == 0 || memcmp(c->data[i], raw->data, raw->len) == 0);
    }

    if (in->source == INF_SOURCE_CONTENTS) {
        uint64_t other = contents_count(t->contents);

        /* protobuf-c reads a bool of any wire type, and bits of a varint that
           don't fit 64; for us, as for protobuf in C++, a field of another
           wire type is an unknown one, and such bits are dropped */
        if (t->contents->n_bool_contents != 0) {
            check(in->element_count <= other);
            return;
        }

        check(in->element_count == other);
        check(in->element_count == 0
              || (uint8_t) c->data[i][0] == contents_first(t->contents));
    }
}

/* Where both read it, both read the same. */
static void
check_message(const call_read_t *c, const uint8_t *bytes, size_t len)
{
    const inf_infer_request_t *q = &c->call->infer;
    ProtobufCMessage *other;
    inf_err_t *err = inf_message_unpack(
        &inference__model_infer_request__descriptor,
        inf_slice((const char *) bytes, len), &other);

    if (err != NULL) {
        inf_err_free(err);
        return;
    }

    const Inference__ModelInferRequest *m = (const void *) other;

    check_text(c->call->model_name, m->model_name);
    check_text(c->call->version_text, m->model_version);
    check_text(q->id, m->id);
    check(c->raw_count == m->n_raw_input_contents);
    check(q->input_count == m->n_inputs);
    check(q->output_count == m->n_outputs);
    check(q->parameter_count <= m->n_parameters);
    for (uint32_t i = 0; i < q->input_count; i++) {
        check_input(c, i, m);
    }

    for (uint32_t i = 0; i < q->output_count; i++) {
        check_text(q->outputs[i].name, m->outputs[i]->name);
    }

    inf_message_free(other);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }

    const char *bytes = (const char *) data + 2;
    call_read_t whole, crumbs;

    call_read(&whole, bytes, size - 2, SIZE_MAX, SIZE_MAX, &limits);
    call_read(&crumbs, bytes, size - 2, data[0] + 1u, data[1] + 1u, &limits);
    check(call_compare(&whole, &crumbs) == NULL);

    if (whole.err == NULL) {
        check_message(&whole, data + 2, size - 2);
        flat_record_write(&whole.call->infer, whole.call->model_name,
            whole.call->model_version, INF_PROTOCOL_GRPC);
    }

    call_read_fini(&whole);
    call_read_fini(&crumbs);
    return 0;
}
