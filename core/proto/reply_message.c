/*
 * reply_message.c - see reply_message.h.
 *
 * protobuf writes lengths before contents, so all lengths are computed first;
 * then one buffer gets everything except the tensors: prefix, head, and before
 * each tensor its tag and length.  Small tensors are copied into the buffer,
 * because a separate piece is more expensive to send.
 */

#include <string.h>

#include "core/proto/grpc.h"
#include "core/proto/infer_names.h"
#include "core/proto/infer_response.h"
#include "core/proto/message_utf8.h"
#include "core/proto/message_wire.h"
#include "core/proto/number.h"
#include "core/proto/reply_message.h"

#define FINAL_RESPONSE "triton_final_response"

/* Fields of the messages, by their numbers in grpc_service.proto. */
enum { STREAM_ERROR = 1, STREAM_RESPONSE };
enum { RESPONSE_MODEL_NAME = 1, RESPONSE_MODEL_VERSION, RESPONSE_ID,
       RESPONSE_PARAMETERS, RESPONSE_OUTPUTS, RESPONSE_RAW };
enum { OUTPUT_NAME = 1, OUTPUT_DATATYPE, OUTPUT_SHAPE };
enum { ENTRY_KEY = 1, ENTRY_VALUE };
enum { PARAMETER_BOOL = 1, PARAMETER_INT64, PARAMETER_STRING,
       PARAMETER_DOUBLE };

/* An output to deliver. */
typedef struct {
    inf_slice_t       name;
    inf_slice_t       datatype;
    const int64_t    *shape;
    uint32_t          dim_count;
    inf_classifier_t *classifier;       /* NULL: none                        */
    const char       *data;
    uint64_t          data_len;
    uint64_t          shape_len;        /* packed                            */
    uint64_t          len;              /* of the description                */
} plan_t;

/* The fields before the outputs. */
typedef struct {
    inf_slice_t                   model_name;
    inf_slice_t                   model_version;
    inf_slice_t                   id;
    const inf_response_record_t  *rec;          /* has the parameters, or
                                                   NULL                      */
    bool                          has_final;    /* triton_final_response     */
    bool                          final;
} head_t;

struct inf_reply_s {
    const inf_response_record_t *rec;
    inf_arena_t                 *pool;
    bool                         stream;
    bool                         final;
    bool                         laid_out;
    uint32_t                     prepared;      /* number of outputs         */
    plan_t                      *plans;
    uint64_t                     size;
    uint32_t                     piece_count;
    inf_slice_t                 *pieces;
};

static inf_err_t *plan_outputs(inf_reply_t *r, const void *arena_base,
    const inf_reply_options_t *options);
static inf_err_t *plan_output(inf_reply_t *r, plan_t *plan,
    const inf_response_output_t *output, const void *arena_base, uint32_t k);
static inf_err_t *ask_for_classes(inf_names_t *asked,
    const inf_reply_options_t *options);
static inf_err_t *lay_out(inf_reply_t *r);
static void put_pieces(inf_reply_t *r, char *start, char *p);
static void add_piece(inf_reply_t *r, const char *data, uint64_t len);
static uint64_t head_size(const head_t *head);
static char *put_head(char *p, const head_t *head);
static uint64_t value_size(const head_t *head,
    const inf_record_parameter_t *row);
static char *put_parameter(char *p, const head_t *head,
    const inf_record_parameter_t *row);
static void measure_output(plan_t *plan);
static char *put_output(char *p, const plan_t *plan);
static char *put_prefix(char *p, uint64_t len);

/* ---- sizes and bytes of fields ---- */

/* The size of a field with len bytes. */
static uint64_t
field_size(uint64_t len)
{
    return 1 + inf_wire_varint_size(len) + len;
}

/* The size of a text; an empty text is left out. */
static uint64_t
text_size(inf_slice_t text)
{
    return text.len != 0 ? field_size(text.len) : 0;
}

static char *
put_length(char *p, uint32_t field, uint64_t len)
{
    *p++ = inf_wire_tag(field, INF_WIRE_LEN);
    return inf_wire_put_varint(p, len);
}

/* Writes a text, repaired: clients reject a message with invalid UTF-8. */
static char *
put_bytes(char *p, uint32_t field, inf_slice_t text)
{
    p = put_length(p, field, text.len);
    if (text.len != 0) {
        memcpy(p, text.data, text.len);
        inf_utf8_repair(p, text.len);
    }

    return p + text.len;
}

static char *
put_text(char *p, uint32_t field, inf_slice_t text)
{
    return text.len != 0 ? put_bytes(p, field, text) : p;
}

