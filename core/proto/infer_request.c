/*
 * infer_request.c - see infer_request.h.
 *
 * The scanner validates every byte once; from its events the reader copies
 * the known members, without data, into a piece (one input, one output, or
 * the top level's id and parameters).  A complete piece goes to the tables,
 * and its memory serves the next one.  An input or output that is all there
 * and usual needs no piece: the tables take it where it stands, and the
 * scanner goes on at its end.
 */

#include <string.h>

#include "core/base/buf.h"
#include "core/proto/infer_quick.h"
#include "core/proto/infer_string.h"
#include "core/proto/infer_tables.h"
#include "core/proto/number.h"

#define MAX_DEPTH       102u    /* 99 levels of arrays inside data           */
#define MAX_KEY         16u     /* the longest known member's name is shorter */
#define BIG_DIGITS      19u     /* fewer always fit in int64                 */
#define MAX_EVENTS      4096u   /* names and values in one copied container  */
#define PARSE_FAILED    "failed to parse the request JSON buffer: "
#define PIECE_COST      512u    /* of a document, in budget bytes            */
#define PIECE_FACTOR    16u     /* its byte costs so many scanned ones       */
#define QUICK_COST      64u     /* of a description read the quick way       */

typedef enum {
    STATE_ROOT,                 /* before the first '{'                      */
    STATE_TOP,                  /* between members of the root               */
    STATE_LIST,                 /* between inputs or outputs                 */
    STATE_TENSOR,               /* between members of an input or output     */
    STATE_TENSOR_END,           /* before its '}', its members are read      */
    STATE_VALUE,                /* before the value of `member`              */
    STATE_COPY,                 /* inside a container that is copied         */
    STATE_COPY_SKIP,            /* inside one in it that is left out         */
    STATE_SKIP,                 /* inside data or an unknown container       */
    STATE_TAIL,                 /* behind the last '}'                       */
    STATE_DONE
} state_t;

typedef enum {
    MEMBER_UNKNOWN,
    MEMBER_ID,
    MEMBER_PARAMETERS,
    MEMBER_INPUTS,
    MEMBER_OUTPUTS,
    MEMBER_NAME,
    MEMBER_DATATYPE,
    MEMBER_SHAPE,
    MEMBER_DATA
} member_t;

#define BIT(m) (1u << (m))

#define TOP_MEMBERS    (BIT(MEMBER_ID) | BIT(MEMBER_PARAMETERS) \
                        | BIT(MEMBER_INPUTS) | BIT(MEMBER_OUTPUTS))
#define OUTPUT_MEMBERS (BIT(MEMBER_NAME) | BIT(MEMBER_PARAMETERS))
#define INPUT_MEMBERS  (OUTPUT_MEMBERS | BIT(MEMBER_DATATYPE) \
                        | BIT(MEMBER_SHAPE) | BIT(MEMBER_DATA))

/* Where NaN and Infinity may stand. */
#define REAL_MEMBERS   (BIT(MEMBER_UNKNOWN) | BIT(MEMBER_PARAMETERS) \
                        | BIT(MEMBER_DATA))

typedef struct {
    const char *name;
    size_t      len;
    const char *opening;        /* as a piece has it: len + 3 bytes          */
} member_row_t;

#define MEMBER(name) { name, sizeof(name) - 1, "\"" name "\":" }

static const member_row_t members[] = {
    { "", 0, "" }, MEMBER("id"), MEMBER("parameters"), MEMBER("inputs"),
    MEMBER("outputs"), MEMBER("name"), MEMBER("datatype"), MEMBER("shape"),
    MEMBER("data")
};

/* A small document under construction. */
typedef struct {
    inf_buf_t text;
    inf_buf_t bigs;             /* inf_big_number_t[]                        */
    uint32_t  seen;             /* BIT(member_t)                             */
} piece_t;

struct inf_infer_reader_s {
    inf_infer_limits_t  limits;
    inf_json_scan_t     scan;
    state_t             state;

    member_t            member;         /* whose value comes or is open      */
    member_t            list;           /* INPUTS or OUTPUTS                 */
    bool                in_tensor;
    uint32_t            depth;          /* right inside the open container   */
    uint64_t            mark;           /* copied up to here                 */
    uint32_t            events;         /* in the container being copied     */

