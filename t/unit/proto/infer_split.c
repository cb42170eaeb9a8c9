/* A ModelInferRequest that arrives in pieces, split. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/infer_request.h"
#include "core/proto/infer_split.h"

#define T(name) cmocka_unit_test(name)

#define MAX 4096

typedef struct {
    char       text[MAX];           /* the fields                            */
    size_t     text_len;
    char       tensors[8][MAX];
    uint64_t   sizes[8];
    uint64_t   filled[8];
    uint32_t   count;
    inf_err_t *err;
} parts_t;

static void
take(parts_t *p, const inf_split_piece_t *piece)
{
    switch (piece->kind) {
    case INF_SPLIT_NOTHING:
        assert_int_equal(piece->len, 0);
        break;
    case INF_SPLIT_FIELDS:
        memcpy(p->text + p->text_len, piece->data, piece->len);
        p->text_len += piece->len;
        break;
    case INF_SPLIT_TENSOR:
        if (piece->index == p->count) {
            p->sizes[p->count++] = piece->size;
        }

        assert_int_equal(piece->index, p->count - 1);
        assert_true(piece->size == p->sizes[piece->index]);
        assert_true(piece->offset == p->filled[piece->index]);
        memcpy(p->tensors[piece->index] + piece->offset, piece->data,
               piece->len);
        p->filled[piece->index] += piece->len;
        break;
    }
}

/* The bytes in pieces of slice, each in memory of its own size. */
static void
split(parts_t *p, const char *bytes, size_t len, size_t slice)
{
    inf_split_t s;
    size_t at = 0;

    memset(p, 0, sizeof(*p));
    inf_split_init(&s, len);

    while (!inf_split_done(&s) && p->err == NULL) {
        size_t n = len - at < slice ? len - at : slice;
        char *copy = malloc(n);
        size_t used = 0;

        assert_non_null(copy);
        memcpy(copy, bytes + at, n);
        while (used < n && p->err == NULL) {
            inf_split_piece_t piece;

            p->err = inf_split_next(&s, copy + used, n - used, &piece);
            if (p->err == NULL) {
                assert_true(piece.used != 0 && piece.used <= n - used);
                used += piece.used;
                take(p, &piece);
            }
        }

        at += used;
        free(copy);
    }

    if (p->err == NULL) {
        assert_int_equal(at, len);
        assert_int_equal(inf_split_count(&s), p->count);
        for (uint32_t i = 0; i < p->count; i++) {
            assert_true(p->filled[i] == p->sizes[i]);
        }
    }
}

static void
expect_error(const char *bytes, size_t len, const char *text)
{
    for (size_t slice = 1; slice <= len; slice++) {
        parts_t p;

        split(&p, bytes, len, slice);
        assert_non_null(p.err);
        assert_string_equal(inf_err_msg(p.err), text);
        assert_int_equal(inf_err_code(p.err), INF_ERR_INTERNAL);
        inf_err_free(p.err);
    }
}

#define ERROR(bytes, text) expect_error(bytes, sizeof(bytes) - 1, text)

static void
raw_tensors_are_told_from_fields_wherever_the_cuts_are(void **state)
{
    static const char bytes[] =
        "\x0a\x03" "abc"                    /* model_name                    */
        "\x3a\x02" "xy"                     /* raw                           */
        "\x2a\x05" "\x0a\x03" "abc"         /* an input                      */
        "\x3a\x00"                          /* raw, empty                    */
        "\xba\x80\x00\x83\x80\x00" "123"    /* raw, long forms               */
        "\xf8\x01\x96\x01"                  /* 31: varint                    */
        "\x38\x05"                          /* 7, but a varint               */
        "\x51" "12345678" "\x55" "1234"     /* 10: fixed                     */
        "\x3a\x01" "z"
        "\x1a\x00";                         /* id, empty                     */
    static const char fields[] =
        "\x0a\x03" "abc" "\x2a\x05" "\x0a\x03" "abc" "\xf8\x01\x96\x01"
        "\x38\x05" "\x51" "12345678" "\x55" "1234" "\x1a\x00";
    size_t len = sizeof(bytes) - 1;

    (void) state;
    for (size_t slice = 1; slice <= len; slice++) {
        parts_t p;

        split(&p, bytes, len, slice);
        assert_null(p.err);
        assert_int_equal(p.text_len, sizeof(fields) - 1);
        assert_memory_equal(p.text, fields, p.text_len);
        assert_int_equal(p.count, 4);
        assert_int_equal(p.sizes[0], 2);
        assert_memory_equal(p.tensors[0], "xy", 2);
        assert_int_equal(p.sizes[1], 0);
        assert_int_equal(p.sizes[2], 3);
        assert_memory_equal(p.tensors[2], "123", 3);
        assert_int_equal(p.sizes[3], 1);
        assert_memory_equal(p.tensors[3], "z", 1);
    }
}

