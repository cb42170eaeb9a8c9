/*
 * infer_message.c - see infer_message.h.
 *
 * Reads the syntax.  protobuf-c is not used because it cannot be interrupted,
 * truncates strings at a NUL, and does not check for UTF-8.  Fields are taken
 * without copying the text, and contents are only counted.
 *
 * As in protobuf, the last of several values counts, unknown fields are
 * skipped, and so are known ones of another wire type.  Repeated messages are
 * merged: contents by their lists, map values by their last choice.
 */

#include <string.h>

#include "core/proto/infer_contents.h"
#include "core/proto/infer_message_parts.h"
#include "core/proto/message_utf8.h"
#include "core/proto/message_wire.h"

#define STEP_COST   32u         /* budget bytes besides a field's own        */

#define NAMED(text) { (text), sizeof(text) - 1 }

/* Fields of the messages, by their numbers in grpc_service.proto. */
enum { REQUEST_MODEL_NAME = 1, REQUEST_MODEL_VERSION, REQUEST_ID,
       REQUEST_PARAMETERS, REQUEST_INPUTS, REQUEST_OUTPUTS };
enum { INPUT_NAME = 1, INPUT_DATATYPE, INPUT_SHAPE, INPUT_PARAMETERS,
       INPUT_CONTENTS };
enum { OUTPUT_NAME = 1, OUTPUT_PARAMETERS };
enum { ENTRY_KEY = 1, ENTRY_VALUE };

static inf_err_t *step(inf_infer_message_t *m, size_t budget);
static inf_err_t *read_request(inf_infer_message_t *m);
static inf_err_t *open_input(inf_infer_message_t *m, uint64_t len);
static inf_err_t *read_input(inf_infer_message_t *m);
static inf_err_t *close_input(inf_infer_message_t *m);
static inf_err_t *read_contents(inf_infer_message_t *m);
static inf_err_t *read_list(inf_infer_message_t *m,
    const inf_wire_head_t *head);
static inf_err_t *count_varints(inf_infer_message_t *m, size_t budget);
static void count_elements(inf_infer_message_t *m, uint32_t list, uint64_t n,
    uint64_t bytes);
static inf_err_t *read_output(inf_infer_message_t *m, uint64_t len);
static inf_err_t *read_parameter(inf_infer_message_t *m, uint64_t len);
static inf_err_t *add_custom(inf_infer_message_t *m, inf_infer_span_t key,
    const inf_infer_value_t *value);
static inf_err_t *read_tensor_parameter(inf_infer_message_t *m,
    inf_infer_row_t *row, uint64_t len);
static inf_err_t *read_entry(inf_infer_message_t *m, uint64_t len,
    inf_infer_span_t *key, inf_infer_value_t *value);
static inf_err_t *read_value(inf_infer_message_t *m, uint64_t end,
    inf_infer_value_t *value);
static inf_err_t *read_shape(inf_infer_message_t *m, inf_infer_row_t *row,
    const inf_wire_head_t *head);
static inf_err_t *read_span(inf_infer_message_t *m, uint64_t len,
    const char *what, inf_infer_span_t *out);
static inf_err_t *read_text(inf_infer_message_t *m, uint64_t len,
    const char *what, inf_slice_t *out);
static inf_err_t *next_head(inf_infer_message_t *m, uint64_t end,
    inf_wire_head_t *head);
static inf_err_t *head_error(const inf_infer_message_t *m, uint64_t end);
static inf_err_t *add_row(inf_infer_message_t *m, inf_infer_rows_t *rows,
    size_t size, void **row);
static inf_err_t *describe(inf_infer_message_t *m, uint64_t *described,
    uint64_t len);
static inf_err_t *wire_error(const inf_infer_message_t *m, uint64_t at,
    const char *what, const char *why);

inf_err_t *
inf_infer_message_new(inf_infer_message_t **out, inf_arena_t *arena,
    const inf_infer_limits_t *limits)
{
    static const inf_infer_limits_t none;
    inf_infer_message_t *m = inf_arena_alloc(arena, sizeof(*m));

    if (m == NULL) {
        return inf_err_nomem();
    }

    memset(m, 0, offsetof(inf_infer_message_t, dims));
    m->arena = arena;
    m->limits = limits != NULL ? *limits : none;

    if (m->limits.max_piece_bytes == 0) {
        m->limits.max_piece_bytes = INF_INFER_MAX_PIECE;
    }

    if (m->limits.max_inputs == 0) {
        m->limits.max_inputs = INF_INFER_MAX_TENSORS;
    }

    if (m->limits.max_outputs == 0) {
        m->limits.max_outputs = INF_INFER_MAX_TENSORS;
    }

    m->custom_names.arena = arena;
    m->names.arena = arena;
    m->call.model_version = -1;
    *out = m;
    return NULL;
}

