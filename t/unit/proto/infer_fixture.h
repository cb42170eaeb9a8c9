/*
 * infer_fixture.h - reads a request as a whole or in crumbs, for the tests
 *                   of the inference codec.
 */

#ifndef INF_T_INFER_FIXTURE_H
#define INF_T_INFER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_request.h"

typedef struct {
    inf_arena_t         arena;
    inf_infer_reader_t *reader;
    inf_infer_request_t request;
} fixture_t;

/* NULL, or the error; text need not be a string. */
static inline inf_err_t *
fixture_read(fixture_t *f, const char *text, size_t len, size_t slice,
    size_t budget, const inf_infer_limits_t *limits)
{
    size_t avail = 0;
    inf_err_t *err;

    inf_arena_init(&f->arena);
    err = inf_infer_reader_new(&f->reader, &f->arena, limits);
    assert_null(err);

    for ( ;; ) {
        inf_codec_t rc = inf_infer_reader_feed(f->reader, text, avail,
                                               avail == len, budget, &err);

        if (rc == INF_CODEC_DONE) {
            f->request = inf_infer_reader_request(f->reader);
            return NULL;
        }

        if (rc == INF_CODEC_ERROR) {
            assert_non_null(err);
            return err;
        }

        if (inf_infer_reader_offset(f->reader) == avail) {
            avail = len - avail > slice ? avail + slice : len;
        }
    }
}

static inline void
fixture_fini(fixture_t *f)
{
    inf_infer_reader_free(f->reader);
    inf_arena_fini(&f->arena);
}

/* Decodes input i into fresh memory; *err or the bytes. */
static inline void *
fixture_decode(const fixture_t *f, const char *text, uint32_t i,
    size_t budget, inf_err_t **err)
{
    const inf_infer_input_t *in = &f->request.inputs[i];
    char *dst = malloc(in->byte_size + 1);
    inf_data_decoder_t d;
    inf_codec_t rc;

    assert_non_null(dst);
    *err = NULL;
    inf_data_decoder_init(&d, in);
    do {
        rc = inf_data_decoder_run(&d, text, dst, budget, err);
    } while (rc == INF_CODEC_AGAIN);

    if (rc == INF_CODEC_ERROR) {
        assert_non_null(*err);
        free(dst);
        return NULL;
    }

    return dst;
}

static inline void
assert_slice(inf_slice_t s, const char *want)
{
    assert_int_equal(s.len, strlen(want));
    assert_memory_equal(s.data, want, s.len);
}

#endif /* INF_T_INFER_FIXTURE_H */