    piece_t             top;
    piece_t             tensor;
    inf_infer_span_t    span;           /* the data of this input            */
    inf_json_tally_t    ignored;        /* of unknown members                */

    inf_infer_tables_t  tables;
};

static inf_err_t *on_event(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json, size_t avail, size_t *budget);
static inf_err_t *on_root(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_top(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json, size_t *budget);
static inf_err_t *on_list(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json, size_t avail, size_t *budget);
static bool read_in_place(inf_infer_reader_t *r, const char *json,
    size_t avail, size_t *budget, inf_err_t **err);
static void charge(size_t *budget, size_t cost);
static inf_err_t *on_tensor(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json, size_t *budget);
static inf_err_t *on_value(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json);
static inf_err_t *on_copy(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json);
static inf_err_t *on_container(inf_infer_reader_t *r, const char *json);
static inf_err_t *on_skip(inf_infer_reader_t *r);
static inf_err_t *open_member(inf_infer_reader_t *r, const char *json,
    piece_t *piece, uint32_t known);
static member_t find_member(const inf_infer_reader_t *r, const char *json,
    uint32_t known);
static piece_t *open_piece(inf_infer_reader_t *r);
static inf_piece_kind_t list_kind(const inf_infer_reader_t *r);
static void begin_piece(piece_t *piece);
static inf_err_t *copy_upto(inf_infer_reader_t *r, const char *json,
    uint64_t end);
static inf_err_t *copy_number(inf_infer_reader_t *r, inf_json_event_t event,
    const char *json);
static inf_err_t *copy_big(inf_infer_reader_t *r, const char *json,
    const inf_big_number_t *big);
static inf_err_t *finish_tensor(inf_infer_reader_t *r, size_t *budget);
static inf_err_t *finish_top(inf_infer_reader_t *r, size_t *budget);
static inf_err_t *finish_piece(inf_infer_reader_t *r, piece_t *piece,
    inf_piece_kind_t kind, size_t *budget);
static inf_err_t *syntax_error(const inf_infer_reader_t *r,
    const char *reason);
static inf_err_t *member_error(const char *name, const char *why);

inf_err_t *
inf_infer_reader_new(inf_infer_reader_t **out, inf_arena_t *arena,
    const inf_infer_limits_t *limits)
{
    inf_infer_reader_t *r = inf_arena_calloc(arena, 1, sizeof(*r));

    if (r == NULL) {
        return inf_err_nomem();
    }

    if (limits != NULL) {
        r->limits = *limits;
    }

    if (r->limits.max_json_bytes == 0) {
        r->limits.max_json_bytes = INF_INFER_MAX_JSON;
    }

    if (r->limits.max_piece_bytes == 0) {
        r->limits.max_piece_bytes = INF_INFER_MAX_PIECE;
    }

    if (r->limits.max_inputs == 0) {
        r->limits.max_inputs = INF_INFER_MAX_TENSORS;
    }

    if (r->limits.max_outputs == 0) {
        r->limits.max_outputs = INF_INFER_MAX_TENSORS;
    }

    inf_tables_init(&r->tables, arena, &r->limits);
    inf_json_scan_init(&r->scan, MAX_DEPTH);
    inf_buf_init(&r->top.text);
    inf_buf_init(&r->top.bigs);
    inf_buf_init(&r->tensor.text);
    inf_buf_init(&r->tensor.bigs);
    *out = r;
    return NULL;
}

void
inf_infer_reader_set_quick(inf_infer_reader_t *r, bool on)
{
    r->tables.quick = on;
}

/* The reader itself is the arena's. */
void
inf_infer_reader_free(inf_infer_reader_t *r)
{
    if (r == NULL) {
        return;
    }

    inf_buf_fini(&r->top.text);
    inf_buf_fini(&r->top.bigs);
    inf_buf_fini(&r->tensor.text);
    inf_buf_fini(&r->tensor.bigs);
}

size_t
inf_infer_reader_offset(const inf_infer_reader_t *r)
{
    return (size_t) r->scan.pos;
}

inf_infer_request_t
inf_infer_reader_request(const inf_infer_reader_t *r)
{
    return r->tables.request;
}

inf_codec_t
inf_infer_reader_feed(inf_infer_reader_t *r, const char *json, size_t avail,
    bool last, size_t budget, inf_err_t **err)
{
    if (avail > r->limits.max_json_bytes) {
        *err = inf_err_new(INF_ERR_INVALID_ARG,
                           "request JSON is larger than the allowed %llu "
                           "bytes",
                           (unsigned long long) r->limits.max_json_bytes);
        return INF_CODEC_ERROR;
    }

    while (r->state != STATE_DONE) {
        inf_json_event_t event;

        if (r->state == STATE_SKIP) {
            inf_json_tally_t *tally = r->member == MEMBER_DATA
                                      ? &r->span.tally : &r->ignored;
            event = inf_json_scan_skip(&r->scan, json, avail, last, &budget,
                                       r->depth, tally);
        } else {
            event = inf_json_scan_next(&r->scan, json, avail, last, &budget);
        }

        if (event == INF_JSON_AGAIN) {
            return INF_CODEC_AGAIN;
        }

        *err = event == INF_JSON_ERROR
               ? syntax_error(r, r->scan.reason)
               : on_event(r, event, json, avail, &budget);
        if (*err != NULL) {
            return INF_CODEC_ERROR;
        }
    }

    return INF_CODEC_DONE;
}

static inf_err_t *
on_event(inf_infer_reader_t *r, inf_json_event_t event, const char *json,
    size_t avail, size_t *budget)
{
    switch (r->state) {
    case STATE_ROOT:
        return on_root(r, event);
    case STATE_TOP:
        return on_top(r, event, json, budget);
    case STATE_LIST:
        return on_list(r, event, json, avail, budget);
    case STATE_TENSOR:
        return on_tensor(r, event, json, budget);
    case STATE_TENSOR_END:                  /* only the '}' can come here */
        r->state = STATE_LIST;
        break;
    case STATE_VALUE:
        return on_value(r, event, json);
    case STATE_COPY:
        return on_copy(r, event, json);
    case STATE_COPY_SKIP:
        if (r->scan.depth == r->depth) {
            r->mark = r->scan.pos;
            r->state = STATE_COPY;
        }
        break;
    case STATE_SKIP:
        return on_skip(r);
    case STATE_TAIL:                        /* only the end can come here */
        r->state = STATE_DONE;
        break;
    case STATE_DONE:
        break;
    }

    return NULL;
}

static inf_err_t *
on_root(inf_infer_reader_t *r, inf_json_event_t event)
{
    if (event != INF_JSON_OBJECT_BEGIN) {
        return member_error("inputs", "the request JSON is no object");
    }

    begin_piece(&r->top);
    r->state = STATE_TOP;
    return NULL;
}

static inf_err_t *
on_top(inf_infer_reader_t *r, inf_json_event_t event, const char *json,
    size_t *budget)
{
    if (event == INF_JSON_OBJECT_END) {
        r->state = STATE_TAIL;
        return finish_top(r, budget);
    }

    return open_member(r, json, &r->top, TOP_MEMBERS);
}

static inf_err_t *
on_list(inf_infer_reader_t *r, inf_json_event_t event, const char *json,
    size_t avail, size_t *budget)
{
    inf_err_t *err = NULL;

    if (event == INF_JSON_ARRAY_END) {
        r->state = STATE_TOP;
        return NULL;
    }

    if (event != INF_JSON_OBJECT_BEGIN) {
        return member_error(members[r->list].name,
                            "attempt to access JSON non-object as object");
    }

    const inf_infer_table_t *t = r->list == MEMBER_INPUTS
                                 ? &r->tables.inputs : &r->tables.outputs;
    if (t->count == t->max) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': more than %u of them",
                           members[r->list].name, t->max);
    }

    memset(&r->span, 0, sizeof(r->span));
    if (read_in_place(r, json, avail, budget, &err)) {
        r->state = STATE_TENSOR_END;
        return err;
    }

    begin_piece(&r->tensor);
    r->in_tensor = true;
    r->state = STATE_TENSOR;
    return NULL;
}