const inf_infer_call_t *
inf_infer_message_call(const inf_infer_message_t *m)
{
    return &m->call;
}

inf_codec_t
inf_infer_message_read(inf_infer_message_t *m, const char *text, uint64_t len,
    const uint64_t *raw_sizes, uint32_t raw_count, size_t budget,
    inf_err_t **err)
{
    m->text = text;
    m->len = len;
    m->raw_sizes = raw_sizes;
    m->raw_count = raw_count;

    while (m->stage != INF_STAGE_DONE) {
        if (budget == 0) {
            return INF_CODEC_AGAIN;
        }

        m->cost = STEP_COST;
        *err = step(m, budget);
        if (*err != NULL) {
            return INF_CODEC_ERROR;
        }

        budget -= m->cost < budget ? (size_t) m->cost : budget;
    }

    return INF_CODEC_DONE;
}

/* ---- fields ---- */

static inf_err_t *
step(inf_infer_message_t *m, size_t budget)
{
    switch (m->stage) {
    case INF_STAGE_FIELDS:
        return read_request(m);
    case INF_STAGE_INPUT:
        return read_input(m);
    case INF_STAGE_CONTENTS:
        return read_contents(m);
    case INF_STAGE_LIST:
        return count_varints(m, budget);
    case INF_STAGE_REQUEST:
    case INF_STAGE_INPUTS:
    case INF_STAGE_OUTPUTS:
    case INF_STAGE_DATA:
    case INF_STAGE_OPTIONS:
    case INF_STAGE_DONE:
        break;
    }

    return inf_infer_message_rules(m);
}

static inf_err_t *
read_request(inf_infer_message_t *m)
{
    inf_wire_head_t head;
    inf_err_t *err;

    if (m->pos == m->len) {
        m->stage = INF_STAGE_REQUEST;
        return NULL;
    }

    err = next_head(m, m->len, &head);
    if (err != NULL) {
        return err;
    }

    if (head.type != INF_WIRE_LEN || head.field > REQUEST_OUTPUTS) {
        m->pos += head.body;
        return NULL;
    }

    if (head.field == REQUEST_INPUTS) {
        return open_input(m, head.body);
    }

    err = describe(m, head.field == REQUEST_OUTPUTS ? NULL : &m->described,
                   head.len + head.body);
    if (err != NULL) {
        return err;
    }

    switch (head.field) {
    case REQUEST_MODEL_NAME:
        return read_text(m, head.body, "model_name", &m->call.model_name);
    case REQUEST_MODEL_VERSION:
        return read_text(m, head.body, "model_version",
                         &m->call.version_text);
    case REQUEST_ID:
        return read_text(m, head.body, "id", &m->call.infer.id);
    case REQUEST_PARAMETERS:
        return read_parameter(m, head.body);
    default:
        return read_output(m, head.body);
    }
}

/* ---- inputs ---- */

static inf_infer_row_t *
open_row(const inf_infer_message_t *m)
{
    inf_infer_row_t *rows = m->inputs.items;

    return &rows[m->inputs.count - 1];
}

static inf_err_t *
open_input(inf_infer_message_t *m, uint64_t len)
{
    void *row;

    if (m->inputs.count == m->limits.max_inputs) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse 'inputs': more than %u of them",
                           m->limits.max_inputs);
    }

    inf_err_t *err = add_row(m, &m->inputs, sizeof(inf_infer_row_t), &row);
    if (err != NULL) {
        return err;
    }

    *(inf_infer_row_t *) row = (inf_infer_row_t) {
        .name = INF_SLICE(""), .span = { m->pos, len }
    };
    m->part = "inputs";
    m->input_end = m->pos + len;
    m->input_described = 0;
    m->stage = INF_STAGE_INPUT;
    return NULL;
}