/* ---- a response ---- */

inf_err_t *
inf_reply_new(inf_reply_t **out, const inf_response_record_t *rec,
    const void *arena_base, const inf_reply_options_t *options,
    inf_arena_t *pool)
{
    static const inf_reply_options_t none;
    inf_err_t *err = inf_response_check_parameters(rec);

    if (err != NULL) {
        return err;
    }

    options = options != NULL ? options : &none;

    inf_reply_t *r = inf_arena_alloc(pool, sizeof(*r));
    plan_t *plans = inf_arena_alloc(pool, rec->output_count * sizeof(*plans));
    if (r == NULL || plans == NULL) {
        return inf_err_nomem();
    }

    *r = (inf_reply_t) {
        .rec = rec, .pool = pool, .plans = plans, .stream = options->stream,
        .final = options->final
    };

    err = plan_outputs(r, arena_base, options);
    if (err != NULL) {
        return err;
    }

    *out = r;
    return NULL;
}

static inf_err_t *
plan_outputs(inf_reply_t *r, const void *arena_base,
    const inf_reply_options_t *options)
{
    const void *table = (const char *) r->rec + r->rec->output_offset;
    const inf_response_output_t *rows = table;
    inf_names_t asked = { .arena = r->pool };
    inf_err_t *err = ask_for_classes(&asked, options);

    for (uint32_t i = 0; i < r->rec->output_count && err == NULL; i++) {
        inf_slice_t name = inf_response_text(r->rec, rows[i].name);
        uint32_t found = inf_names_find(&asked, name);
        uint32_t k = found != INF_NAMES_NONE
                     ? options->outputs[found].classification : 0;

        r->plans[i].name = name;
        err = plan_output(r, &r->plans[i], &rows[i], arena_base, k);
    }

    return err;
}

/* Adds the listed outputs with classification; the others have no effect. */
static inf_err_t *
ask_for_classes(inf_names_t *asked, const inf_reply_options_t *options)
{
    inf_err_t *err = NULL;
    bool fresh;

    for (uint32_t i = 0; i < options->output_count && err == NULL; i++) {
        if (options->outputs[i].classification != 0) {
            err = inf_names_add(asked, options->outputs[i].name, i, &fresh);
        }
    }

    return err;
}

static inf_err_t *
plan_output(inf_reply_t *r, plan_t *plan, const inf_response_output_t *output,
    const void *arena_base, uint32_t k)
{
    bool here = output->data_kind != INF_DATA_SHM_REGION;
    const void *shape = (const char *) r->rec + output->shape_offset;

    plan->datatype = inf_slice_str(inf_datatype_name(output->datatype));
    plan->shape = shape;
    plan->dim_count = output->dim_count;
    plan->classifier = NULL;
    plan->data = here ? (const char *) arena_base + output->data_offset
                      : NULL;
    plan->data_len = here ? output->data_length : 0;

    if (k == 0 || !here) {
        return NULL;
    }

    inf_err_t *err = inf_response_classifier(&plan->classifier, r->rec,
                                             output, arena_base, k, r->pool);
    if (err != NULL) {
        return err;
    }

    plan->datatype = INF_SLICE("BYTES");
    plan->dim_count = inf_classifier_shape(plan->classifier, &plan->shape);
    return NULL;
}

inf_codec_t
inf_reply_prepare(inf_reply_t *r, size_t budget, inf_err_t **err)
{
    while (r->prepared < r->rec->output_count) {
        plan_t *plan = &r->plans[r->prepared];

        if (plan->classifier != NULL) {
            if (budget == 0) {
                return INF_CODEC_AGAIN;
            }

            inf_codec_t rc = inf_classifier_run(plan->classifier, budget,
                                                err);
            if (rc != INF_CODEC_DONE) {
                return rc;
            }

            plan->data = inf_classifier_result(plan->classifier,
                                               &plan->data_len);
            budget /= 2;                /* the cost is not known */
        }

        r->prepared++;
    }

    if (!r->laid_out) {
        *err = lay_out(r);
        if (*err != NULL) {
            return INF_CODEC_ERROR;
        }

        r->laid_out = true;
    }

    return INF_CODEC_DONE;
}

static head_t
head_of(const inf_reply_t *r, const char *version, size_t version_len)
{
    return (head_t) {
        .model_name = inf_response_text(r->rec, r->rec->model_name),
        .model_version = inf_slice(version, version_len),
        .id = inf_response_text(r->rec, r->rec->id),
        .rec = r->rec,
        .has_final = r->stream,
        .final = r->final
    };
}

