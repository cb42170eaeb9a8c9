/*
 * call.c - what the codec of gRPC inferences costs: a request of one 64-byte
 *          tensor split, read and recorded, and its reply.
 *
 * Prints the best of many short rounds, in ns, so that other work on the
 * machine counts little; beside it what protobuf-c needs for the same request.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/proto/infer_message.h"
#include "core/proto/infer_split.h"
#include "core/proto/message_json.h"
#include "core/proto/reply_message.h"
#include "core/wire/request_record.h"
#include "core/wire/response_record.h"

#include "grpc_service.pb-c.h"

#define ROUNDS 2000
#define CALLS  500              /* in one round                              */

static const char request[] =
    "{model_name: 'simple', id: '1', outputs: [{name: 'OUTPUT0'}],"
    " inputs: [{name: 'INPUT0', datatype: 'FP32', shape: [1, 16]}],"
    " raw_input_contents: ['AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJC"
    "UmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==']}";

static inf_buf_t  message;
static char       text[4096];
static size_t     text_len;
static char       tensor[64];
static uint64_t   tensor_size;
static uint32_t   tensor_count;
static inf_arena_t arena;
static void      *response;
static const inf_infer_call_t *call;
static _Alignas(64) char record[4096];

static void
insist(inf_err_t *err)
{
    if (err != NULL) {
        fprintf(stderr, "%s\n", inf_err_msg(err));
        exit(1);
    }
}

static void
split(void)
{
    inf_split_t s;

    text_len = 0;
    tensor_count = 0;
    inf_split_init(&s, message.len);
    for (size_t at = 0; !inf_split_done(&s); ) {
        inf_split_piece_t piece;

        insist(inf_split_next(&s, message.data + at, message.len - at,
                              &piece));
        at += piece.used;
        if (piece.kind == INF_SPLIT_FIELDS) {
            memcpy(text + text_len, piece.data, piece.len);
            text_len += piece.len;
        } else if (piece.kind == INF_SPLIT_TENSOR) {
            memcpy(tensor + piece.offset, piece.data, piece.len);
            tensor_size = piece.size;
            tensor_count = piece.index + 1;
        }
    }
}

static void
read_request(void)
{
    inf_infer_message_t *m;
    inf_err_t *err = NULL;

    inf_arena_reset(&arena);
    insist(inf_infer_message_new(&m, &arena, NULL));
    if (inf_infer_message_read(m, text, text_len, &tensor_size, tensor_count,
                               INF_CODEC_BUDGET, &err) != INF_CODEC_DONE)
    {
        insist(err);
    }

    call = inf_infer_message_call(m);
}

static void
write_record(void)
{
    const uint64_t offset = 0;
    const inf_infer_target_t target = {
        call->model_name, call->model_version, INF_PROTOCOL_GRPC, &offset
    };
    size_t size;

    insist(inf_infer_record_size(&call->infer, &target, &size));
    inf_infer_record_write(&call->infer, &target, record, size);
}

static void
reply(void)
{
    inf_err_t *err = NULL;
    inf_reply_t *r;

    inf_arena_reset(&arena);
    insist(inf_reply_new(&r, response, tensor, NULL, &arena));
    if (inf_reply_prepare(r, INF_CODEC_BUDGET, &err) != INF_CODEC_DONE) {
        insist(err);
    }
}

static void
protobuf_c(void)
{
    protobuf_c_message_free_unpacked(
        protobuf_c_message_unpack(&inference__model_infer_request__descriptor,
                                  NULL, message.len,
                                  (const uint8_t *) message.data), NULL);
}

static void
measure(const char *what, void (*work)(void))
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = inf_clock_ns();
        for (int k = 0; k < CALLS; k++) {
            work();
        }

        uint64_t taken = inf_clock_ns() - start;
        best = taken < best ? taken : best;
    }

    printf("%-32s %6.0f ns\n", what, (double) best / CALLS);
}

static void
make(void)
{
    static const int64_t shape[] = { 1, 16 };
    static const inf_response_output_desc_t output = {
        .name = INF_SLICE("OUTPUT0"), .datatype = INF_TYPE_FP32,
        .dim_count = 2, .shape = shape, .data_length = sizeof(tensor)
    };
    const inf_response_builder_t b = {
        .model_name = INF_SLICE("simple"), .model_version = 1,
        .id = INF_SLICE("1"), .output_count = 1, .outputs = &output
    };
    ProtobufCMessage *m;
    uint64_t size;

    inf_buf_init(&message);
    insist(inf_message_from_json(&inference__model_infer_request__descriptor,
                                 inf_slice_str(request), &m));
    insist(inf_message_pack(m, &message));
    inf_message_free(m);

    insist(inf_response_builder_size(&b, &size));
    response = malloc(size);
    if (response == NULL) {
        insist(inf_err_nomem());
    }

    inf_response_builder_write(&b, response, size);
    insist(inf_response_record_check(response, size, sizeof(tensor)));
    inf_arena_init(&arena);
}

int
main(void)
{
    make();
    printf("a request of %zu bytes, a tensor of %zu in it\n", message.len,
           sizeof(tensor));
    measure("splitter", split);
    measure("reader", read_request);
    measure("record", write_record);
    measure("reply", reply);
    measure("request by protobuf-c", protobuf_c);

    inf_arena_fini(&arena);
    inf_buf_fini(&message);
    free(response);
    return 0;
}