static inf_err_t *
read_input(inf_infer_message_t *m)
{
    inf_infer_row_t *row = open_row(m);
    inf_infer_span_t datatype;
    inf_wire_head_t head;
    inf_err_t *err;

    if (m->pos == m->input_end) {
        return close_input(m);
    }

    err = next_head(m, m->input_end, &head);
    if (err != NULL) {
        return err;
    }

    bool known = head.field <= INPUT_CONTENTS
                 && (head.type == INF_WIRE_LEN
                     || (head.field == INPUT_SHAPE
                         && head.type == INF_WIRE_VARINT));
    if (!known) {
        m->pos += head.body;
        return NULL;
    }

    if (head.field == INPUT_CONTENTS) {
        row->contents = true;
        m->contents_end = m->pos + head.body;
        m->stage = INF_STAGE_CONTENTS;
        return NULL;
    }

    err = describe(m, &m->input_described, head.len + head.body);
    if (err != NULL) {
        return err;
    }

    switch (head.field) {
    case INPUT_NAME:
        return read_text(m, head.body, "name", &row->name);
    case INPUT_DATATYPE:
        err = read_span(m, head.body, "datatype", &datatype);
        row->datatype = inf_datatype_parse(m->text + datatype.offset,
                                           (size_t) datatype.len);
        return err;
    case INPUT_SHAPE:
        return read_shape(m, row, &head);
    default:
        return read_tensor_parameter(m, row, head.body);
    }
}

static inf_err_t *
close_input(inf_infer_message_t *m)
{
    inf_infer_row_t *row = open_row(m);
    uint32_t count = row->dim_count < INF_MAX_DIMS ? row->dim_count
                                                   : INF_MAX_DIMS;
    size_t size = count * sizeof(*m->dims);
    int64_t *dims = inf_arena_alloc(m->arena, size);

    if (dims == NULL) {
        return inf_err_nomem();
    }

    memcpy(dims, m->dims, size);
    row->shape = dims;
    m->part = NULL;
    m->stage = INF_STAGE_FIELDS;
    return NULL;
}

static void
add_dim(inf_infer_message_t *m, inf_infer_row_t *row, uint64_t value)
{
    if (row->dim_count < INF_MAX_DIMS) {
        m->dims[row->dim_count] = (int64_t) value;
    }

    row->dim_count++;
}

static inf_err_t *
read_shape(inf_infer_message_t *m, inf_infer_row_t *row,
    const inf_wire_head_t *head)
{
    uint64_t end = m->pos + head->body;
    uint64_t value;

    if (head->type == INF_WIRE_VARINT) {
        add_dim(m, row, head->value);
        return NULL;
    }

    while (m->pos < end) {
        size_t used = inf_wire_varint(m->text + m->pos,
                                      (size_t) (end - m->pos), &value);
        if (used == 0) {
            return wire_error(m, m->pos, "shape", "a dimension is no varint");
        }

        m->pos += used;
        add_dim(m, row, value);
    }

    return NULL;
}

/* ---- contents ---- */

static inf_err_t *
read_contents(inf_infer_message_t *m)
{
    inf_wire_head_t head;

    if (m->pos == m->contents_end) {
        m->stage = INF_STAGE_INPUT;
        return NULL;
    }

    inf_err_t *err = next_head(m, m->contents_end, &head);
    if (err != NULL) {
        return err;
    }

    if (head.type == INF_WIRE_LEN && head.field <= INF_CONTENTS_BYTES) {
        return read_list(m, &head);
    }

    bool element = (head.type == INF_WIRE_VARINT
                    && head.field <= INF_CONTENTS_UINT64)
                   || (head.type == INF_WIRE_I32
                       && head.field == INF_CONTENTS_FP32)
                   || (head.type == INF_WIRE_I64
                       && head.field == INF_CONTENTS_FP64);
    if (element) {
        count_elements(m, head.field, 1, 0);
    }

    m->pos += head.body;
    return NULL;
}

/* Reads a packed list or a string. */
static inf_err_t *
read_list(inf_infer_message_t *m, const inf_wire_head_t *head)
{
    uint64_t len = head->body;
    uint64_t size;

    switch (head->field) {

    case INF_CONTENTS_BYTES:
        if (len > UINT32_MAX) {
            return wire_error(m, m->pos, "bytes_contents",
                              "a string is longer than 4 GiB");
        }

        count_elements(m, head->field, 1, len);
        break;

    case INF_CONTENTS_FP32:
    case INF_CONTENTS_FP64:
        size = head->field == INF_CONTENTS_FP32 ? 4 : 8;
        if (len % size != 0) {
            return wire_error(m, m->pos, "contents",
                              "a list ends inside an element");
        }

        count_elements(m, head->field, len / size, 0);
        break;

    default:
        m->list_end = m->pos + len;
        m->stage = len != 0 ? INF_STAGE_LIST : m->stage;
        m->list = head->field;
        return NULL;
    }

    m->pos += len;
    return NULL;
}

