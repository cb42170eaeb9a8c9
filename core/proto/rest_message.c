#include "core/proto/rest_message.h"

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/proto/message_json.h"
#include "grpc_service.pb-c.h"

static inf_err_t *pack_text(const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, inf_buf_t *out);
static inf_err_t *pack_rows(inf_slice_t rows, inf_buf_t *out);

inf_err_t *
inf_rest_message(uint16_t method, inf_slice_t text, inf_buf_t *out)
{
    switch (method) {
    case INF_METHOD_REPOSITORY_INDEX:
        return pack_rows(text, out);
    case INF_METHOD_SERVER_METADATA:
        return pack_text(&inference__server_metadata_response__descriptor,
            text, out);
    case INF_METHOD_MODEL_METADATA:
        return pack_text(&inference__model_metadata_response__descriptor,
            text, out);
    default:
        return inf_err_new(INF_ERR_INTERNAL,
            "method %u has no message of its REST answer", method);
    }
}

static inf_err_t *
pack_text(const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    inf_buf_t *out)
{
    ProtobufCMessage *m;

    inf_err_t *err = inf_message_from_json(desc, text, &m);
    if (err != NULL) {
        return err;
    }

    err = inf_message_pack(m, out);
    inf_message_free(m);
    return err;
}

/* Packs the rows of an index, which are the whole REST answer. */
static inf_err_t *
pack_rows(inf_slice_t rows, inf_buf_t *out)
{
    inf_buf_t text;

    inf_buf_init(&text);
    inf_buf_puts(&text, "{\"models\":");
    inf_buf_put(&text, rows.data, rows.len);
    inf_buf_puts(&text, "}");

    inf_err_t *err = inf_buf_status(&text);
    if (err == NULL) {
        err = pack_text(&inference__repository_index_response__descriptor,
            inf_buf_slice(&text), out);
    }

    inf_buf_fini(&text);
    return err;
}