static void
neighbouring_fields_are_one_piece(void **state)
{
    static const char bytes[] = "\x0a\x03" "abc" "\x1a\x01" "i" "\x3a\x02xy";
    inf_split_t s;
    inf_split_piece_t piece;

    (void) state;
    inf_split_init(&s, sizeof(bytes) - 1);
    assert_null(inf_split_next(&s, bytes, 100, &piece));
    assert_int_equal(piece.kind, INF_SPLIT_FIELDS);
    assert_int_equal(piece.used, 8);
    assert_ptr_equal(piece.data, bytes);
    assert_null(inf_split_next(&s, bytes + 8, 100, &piece));
    assert_int_equal(piece.kind, INF_SPLIT_TENSOR);
    assert_int_equal(piece.used, 4);
    assert_ptr_equal(piece.data, bytes + 10);
    assert_int_equal(piece.len, 2);
    assert_true(inf_split_done(&s));
}

static void
an_empty_message_is_done_at_once(void **state)
{
    inf_split_t s;
    inf_split_piece_t piece;

    (void) state;
    inf_split_init(&s, 0);
    assert_true(inf_split_done(&s));
    assert_null(inf_split_next(&s, "\xff", 1, &piece));
    assert_int_equal(piece.kind, INF_SPLIT_NOTHING);
    assert_int_equal(piece.used, 0);
}

static void
bytes_that_are_no_message_are_told_with_their_place(void **state)
{
    (void) state;
    ERROR("\x1a\x00\x00\x00", "Unable to parse request: an impossible field "
          "number, at 2");
    ERROR("\x1a\x00\xff\xff\xff\xff\xff\x01", "Unable to parse request: an "
          "impossible field number, at 2");
    ERROR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
          "Unable to parse request: a tag of more than 10 bytes, at 0");
    ERROR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
          "Unable to parse request: a varint of more than 10 bytes, at 0");
    ERROR("\x0b\x0c", "Unable to parse request: an unknown wire type, at 0");
    ERROR("\x0c\x0c", "Unable to parse request: an unknown wire type, at 0");
    ERROR("\x0e\x0c", "Unable to parse request: an unknown wire type, at 0");
    ERROR("\x0f\x0c", "Unable to parse request: an unknown wire type, at 0");
    ERROR("\x1a\x00\x0a\x03" "ab", "Unable to parse request: field 1 has 3 "
          "bytes, more than the message, at 2");
    ERROR("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" "a",
          "Unable to parse request: field 7 has 18446744073709551615 bytes, "
          "more than the message, at 0");
    ERROR("\x09" "1234567", "Unable to parse request: field 1 has 8 bytes, "
          "more than the message, at 0");
    ERROR("\x1a\x00\x0a\x80", "Unable to parse request: the message ends "
          "inside a field's head, at 2");
    ERROR("\x1a", "Unable to parse request: the message ends inside a field's "
          "head, at 0");
}

static void
raw_tensors_are_counted(void **state)
{
    size_t len = 2 * (INF_INFER_MAX_TENSORS + 1);
    char *bytes = malloc(len);
    inf_split_t s;
    inf_err_t *err = NULL;

    (void) state;
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i += 2) {
        memcpy(bytes + i, "\x3a", 2);
    }

    inf_split_init(&s, len);
    for (size_t at = 0; err == NULL && !inf_split_done(&s); ) {
        inf_split_piece_t piece;

        err = inf_split_next(&s, bytes + at, len - at, &piece);
        at += err == NULL ? piece.used : 0;
    }

    assert_non_null(err);
    assert_int_equal(inf_split_count(&s), INF_INFER_MAX_TENSORS);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "Unable to parse request: more than "
                        "16384 entries of raw_input_contents");
    inf_err_free(err);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(raw_tensors_are_told_from_fields_wherever_the_cuts_are),
        T(neighbouring_fields_are_one_piece),
        T(an_empty_message_is_done_at_once),
        T(bytes_that_are_no_message_are_told_with_their_place),
        T(raw_tensors_are_counted)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