/* Counts varints by their last bytes, whose highest bit is clear; their lengths
   are checked by the decoder. */
static inf_err_t *
count_varints(inf_infer_message_t *m, size_t budget)
{
    static const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t left = m->list_end - m->pos;
    size_t n = left < budget ? (size_t) left : budget;
    const char *p = m->text + m->pos;
    uint64_t count = 0;
    size_t i = 0;

    for ( ; n - i >= 8; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        count += (((~word & high) >> 7) * UINT64_C(0x0101010101010101)) >> 56;
    }

    for ( ; i < n; i++) {
        count += (unsigned char) p[i] < 0x80;
    }

    if (n == left && (unsigned char) p[n - 1] >= 0x80) {
        return wire_error(m, m->list_end - 1, "contents",
                          "a list ends inside an element");
    }

    count_elements(m, m->list, count, 0);
    m->pos += n;
    m->cost += n;
    m->stage = n == left ? INF_STAGE_CONTENTS : INF_STAGE_LIST;
    return NULL;
}

/* Counts elements; the counts are used only if one list alone has elements. */
static void
count_elements(inf_infer_message_t *m, uint32_t list, uint64_t n,
    uint64_t bytes)
{
    inf_infer_row_t *row = open_row(m);

    if (n != 0) {
        row->lists |= 1u << list;
        row->count += n;
        row->string_bytes += bytes;
    }
}

/* ---- outputs ---- */

static inf_err_t *
read_output(inf_infer_message_t *m, uint64_t len)
{
    uint64_t end = m->pos + len;
    void *item;

    if (m->outputs.count == m->limits.max_outputs) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse 'outputs': more than %u of them",
                           m->limits.max_outputs);
    }

    inf_err_t *err = add_row(m, &m->outputs, sizeof(inf_infer_row_t), &item);
    inf_infer_row_t *row = item;
    if (err != NULL) {
        return err;
    }

    *row = (inf_infer_row_t) { .name = INF_SLICE("") };
    m->part = "outputs";

    while (m->pos < end) {
        inf_wire_head_t head;

        err = next_head(m, end, &head);
        if (err != NULL) {
            return err;
        }

        if (head.type == INF_WIRE_LEN && head.field == OUTPUT_NAME) {
            err = read_text(m, head.body, "name", &row->name);
        } else if (head.type == INF_WIRE_LEN
                   && head.field == OUTPUT_PARAMETERS)
        {
            err = read_tensor_parameter(m, row, head.body);
        } else {
            m->pos += head.body;
        }

        if (err != NULL) {
            return err;
        }
    }

    m->part = NULL;
    return NULL;
}

/* ---- parameters ---- */

static const inf_slice_t tensor_parameters[INF_TENSOR_PARAMETERS] = {
    [INF_TENSOR_REGION] = NAMED("shared_memory_region"),
    [INF_TENSOR_OFFSET] = NAMED("shared_memory_offset"),
    [INF_TENSOR_BYTE_SIZE] = NAMED("shared_memory_byte_size"),
    [INF_TENSOR_CLASSIFICATION] = NAMED("classification")
};

static const inf_slice_t call_parameters[INF_CALL_PARAMETERS] = {
    [INF_CALL_SEQUENCE_ID] = NAMED("sequence_id"),
    [INF_CALL_SEQUENCE_START] = NAMED("sequence_start"),
    [INF_CALL_SEQUENCE_END] = NAMED("sequence_end"),
    [INF_CALL_PRIORITY] = NAMED("priority"),
    [INF_CALL_TIMEOUT] = NAMED("timeout"),
    [INF_CALL_EMPTY_FINAL] = NAMED("triton_enable_empty_final_response")
};

static uint32_t
find_parameter(const inf_slice_t *known, uint32_t count,
    const inf_infer_message_t *m, inf_infer_span_t key)
{
    inf_slice_t name = inf_slice(m->text + key.offset, (size_t) key.len);
    uint32_t i;

    for (i = 0; i < count && !inf_slice_eq(known[i], name); i++) {
        /* next parameter */
    }

    return i;
}

