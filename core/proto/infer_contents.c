/*
 * infer_contents.c - see infer_contents.h.
 *
 * The reader has checked heads and lengths of the text and counted its
 * elements, but the core may write to the text's memory: every length is
 * checked again, and writes to the destination are bounded by the count.
 */

#include <string.h>

#include "core/proto/infer_contents.h"
#include "core/proto/message_wire.h"

#define CONTENTS_FIELD  5u      /* of InferInputTensor                       */
#define HEAD_COST       8u      /* budget bytes besides the head's own       */

static inf_err_t *decode_head(inf_contents_decoder_t *d, const char *text,
    uint64_t end, void *dst, size_t *budget);
static inf_err_t *decode_varints(inf_contents_decoder_t *d, const char *text,
    char *dst, size_t *budget);
static inf_err_t *decode_bytes(inf_contents_decoder_t *d, const char *text,
    char *dst, size_t *budget);
static inf_err_t *put(inf_contents_decoder_t *d, char *dst, const void *data,
    uint64_t len);
static uint32_t list_of(uint32_t datatype);
static inf_err_t *changed(const inf_contents_decoder_t *d);

void
inf_contents_decoder_init(inf_contents_decoder_t *d,
    const inf_infer_input_t *input)
{
    d->input = input;
    d->pos = input->json_offset;
    d->contents_end = 0;
    d->list_end = 0;
    d->out = 0;
    d->list = list_of(input->datatype);
}

inf_codec_t
inf_contents_decoder_run(inf_contents_decoder_t *d, const char *text,
    void *dst, size_t budget, inf_err_t **err)
{
    uint64_t end = d->input->json_offset + d->input->json_length;
    inf_err_t *e = NULL;

    while (d->pos < end && e == NULL) {
        if (budget == 0) {
            return INF_CODEC_AGAIN;
        }

        if (d->pos < d->list_end) {
            e = d->list <= INF_CONTENTS_UINT64
                ? decode_varints(d, text, dst, &budget)
                : decode_bytes(d, text, dst, &budget);
        } else {
            e = decode_head(d, text, end, dst, &budget);
        }
    }

    if (e == NULL && d->out != d->input->byte_size) {
        e = changed(d);
    }

    if (e != NULL) {
        *err = e;
        return INF_CODEC_ERROR;
    }

    return INF_CODEC_DONE;
}

static uint32_t
list_of(uint32_t datatype)
{
    switch ((inf_datatype_t) datatype) {
    case INF_TYPE_BOOL:
        return INF_CONTENTS_BOOL;
    case INF_TYPE_INT8:
    case INF_TYPE_INT16:
    case INF_TYPE_INT32:
        return INF_CONTENTS_INT;
    case INF_TYPE_INT64:
        return INF_CONTENTS_INT64;
    case INF_TYPE_UINT8:
    case INF_TYPE_UINT16:
    case INF_TYPE_UINT32:
        return INF_CONTENTS_UINT;
    case INF_TYPE_UINT64:
        return INF_CONTENTS_UINT64;
    case INF_TYPE_FP32:
        return INF_CONTENTS_FP32;
    case INF_TYPE_FP64:
        return INF_CONTENTS_FP64;
    case INF_TYPE_BYTES:
        return INF_CONTENTS_BYTES;
    case INF_TYPE_FP16:
    case INF_TYPE_BF16:
    case INF_TYPE_INVALID:
        break;
    }

    return 0;
}

