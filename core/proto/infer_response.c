/*
 * infer_response.c - see infer_response.h.
 *
 * Everything except the values is short and written once as a frame, with the
 * offset of each output's values.  A cursor then moves over frame and values;
 * filling and measuring use the same function with different buffers.
 */

#include <stdlib.h>
#include <string.h>

#include "core/proto/infer_names.h"
#include "core/proto/infer_response.h"
#include "core/proto/infer_values.h"
#include "core/proto/json_plain.h"
#include "core/proto/number.h"

#define CHECK_COST    16u       /* budget bytes per length prefix            */
#define SCRATCH       4096u
#define SMALL_FRAME   1024u     /* shorter frames are laid out once          */

typedef struct {
    const inf_response_output_t *record;
    const int64_t               *shape;         /* of the delivered output   */
    uint32_t                     dim_count;
    uint32_t                     datatype;
    inf_delivery_t               delivery;
    inf_classifier_t            *classifier;    /* NULL: none                */
    const char                  *data;
    uint64_t                     data_len;
    uint64_t                     split;         /* offset in frame of the
                                                   values                    */
} plan_t;

/* A member of generate's object.  Of equal names the lower kind is kept. */
typedef enum {
    ENTRY_ID,
    ENTRY_MODEL_NAME,
    ENTRY_MODEL_VERSION,
    ENTRY_PARAMETER,
    ENTRY_OUTPUT
} entry_kind_t;

typedef struct {
    inf_slice_t  name;
    entry_kind_t kind;
    uint32_t     index;         /* of the parameter or output                */
} entry_t;

/* A position in the JSON. */
typedef struct {
    uint64_t     frame_pos;
    uint32_t     output;        /* next with values                          */
    bool         in_values;
    inf_values_t values;
} cursor_t;

/* Output of a layout; bytes beyond cap are only counted. */
typedef struct {
    char    *dst;
    uint64_t cap;
    uint64_t len;
} sink_t;

struct inf_response_writer_s {
    const inf_response_record_t *rec;
    const char                  *arena;
    inf_arena_t                 *pool;
    plan_t                      *plans;         /* in the order of the JSON  */
    inf_response_form_t          form;
    const entry_t               *entries;       /* members of generate       */
    uint32_t                     entry_count;

    uint32_t                     prepared;      /* number of prepared outputs */
    uint64_t                     check_pos;     /* in a BYTES tensor         */
    uint64_t                     check_count;
    const char                  *frame;         /* NULL: not prepared        */
    uint64_t                     frame_len;

    cursor_t                     fill;
    cursor_t                     measure;
    uint64_t                     measured;
};

static inf_err_t *plan_outputs(inf_response_writer_t *w,
    const inf_response_options_t *options);
static inf_err_t *plan_output(inf_response_writer_t *w, plan_t *plan,
    const inf_infer_output_t *asked, const inf_response_options_t *options);
static inf_err_t *plan_classification(inf_response_writer_t *w, plan_t *plan,
    uint32_t k);
static inf_err_t *plan_object(inf_response_writer_t *w);
static int compare_entries(const void *a, const void *b);
static inf_codec_t prepare_output(inf_response_writer_t *w, size_t *budget,
    inf_err_t **err);
static inf_codec_t check_bytes(inf_response_writer_t *w, const plan_t *plan,
    size_t *budget, inf_err_t **err);
static inf_err_t *build_frame(inf_response_writer_t *w);
static void put_frame(inf_response_writer_t *w, sink_t *s);
static void put_object(const inf_response_writer_t *w, sink_t *s);
static void put_entry(const inf_response_writer_t *w, const entry_t *entry,
    uint32_t output, sink_t *s);
static void put_parameters(const inf_response_writer_t *w, sink_t *s);
static void put_parameter(const inf_response_writer_t *w, uint32_t i,
    sink_t *s);
static void put_output(const inf_response_writer_t *w, plan_t *plan,
    sink_t *s);
static void put_data(plan_t *plan, sink_t *s);
static void put_number(sink_t *s, uint64_t v);
static void put_string(sink_t *s, inf_slice_t text);
static inf_codec_t run(const inf_response_writer_t *w, cursor_t *c, char *buf,
    size_t cap, size_t *written, inf_err_t **err);

/* Inline, so that the lengths of literals are constants. */
__attribute__((always_inline)) static inline void
put(sink_t *s, const char *text, size_t len)
{
    if (len != 0 && s->len < s->cap && len <= s->cap - s->len) {
        memcpy(s->dst + s->len, text, len);
    }

    s->len += len;
}