/* Right behind a '{'.  Only what may be read in this turn, and would fit into
   a piece, is looked at; on success the scanner finds the '}' next. */
static bool
read_in_place(inf_infer_reader_t *r, const char *json, size_t avail,
    size_t *budget, inf_err_t **err)
{
    size_t len = avail - (size_t) r->scan.pos;
    size_t used;

    len = len < *budget ? len : *budget;
    len = len < r->limits.max_piece_bytes ? len : r->limits.max_piece_bytes;

    inf_piece_t piece = {
        .kind = list_kind(r),
        .text = inf_slice(json + r->scan.token, len + 1),
        .span = &r->span
    };
    if (!inf_tables_take(&r->tables, &piece, &used, err)) {
        return false;
    }

    r->scan.pos = r->scan.token + used;
    charge(budget, QUICK_COST + used);
    return true;
}

static void
charge(size_t *budget, size_t cost)
{
    *budget -= cost < *budget ? cost : *budget;
}

static inf_err_t *
on_tensor(inf_infer_reader_t *r, inf_json_event_t event, const char *json,
    size_t *budget)
{
    if (event == INF_JSON_OBJECT_END) {
        r->in_tensor = false;
        r->state = STATE_LIST;
        return finish_tensor(r, budget);
    }

    return open_member(r, json, &r->tensor, r->list == MEMBER_INPUTS
                                            ? INPUT_MEMBERS : OUTPUT_MEMBERS);
}