static inf_err_t *
lay_out(inf_reply_t *r)
{
    char version[INF_NUMBER_MAX_TEXT];
    head_t head = head_of(r, version,
                          inf_number_write_int64(version,
                                                 r->rec->model_version));
    uint64_t own = head_size(&head);    /* size of the buffer                */
    uint64_t tensors = 0;
    uint32_t apart = 0;

    for (uint32_t i = 0; i < r->rec->output_count; i++) {
        plan_t *plan = &r->plans[i];
        bool copied = plan->data_len <= INF_REPLY_COPIED;

        measure_output(plan);
        own += field_size(plan->len) + 1
               + inf_wire_varint_size(plan->data_len);
        own += copied ? plan->data_len : 0;
        tensors += copied ? 0 : plan->data_len;
        apart += !copied;
    }

    uint64_t response = own + tensors;
    uint64_t message = r->stream ? field_size(response) : response;

    if (message > INF_GRPC_MAX_MESSAGE) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Response has byte size %llu which exceeds gRPC's "
                           "byte size limit %d.",
                           (unsigned long long) message,
                           INF_GRPC_MAX_MESSAGE);
    }

    r->size = INF_GRPC_PREFIX + message;

    char *start = inf_arena_alloc(r->pool, (size_t) (r->size - tensors));
    r->pieces = inf_arena_alloc(r->pool, (2 * (size_t) apart + 1)
                                         * sizeof(*r->pieces));
    if (start == NULL || r->pieces == NULL) {
        return inf_err_nomem();
    }

    char *p = put_prefix(start, message);
    p = r->stream ? put_length(p, STREAM_RESPONSE, response) : p;
    p = put_head(p, &head);
    put_pieces(r, start, p);
    return NULL;
}

/* Writes outputs and tensors after the head, which ends at p. */
static void
put_pieces(inf_reply_t *r, char *start, char *p)
{
    for (uint32_t i = 0; i < r->rec->output_count; i++) {
        p = put_output(p, &r->plans[i]);
    }

    for (uint32_t i = 0; i < r->rec->output_count; i++) {
        const plan_t *plan = &r->plans[i];

        p = put_length(p, RESPONSE_RAW, plan->data_len);

        if (plan->data_len > INF_REPLY_COPIED) {
            add_piece(r, start, (uint64_t) (p - start));
            add_piece(r, plan->data, plan->data_len);
            start = p;

        } else if (plan->data_len != 0) {
            memcpy(p, plan->data, (size_t) plan->data_len);
            p += plan->data_len;
        }
    }

    if (p != start) {
        add_piece(r, start, (uint64_t) (p - start));
    }
}

static void
add_piece(inf_reply_t *r, const char *data, uint64_t len)
{
    r->pieces[r->piece_count++] = inf_slice(data, (size_t) len);
}

uint64_t
inf_reply_size(const inf_reply_t *r)
{
    return r->size;
}

uint32_t
inf_reply_piece_count(const inf_reply_t *r)
{
    return r->piece_count;
}

inf_slice_t
inf_reply_piece(const inf_reply_t *r, uint32_t i)
{
    return r->pieces[i];
}

/* ---- a reply without a record ---- */

inf_err_t *
inf_reply_notice(inf_slice_t *out, const inf_reply_notice_t *notice,
    inf_arena_t *pool)
{
    head_t head = {
        .model_name = notice->model_name,
        .model_version = notice->model_version,
        .id = notice->id,
        .has_final = notice->answered,
        .final = notice->final
    };
    uint64_t response = head_size(&head);
    uint64_t message = text_size(notice->error) + field_size(response);
    char *start = inf_arena_alloc(pool, (size_t) message + INF_GRPC_PREFIX);

    if (start == NULL) {
        return inf_err_nomem();
    }

    char *p = put_prefix(start, message);
    p = put_text(p, STREAM_ERROR, notice->error);
    p = put_length(p, STREAM_RESPONSE, response);
    p = put_head(p, &head);

    *out = inf_slice(start, (size_t) (p - start));
    return NULL;
}

static char *
put_prefix(char *p, uint64_t len)
{
    inf_grpc_prefix_t prefix = { .len = (uint32_t) len };

    inf_grpc_put_prefix(p, &prefix);
    return p + INF_GRPC_PREFIX;
}

/* ---- the head ---- */

/* The response's parameters and triton_final_response. */
static const inf_record_parameter_t *
parameters_of(const head_t *head, uint32_t *count)
{
    const void *table = NULL;

    *count = 0;
    if (head->rec != NULL) {
        table = (const char *) head->rec + head->rec->parameter_offset;
        *count = head->rec->parameter_count;
    }

    return table;
}