__attribute__((always_inline)) static inline void
put_literal(sink_t *s, const char *text)
{
    put(s, text, strlen(text));
}

static const void *
record_at(const inf_response_record_t *rec, uint32_t offset)
{
    return (const char *) rec + offset;
}

inf_slice_t
inf_response_text(const inf_response_record_t *rec, inf_ref_t ref)
{
    return inf_slice(record_at(rec, ref.offset), ref.len);
}

static inf_slice_t
plan_name(const inf_response_writer_t *w, const plan_t *plan)
{
    return inf_response_text(w->rec, plan->record->name);
}

inf_err_t *
inf_response_writer_new(inf_response_writer_t **out,
    const inf_response_record_t *rec, const void *arena_base,
    const inf_response_options_t *options, inf_arena_t *pool)
{
    static const inf_response_options_t none;
    inf_response_writer_t *w = inf_arena_calloc(pool, 1, sizeof(*w));

    if (w == NULL) {
        return inf_err_nomem();
    }

    w->rec = rec;
    w->arena = arena_base;
    w->pool = pool;
    w->plans = inf_arena_calloc(pool, (size_t) rec->output_count + 1,
                                sizeof(*w->plans));
    if (w->plans == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_response_check_parameters(rec);
    if (err != NULL) {
        return err;
    }

    options = options != NULL ? options : &none;
    w->form = options->form;
    err = plan_outputs(w, options);
    if (err == NULL && w->form != INF_RESPONSE_INFER) {
        err = plan_object(w);
    }
    if (err != NULL) {
        return err;
    }

    *out = w;
    return NULL;
}

inf_err_t *
inf_response_check_parameters(const inf_response_record_t *rec)
{
    const inf_record_parameter_t *p = record_at(rec, rec->parameter_offset);

    for (uint32_t i = 0; i < rec->parameter_count; i++) {
        if (p[i].type == INF_PARAMETER_BYTES) {
            inf_slice_t name = inf_response_text(rec, p[i].name);
            return inf_err_new(INF_ERR_UNSUPPORTED,
                               "response parameter '%.*s' of type BYTES is "
                               "not supported", (int) name.len, name.data);
        }
    }

    return NULL;
}

static inf_err_t *
plan_outputs(inf_response_writer_t *w, const inf_response_options_t *options)
{
    const inf_response_output_t *rows = record_at(w->rec,
                                                  w->rec->output_offset);
    inf_names_t asked;
    inf_err_t *err = NULL;

    inf_names_init(&asked, w->pool);
    for (uint32_t i = 0; i < options->output_count && err == NULL; i++) {
        bool fresh;
        err = inf_names_add(&asked, options->outputs[i].name, i, &fresh);
    }

    for (uint32_t i = 0; i < w->rec->output_count && err == NULL; i++) {
        plan_t *plan = &w->plans[i];
        plan->record = &rows[i];

        uint32_t found = inf_names_find(&asked, plan_name(w, plan));
        err = plan_output(w, plan, found != INF_NAMES_NONE
                                   ? &options->outputs[found] : NULL,
                          options);
    }

    return err;
}

static inf_err_t *
plan_output(inf_response_writer_t *w, plan_t *plan,
    const inf_infer_output_t *asked, const inf_response_options_t *options)
{
    const inf_response_output_t *row = plan->record;
    bool binary = options->raw
                  || (asked != NULL ? asked->binary
                                    : options->binary_data_output);

    plan->datatype = row->datatype;
    plan->shape = record_at(w->rec, row->shape_offset);
    plan->dim_count = row->dim_count;

    if (row->data_kind == INF_DATA_SHM_REGION) {
        plan->delivery = INF_DELIVER_SHM;
        return NULL;
    }

    plan->data = w->arena + row->data_offset;
    plan->data_len = row->data_length;
    plan->delivery = binary ? INF_DELIVER_BINARY : INF_DELIVER_JSON;

    if (asked != NULL && asked->classification != 0) {
        return plan_classification(w, plan, asked->classification);
    }

    if (!binary
        && (row->datatype == INF_TYPE_FP16 || row->datatype == INF_TYPE_BF16))
    {
        inf_slice_t name = plan_name(w, plan);
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "sending %s data via JSON is not supported. "
                           "Please use the binary data format for output "
                           "'%.*s'", inf_datatype_name(row->datatype),
                           (int) name.len, name.data);
    }

    return NULL;
}

