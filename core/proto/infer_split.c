/*
 * infer_split.c - see infer_split.h.
 *
 * Complete heads are read without a copy, so that adjacent fields become one
 * piece.  An incomplete head is collected first, because the kind of its bytes
 * is known only at its end.
 */

#include <string.h>

#include "core/proto/infer_request.h"
#include "core/proto/infer_split.h"

#define RAW_FIELD 7u            /* raw_input_contents                        */

static inf_err_t *split_fields(inf_split_t *s, const char *data, size_t n,
    inf_split_piece_t *piece);
static inf_err_t *split_first(inf_split_t *s, const char *data, size_t n,
    inf_split_piece_t *piece);
static inf_err_t *split_tensor(inf_split_t *s, const inf_wire_head_t *head,
    const char *data, size_t n, inf_split_piece_t *piece);
static void split_body(inf_split_t *s, size_t n, inf_split_piece_t *piece);
static inf_err_t *check_body(const inf_split_t *s, uint64_t at,
    const inf_wire_head_t *head);
static inf_err_t *split_error(uint64_t at, const char *reason);

void
inf_split_init(inf_split_t *s, uint64_t size)
{
    s->size = size;
    s->pos = 0;
    s->body = 0;
    s->tensor_size = 0;
    s->count = 0;
    s->tensor = false;
    s->head_len = 0;
}

inf_err_t *
inf_split_next(inf_split_t *s, const void *data, size_t n,
    inf_split_piece_t *piece)
{
    uint64_t left = s->size - s->pos;

    piece->kind = INF_SPLIT_NOTHING;
    piece->data = data;
    piece->used = 0;
    piece->len = 0;

    n = n < left ? n : (size_t) left;
    if (n == 0) {
        return NULL;
    }

    if (s->body != 0 && s->tensor) {
        split_body(s, n, piece);
        return NULL;
    }

    return s->head_len != 0 ? split_first(s, data, n, piece)
                            : split_fields(s, data, n, piece);
}

static bool
is_raw(const inf_wire_head_t *head)
{
    return head->field == RAW_FIELD && head->type == INF_WIRE_LEN;
}

/* Takes as many adjacent fields as possible. */
static inf_err_t *
split_fields(inf_split_t *s, const char *data, size_t n,
    inf_split_piece_t *piece)
{
    size_t p = s->body < n ? (size_t) s->body : n;
    uint64_t body = s->body - p;
    inf_wire_head_t head;
    const char *reason;

    while (p < n) {
        inf_wire_result_t rc = inf_wire_head(data + p, n - p, &head, &reason);

        if (rc == INF_WIRE_BAD) {
            return split_error(s->pos + p, reason);
        }

        if (rc == INF_WIRE_CUT || is_raw(&head)) {
            break;
        }

        inf_err_t *err = check_body(s, s->pos + p, &head);
        if (err != NULL) {
            return err;
        }

        p += head.len;
        body = head.body;
        size_t take = body < n - p ? (size_t) body : n - p;
        p += take;
        body -= take;
    }

    if (p == 0) {
        return split_first(s, data, n, piece);
    }

    s->body = body;
    s->tensor = false;
    s->pos += p;
    piece->kind = INF_SPLIT_FIELDS;
    piece->used = p;
    piece->len = p;
    return NULL;
}

/* Reads the head of a raw entry, or the rest of an incomplete head. */
static inf_err_t *
split_first(inf_split_t *s, const char *data, size_t n,
    inf_split_piece_t *piece)
{
    size_t had = s->head_len;
    size_t room = sizeof(s->head) - had;
    size_t take = n < room ? n : room;
    inf_wire_head_t head;
    const char *reason;

    memcpy(s->head + had, data, take);

    inf_wire_result_t rc = inf_wire_head(s->head, had + take, &head, &reason);
    if (rc == INF_WIRE_BAD) {
        return split_error(s->pos - had, reason);
    }

    if (rc == INF_WIRE_CUT) {
        if (s->pos + n == s->size) {
            return split_error(s->pos - had,
                               "the message ends inside a field's head");
        }

        s->head_len = (uint8_t) (had + n);
        s->pos += n;
        piece->used = n;
        return NULL;
    }

    inf_err_t *err = check_body(s, s->pos - had, &head);
    if (err != NULL) {
        return err;
    }

    size_t used = head.len - had;

    s->head_len = 0;
    s->pos += used;
    s->body = head.body;
    piece->used = used;

    if (is_raw(&head)) {
        return split_tensor(s, &head, data + used, n - used, piece);
    }

    s->tensor = false;
    piece->kind = INF_SPLIT_FIELDS;
    piece->data = s->head;
    piece->len = head.len;
    return NULL;
}

static inf_err_t *
split_tensor(inf_split_t *s, const inf_wire_head_t *head, const char *data,
    size_t n, inf_split_piece_t *piece)
{
    if (s->count == INF_INFER_MAX_TENSORS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse request: more than %u entries of "
                           "raw_input_contents", INF_INFER_MAX_TENSORS);
    }

    s->count++;
    s->tensor = true;
    s->tensor_size = head->body;
    piece->data = data;
    split_body(s, n, piece);
    return NULL;
}

/* Takes the next bytes of the open raw entry, at piece->data. */
static void
split_body(inf_split_t *s, size_t n, inf_split_piece_t *piece)
{
    size_t len = s->body < n ? (size_t) s->body : n;

    piece->kind = INF_SPLIT_TENSOR;
    piece->index = s->count - 1;
    piece->size = s->tensor_size;
    piece->offset = s->tensor_size - s->body;
    piece->used += len;
    piece->len = len;
    s->body -= len;
    s->pos += len;
}

/* Checks that the body ends within the message; at: position of the head. */
static inf_err_t *
check_body(const inf_split_t *s, uint64_t at, const inf_wire_head_t *head)
{
    if (head->body <= s->size - at - head->len) {
        return NULL;
    }

    return inf_err_new(INF_ERR_INTERNAL,
                       "Unable to parse request: field %u has %llu bytes, "
                       "more than the message, at %llu", head->field,
                       (unsigned long long) head->body,
                       (unsigned long long) at);
}

static inf_err_t *
split_error(uint64_t at, const char *reason)
{
    return inf_err_new(INF_ERR_INTERNAL,
                       "Unable to parse request: %s, at %llu", reason,
                       (unsigned long long) at);
}

size_t
inf_split_raw_head(char *dst, uint64_t size)
{
    *dst = inf_wire_tag(RAW_FIELD, INF_WIRE_LEN);
    return (size_t) (inf_wire_put_varint(dst + 1, size) - dst);
}