/* The size of a map's entry; key and value are always written. */
static uint64_t
entry_size(uint64_t key, uint64_t value)
{
    return field_size(key) + field_size(value);
}

static uint64_t
head_size(const head_t *head)
{
    uint64_t size = text_size(head->model_name)
                    + text_size(head->model_version) + text_size(head->id);
    uint32_t count;
    const inf_record_parameter_t *rows = parameters_of(head, &count);

    for (uint32_t i = 0; i < count; i++) {
        size += field_size(entry_size(rows[i].name.len,
                                      value_size(head, &rows[i])));
    }

    if (head->has_final) {
        size += field_size(entry_size(sizeof(FINAL_RESPONSE) - 1, 2));
    }

    return size;
}

static char *
put_head(char *p, const head_t *head)
{
    uint32_t count;
    const inf_record_parameter_t *rows = parameters_of(head, &count);

    p = put_text(p, RESPONSE_MODEL_NAME, head->model_name);
    p = put_text(p, RESPONSE_MODEL_VERSION, head->model_version);
    p = put_text(p, RESPONSE_ID, head->id);

    for (uint32_t i = 0; i < count; i++) {
        p = put_parameter(p, head, &rows[i]);
    }

    if (head->has_final) {
        inf_slice_t key = INF_SLICE(FINAL_RESPONSE);

        p = put_length(p, RESPONSE_PARAMETERS, entry_size(key.len, 2));
        p = put_bytes(p, ENTRY_KEY, key);
        p = put_length(p, ENTRY_VALUE, 2);
        *p++ = inf_wire_tag(PARAMETER_BOOL, INF_WIRE_VARINT);
        *p++ = head->final;
    }

    return p;
}

/* The size of a value; zero members of a oneof are written too. */
static uint64_t
value_size(const head_t *head, const inf_record_parameter_t *row)
{
    switch ((inf_parameter_type_t) row->type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        return field_size(inf_response_text(head->rec, row->text).len);
    case INF_PARAMETER_INT:
        return 1 + inf_wire_varint_size((uint64_t) row->number.i);
    case INF_PARAMETER_BOOL:
        return 2;
    case INF_PARAMETER_DOUBLE:
        return 1 + sizeof(row->number.d);
    }

    return 0;
}

static char *
put_parameter(char *p, const head_t *head, const inf_record_parameter_t *row)
{
    inf_slice_t key = inf_response_text(head->rec, row->name);
    uint64_t value = value_size(head, row);

    p = put_length(p, RESPONSE_PARAMETERS, entry_size(key.len, value));
    p = put_bytes(p, ENTRY_KEY, key);
    p = put_length(p, ENTRY_VALUE, value);

    switch ((inf_parameter_type_t) row->type) {

    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        return put_bytes(p, PARAMETER_STRING,
                         inf_response_text(head->rec, row->text));

    case INF_PARAMETER_INT:
        *p++ = inf_wire_tag(PARAMETER_INT64, INF_WIRE_VARINT);
        return inf_wire_put_varint(p, (uint64_t) row->number.i);

    case INF_PARAMETER_BOOL:
        *p++ = inf_wire_tag(PARAMETER_BOOL, INF_WIRE_VARINT);
        *p++ = row->number.i != 0;
        return p;

    case INF_PARAMETER_DOUBLE:
        *p++ = inf_wire_tag(PARAMETER_DOUBLE, INF_WIRE_I64);
        memcpy(p, &row->number.d, sizeof(row->number.d));
        return p + sizeof(row->number.d);
    }

    return p;
}

/* ---- outputs ---- */

static void
measure_output(plan_t *plan)
{
    plan->shape_len = 0;
    for (uint32_t i = 0; i < plan->dim_count; i++) {
        plan->shape_len += inf_wire_varint_size((uint64_t) plan->shape[i]);
    }

    plan->len = text_size(plan->name) + text_size(plan->datatype)
                + (plan->shape_len != 0 ? field_size(plan->shape_len) : 0);
}

static char *
put_output(char *p, const plan_t *plan)
{
    p = put_length(p, RESPONSE_OUTPUTS, plan->len);
    p = put_text(p, OUTPUT_NAME, plan->name);
    p = put_text(p, OUTPUT_DATATYPE, plan->datatype);

    if (plan->shape_len != 0) {
        p = put_length(p, OUTPUT_SHAPE, plan->shape_len);
        for (uint32_t i = 0; i < plan->dim_count; i++) {
            p = inf_wire_put_varint(p, (uint64_t) plan->shape[i]);
        }
    }

    return p;
}
