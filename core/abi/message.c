/* message.c - TRITONSERVER_Message: a JSON text, which is not parsed. */

#include "core/abi/objects.h"

#include <stdlib.h>
#include <string.h>

inf_json_text_t *
inf_json_text_new(const char *json, size_t len)
{
    inf_json_text_t *message = malloc(sizeof(*message));
    char *copy = malloc(len + 1);
    if (message == NULL || copy == NULL) {
        free(message);
        free(copy);
        return NULL;
    }

    if (len > 0) {
        memcpy(copy, json, len);
    }
    copy[len] = '\0';
    message->json = copy;
    message->len = len;
    return message;
}

void
inf_json_text_free(inf_json_text_t *message)
{
    if (message != NULL) {
        free(message->json);
        free(message);
    }
}

TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message,
    const char *base, size_t byte_size)
{
    inf_json_text_t *m = inf_json_text_new(base, byte_size);
    *message = inf_abi_as_message(m);
    return m != NULL ? NULL : inf_err_nomem();
}

TRITONSERVER_Error *
TRITONSERVER_MessageDelete(TRITONSERVER_Message *message)
{
    inf_json_text_free(inf_as_message(message));
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message,
    const char **base, size_t *byte_size)
{
    inf_json_text_t *m = inf_as_message(message);
    *base = m->json;
    *byte_size = m->len;
    return NULL;
}
