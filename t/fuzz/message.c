/* Any bytes as a message: once repaired it is rejected for nothing that has to
   do with UTF-8, and repairing it again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/message.h"

#include "grpc_service.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    free(bytes);
    free(again);
    return 0;
}
