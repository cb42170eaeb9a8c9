/*
 * infer_message_rules.c - see infer_message.h.
 *
 * The service's rules for the fields: one step for the request and one for
 * each tensor, in Triton's order and with its texts.
 */

#include <stdio.h>
#include <string.h>

#include "core/proto/infer_contents.h"
#include "core/proto/infer_message_parts.h"

#define RESERVED_PREFIX "triton_"
#define EMPTY_FINAL     "triton_enable_empty_final_response"
#define ROW_COST        64u     /* budget bytes per tensor                   */

static inf_err_t *take_request(inf_infer_message_t *m);
static inf_err_t *take_version(inf_infer_message_t *m);
static inf_err_t *take_sequence_id(inf_infer_message_t *m);
static inf_err_t *take_flag(const inf_infer_message_t *m,
    inf_infer_call_parameter_t i, const char *name, bool *on);
static inf_err_t *take_priority(inf_infer_message_t *m);
static inf_err_t *take_customs(inf_infer_message_t *m);
static inf_err_t *take_custom(inf_infer_message_t *m,
    const inf_infer_custom_t *custom, inf_infer_parameter_t *out);
static inf_err_t *take_input(inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_infer_input_t *in);
static inf_err_t *take_output(inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_infer_output_t *out);
static inf_err_t *add_name(inf_infer_message_t *m, inf_slice_t name,
    bool *fresh);
static inf_err_t *take_data(inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_infer_input_t *in);
static inf_err_t *take_contents(const inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_infer_input_t *in);
static uint32_t list_datatype(uint32_t list, uint32_t wanted);
static inf_err_t *take_options(inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_infer_output_t *out);
static inf_err_t *take_region(inf_infer_message_t *m,
    const inf_infer_row_t *row, inf_slice_t *region, uint64_t *offset,
    uint64_t *byte_size);
static inf_err_t *take_size(const inf_infer_row_t *row,
    inf_infer_tensor_parameter_t i, const char *name, bool region,
    uint64_t *out);
static inf_err_t *take_classification(const inf_infer_row_t *row,
    uint32_t *out);
static inf_err_t *copy_text(inf_infer_message_t *m, inf_infer_span_t span,
    inf_slice_t *out);
static inf_err_t *wrong_choice(const char *name, const char *expected);

static void
next_stage(inf_infer_message_t *m, inf_infer_stage_t stage)
{
    m->stage = stage;
    m->next = 0;
}

inf_err_t *
inf_infer_message_rules(inf_infer_message_t *m)
{
    const inf_infer_row_t *inputs = m->inputs.items;
    const inf_infer_row_t *outputs = m->outputs.items;
    uint32_t i = m->next++;

    m->cost += ROW_COST;

    switch (m->stage) {

    case INF_STAGE_REQUEST:
        next_stage(m, INF_STAGE_INPUTS);
        return take_request(m);

    case INF_STAGE_INPUTS:
        if (i < m->inputs.count) {
            return take_input(m, &inputs[i], &m->input_table[i]);
        }

        inf_names_init(&m->names, m->arena);
        next_stage(m, INF_STAGE_OUTPUTS);
        return NULL;

    case INF_STAGE_OUTPUTS:
        if (i < m->outputs.count) {
            return take_output(m, &outputs[i], &m->output_table[i]);
        }

        next_stage(m, INF_STAGE_DATA);
        return NULL;

    case INF_STAGE_DATA:
        if (i < m->inputs.count) {
            return take_data(m, &inputs[i], &m->input_table[i]);
        }

        next_stage(m, INF_STAGE_OPTIONS);
        return NULL;

    case INF_STAGE_OPTIONS:
        if (i < m->outputs.count) {
            return take_options(m, &outputs[i], &m->output_table[i]);
        }

        next_stage(m, INF_STAGE_DONE);
        return NULL;

    case INF_STAGE_FIELDS:
    case INF_STAGE_INPUT:
    case INF_STAGE_CONTENTS:
    case INF_STAGE_LIST:
    case INF_STAGE_DONE:
        break;
    }

    return NULL;
}

/* ---- the request ---- */