static inf_err_t *
read_parameter(inf_infer_message_t *m, uint64_t len)
{
    inf_infer_value_t value;
    inf_infer_span_t key;
    inf_err_t *err = read_entry(m, len, &key, &value);

    if (err != NULL) {
        return err;
    }

    uint32_t i = find_parameter(call_parameters, INF_CALL_PARAMETERS, m, key);
    if (i == INF_CALL_PARAMETERS) {
        return add_custom(m, key, &value);
    }

    m->parameters[i] = value;
    return NULL;
}

/* Adds a parameter; of duplicate names the last value counts. */
static inf_err_t *
add_custom(inf_infer_message_t *m, inf_infer_span_t key,
    const inf_infer_value_t *value)
{
    inf_slice_t name = inf_slice(m->text + key.offset, (size_t) key.len);
    uint32_t found = inf_names_find(&m->custom_names, name);
    bool fresh;
    void *row;

    if (found != INF_NAMES_NONE) {
        inf_infer_custom_t *rows = m->customs.items;
        rows[found].value = *value;
        return NULL;
    }

    char *copy = inf_arena_strdup(m->arena, name.data, name.len);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    name.data = copy;
    inf_err_t *err = inf_names_add(&m->custom_names, name, m->customs.count,
                                   &fresh);
    if (err == NULL) {
        err = add_row(m, &m->customs, sizeof(inf_infer_custom_t), &row);
    }

    if (err == NULL) {
        *(inf_infer_custom_t *) row = (inf_infer_custom_t) { name, *value };
    }

    return err;
}

static inf_err_t *
read_tensor_parameter(inf_infer_message_t *m, inf_infer_row_t *row,
    uint64_t len)
{
    inf_infer_value_t value;
    inf_infer_span_t key;
    inf_err_t *err = read_entry(m, len, &key, &value);

    if (err != NULL) {
        return err;
    }

    uint32_t i = find_parameter(tensor_parameters, INF_TENSOR_PARAMETERS, m,
                                key);
    if (i == INF_TENSOR_PARAMETERS) {
        return NULL;
    }

    if (row->parameters == NULL) {
        row->parameters = inf_arena_calloc(m->arena, INF_TENSOR_PARAMETERS,
                                           sizeof(*row->parameters));
        if (row->parameters == NULL) {
            return inf_err_nomem();
        }
    }

    row->parameters[i] = value;
    return NULL;
}