/* Reads the head of a field of the input, or of its open contents. */
static inf_err_t *
decode_head(inf_contents_decoder_t *d, const char *text, uint64_t end,
    void *dst, size_t *budget)
{
    bool open = d->pos < d->contents_end;
    uint64_t left = (open ? d->contents_end : end) - d->pos;
    inf_wire_head_t head;
    const char *reason;

    if (inf_wire_head(text + d->pos, (size_t) left, &head, &reason)
        != INF_WIRE_OK || head.body > left - head.len)
    {
        return changed(d);
    }

    size_t cost = head.len + HEAD_COST;
    *budget -= cost < *budget ? cost : *budget;
    d->pos += head.len;

    if (!open && head.field == CONTENTS_FIELD && head.type == INF_WIRE_LEN) {
        d->contents_end = d->pos + head.body;
        return NULL;
    }

    if (!open || head.field != d->list) {
        d->pos += head.body;
        return NULL;
    }

    if (head.type == INF_WIRE_LEN) {
        uint32_t len = (uint32_t) head.body;

        d->list_end = d->pos + head.body;
        return d->list == INF_CONTENTS_BYTES
               ? put(d, dst, &len, sizeof(len)) : NULL;
    }

    inf_err_t *err = NULL;

    switch (d->list) {
    case INF_CONTENTS_FP32:
        err = head.type == INF_WIRE_I32 ? put(d, dst, text + d->pos, 4) : NULL;
        break;
    case INF_CONTENTS_FP64:
        err = head.type == INF_WIRE_I64 ? put(d, dst, text + d->pos, 8) : NULL;
        break;
    case INF_CONTENTS_BYTES:
        break;
    default:
        if (head.type == INF_WIRE_VARINT) {
            uint64_t v = d->list == INF_CONTENTS_BOOL ? head.value != 0
                                                      : head.value;
            err = put(d, dst, &v, inf_datatype_size(d->input->datatype));
        }

        break;
    }

    d->pos += head.body;
    return err;
}

static inline void
put_low_bytes(char *out, uint64_t v, uint32_t size)
{
    switch (size) {
    case 1:
        memcpy(out, &v, 1);
        break;
    case 2:
        memcpy(out, &v, 2);
        break;
    case 4:
        memcpy(out, &v, 4);
        break;
    default:
        memcpy(out, &v, 8);
        break;
    }
}

/* Decodes a packed list up to its end or that of the budget. */
static inf_err_t *
decode_varints(inf_contents_decoder_t *d, const char *text, char *dst,
    size_t *budget)
{
    uint32_t size = inf_datatype_size(d->input->datatype);
    bool boolean = d->list == INF_CONTENTS_BOOL;
    uint64_t left = d->list_end - d->pos;
    const char *p = text + d->pos;
    const char *end = p + left;
    const char *stop = p + (left < *budget ? left : *budget);
    char *out = dst + d->out;
    uint64_t room = (d->input->byte_size - d->out) / size;
    size_t used = 1;

    for ( ; p < stop && used != 0 && room != 0; p += used, room--) {
        uint64_t v;

        used = inf_wire_varint(p, (size_t) (end - p), &v);
        if (used != 0) {
            v = boolean ? v != 0 : v;
            put_low_bytes(out, v, size);
            out += size;
        }
    }

    uint64_t cost = (uint64_t) (p - (text + d->pos));

    d->pos += cost;
    d->out = (uint64_t) (out - dst);
    *budget -= cost < *budget ? (size_t) cost : *budget;

    if (used == 0) {
        return inf_err_new(INF_ERR_INTERNAL,
                           "Unable to parse request: contents of input "
                           "'%.*s': a varint of more than 10 bytes, at %llu",
                           (int) d->input->name.len, d->input->name.data,
                           (unsigned long long) d->pos);
    }

    return p < stop ? changed(d) : NULL;
}

/* Copies a packed list of floats, or a string. */
static inf_err_t *
decode_bytes(inf_contents_decoder_t *d, const char *text, char *dst,
    size_t *budget)
{
    uint64_t left = d->list_end - d->pos;
    size_t n = left < *budget ? (size_t) left : *budget;
    inf_err_t *err = put(d, dst, text + d->pos, n);

    d->pos += n;
    *budget -= n;
    return err;
}

static inf_err_t *
put(inf_contents_decoder_t *d, char *dst, const void *data, uint64_t len)
{
    if (d->input->byte_size - d->out < len) {
        return changed(d);
    }

    memcpy(dst + d->out, data, (size_t) len);
    d->out += len;
    return NULL;
}

static inf_err_t *
changed(const inf_contents_decoder_t *d)
{
    return inf_err_new(INF_ERR_INTERNAL,
                       "contents of input '%.*s' are not what was counted, "
                       "at %llu", (int) d->input->name.len,
                       d->input->name.data, (unsigned long long) d->pos);
}