static inf_err_t *
take_request(inf_infer_message_t *m)
{
    inf_infer_request_t *request = &m->call.infer;
    const inf_infer_value_t *timeout = &m->parameters[INF_CALL_TIMEOUT];
    bool start = false, end = false;

    m->cost += m->described;
    m->input_table = inf_arena_alloc(m->arena, m->inputs.count
                                               * sizeof(*m->input_table));
    m->output_table = inf_arena_alloc(m->arena, m->outputs.count
                                                * sizeof(*m->output_table));
    if (m->input_table == NULL || m->output_table == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = take_version(m);
    if (err == NULL) {
        err = take_sequence_id(m);
    }

    if (err == NULL) {
        err = take_flag(m, INF_CALL_SEQUENCE_START, "sequence_start", &start);
    }

    if (err == NULL) {
        err = take_flag(m, INF_CALL_SEQUENCE_END, "sequence_end", &end);
    }

    if (err == NULL) {
        err = take_priority(m);
    }

    if (err == NULL && timeout->choice != INF_CHOICE_ABSENT) {
        request->timeout_us = timeout->number.u;
        err = timeout->choice == INF_CHOICE_INT64
              ? NULL : wrong_choice("timeout", "int64_param");
    }

    if (err == NULL) {
        err = take_flag(m, INF_CALL_EMPTY_FINAL, EMPTY_FINAL,
                        &m->call.empty_final);
    }

    request->flags |= start ? INF_REQUEST_SEQUENCE_START : 0;
    request->flags |= end ? INF_REQUEST_SEQUENCE_END : 0;
    request->binary_data_output = true;
    request->inputs = m->input_table;
    request->input_count = m->inputs.count;
    request->outputs = m->output_table;
    request->output_count = m->outputs.count;

    return err != NULL ? err : take_customs(m);
}

static inf_err_t *
take_version(inf_infer_message_t *m)
{
    inf_slice_t text = m->call.version_text;
    const char *why = NULL;
    uint64_t value = 0;

    if (text.len == 0) {
        return NULL;
    }

    if (text.len > 1 && text.data[0] == '-' && text.data[1] >= '0'
        && text.data[1] <= '9')
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid model version specified '%.*s' , version "
                           "should be an integral value > 0",
                           (int) text.len, text.data);
    }

    for (size_t i = 0; i < text.len && why == NULL; i++) {
        uint64_t digit = (uint64_t) (unsigned char) text.data[i] - '0';

        if (digit > 9) {
            why = "not a number";
        } else if (value > (INT64_MAX - digit) / 10) {
            why = "out of range";
        } else {
            value = value * 10 + digit;
        }
    }

    if (why != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "failed to get model version from specified "
                           "version string '%.*s' (details: %s), version "
                           "should be an integral value > 0",
                           (int) text.len, text.data, why);
    }

    m->call.model_version = (int64_t) value;
    return NULL;
}

/* The C++ client sends ids from 2^63 on as negative numbers, so all 64 bits are
   used as an unsigned number. */
static inf_err_t *
take_sequence_id(inf_infer_message_t *m)
{
    const inf_infer_value_t *value = &m->parameters[INF_CALL_SEQUENCE_ID];
    inf_infer_request_t *request = &m->call.infer;

    switch (value->choice) {

    case INF_CHOICE_ABSENT:
        return NULL;

    case INF_CHOICE_INT64:
        request->correlation_id = value->number.u;
        return NULL;

    case INF_CHOICE_STRING:
        break;

    case INF_CHOICE_BOOL:
    case INF_CHOICE_DOUBLE:
    case INF_CHOICE_UINT64:
    case INF_CHOICE_UNSET:
        return wrong_choice("sequence_id", "int64_param or string_param");
    }

    if (value->text.len > INF_INFER_MAX_CORRELATION) {
        return inf_err_new(INF_ERR_UNSUPPORTED,
                           "string correlation ID cannot be longer than %u "
                           "characters", INF_INFER_MAX_CORRELATION);
    }

    if (value->text.len != 0) {
        request->flags |= INF_REQUEST_CORRELATION_STR;
    }

    return copy_text(m, value->text, &request->correlation_text);
}

