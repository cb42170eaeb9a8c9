/*
 * call_read.h - a ModelInferRequest split, read and decoded, in pieces and
 *               turns of any size.
 *
 * The text moves before each turn, so that a pointer into it which is kept is
 * seen by sanitizers.
 */

#ifndef INF_T_CALL_READ_H
#define INF_T_CALL_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/infer_contents.h"
#include "core/proto/infer_message.h"
#include "core/proto/infer_split.h"
#include "t/unit/proto/infer_compare.h"

typedef struct {
    inf_arena_t             arena;
    char                   *text;
    size_t                  text_len;
    char                  **raw;
    uint64_t               *raw_sizes;
    uint64_t               *raw_filled;
    uint32_t                raw_count;
    const inf_infer_call_t *call;
    char                  **data;       /* of each input; NULL: none here    */
    inf_err_t              *err;        /* NULL: all of it is good           */
} call_read_t;

static inline void *
call_alloc(size_t size)
{
    void *p = malloc(size + (size == 0));

    if (p == NULL) {
        abort();
    }

    return p;
}

static inline void *
call_move(void *old, size_t size)
{
    void *p = call_alloc(size);

    if (size != 0 && old != NULL) {
        memcpy(p, old, size);
    }

    free(old);
    return p;
}

static inline void
call_insist(bool rule)
{
    if (!rule) {
        abort();
    }
}

static inline void
call_take(call_read_t *c, const inf_split_piece_t *piece)
{
    char *text;

    switch (piece->kind) {
    case INF_SPLIT_NOTHING:
        call_insist(piece->len == 0);
        break;
    case INF_SPLIT_FIELDS:
        text = call_alloc(c->text_len + piece->len);
        if (c->text_len != 0) {
            memcpy(text, c->text, c->text_len);
        }

        if (piece->len != 0) {
            memcpy(text + c->text_len, piece->data, piece->len);
        }

        c->text_len += piece->len;
        free(c->text);
        c->text = text;
        break;
    case INF_SPLIT_TENSOR:
        call_insist(piece->index <= c->raw_count);
        if (piece->index == c->raw_count) {
            c->raw[c->raw_count] = call_alloc((size_t) piece->size);
            c->raw_sizes[c->raw_count] = piece->size;
            c->raw_filled[c->raw_count++] = 0;
        }

        call_insist(piece->index == c->raw_count - 1);
        call_insist(piece->size == c->raw_sizes[piece->index]);
        call_insist(piece->offset == c->raw_filled[piece->index]);
        call_insist(piece->len <= piece->size - piece->offset);
        if (piece->len != 0) {
            memcpy(c->raw[piece->index] + piece->offset, piece->data,
                   piece->len);
        }

        c->raw_filled[piece->index] += piece->len;
        break;
    }
}

static inline void
call_split(call_read_t *c, const char *bytes, size_t len, size_t slice)
{
    inf_split_t s;
    size_t at = 0;

    inf_split_init(&s, len);
    while (!inf_split_done(&s) && c->err == NULL) {
        size_t n = len - at < slice ? len - at : slice;
        char *copy = call_alloc(n);
        size_t used = 0;

        memcpy(copy, bytes + at, n);
        while (used < n && c->err == NULL) {
            inf_split_piece_t piece;

            c->err = inf_split_next(&s, copy + used, n - used, &piece);
            if (c->err == NULL) {
                call_insist(piece.used != 0 && piece.used <= n - used);
                used += piece.used;
                call_take(c, &piece);
            }
        }

        at += n;
        free(copy);
    }

    for (uint32_t i = 0; i < c->raw_count && c->err == NULL; i++) {
        call_insist(c->raw_filled[i] == c->raw_sizes[i]);
    }
}