/* A member's name has been read. */
static inf_err_t *
open_member(inf_infer_reader_t *r, const char *json, piece_t *piece,
    uint32_t known)
{
    r->member = find_member(r, json, known);
    r->scan.nonfinite = (BIT(r->member) & REAL_MEMBERS) != 0;
    r->state = STATE_VALUE;

    if (r->member == MEMBER_UNKNOWN) {
        return NULL;
    }

    const member_row_t *row = &members[r->member];
    if ((piece->seen & BIT(r->member)) != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': the member appears twice "
                           "in one object, at %llu", row->name,
                           (unsigned long long) r->scan.token);
    }

    piece->seen |= BIT(r->member);
    if (r->member == MEMBER_INPUTS || r->member == MEMBER_OUTPUTS
        || r->member == MEMBER_DATA)
    {
        return NULL;
    }

    inf_buf_putc(&piece->text, piece->text.len == 0 ? '{' : ',');
    inf_buf_put(&piece->text, row->opening, row->len + 3);
    return NULL;
}

static member_t
find_member(const inf_infer_reader_t *r, const char *json, uint32_t known)
{
    const char *p = json + r->scan.token + 1;
    const char *end = json + r->scan.pos - 1;
    char text[MAX_KEY];
    char *out = text;
    inf_slice_t key = inf_slice(p, (size_t) (end - p));

    if (r->scan.decoded > MAX_KEY) {
        return MEMBER_UNKNOWN;
    }

    if (r->scan.escaped) {
        if (!inf_string_unescape(&p, end, end, &out, text + MAX_KEY)) {
            return MEMBER_UNKNOWN;
        }

        key = inf_slice(text, (size_t) (out - text));
    }

    for (member_t m = MEMBER_ID; m <= MEMBER_DATA; m++) {
        if ((known & BIT(m)) != 0 && key.len == members[m].len
            && memcmp(key.data, members[m].name, key.len) == 0)
        {
            return m;
        }
    }

    return MEMBER_UNKNOWN;
}

static state_t
between_members(const inf_infer_reader_t *r)
{
    return r->in_tensor ? STATE_TENSOR : STATE_TOP;
}

/* The first event of a member's value. */
static inf_err_t *
on_value(inf_infer_reader_t *r, inf_json_event_t event, const char *json)
{
    bool array = event == INF_JSON_ARRAY_BEGIN;
    bool container = array || event == INF_JSON_OBJECT_BEGIN;

    r->depth = r->scan.depth;
    r->mark = r->scan.token;

    switch (r->member) {

    case MEMBER_INPUTS:
    case MEMBER_OUTPUTS:
        if (!array) {
            return member_error(members[r->member].name,
                                "attempt to access JSON non-array as array");
        }

        r->list = r->member;
        r->state = STATE_LIST;
        return NULL;

    case MEMBER_DATA:
        r->span.present = true;
        r->span.array = array;
        r->span.offset = r->scan.token;

        /* fall through */

    case MEMBER_UNKNOWN:
        r->state = container ? STATE_SKIP : between_members(r);
        return NULL;

    default:
        break;
    }

    if (container) {
        r->state = STATE_COPY;
        r->events = 0;
        return NULL;
    }

    r->state = between_members(r);
    inf_err_t *err = copy_number(r, event, json);
    return err != NULL ? err : copy_upto(r, json, r->scan.pos);
}

