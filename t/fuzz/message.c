/* Any bytes as a message: once repaired it is rejected for nothing that has to
   do with UTF-8, and repairing it again changes nothing.  A client's request
   has limits besides. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/message.h"

#include "grpc_service.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A request is taken or rejected by the limits as well, and what is taken has
   no more unknown fields than they allow. */
static void
as_a_request(const ProtobufCMessageDescriptor *desc, inf_slice_t bytes)
{
    ProtobufCMessage *m;

    inf_err_t *err = inf_message_unpack_request(desc, bytes, &m);
    if (err == NULL) {
        if (m->n_unknown_fields > INF_MESSAGE_UNKNOWN) {
            abort();
        }
        inf_message_free(m);
    }
    inf_err_free(err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCMessageDescriptor *desc =
        &inference__model_config_response__descriptor;
    char *bytes = malloc(size + 1);
    char *again = malloc(size + 1);
    ProtobufCMessage *m;

    if (size > 0) {
        memcpy(bytes, data, size);
    }
    inf_err_t *err = inf_message_repair(desc, bytes, size);
    if (err == NULL) {
        memcpy(again, bytes, size);
        err = inf_message_repair(desc, again, size);
        if (err != NULL || memcmp(bytes, again, size) != 0) {
            abort();
        }
        err = inf_message_unpack(desc, inf_slice(bytes, size), &m);
        if (err == NULL) {
            inf_message_free(m);
        } else if (strstr(inf_err_msg(err), "not valid UTF-8") != NULL) {
            abort();
        }
    }

    inf_err_free(err);
    as_a_request(desc, inf_slice(bytes, size));
    free(bytes);
    free(again);
    return 0;
}
