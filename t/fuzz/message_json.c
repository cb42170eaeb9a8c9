/* Any text as JSON and as protobuf, of a configuration and of the messages
   that have all types of fields: no crash; what is read is written, and what
   is written reads back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/proto/config_json.h"
#include "core/proto/json_doc.h"
#include "core/proto/message_json.h"

#include "core_config.pb-c.h"
#include "grpc_service.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(inf_err_t *err)
{
    if (err != NULL) {
        abort();
    }
}

static bool
read_fine(inf_err_t *err)
{
    inf_err_free(err);
    return err == NULL;
}

static void
round_trip(const ProtobufCMessage *m)
{
    ProtobufCMessage *again;
    inf_buf_t text[2];

    inf_buf_init(&text[0]);
    inf_buf_init(&text[1]);
    need(inf_message_to_json(m, NULL, &text[0]));
    need(inf_message_from_json(m->descriptor, inf_buf_slice(&text[0]),
        &again));
    need(inf_message_to_json(again, NULL, &text[1]));
    if (!inf_slice_eq(inf_buf_slice(&text[0]), inf_buf_slice(&text[1]))) {
        abort();
    }
    inf_buf_fini(&text[0]);
    inf_buf_fini(&text[1]);
    inf_message_free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &inference__model_config__descriptor,
        &inference__model_infer_request__descriptor,
        &inference__repository_model_load_request__descriptor,
        &nginx_inference__core_config__descriptor,
    };
    ProtobufCMessage *m;
    inf_json_doc_t doc;

    if (size < 1) {
        return 0;
    }
    const ProtobufCMessageDescriptor *desc = kinds[data[0] % 4];
    inf_slice_t text = inf_slice((const char *) data + 1, size - 1);

    if (read_fine(inf_message_from_json(desc, text, &m))) {
        round_trip(m);
        inf_message_free(m);
    }
    if (read_fine(inf_message_unpack(desc, text, &m))) {
        round_trip(m);
        inf_message_free(m);
    }
    if (read_fine(inf_json_doc_parse(&doc, text, data[0] & 1))) {
        inf_json_doc_fini(&doc);
    }
    return 0;
}