static inf_err_t *
take_flag(const inf_infer_message_t *m, inf_infer_call_parameter_t i,
    const char *name, bool *on)
{
    const inf_infer_value_t *value = &m->parameters[i];

    *on = value->choice == INF_CHOICE_BOOL && value->number.u != 0;
    return value->choice == INF_CHOICE_BOOL
           || value->choice == INF_CHOICE_ABSENT
           ? NULL : wrong_choice(name, "bool_param");
}

static inf_err_t *
take_priority(inf_infer_message_t *m)
{
    const inf_infer_value_t *value = &m->parameters[INF_CALL_PRIORITY];

    if (value->choice == INF_CHOICE_ABSENT) {
        return NULL;
    }

    if (value->choice != INF_CHOICE_INT64
        && value->choice != INF_CHOICE_UINT64)
    {
        return wrong_choice("priority", "int64_param or uint64_param");
    }

    if (value->choice == INF_CHOICE_INT64 && value->number.i < 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value for 'priority', expected value >= "
                           "0.");
    }

    m->call.infer.priority = value->number.u;
    return NULL;
}

static inf_err_t *
take_customs(inf_infer_message_t *m)
{
    const inf_infer_custom_t *customs = m->customs.items;
    uint32_t count = m->customs.count;

    if (count == 0) {
        return NULL;
    }

    inf_infer_parameter_t *rows = inf_arena_alloc(m->arena,
                                                  count * sizeof(*rows));
    if (rows == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        inf_err_t *err = take_custom(m, &customs[i], &rows[i]);
        if (err != NULL) {
            return err;
        }
    }

    m->call.infer.parameters = rows;
    m->call.infer.parameter_count = count;
    return NULL;
}

static inf_err_t *
take_custom(inf_infer_message_t *m, const inf_infer_custom_t *custom,
    inf_infer_parameter_t *out)
{
    const inf_infer_value_t *value = &custom->value;
    inf_slice_t name = custom->name;

    if (strncmp(name.data, RESERVED_PREFIX, sizeof(RESERVED_PREFIX) - 1)
        == 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "parameter keys starting with 'triton_' are "
                           "reserved for Triton usage. Only the following "
                           "keys starting with 'triton_' are allowed: "
                           EMPTY_FINAL);
    }

    *out = (inf_infer_parameter_t) { .name = name };

    switch (value->choice) {

    case INF_CHOICE_BOOL:
        out->type = INF_PARAMETER_BOOL;
        out->integer = value->number.i;
        return NULL;

    case INF_CHOICE_INT64:
        out->type = INF_PARAMETER_INT;
        out->integer = value->number.i;
        return NULL;

    case INF_CHOICE_STRING:
        out->type = INF_PARAMETER_STRING;
        return copy_text(m, value->text, &out->text);

    case INF_CHOICE_DOUBLE:
        out->type = INF_PARAMETER_DOUBLE;
        out->real = value->number.d;
        return NULL;

    case INF_CHOICE_UINT64:
    case INF_CHOICE_UNSET:
    case INF_CHOICE_ABSENT:
        break;
    }

    return wrong_choice(name.data, "int64_param, bool_param, or "
                        "string_param");
}

/* ---- names, datatypes and shapes ---- */

static inf_err_t *
take_input(inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_infer_input_t *in)
{
    bool fresh;

    *in = (inf_infer_input_t) {
        .name = row->name,
        .datatype = row->datatype,
        .dim_count = row->dim_count,
        .shape = row->shape
    };

    if (row->datatype == INF_TYPE_INVALID) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid datatype for input %.*s",
                           (int) row->name.len, row->name.data);
    }

    if (row->dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse 'shape': more than %d dimensions "
                           "(input '%.*s')", INF_MAX_DIMS,
                           (int) row->name.len, row->name.data);
    }

    inf_err_t *err = m->inputs.count == 1
                     ? NULL : add_name(m, row->name, &fresh);
    if (err == NULL && m->inputs.count != 1 && !fresh) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
                          "input '%.*s' already exists in request",
                          (int) row->name.len, row->name.data);
    }

    return err;
}

static inf_err_t *
take_output(inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_infer_output_t *out)
{
    bool fresh;

    *out = (inf_infer_output_t) { .name = row->name, .binary = true };

    inf_err_t *err = m->outputs.count == 1
                     ? NULL : add_name(m, row->name, &fresh);
    if (err == NULL && m->outputs.count != 1 && !fresh) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
                          "Duplicate output name '%.*s' is not allowed in a "
                          "request",
                          (int) row->name.len, row->name.data);
    }

    return err;
}

