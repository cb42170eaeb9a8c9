/* Any text: no crash; what is read prints, and the print reads back as the
   same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"

#include "model_config.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(inf_err_t *err)
{
    if (err != NULL) {
        abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCMessageDescriptor *desc =
        &inference__model_config__descriptor;
    ProtobufCMessage *m;
    ProtobufCMessage *again;
    inf_buf_t text[2];

    inf_err_t *err = inf_text_parse(desc,
        inf_slice((const char *) data, size), "fuzz", &m);
    if (err != NULL) {
        inf_err_free(err);
        return 0;
    }

    size_t keys[] = { 0, 1, 16, 64 };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        inf_text_place_t at;
        size_t len = keys[i] < size ? keys[i] : size;
        need(inf_text_locate(desc, inf_slice((const char *) data, size),
            inf_slice((const char *) data + size - len, len), &at));
        if (at.line == 0 || at.column == 0) {
            abort();
        }
    }

    inf_buf_init(&text[0]);
    inf_buf_init(&text[1]);
    need(inf_text_print(m, &text[0]));
    need(inf_text_parse(desc, inf_buf_slice(&text[0]), "print", &again));
    need(inf_text_print(again, &text[1]));
    if (!inf_slice_eq(inf_buf_slice(&text[0]), inf_buf_slice(&text[1]))) {
        abort();
    }

    inf_buf_fini(&text[0]);
    inf_buf_fini(&text[1]);
    inf_message_free(m);
    inf_message_free(again);
    return 0;
}
