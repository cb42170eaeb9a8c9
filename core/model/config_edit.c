#include "core/model/config_edit.h"

#include <assert.h>
#include <string.h>

#include "core/proto/message_field.h"

static const ProtobufCFieldDescriptor *edit_field(const ProtobufCMessage *m,
    const char *field);

inf_err_t *
inf_config_put_text(ProtobufCMessage *m, const char *field,
    const char *value)
{
    inf_scalar_t v = { .s = inf_slice_str(value) };
    return inf_field_put(m, edit_field(m, field), v);
}

inf_err_t *
inf_config_put_int(ProtobufCMessage *m, const char *field, int64_t value)
{
    inf_scalar_t v = { .i = value };
    return inf_field_put(m, edit_field(m, field), v);
}

inf_err_t *
inf_config_put_message(ProtobufCMessage *m, const char *field, void *child)
{
    ProtobufCMessage *made = NULL;
    inf_err_t *err = inf_field_put_message(m, edit_field(m, field), &made);
    if (err == NULL && child != NULL) {
        memcpy(child, &made, sizeof(made));
    }

    return err;
}

static const ProtobufCFieldDescriptor *
edit_field(const ProtobufCMessage *m, const char *field)
{
    const ProtobufCFieldDescriptor *f = inf_field_find(m->descriptor,
        inf_slice_str(field));
    assert(f != NULL);
    return f;
}