static inf_err_t *
on_copy(inf_infer_reader_t *r, inf_json_event_t event, const char *json)
{
    if (r->scan.depth > r->depth) {
        return on_container(r, json);
    }

    if (++r->events > MAX_EVENTS) {
        return member_error(members[r->member].name, "too many values in it");
    }

    if (r->scan.depth < r->depth) {
        r->state = between_members(r);
        return copy_upto(r, json, r->scan.pos);
    }

    return copy_number(r, event, json);
}

/* A tensor's parameters may hold what nobody knows; null stands for it. */
static inf_err_t *
on_container(inf_infer_reader_t *r, const char *json)
{
    const char *name = members[r->member].name;

    if (r->member == MEMBER_SHAPE) {
        return member_error(name, "attempt to access JSON "
                            "non-unsigned-integer as unsigned-integer");
    }

    if (!r->in_tensor) {
        return member_error(name, "no value in it may be an array or an "
                            "object");
    }

    r->state = STATE_COPY_SKIP;
    inf_err_t *err = copy_upto(r, json, r->scan.token);
    if (err == NULL) {
        inf_buf_puts(&open_piece(r)->text, "null");
    }

    return err;
}

/* The container's end. */
static inf_err_t *
on_skip(inf_infer_reader_t *r)
{
    if (r->member == MEMBER_DATA) {
        r->span.length = r->scan.pos - r->span.offset;
    }

    r->state = between_members(r);
    return NULL;
}

static inf_piece_kind_t
list_kind(const inf_infer_reader_t *r)
{
    return r->list == MEMBER_INPUTS ? INF_PIECE_INPUT : INF_PIECE_OUTPUT;
}

static void
begin_piece(piece_t *piece)
{
    inf_buf_reset(&piece->text);
    inf_buf_reset(&piece->bigs);
    piece->seen = 0;
}

static piece_t *
open_piece(inf_infer_reader_t *r)
{
    return r->in_tensor ? &r->tensor : &r->top;
}

static inf_err_t *
copy_upto(inf_infer_reader_t *r, const char *json, uint64_t end)
{
    piece_t *piece = open_piece(r);
    uint64_t len = end - r->mark;

    if (len > r->limits.max_piece_bytes
        || piece->text.len + len > r->limits.max_piece_bytes)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': %s is described in more "
                           "than %u bytes", members[r->member].name,
                           !r->in_tensor ? "the request"
                           : r->list == MEMBER_INPUTS ? "an input"
                           : "an output", r->limits.max_piece_bytes);
    }

    inf_buf_put(&piece->text, json + r->mark, (size_t) len);
    r->mark = end;
    return NULL;
}

/* What jansson can't read or hold is listed, its place copied. */
static inf_err_t *
copy_number(inf_infer_reader_t *r, inf_json_event_t event, const char *json)
{
    const char *p = json + r->scan.token;
    const char *end = json + r->scan.pos;
    inf_big_number_t big = { .fits = false };
    inf_number_t n;
    int64_t small;

    if (event == INF_JSON_NONFINITE) {
        (void) inf_number_read_nonfinite(p, end, &big.real);
        return copy_big(r, json, &big);
    }

    if (event != INF_JSON_NUMBER || (size_t) (end - p) < BIG_DIGITS
        || inf_number_read(p, end, &n) == 0
        || !n.integer || inf_number_int64(&n, &small))
    {
        return NULL;
    }

    /* what stands for it, an array, would be a shape */
    if (r->member == MEMBER_SHAPE && r->state != STATE_COPY) {
        return member_error("shape",
                            "attempt to access JSON non-array as array");
    }

    big.real = inf_number_double(&n);
    big.fits = inf_number_uint64(&n, &big.integer);
    return copy_big(r, json, &big);
}