static inf_err_t *
add_name(inf_infer_message_t *m, inf_slice_t name, bool *fresh)
{
    return inf_names_add(&m->names, name, m->next, fresh);
}

/* ---- data ---- */

static inf_err_t *
data_error(const inf_infer_message_t *m, const inf_infer_row_t *row,
    const char *before, const char *after)
{
    inf_slice_t model = m->call.model_name;

    return inf_err_new(INF_ERR_INVALID_ARG, "%s '%.*s' for model '%.*s'%s",
                       before, (int) row->name.len, row->name.data,
                       (int) model.len, model.data, after);
}

static inf_err_t *
take_data(inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_infer_input_t *in)
{
    inf_err_t *err = take_region(m, row, &in->shm_region, &in->shm_offset,
                                 &in->byte_size);

    if (err != NULL) {
        return err;
    }

    if (in->shm_region.len != 0) {
        in->source = INF_SOURCE_SHM;
        return row->contents
               ? data_error(m, row, "unexpected 'content' provided when using "
                            "shared memory for input tensor", "")
               : NULL;
    }

    if (row->contents) {
        return take_contents(m, row, in);
    }

    if (m->raw_used == m->raw_count) {
        return data_error(m, row, "unable to find data for input tensor",
                          " in request.");
    }

    in->source = INF_SOURCE_RAW;
    in->raw_entry = m->raw_used++;
    in->byte_size = m->raw_sizes[in->raw_entry];
    return NULL;
}

static inf_err_t *
take_contents(const inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_infer_input_t *in)
{
    char why[128];

    in->source = INF_SOURCE_CONTENTS;

    if (m->raw_count != 0) {
        return data_error(m, row, "contents field must not be specified when "
                          "using raw_input_contents for", "");
    }

    if (row->lists == 0) {
        return NULL;
    }

    uint32_t list = (uint32_t) __builtin_ctz(row->lists);
    uint32_t datatype = list_datatype(list, row->datatype);

    if (datatype != row->datatype) {
        snprintf(why, sizeof(why), " of type '%s', expected datatype '%s'",
                 inf_datatype_name(datatype),
                 inf_datatype_name(row->datatype));
        return data_error(m, row, "unexpected explicit tensor data for input "
                          "tensor", why);
    }

    if ((row->lists & (row->lists - 1)) != 0) {
        return data_error(m, row, "unexpected explicit tensor data for input "
                          "tensor", ", binary data was already supplied.");
    }

    in->element_count = row->count;
    in->json_offset = row->span.offset;
    in->json_length = row->span.len;
    in->byte_size = list == INF_CONTENTS_BYTES
                    ? 4 * row->count + row->string_bytes
                    : row->count * inf_datatype_size(row->datatype);
    return NULL;
}

/* The datatype of a list's elements; wanted is the input's datatype. */
static uint32_t
list_datatype(uint32_t list, uint32_t wanted)
{
    switch (list) {
    case INF_CONTENTS_BOOL:
        return INF_TYPE_BOOL;
    case INF_CONTENTS_INT:
        return wanted == INF_TYPE_INT8 || wanted == INF_TYPE_INT16
               ? wanted : INF_TYPE_INT32;
    case INF_CONTENTS_INT64:
        return INF_TYPE_INT64;
    case INF_CONTENTS_UINT:
        return wanted == INF_TYPE_UINT8 || wanted == INF_TYPE_UINT16
               ? wanted : INF_TYPE_UINT32;
    case INF_CONTENTS_UINT64:
        return INF_TYPE_UINT64;
    case INF_CONTENTS_FP32:
        return INF_TYPE_FP32;
    case INF_CONTENTS_FP64:
        return INF_TYPE_FP64;
    default:
        return INF_TYPE_BYTES;
    }
}

/* ---- options ---- */

static inf_err_t *
take_options(inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_infer_output_t *out)
{
    inf_err_t *err = take_region(m, row, &out->shm_region, &out->shm_offset,
                                 &out->shm_byte_size);

    if (err == NULL) {
        err = take_classification(row, &out->classification);
    }

    if (err == NULL && out->shm_region.len != 0 && out->classification != 0) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
                          "output can't set both 'shared_memory_region' and "
                          "'classification'");
    }

    return err;
}

