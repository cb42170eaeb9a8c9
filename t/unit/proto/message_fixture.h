/* Shared parts of the codec tests: fixtures and errors that must be none. */

#ifndef T_UNIT_PROTO_MESSAGE_FIXTURE_H
#define T_UNIT_PROTO_MESSAGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/proto/message.h"
#include "core/proto/message_json.h"

#include "core_config.pb-c.h"
#include "grpc_service.pb-c.h"
#include "model_config.pb-c.h"

#define must(call) must_at((call), __LINE__)

static inline void
must_at(inf_err_t *err, int line)
{
    if (err != NULL) {
        print_error("line %d: %s\n", line, inf_err_msg(err));
        inf_err_free(err);
        fail();
    }
}

/* The ModelInferRequest that protobuf's JSON describes. */
static inline void
pack_call(inf_buf_t *bytes, const char *json)
{
    ProtobufCMessage *m;

    inf_buf_init(bytes);
    must(inf_message_from_json(&inference__model_infer_request__descriptor,
                               inf_slice_str(json), &m));
    must(inf_message_pack(m, bytes));
    inf_message_free(m);
}

/* err must be an INVALID_ARG whose text begins with text. */
static inline void
must_fail(inf_err_t *err, const char *text)
{
    if (err == NULL) {
        print_error("no error, expected: %s\n", text);
        fail();
    }
    if (inf_err_code(err) != INF_ERR_INVALID_ARG
        || strncmp(inf_err_msg(err), text, strlen(text)) != 0)
    {
        print_error("expected: %s\n     got: %s\n", text, inf_err_msg(err));
        inf_err_free(err);
        fail();
    }
    inf_err_free(err);
}

/* The file's bytes in b, which the caller finishes. */
static inline bool
read_file(const char *path, inf_buf_t *b)
{
    char chunk[4096];
    size_t n;

    inf_buf_init(b);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return false;
    }
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        inf_buf_put(b, chunk, n);
    }
    fclose(f);
    return true;
}

static inline void
assert_same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    inf_buf_t x;
    inf_buf_t y;

    inf_buf_init(&x);
    inf_buf_init(&y);
    must(inf_message_pack(a, &x));
    must(inf_message_pack(b, &y));
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.data, y.data, x.len);
    inf_buf_fini(&x);
    inf_buf_fini(&y);
}

#endif /* T_UNIT_PROTO_MESSAGE_FIXTURE_H */