static inline void
call_decode(call_read_t *c, size_t budget)
{
    const inf_infer_request_t *q = &c->call->infer;

    for (uint32_t i = 0; i < q->input_count && c->err == NULL; i++) {
        const inf_infer_input_t *in = &q->inputs[i];
        inf_contents_decoder_t d;
        inf_codec_t rc;

        if (in->source == INF_SOURCE_RAW) {
            c->data[i] = call_alloc((size_t) in->byte_size);
            memcpy(c->data[i], c->raw[in->raw_entry], (size_t) in->byte_size);
        }

        if (in->source != INF_SOURCE_CONTENTS) {
            continue;
        }

        c->data[i] = call_alloc((size_t) in->byte_size);
        inf_contents_decoder_init(&d, in);
        do {
            c->text = call_move(c->text, c->text_len);
            rc = inf_contents_decoder_run(&d, c->text, c->data[i], budget,
                                          &c->err);
        } while (rc == INF_CODEC_AGAIN);
    }
}

/* All of it; call_read_fini follows in any case. */
static inline void
call_read(call_read_t *c, const char *bytes, size_t len, size_t slice,
    size_t budget, const inf_infer_limits_t *limits)
{
    inf_infer_message_t *reader;
    inf_codec_t rc;

    memset(c, 0, sizeof(*c));
    inf_arena_init(&c->arena);
    c->raw = call_alloc(len / 2 * sizeof(*c->raw));
    c->raw_sizes = call_alloc(len / 2 * sizeof(*c->raw_sizes));
    c->raw_filled = call_alloc(len / 2 * sizeof(*c->raw_filled));

    call_split(c, bytes, len, slice);
    if (c->err != NULL) {
        return;
    }

    call_insist(inf_infer_message_new(&reader, &c->arena, limits) == NULL);
    do {
        c->text = call_move(c->text, c->text_len);
        rc = inf_infer_message_read(reader, c->text, c->text_len,
                                    c->raw_sizes, c->raw_count, budget,
                                    &c->err);
    } while (rc == INF_CODEC_AGAIN);

    c->call = inf_infer_message_call(reader);
    if (rc == INF_CODEC_DONE) {
        size_t size = c->call->infer.input_count * sizeof(*c->data);

        c->data = call_alloc(size);
        memset(c->data, 0, size);
        call_decode(c, budget);
    }
}

static inline void
call_read_fini(call_read_t *c)
{
    for (uint32_t i = 0; c->data != NULL && i < c->call->infer.input_count;
         i++)
    {
        free(c->data[i]);
    }

    for (uint32_t i = 0; i < c->raw_count; i++) {
        free(c->raw[i]);
    }

    free(c->data);
    free(c->raw);
    free(c->raw_sizes);
    free(c->raw_filled);
    free(c->text);
    inf_err_free(c->err);
    inf_arena_fini(&c->arena);
}

/* The first difference between two readings of the same bytes, or NULL. */
static inline const char *
call_compare(const call_read_t *a, const call_read_t *b)
{
    if ((a->err == NULL) != (b->err == NULL)) {
        return "one is an error";
    }

    if (a->err != NULL) {
        return inf_err_code(a->err) == inf_err_code(b->err)
               && strcmp(inf_err_msg(a->err), inf_err_msg(b->err)) == 0
               ? NULL : "errors";
    }

    const inf_infer_request_t *p = &a->call->infer;
    const inf_infer_request_t *q = &b->call->infer;
    const char *difference = compare_requests(p, q);

    if (difference != NULL) {
        return difference;
    }

    if (!inf_slice_eq(a->call->model_name, b->call->model_name)
        || !inf_slice_eq(a->call->version_text, b->call->version_text)
        || a->call->model_version != b->call->model_version
        || a->call->empty_final != b->call->empty_final)
    {
        return "model";
    }

    for (uint32_t i = 0; i < p->input_count; i++) {
        if ((a->data[i] == NULL) != (b->data[i] == NULL)
            || (a->data[i] != NULL
                && memcmp(a->data[i], b->data[i],
                          (size_t) p->inputs[i].byte_size) != 0))
        {
            return "data";
        }
    }

    return NULL;
}

#endif /* INF_T_CALL_READ_H */
