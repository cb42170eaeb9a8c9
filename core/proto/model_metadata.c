#include "core/proto/model_metadata.h"

#include "core/proto/json_doc.h"
#include "core/proto/message.h"
#include "core/proto/message_json.h"
#include "grpc_service.pb-c.h"

static json_t *known_members(const json_t *value,
    const ProtobufCMessageDescriptor *desc);
static json_t *known_objects(const json_t *list,
    const ProtobufCMessageDescriptor *desc);
static inf_err_t *rewrite(const json_t *value,
    const ProtobufCMessageDescriptor *desc, inf_buf_t *out);

inf_err_t *
inf_model_metadata_restrict(inf_slice_t model, inf_slice_t theirs,
    inf_buf_t *out)
{
    const ProtobufCMessageDescriptor *desc =
        &inference__model_metadata_response__descriptor;
    inf_json_doc_t doc = { NULL };
    inf_slice_t name;

    inf_err_t *err = inf_json_doc_parse(&doc, theirs, 0);
    if (err != NULL) {
        return err;
    }

    if (!inf_json_doc_string(json_object_get(doc.root, "name"), &name)
        || !inf_slice_eq(name, model))
    {
        err = inf_err_new(INF_ERR_INVALID_ARG, "metadata of another model");

    } else {
        json_t *known = known_members(doc.root, desc);
        err = rewrite(known, desc, out);
        json_decref(known);
    }

    inf_json_doc_fini(&doc);
    return err;
}

/* A new value with the message's members only; NULL: out of memory. */
static json_t *
known_members(const json_t *value, const ProtobufCMessageDescriptor *desc)
{
    json_t *object = json_object();
    const char *key;
    json_t *member;

    json_object_foreach((json_t *) (uintptr_t) value, key, member) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(desc, key);
        if (f == NULL) {
            continue;
        }

        json_t *known = f->type == PROTOBUF_C_TYPE_MESSAGE
            ? known_objects(member, f->descriptor) : json_incref(member);
        if (json_object_set_new(object, key, known) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Filters the objects of a list; other kinds of values stay, and are rejected
   by the message's reader. */
static json_t *
known_objects(const json_t *list, const ProtobufCMessageDescriptor *desc)
{
    json_t *objects = json_array();
    size_t i;
    json_t *item;

    if (!json_is_array(list)) {
        json_decref(objects);
        return json_incref((json_t *) (uintptr_t) list);
    }

    json_array_foreach(list, i, item) {
        json_t *known = json_is_object(item) ? known_members(item, desc)
            : json_incref(item);
        if (json_array_append_new(objects, known) != 0) {
            json_decref(objects);
            return NULL;
        }
    }
    return objects;
}

/* Appends value in the form of our own answer, with all members of the
   message. */
static inf_err_t *
rewrite(const json_t *value, const ProtobufCMessageDescriptor *desc,
    inf_buf_t *out)
{
    static const inf_json_options_t plain = { .int64_numbers = true };
    ProtobufCMessage *m;
    inf_buf_t text;

    inf_buf_init(&text);
    inf_err_t *err = inf_json_doc_put(value, &text);
    if (err == NULL) {
        err = inf_message_from_json(desc, inf_buf_slice(&text), &m);
    }
    inf_buf_fini(&text);
    if (err != NULL) {
        return err;
    }

    err = inf_message_to_json(m, &plain, out);
    inf_message_free(m);
    return err;
}