/* Plans the members of generate's object and their outputs in order; outputs
   that are not members come last. */
static inf_err_t *
plan_object(inf_response_writer_t *w)
{
    const inf_response_record_t *rec = w->rec;
    const inf_record_parameter_t *p = record_at(rec, rec->parameter_offset);
    size_t most = 3 + (size_t) rec->parameter_count + rec->output_count;
    entry_t *all = inf_arena_alloc(w->pool, most * sizeof(*all));
    plan_t *plans = inf_arena_calloc(w->pool, (size_t) rec->output_count + 1,
                                     sizeof(*plans));
    uint32_t n = 0, kept = 0, first = 0, last = rec->output_count;

    if (all == NULL || plans == NULL) {
        return inf_err_nomem();
    }

    if (rec->id.len != 0) {
        all[n++] = (entry_t) { INF_SLICE("id"), ENTRY_ID, 0 };
    }
    all[n++] = (entry_t) { INF_SLICE("model_name"), ENTRY_MODEL_NAME, 0 };
    all[n++] = (entry_t) { INF_SLICE("model_version"), ENTRY_MODEL_VERSION,
                           0 };
    for (uint32_t i = 0; i < rec->parameter_count; i++) {
        all[n++] = (entry_t) { inf_response_text(rec, p[i].name),
                               ENTRY_PARAMETER, i };
    }
    for (uint32_t i = 0; i < rec->output_count; i++) {
        all[n++] = (entry_t) { plan_name(w, &w->plans[i]), ENTRY_OUTPUT, i };
    }

    qsort(all, n, sizeof(*all), compare_entries);

    for (uint32_t i = 0; i < n; i++) {
        bool hidden = kept != 0 && inf_slice_eq(all[kept - 1].name,
                                                all[i].name);

        if (all[i].kind == ENTRY_OUTPUT) {
            plan_t *plan = &plans[hidden ? --last : first++];
            *plan = w->plans[all[i].index];
            plan->delivery = hidden ? INF_DELIVER_NONE : plan->delivery;
        }

        if (!hidden) {
            all[kept++] = all[i];
        }
    }

    w->plans = plans;
    w->entries = all;
    w->entry_count = kept;
    return NULL;
}