static inf_err_t *
copy_big(inf_infer_reader_t *r, const char *json, const inf_big_number_t *big)
{
    piece_t *piece = open_piece(r);
    inf_err_t *err = copy_upto(r, json, r->scan.token);

    if (err != NULL) {
        return err;
    }

    inf_buf_printf(&piece->text, "[%zu]", piece->bigs.len / sizeof(*big));
    inf_buf_put(&piece->bigs, big, sizeof(*big));
    r->mark = r->scan.pos;
    return NULL;
}

static inf_err_t *
finish_tensor(inf_infer_reader_t *r, size_t *budget)
{
    return finish_piece(r, &r->tensor, list_kind(r), budget);
}

static inf_err_t *
finish_top(inf_infer_reader_t *r, size_t *budget)
{
    inf_err_t *err = NULL;

    if ((r->top.seen & BIT(MEMBER_INPUTS)) == 0) {
        return member_error("inputs", "attempt to access non-existing object "
                            "member 'inputs'");
    }

    if (r->top.text.len != 0) {
        err = finish_piece(r, &r->top, INF_PIECE_TOP, budget);
    }

    inf_tables_close(&r->tables);
    return err;
}

static inf_err_t *
finish_piece(inf_infer_reader_t *r, piece_t *piece, inf_piece_kind_t kind,
    size_t *budget)
{
    inf_buf_puts(&piece->text, piece->text.len == 0 ? "{}" : "}");

    inf_err_t *err = inf_buf_status(&piece->text);
    if (err == NULL) {
        err = inf_buf_status(&piece->bigs);
    }

    if (err != NULL) {
        return err;
    }

    inf_piece_t whole = {
        .kind = kind,
        .text = inf_buf_slice(&piece->text),
        .span = &r->span,
        .bigs = (const void *) piece->bigs.data,
        .big_count = piece->bigs.len / sizeof(inf_big_number_t)
    };
    size_t used;

    if (inf_tables_take(&r->tables, &whole, &used, &err)) {
        charge(budget, QUICK_COST + used);
        return err;
    }

    charge(budget, PIECE_COST + PIECE_FACTOR * whole.text.len);
    return inf_tables_walk(&r->tables, &whole);
}

static inf_err_t *
syntax_error(const inf_infer_reader_t *r, const char *reason)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
                       PARSE_FAILED "%s at %llu",
                       reason, (unsigned long long) r->scan.pos);
}

static inf_err_t *
member_error(const char *name, const char *why)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s': %s", name,
                       why);
}

inf_err_t *
inf_infer_request_raw(inf_infer_request_t *out, inf_arena_t *arena,
    uint64_t body_len)
{
    inf_infer_input_t *in = inf_arena_calloc(arena, 1, sizeof(*in));

    if (in == NULL) {
        return inf_err_nomem();
    }

    in->name = INF_SLICE("");
    in->source = INF_SOURCE_BINARY;
    in->byte_size = body_len;

    memset(out, 0, sizeof(*out));
    out->flags = INF_REQUEST_RAW_INPUT;
    out->binary_data_output = true;
    out->inputs = in;
    out->input_count = 1;
    out->binary_size = body_len;
    return NULL;
}

inf_err_t *
inf_infer_request_check_tail(const inf_infer_request_t *req,
    uint64_t tail_len, inf_slice_t model)
{
    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_infer_input_t *in = &req->inputs[i];

        if (in->source == INF_SOURCE_BINARY
            && (in->binary_offset > tail_len
                || in->byte_size > tail_len - in->binary_offset))
        {
            uint64_t there = in->binary_offset < tail_len
                             ? tail_len - in->binary_offset : 0;

            return inf_err_new(INF_ERR_INVALID_ARG,
                               "unexpected size for input '%.*s', expecting "
                               "%llu additional bytes for model '%.*s'",
                               (int) in->name.len, in->name.data,
                               (unsigned long long) (in->byte_size - there),
                               (int) model.len, model.data);
        }
    }

    if (tail_len != req->binary_size) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "unexpected additional input data for model "
                           "'%.*s'", (int) model.len, model.data);
    }

    return NULL;
}