static const inf_infer_value_t *
parameter_of(const inf_infer_row_t *row, inf_infer_tensor_parameter_t i)
{
    static const inf_infer_value_t absent;

    return row->parameters != NULL ? &row->parameters[i] : &absent;
}

/* Reads the region; *region is unchanged if none is named. */
static inf_err_t *
take_region(inf_infer_message_t *m, const inf_infer_row_t *row,
    inf_slice_t *region, uint64_t *offset, uint64_t *byte_size)
{
    const inf_infer_value_t *value = parameter_of(row, INF_TENSOR_REGION);
    const inf_infer_value_t *size = parameter_of(row, INF_TENSOR_BYTE_SIZE);
    inf_err_t *err = NULL;
    bool named = value->choice != INF_CHOICE_ABSENT;

    if (named && value->choice != INF_CHOICE_STRING) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value type for 'shared_memory_region' "
                           "parameter for tensor '%.*s', expected "
                           "string_param.",
                           (int) row->name.len, row->name.data);
    }

    if (named && value->text.len == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value for 'shared_memory_region' "
                           "parameter for tensor '%.*s', expected a name",
                           (int) row->name.len, row->name.data);
    }

    if (named) {
        err = copy_text(m, value->text, region);
    }

    if (err == NULL) {
        err = take_size(row, INF_TENSOR_OFFSET, "shared_memory_offset", named,
                        offset);
    }

    if (err == NULL) {
        err = take_size(row, INF_TENSOR_BYTE_SIZE, "shared_memory_byte_size",
                        named, byte_size);
    }

    if (err == NULL && named && size->choice == INF_CHOICE_ABSENT) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
                          "'shared_memory_byte_size' must be specified along "
                          "with 'shared_memory_region' parameter for tensor "
                          "'%.*s'", (int) row->name.len, row->name.data);
    }

    return err;
}

static inf_err_t *
take_size(const inf_infer_row_t *row, inf_infer_tensor_parameter_t i,
    const char *name, bool region, uint64_t *out)
{
    const inf_infer_value_t *value = parameter_of(row, i);

    if (value->choice == INF_CHOICE_ABSENT) {
        return NULL;
    }

    if (!region) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "'%s' can not be specified without "
                           "'shared_memory_region' parameter for tensor "
                           "'%.*s'", name,
                           (int) row->name.len, row->name.data);
    }

    if (value->choice != INF_CHOICE_INT64) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value type for '%s' parameter for tensor "
                           "'%.*s', expected int64_param.", name,
                           (int) row->name.len, row->name.data);
    }

    if (value->number.i < 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value for '%s' parameter for tensor "
                           "'%.*s', expected >= 0", name,
                           (int) row->name.len, row->name.data);
    }

    *out = value->number.u;
    return NULL;
}

static inf_err_t *
take_classification(const inf_infer_row_t *row, uint32_t *out)
{
    const inf_infer_value_t *value = parameter_of(row,
                                                  INF_TENSOR_CLASSIFICATION);

    if (value->choice == INF_CHOICE_ABSENT) {
        return NULL;
    }

    if (value->choice != INF_CHOICE_INT64) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value type for 'classification' "
                           "parameter, expected int64_param");
    }

    if (value->number.i <= 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid value for 'classification' parameter, "
                           "expected >= 0");
    }

    /* no tensor has more elements */
    *out = value->number.u < UINT32_MAX ? (uint32_t) value->number.u
                                        : UINT32_MAX;
    return NULL;
}

/* ---- texts ---- */

static inf_err_t *
copy_text(inf_infer_message_t *m, inf_infer_span_t span, inf_slice_t *out)
{
    char *copy = inf_arena_strdup(m->arena, m->text + span.offset,
                                  (size_t) span.len);

    if (copy == NULL) {
        return inf_err_nomem();
    }

    *out = inf_slice(copy, (size_t) span.len);
    return NULL;
}

static inf_err_t *
wrong_choice(const char *name, const char *expected)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
                       "invalid value type for '%s' parameter, expected %s.",
                       name, expected);
}