/* Reads one entry of a map. */
static inf_err_t *
read_entry(inf_infer_message_t *m, uint64_t len, inf_infer_span_t *key,
    inf_infer_value_t *value)
{
    uint64_t end = m->pos + len;

    *key = (inf_infer_span_t) { m->pos, 0 };
    *value = (inf_infer_value_t) { .choice = INF_CHOICE_UNSET };

    while (m->pos < end) {
        inf_wire_head_t head;
        inf_err_t *err = next_head(m, end, &head);

        if (err != NULL) {
            return err;
        }

        if (head.type == INF_WIRE_LEN && head.field == ENTRY_KEY) {
            err = read_span(m, head.body, "parameters", key);
        } else if (head.type == INF_WIRE_LEN && head.field == ENTRY_VALUE) {
            err = read_value(m, m->pos + head.body, value);
        } else {
            m->pos += head.body;
        }

        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static inf_err_t *
read_value(inf_infer_message_t *m, uint64_t end, inf_infer_value_t *value)
{
    static const inf_wire_type_t types[] = {
        [INF_CHOICE_BOOL] = INF_WIRE_VARINT,
        [INF_CHOICE_INT64] = INF_WIRE_VARINT,
        [INF_CHOICE_STRING] = INF_WIRE_LEN,
        [INF_CHOICE_DOUBLE] = INF_WIRE_I64,
        [INF_CHOICE_UINT64] = INF_WIRE_VARINT
    };

    while (m->pos < end) {
        inf_wire_head_t head;
        inf_err_t *err = next_head(m, end, &head);

        if (err != NULL) {
            return err;
        }

        if (head.field > INF_CHOICE_UINT64 || head.type != types[head.field])
        {
            m->pos += head.body;
            continue;
        }

        value->choice = (inf_infer_choice_t) head.field;

        switch (head.type) {
        case INF_WIRE_VARINT:
            value->number.u = head.field == INF_CHOICE_BOOL
                              ? head.value != 0 : head.value;
            break;
        case INF_WIRE_I64:
            memcpy(&value->number.d, m->text + m->pos, 8);
            m->pos += 8;
            break;
        case INF_WIRE_LEN:
            err = read_span(m, head.body, "parameters", &value->text);
            break;
        case INF_WIRE_I32:
            break;
        }

        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* ---- texts ---- */

/* Reads the next len bytes as a string. */
static inf_err_t *
read_span(inf_infer_message_t *m, uint64_t len, const char *what,
    inf_infer_span_t *out)
{
    const char *p = m->text + m->pos;

    *out = (inf_infer_span_t) { m->pos, len };
    if (!inf_utf8_valid(inf_slice(p, (size_t) len))) {
        return wire_error(m, m->pos, what, "the string is not valid UTF-8");
    }

    if (memchr(p, '\0', (size_t) len) != NULL) {
        return inf_err_recode(wire_error(m, m->pos, what,
                                         "the string holds a NUL character"),
                              INF_ERR_INVALID_ARG);
    }

    m->pos += len;
    return NULL;
}

static inf_err_t *
read_text(inf_infer_message_t *m, uint64_t len, const char *what,
    inf_slice_t *out)
{
    inf_infer_span_t span;
    inf_err_t *err = read_span(m, len, what, &span);

    if (err != NULL) {
        return err;
    }

    char *copy = inf_arena_strdup(m->arena, m->text + span.offset,
                                  (size_t) len);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    *out = inf_slice(copy, (size_t) len);
    return NULL;
}

/* ---- heads and rows ---- */

/* Reads a head; the field's body follows and ends by end. */
static inf_err_t *
next_head(inf_infer_message_t *m, uint64_t end, inf_wire_head_t *head)
{
    const char *reason;
    uint64_t left = end - m->pos;

    if (inf_wire_head(m->text + m->pos, (size_t) left, head, &reason)
        != INF_WIRE_OK || head->body > left - head->len)
    {
        return head_error(m, end);
    }

    m->pos += head->len;
    return NULL;
}

static inf_err_t *
head_error(const inf_infer_message_t *m, uint64_t end)
{
    const char *reason = NULL;
    inf_wire_head_t head;

    switch (inf_wire_head(m->text + m->pos, (size_t) (end - m->pos), &head,
                          &reason))
    {
    case INF_WIRE_OK:
        reason = "a field is longer than its message";
        break;
    case INF_WIRE_CUT:
        reason = "a message ends inside a field's head";
        break;
    case INF_WIRE_BAD:
        break;
    }

    return wire_error(m, m->pos, NULL, reason);
}

/* Adds a row, which the caller fills in. */
static inf_err_t *
add_row(inf_infer_message_t *m, inf_infer_rows_t *rows, size_t size,
    void **row)
{
    if (rows->count == rows->capacity) {
        void *items = inf_arena_grow(m->arena, rows->items, rows->count,
                                     &rows->capacity, size);

        if (items == NULL) {
            return inf_err_nomem();
        }

        rows->items = items;
    }

    *row = (char *) rows->items + rows->count * size;
    rows->count++;
    return NULL;
}

/* Counts len more bytes that are read in one turn; described NULL: an output,
   which consists of them alone. */
static inf_err_t *
describe(inf_infer_message_t *m, uint64_t *described, uint64_t len)
{
    uint64_t before = described != NULL ? *described : 0;
    uint64_t max = m->limits.max_piece_bytes;

    m->cost += len;
    if (len > max || before > max - len) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse request: %s described in more "
                           "than %llu bytes",
                           described == NULL ? "an output is"
                           : described == &m->described
                             ? "names and parameters are" : "an input is",
                           (unsigned long long) max);
    }

    if (described != NULL) {
        *described += len;
    }

    return NULL;
}

/* An error with the position in the request, as far as known. */
static inf_err_t *
wire_error(const inf_infer_message_t *m, uint64_t at, const char *what,
    const char *why)
{
    const inf_infer_rows_t *rows = m->part != NULL && m->part[0] == 'i'
                                   ? &m->inputs : &m->outputs;
    const char *in = what != NULL ? what : "";
    const char *colon = what != NULL ? ": " : "";
    unsigned long long place = at;

    if (m->part != NULL) {
        return inf_err_new(INF_ERR_INTERNAL,
                           "Unable to parse request: %s[%u]%s%s: %s, at %llu",
                           m->part, rows->count - 1, what != NULL ? "." : "",
                           in, why, place);
    }

    return inf_err_new(INF_ERR_INTERNAL,
                       "Unable to parse request: %s%s%s, at %llu", in, colon,
                       why, place);
}
