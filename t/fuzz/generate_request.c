/* Any bytes as the JSON of a generate request: its members are those that
   jansson finds, and each of them becomes an error or a sound
   request. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/include/datatype.h"
#include "core/model/config_normalize.h"
#include "core/model/generate_request.h"
#include "core/model/normalize.h"
#include "core/model/string_check.h"
#include "core/proto/generate_members.h"
#include "core/proto/infer_request.h"
#include "core/proto/json_doc.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
    "name: 'm' backend: 'x' max_batch_size: %d\n"
    "input [ { name: 'I' data_type: TYPE_INT32 dims: [ -1 ] optional: true },\n"
    " { name: 'U' data_type: TYPE_UINT64 dims: [ -1, 2 ] optional: true },\n"
    " { name: 'F' data_type: TYPE_FP32 dims: [ 3, -1, -1 ] optional: true },\n"
    " { name: 'D' data_type: TYPE_FP64 dims: [ 1 ] optional: true },\n"
    " { name: 'B' data_type: TYPE_BOOL dims: [ -1 ] optional: true },\n"
    " { name: 'S' data_type: TYPE_STRING dims: [ -1 ] optional: true },\n"
    " { name: 'H' data_type: TYPE_FP16 dims: [ -1 ] optional: true },\n"
    " { name: 'id' data_type: TYPE_STRING dims: [ 1 ] optional: true } ]\n"
    "output { name: 'O' data_type: TYPE_INT32 dims: 4 }\n";

static inf_model_t *models[2];

static inf_model_t *
new_model(int batch)
{
    Inference__ModelConfig *msg;
    char text[2048];
    int n = snprintf(text, sizeof(text), config, batch);

    inf_model_t *model = inf_model_new("m", 1, "/models/m");
    check(model != NULL && n > 0);

    ProtobufCMessage *m;
    inf_err_t *err = inf_text_parse(
        &inference__model_config__descriptor, inf_slice(text, (size_t) n), "fuzz",
        &m);
    check(err == NULL);
    msg = (void *) m;
    check(inf_config_normalize(msg) == NULL);
    check(inf_config_tensors_new(msg, &model->tensors) == NULL);
    inf_message_free(m);
    return model;
}

/* All that is there, once over. */
static void
touch(const inf_request_t *req)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_input_t *in = &req->inputs[i];
        for (uint32_t k = 0; k < in->buffer_count; k++) {
            const uint8_t *bytes = in->buffers[k].base;
            check((uintptr_t) bytes % INF_ARENA_ALIGN == 0);
            for (uint64_t j = 0; j < in->buffers[k].size; j++) {
                sum += bytes[j];
            }
        }
    }
    for (uint32_t i = 0; i < req->parameters.count; i++) {
        const inf_parameter_t *p = req->parameters.items[i];
        sum += strlen(p->name);
        if (p->type == INF_PARAMETER_STRING) {
            check(p->text[p->text_len] == '\0');
        }
    }
    check(sum != UINT64_MAX && req->id != NULL);
}

static void
make_request(inf_model_t *model, inf_slice_t json)
{
    inf_request_t req;

    inf_request_init(&req);
    req.id = "";
    req.model = model;
    inf_err_t *err = inf_generate_request(model, &req, json,
        INF_INFER_MAX_JSON);
    if (err == NULL) {
        touch(&req);
        err = inf_request_normalize(model, &req);
    }
    if (err == NULL) {
        /* what is made here is never malformed */
        check(inf_request_check_strings(&req) == NULL);
    }
    inf_err_free(err);
    inf_request_fini(&req);
}

static bool
same_kind(const inf_generate_member_t *m, const json_t *v)
{
    switch (m->kind) {
    case INF_JSON_STRING:
        return json_is_string(v);
    case INF_JSON_NUMBER:
        return json_is_number(v);
    case INF_JSON_TRUE:
        return json_is_true(v);
    case INF_JSON_FALSE:
        return json_is_false(v);
    case INF_JSON_NULL:
        return json_is_null(v);
    case INF_JSON_ARRAY_BEGIN:
        return json_is_array(v);
    default:
        return json_is_object(v);
    }
}

/* Whether a member of the request and one of its parameters have a name. */
static bool
has_repeated(const inf_generate_members_t *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->members[i].repeated) {
            return true;
        }
    }

    return false;
}

static size_t leaves(const json_t *value);

/* Where both can read the text, they find the same. */
static void
compare(const inf_generate_members_t *list, const json_t *root)
{
    const json_t *inner = json_object_get(root, INF_GENERATE_PARAMETERS);

    check(list->has_parameters == (inner != NULL));
    check(list->count == json_object_size(root) + json_object_size(inner)
        - (inner != NULL));
    for (uint32_t i = 0; i < list->count; i++) {
        const inf_generate_member_t *m = &list->members[i];
        const json_t *a = json_object_getn(root, m->name.data, m->name.len);
        const json_t *b = json_object_getn(inner, m->name.data, m->name.len);

        check(m->offset + m->length <= list->json.len);
        check((a != NULL && same_kind(m, a)) || (b != NULL
            && same_kind(m, b)));
        if (m->kind == INF_JSON_ARRAY_BEGIN
            && !(m->tally.kinds & INF_JSON_KIND_OBJECT))
        {
            check(m->tally.count == leaves(a != NULL && json_is_array(a) ? a
                : b));
        }
    }
}

/* The values that are no arrays. */
static size_t
leaves(const json_t *value)
{
    size_t count = 0;

    if (!json_is_array(value)) {
        return 1;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        count += leaves(json_array_get(value, i));
    }
    return count;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    inf_slice_t json = inf_slice((const char *) data, size);
    inf_generate_members_t list;
    inf_json_doc_t doc = { 0 };
    inf_arena_t arena;

    if (models[0] == NULL) {
        models[0] = new_model(0);
        models[1] = new_model(4);
    }

    inf_arena_init(&arena);
    inf_err_t *err = inf_generate_members_read(&list, json, &arena);
    inf_err_t *other = inf_json_doc_parse(&doc, json,
        INF_JSON_DOC_NO_DUPLICATES);
    if (err == NULL && other == NULL && !has_repeated(&list)) {
        compare(&list, doc.root);
    }
    inf_err_free(err);
    inf_err_free(other);
    inf_json_doc_fini(&doc);
    inf_arena_fini(&arena);

    make_request(models[0], json);
    make_request(models[1], json);
    return 0;
}