static int
compare_entries(const void *a, const void *b)
{
    const entry_t *x = a;
    const entry_t *y = b;
    size_t n = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = n != 0 ? memcmp(x->name.data, y->name.data, n) : 0;

    if (order == 0 && x->name.len != y->name.len) {
        order = x->name.len < y->name.len ? -1 : 1;
    }

    if (order == 0 && x->kind != y->kind) {
        order = x->kind < y->kind ? -1 : 1;
    }

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static inf_err_t *
plan_classification(inf_response_writer_t *w, plan_t *plan, uint32_t k)
{
    inf_err_t *err = inf_response_classifier(&plan->classifier, w->rec,
                                             plan->record, w->arena, k,
                                             w->pool);

    if (err != NULL) {
        return err;
    }

    plan->datatype = INF_TYPE_BYTES;
    plan->dim_count = inf_classifier_shape(plan->classifier, &plan->shape);
    return NULL;
}

inf_err_t *
inf_response_classifier(inf_classifier_t **out,
    const inf_response_record_t *rec, const inf_response_output_t *output,
    const void *arena_base, uint32_t k, inf_arena_t *pool)
{
    const inf_ref_t *refs = record_at(rec, output->label_offset);
    inf_slice_t *labels = inf_arena_alloc(pool, sizeof(*labels)
                                          * ((size_t) output->label_count
                                             + 1));

    if (labels == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < output->label_count; i++) {
        labels[i] = inf_response_text(rec, refs[i]);
    }

    inf_classify_source_t src = {
        .name = inf_response_text(rec, output->name),
        .datatype = output->datatype,
        .dim_count = output->dim_count,
        .shape = record_at(rec, output->shape_offset),
        .batched = rec->batch_dim != 0,
        .data = (const char *) arena_base + output->data_offset,
        .data_len = output->data_length,
        .k = k,
        .labels = labels,
        .label_count = output->label_count,
        .ranked = rec->ranked != 0
    };

    return inf_classifier_new(out, &src, pool);
}

inf_codec_t
inf_response_prepare(inf_response_writer_t *w, size_t budget, inf_err_t **err)
{
    while (w->prepared < w->rec->output_count) {
        inf_codec_t rc = prepare_output(w, &budget, err);
        if (rc != INF_CODEC_DONE) {
            return rc;
        }

        w->prepared++;
        w->check_pos = 0;
        w->check_count = 0;
        if (budget == 0 && w->prepared < w->rec->output_count) {
            return INF_CODEC_AGAIN;
        }
    }

    if (w->frame == NULL) {
        *err = build_frame(w);
        if (*err != NULL) {
            return INF_CODEC_ERROR;
        }
    }

    return INF_CODEC_DONE;
}

static inf_codec_t
prepare_output(inf_response_writer_t *w, size_t *budget, inf_err_t **err)
{
    plan_t *plan = &w->plans[w->prepared];

    if (plan->classifier != NULL) {
        inf_codec_t rc = inf_classifier_run(plan->classifier, *budget, err);
        if (rc == INF_CODEC_DONE) {
            plan->data = inf_classifier_result(plan->classifier,
                                               &plan->data_len);
            *budget /= 2;               /* the cost is not known */
        }

        return rc;
    }

    if (plan->delivery == INF_DELIVER_JSON
        && plan->datatype == INF_TYPE_BYTES)
    {
        return check_bytes(w, plan, budget, err);
    }

    return INF_CODEC_DONE;
}

/* Checks that the length prefixes end exactly at the tensor's end, after as
   many steps as the shape has elements. */
static inf_codec_t
check_bytes(inf_response_writer_t *w, const plan_t *plan, size_t *budget,
    inf_err_t **err)
{
    uint64_t wanted = inf_values_count(plan->dim_count, plan->shape,
                                       plan->data_len);

    while (w->check_pos < plan->data_len && w->check_count < wanted) {
        uint64_t left = plan->data_len - w->check_pos;
        uint32_t len = 0;

        if (*budget == 0) {
            return INF_CODEC_AGAIN;
        }

        if (left >= 4) {
            memcpy(&len, plan->data + w->check_pos, 4);
        }

        if (left < 4 || len > left - 4) {
            break;
        }

        w->check_pos += 4 + (uint64_t) len;
        w->check_count++;
        *budget -= *budget < CHECK_COST ? *budget : CHECK_COST;
    }

    if (w->check_pos == plan->data_len && w->check_count == wanted) {
        return INF_CODEC_DONE;
    }

    inf_slice_t name = plan_name(w, plan);
    *err = inf_err_new(INF_ERR_INTERNAL,
                       "output '%.*s': string %llu of %llu does not end "
                       "where the data does", (int) name.len, name.data,
                       (unsigned long long) w->check_count,
                       (unsigned long long) wanted);
    return INF_CODEC_ERROR;
}

/* Lays out the frame to get its length; a long frame is laid out a second
   time. */
static inf_err_t *
build_frame(inf_response_writer_t *w)
{
    char small[SMALL_FRAME];
    sink_t s = { small, sizeof(small), 0 };

    put_frame(w, &s);

    char *frame = inf_arena_alloc(w->pool, (size_t) s.len + 1);
    if (frame == NULL) {
        return inf_err_nomem();
    }

    w->frame = frame;
    w->frame_len = s.len;
    if (s.len <= sizeof(small)) {
        memcpy(frame, small, (size_t) s.len);
        return NULL;
    }

    s = (sink_t) { frame, s.len, 0 };
    put_frame(w, &s);
    return NULL;
}

static void
put_frame(inf_response_writer_t *w, sink_t *s)
{
    const inf_response_record_t *rec = w->rec;
    char text[INF_NUMBER_MAX_TEXT];

    if (w->form != INF_RESPONSE_INFER) {
        put_object(w, s);
        return;
    }

    put_literal(s, "{");
    if (rec->id.len != 0) {
        put_literal(s, "\"id\":");
        put_string(s, inf_response_text(rec, rec->id));
        put_literal(s, ",");
    }

    put_literal(s, "\"model_name\":");
    put_string(s, inf_response_text(rec, rec->model_name));
    put_literal(s, ",\"model_version\":\"");
    put(s, text, inf_number_write_int64(text, rec->model_version));
    put_literal(s, "\"");

    if (rec->parameter_count != 0) {
        put_parameters(w, s);
    }

    put_literal(s, ",\"outputs\":[");
    for (uint32_t i = 0; i < rec->output_count; i++) {
        put_literal(s, i != 0 ? "," : "");
        put_output(w, &w->plans[i], s);
    }

    put_literal(s, "]}");
}

static void
put_object(const inf_response_writer_t *w, sink_t *s)
{
    uint32_t output = 0;

    put_literal(s, w->form == INF_RESPONSE_EVENT ? "data: {" : "{");
    for (uint32_t i = 0; i < w->entry_count; i++) {
        const entry_t *entry = &w->entries[i];

        put_literal(s, i != 0 ? "," : "");
        put_string(s, entry->name);
        put_literal(s, ":");
        put_entry(w, entry, output, s);
        output += entry->kind == ENTRY_OUTPUT;
    }

    put_literal(s, w->form == INF_RESPONSE_EVENT ? "}\n\n" : "}");
}

/* Writes a member; output is its index among the plans. */
static void
put_entry(const inf_response_writer_t *w, const entry_t *entry,
    uint32_t output, sink_t *s)
{
    const inf_response_record_t *rec = w->rec;
    char text[INF_NUMBER_MAX_TEXT];

    switch (entry->kind) {
    case ENTRY_ID:
        put_string(s, inf_response_text(rec, rec->id));
        break;
    case ENTRY_MODEL_NAME:
        put_string(s, inf_response_text(rec, rec->model_name));
        break;
    case ENTRY_MODEL_VERSION:
        put_literal(s, "\"");
        put(s, text, inf_number_write_int64(text, rec->model_version));
        put_literal(s, "\"");
        break;
    case ENTRY_PARAMETER:
        put_parameter(w, entry->index, s);
        break;
    case ENTRY_OUTPUT:
        put_data(&w->plans[output], s);
        break;
    }
}

/* Writes brackets and split of an output; one element has no brackets. */
static void
put_data(plan_t *plan, sink_t *s)
{
    bool one = plan->datatype == INF_TYPE_BYTES
               ? plan->data_len != 0
               : plan->data_len == inf_datatype_size(plan->datatype);

    one = one && inf_values_count(plan->dim_count, plan->shape,
                                  plan->data_len) == 1;

    put_literal(s, one ? "" : "[");
    plan->split = s->len;
    put_literal(s, one ? "" : "]");
}

static void
put_parameters(const inf_response_writer_t *w, sink_t *s)
{
    const inf_record_parameter_t *p = record_at(w->rec,
                                                w->rec->parameter_offset);

    for (uint32_t i = 0; i < w->rec->parameter_count; i++) {
        put_literal(s, i == 0 ? ",\"parameters\":{" : ",");
        put_string(s, inf_response_text(w->rec, p[i].name));
        put_literal(s, ":");
        put_parameter(w, i, s);
    }

    put_literal(s, "}");
}

static void
put_parameter(const inf_response_writer_t *w, uint32_t i, sink_t *s)
{
    const inf_record_parameter_t *p = record_at(w->rec,
                                                w->rec->parameter_offset);
    char text[INF_NUMBER_MAX_TEXT];

    switch ((inf_parameter_type_t) p[i].type) {
    case INF_PARAMETER_STRING:
    case INF_PARAMETER_BYTES:
        put_string(s, inf_response_text(w->rec, p[i].text));
        break;
    case INF_PARAMETER_INT:
        put(s, text, inf_number_write_int64(text, p[i].number.i));
        break;
    case INF_PARAMETER_BOOL:
        put_literal(s, p[i].number.i != 0 ? "true" : "false");
        break;
    case INF_PARAMETER_DOUBLE:
        put(s, text, inf_number_write_double(text, p[i].number.d));
        break;
    }
}

static void
put_output(const inf_response_writer_t *w, plan_t *plan, sink_t *s)
{
    put_literal(s, "{\"name\":");
    put_string(s, plan_name(w, plan));
    put_literal(s, ",\"datatype\":\"");
    put_literal(s, inf_datatype_name(plan->datatype));
    put_literal(s, "\",\"shape\":[");

    for (uint32_t i = 0; i < plan->dim_count; i++) {
        put_literal(s, i != 0 ? "," : "");
        put_number(s, (uint64_t) plan->shape[i]);
    }

    put_literal(s, "]");

    switch (plan->delivery) {
    case INF_DELIVER_JSON:
        put_literal(s, ",\"data\":[");
        plan->split = s->len;
        put_literal(s, "]");
        break;
    case INF_DELIVER_BINARY:
        put_literal(s, ",\"parameters\":{\"binary_data_size\":");
        put_number(s, plan->data_len);
        put_literal(s, "}");
        break;
    case INF_DELIVER_SHM:
    case INF_DELIVER_NONE:
        break;
    }

    put_literal(s, "}");
}

static void
put_number(sink_t *s, uint64_t v)
{
    char text[INF_NUMBER_MAX_TEXT];

    put(s, text, inf_number_write_uint64(text, v));
}

static void
put_string(sink_t *s, inf_slice_t text)
{
    const char *p = text.data;
    const char *end = p + text.len;

    put_literal(s, "\"");
    while (p != end) {
        const char *q = inf_json_plain_run(p, end);
        put(s, p, (size_t) (q - p));
        p = q;
        if (p != end) {
            char escape[INF_VALUES_ESCAPE];
            put(s, escape, inf_values_escape(*p, escape));
            p++;
        }
    }

    put_literal(s, "\"");
}

inf_codec_t
inf_response_measure(inf_response_writer_t *w, size_t budget,
    uint64_t *json_len, inf_err_t **err)
{
    char scratch[SCRATCH];
    inf_codec_t rc;

    if (!inf_response_has_json_data(w)) {
        *json_len = w->frame_len;
        return INF_CODEC_DONE;
    }

    do {
        size_t cap = budget < SCRATCH ? budget : SCRATCH;
        size_t written;

        rc = run(w, &w->measure, scratch, cap, &written, err);
        w->measured += written;
        budget -= written;
    } while (rc == INF_CODEC_AGAIN && budget != 0);

    if (rc == INF_CODEC_DONE) {
        *json_len = w->measured;
    }

    return rc;
}

inf_codec_t
inf_response_fill(inf_response_writer_t *w, void *buf, size_t cap,
    size_t *written, inf_err_t **err)
{
    return run(w, &w->fill, buf, cap, written, err);
}

/* Writes the frame up to the next split, that output's values, and so on. */
static inf_codec_t
run(const inf_response_writer_t *w, cursor_t *c, char *buf, size_t cap,
    size_t *written, inf_err_t **err)
{
    uint32_t count = w->rec->output_count;
    size_t used = 0;

    for ( ;; ) {
        if (c->in_values) {
            size_t n;
            inf_codec_t rc = inf_values_write(&c->values, buf + used,
                                              cap - used, &n, err);
            used += n;
            if (rc != INF_CODEC_DONE) {
                *written = used;
                return rc;
            }

            c->in_values = false;
            c->output++;
        }

        while (c->output < count
               && w->plans[c->output].delivery != INF_DELIVER_JSON)
        {
            c->output++;
        }

        const plan_t *plan = c->output < count ? &w->plans[c->output] : NULL;
        uint64_t upto = plan != NULL ? plan->split : w->frame_len;
        uint64_t n = upto - c->frame_pos;
        n = n < cap - used ? n : cap - used;
        memcpy(buf + used, w->frame + c->frame_pos, (size_t) n);
        used += (size_t) n;
        c->frame_pos += n;

        if (c->frame_pos != upto || plan == NULL) {
            *written = used;
            return c->frame_pos == upto ? INF_CODEC_DONE : INF_CODEC_AGAIN;
        }

        inf_values_init(&c->values, plan->datatype, plan->data,
                        plan->data_len);
        c->in_values = true;
    }
}

uint32_t
inf_response_output_count(const inf_response_writer_t *w)
{
    return w->rec->output_count;
}

inf_delivery_t
inf_response_output(const inf_response_writer_t *w, uint32_t i,
    const void **data, uint64_t *len)
{
    const plan_t *plan = &w->plans[i];
    bool binary = plan->delivery == INF_DELIVER_BINARY;

    *data = binary ? plan->data : NULL;
    *len = binary ? plan->data_len : 0;
    return plan->delivery;
}

uint64_t
inf_response_binary_size(const inf_response_writer_t *w)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < w->rec->output_count; i++) {
        const plan_t *plan = &w->plans[i];
        sum += plan->delivery == INF_DELIVER_BINARY ? plan->data_len : 0;
    }

    return sum;
}

bool
inf_response_has_json_data(const inf_response_writer_t *w)
{
    for (uint32_t i = 0; i < w->rec->output_count; i++) {
        const plan_t *plan = &w->plans[i];
        if (plan->delivery == INF_DELIVER_JSON && plan->data_len != 0) {
            return true;
        }
    }

    return false;
}
