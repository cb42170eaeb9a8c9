/*
 * infer_request.c - see infer_request.h.
 *
 * The scanner validates every byte once and gives events; infer_members.h has
 * the grammar of these.  A description (an input, an output, or the request
 * itself) notes the positions of its values, and is taken when its object
 * ends.
 */

#include <stddef.h>
#include <string.h>

#include "core/proto/infer_members.h"
#include "core/proto/infer_tables.h"
#include "core/proto/json_string.h"

#define MAX_DEPTH       102u    /* 99 levels of arrays inside data           */
#define MAX_KEY         32u     /* length of the longest known name          */
#define MAX_EVENTS      4096u   /* names and values in one object or shape   */
#define TAKE_COST       64u     /* budget bytes per tensor or parameter, besides
                                   its own                                   */
#define OPENING         4u      /* bytes of a member besides its name: {"":  */

typedef enum {
    STATE_ROOT,                 /* before the first '{'                      */
    STATE_MEMBERS,              /* between members of `object`               */
    STATE_VALUE,                /* before the value of `member`              */
    STATE_LIST,                 /* between inputs or outputs                 */
    STATE_SHAPE,                /* between dimensions                        */
    STATE_SKIP,                 /* inside an unknown container               */
    STATE_DATA,                 /* inside data                               */
    STATE_TAIL,                 /* after the last '}'                        */
    STATE_DONE
} state_t;

struct inf_infer_reader_s {
    inf_infer_limits_t  limits;
    inf_json_scan_t     scan;
    state_t             state;

    const inf_object_t *object;         /* object being read                 */
    const inf_member_t *member;         /* member whose value is next; NULL:
                                           unknown                           */
    const inf_member_t *list;           /* inputs or outputs                 */
    inf_slice_t         key;            /* of an unknown parameter           */
    inf_names_t         keys;           /* names in this object              */
    uint32_t            depth;          /* inside the open container         */
    uint32_t            events;         /* in this object or shape           */
    uint64_t            mark;           /* described up to here              */
    size_t              cost;           /* of the last event, beyond bytes   */

    inf_json_tally_t    ignored;        /* in unknown members                */
    inf_err_t          *late;           /* the first wrong parameter, reported
                                           if there is no other error        */
    inf_infer_tables_t  tables;

    inf_description_t  *open;           /* request or tensor                 */
    inf_description_t   request;        /* set while it is open, like the fields
                                           below                             */
    inf_description_t   description;
    inf_tensor_t        tensor;         /* target of the tensor              */
    inf_shape_t         shape;
};

static const char *spend(inf_infer_reader_t *r, const char *json,
    const char *end, size_t *spare);
static inf_json_event_t next_event(inf_infer_reader_t *r, const char *json,
    const char *end, bool final);
static inf_err_t *on_event(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_root(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_list(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_members(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_key(inf_infer_reader_t *r);
static inf_err_t *on_value(inf_infer_reader_t *r, inf_json_event_t event);
static bool enter(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_parameter(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_dimension(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *on_end(inf_infer_reader_t *r);
static void open_description(inf_infer_reader_t *r, inf_description_t *d,
    const inf_object_t *object, void *target);
static const inf_member_t *find_member(const inf_infer_reader_t *r);
static const inf_member_t *find_escaped(const inf_object_t *object,
    const char *p, const char *end);
static inf_err_t *add_key(inf_infer_reader_t *r);
static inf_err_t *take_parameter(inf_infer_reader_t *r,
    inf_json_event_t event);
static inf_err_t *finish_tensor(inf_infer_reader_t *r);
static inf_err_t *finish_request(inf_infer_reader_t *r);
static inf_err_t *count_event(inf_infer_reader_t *r);
static void check_scalar(inf_infer_reader_t *r, inf_json_event_t event);
static inf_err_t *describe(inf_infer_reader_t *r, uint64_t end);
static inf_err_t *too_long(const inf_infer_reader_t *r);
static inf_err_t *syntax_error(const inf_infer_reader_t *r,
    const char *reason);
static inf_err_t *member_error(const char *name, const char *why);

inf_err_t *
inf_infer_reader_new(inf_infer_reader_t **out, inf_arena_t *arena,
    const inf_infer_limits_t *limits)
{
    inf_infer_reader_t *r = inf_arena_alloc(arena, sizeof(*r));

    if (r == NULL) {
        return inf_err_nomem();
    }

    memset(r, 0, offsetof(inf_infer_reader_t, request));
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
    *out = r;
    return NULL;
}

/* Frees the error; the reader itself is in the arena. */
void
inf_infer_reader_free(inf_infer_reader_t *r)
{
    if (r != NULL) {
        inf_err_free(r->late);
        r->late = NULL;
    }
}

size_t
inf_infer_reader_offset(const inf_infer_reader_t *r)
{
    return (size_t) r->scan.tokens.pos;
}

inf_infer_request_t
inf_infer_reader_request(const inf_infer_reader_t *r)
{
    return r->tables.request;
}

inf_err_t *
inf_infer_json_long(uint64_t limit, const char *setting)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
                       "request JSON is larger than the limit of %llu bytes; "
                       "%s sets another limit", (unsigned long long) limit,
                       setting);
}

inf_codec_t
inf_infer_reader_feed(inf_infer_reader_t *r, const char *json, size_t avail,
    bool last, size_t budget, inf_err_t **err)
{
    if (avail > r->limits.max_json_bytes) {
        *err = inf_infer_json_long(r->limits.max_json_bytes,
                                   INF_INFER_MAX_JSON_SETTING);
        return INF_CODEC_ERROR;
    }

    r->request.json = json;
    r->description.json = json;

    size_t left = avail - inf_infer_reader_offset(r);
    size_t spare = budget > left ? budget - left : 0;
    const char *end = json + avail - (budget < left ? left - budget : 0);
    bool final = last && end == json + avail;

    while (r->state != STATE_DONE) {
        inf_json_event_t event = next_event(r, json, end, final);

        if (event == INF_JSON_AGAIN) {
            return INF_CODEC_AGAIN;
        }

        inf_err_t *e = event == INF_JSON_ERROR
                       ? syntax_error(r, r->scan.reason) : on_event(r, event);
        if (e != NULL) {
            if (r->state != STATE_ROOT) {
                /* the id, for logs, if it was read */
                inf_err_free(inf_description_take(&r->request));
            }
            *err = e;
            return INF_CODEC_ERROR;
        }

        if (r->cost != 0) {
            end = spend(r, json, end, &spare);
            final = last && end == json + avail;
        }
    }

    return INF_CODEC_DONE;
}

/* The end of this turn's bytes after spending the last event's cost. */
static const char *
spend(inf_infer_reader_t *r, const char *json, const char *end, size_t *spare)
{
    size_t left = (size_t) (end - json) - inf_infer_reader_offset(r);
    size_t beyond = r->cost < *spare ? r->cost : *spare;
    size_t cost = r->cost - beyond;

    r->cost = 0;
    *spare -= beyond;
    return end - (cost < left ? cost : left);
}

static inf_json_event_t
next_event(inf_infer_reader_t *r, const char *json, const char *end,
    bool final)
{
    if (r->state != STATE_DATA && r->state != STATE_SKIP) {
        return inf_json_scan_next(&r->scan, json, end, final);
    }

    return inf_json_scan_skip(&r->scan, json, end, final, r->depth,
                              r->state == STATE_DATA ? &r->open->leaves
                                                     : &r->ignored);
}

static inf_err_t *
on_event(inf_infer_reader_t *r, inf_json_event_t event)
{
    switch (r->state) {
    case STATE_ROOT:
        return on_root(r, event);
    case STATE_MEMBERS:
        return on_members(r, event);
    case STATE_VALUE:
        return on_value(r, event);
    case STATE_LIST:
        return on_list(r, event);
    case STATE_SHAPE:
        return on_dimension(r, event);
    case STATE_DATA:
        r->open->values[r->member->slot].length = r->scan.tokens.pos
            - r->open->values[r->member->slot].offset;

        /* fall through */

    case STATE_SKIP:
        r->mark = r->scan.tokens.pos;
        r->state = STATE_MEMBERS;
        break;
    case STATE_TAIL:                        /* only the end can follow */
        r->state = STATE_DONE;
        break;
    case STATE_DONE:
        break;
    }

    return NULL;
}

/* ---- objects and lists ---- */

static inf_err_t *
on_root(inf_infer_reader_t *r, inf_json_event_t event)
{
    if (event != INF_JSON_OBJECT_BEGIN) {
        return member_error("inputs", "attempt to access non-existing object "
                            "member 'inputs': the request is no object");
    }

    open_description(r, &r->request, &inf_object_request, &r->tables.request);
    return NULL;
}

static void
open_description(inf_infer_reader_t *r, inf_description_t *d,
    const inf_object_t *object, void *target)
{
    d->seen = 0;
    d->leaves = (inf_json_tally_t) { .count = 0 };
    d->object = object;
    d->target = target;
    d->arena = r->tables.arena;
    d->shape = &r->shape;
    d->name = inf_slice(NULL, 0);
    d->max_bytes = r->limits.max_json_bytes;
    d->described = 0;
    d->fault = NULL;

    r->open = d;
    r->object = object;
    r->state = STATE_MEMBERS;
}

static inf_err_t *
on_list(inf_infer_reader_t *r, inf_json_event_t event)
{
    const inf_member_t *list = r->list;

    if (event == INF_JSON_ARRAY_END) {
        r->state = STATE_MEMBERS;
        return NULL;
    }

    if (event != INF_JSON_OBJECT_BEGIN) {
        return member_error(list->name,
                            "attempt to access JSON non-object as object");
    }

    const inf_infer_table_t *table = inf_tables_of(&r->tables, list->object);
    if (table->count == table->max) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': more than %u of them",
                           list->name, table->max);
    }

    r->tensor = (inf_tensor_t) { .binary = false };
    open_description(r, &r->description, list->object, &r->tensor);
    r->description.index = table->count;
    return NULL;
}

static inf_err_t *
on_members(inf_infer_reader_t *r, inf_json_event_t event)
{
    if (r->object->parameters) {
        inf_err_t *err = count_event(r);
        if (err != NULL) {
            return err;
        }
    }

    return event == INF_JSON_OBJECT_END ? on_end(r) : on_key(r);
}

static inf_err_t *
on_end(inf_infer_reader_t *r)
{
    if (r->object->parameters) {
        inf_err_t *err = describe(r, r->scan.tokens.pos);
        r->object = r->open->object;
        return err;
    }

    return r->open == &r->request ? finish_request(r) : finish_tensor(r);
}

static inf_err_t *
finish_tensor(inf_infer_reader_t *r)
{
    inf_description_t *d = r->open;
    inf_err_t *err = inf_description_fault(d);

    if (err == NULL) {
        err = inf_description_take(d);
    }

    if (err == NULL) {
        err = inf_tables_add(&r->tables, d);
    }

    r->cost = TAKE_COST;
    r->open = &r->request;
    r->object = r->request.object;
    r->state = STATE_LIST;
    return err;
}

static inf_err_t *
finish_request(inf_infer_reader_t *r)
{
    inf_err_t *err = inf_description_fault(&r->request);

    if (err == NULL) {
        err = inf_description_take(&r->request);
    }

    if (err == NULL) {
        err = r->late;
        r->late = NULL;
    }

    inf_tables_close(&r->tables);
    r->state = STATE_TAIL;
    return err;
}

/* ---- names ---- */

static void
last_value(const inf_infer_reader_t *r, inf_json_event_t event,
    inf_member_value_t *out)
{
    const inf_json_tokens_t *t = &r->scan.tokens;

    out->offset = t->start;
    out->length = t->pos - t->start;
    out->kind = (uint8_t) event;
    out->escaped = inf_json_tokens_escaped(t);
}

static inf_err_t *
on_key(inf_infer_reader_t *r)
{
    const inf_object_t *object = r->object;
    const inf_member_t *m = find_member(r);

    r->member = m;
    r->state = STATE_VALUE;
    r->scan.nonfinite = m == NULL || m->real || object->parameters;

    if (object->parameters) {
        return add_key(r);
    }

    if (m == NULL) {
        return NULL;
    }

    if (inf_description_has(r->open, m->slot)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': the member appears twice "
                           "in one object, at %llu", m->name,
                           (unsigned long long) r->scan.tokens.start);
    }

    if (m->kind != INF_MEMBER_LIST && m->kind != INF_MEMBER_DATA) {
        r->open->described += m->len + OPENING;
    }

    return NULL;
}

/* The row of the key just read. */
static const inf_member_t *
find_member(const inf_infer_reader_t *r)
{
    const inf_json_tokens_t *t = &r->scan.tokens;
    const char *p = r->open->json + t->start + 1;
    const char *end = r->open->json + t->pos - 1;

    if (t->decoded > MAX_KEY) {
        return NULL;
    }

    return inf_json_tokens_escaped(t)
               ? find_escaped(r->object, p, end)
               : inf_object_find(r->object, inf_slice(p, (size_t) (end - p)));
}

static const inf_member_t *
find_escaped(const inf_object_t *object, const char *p, const char *end)
{
    char text[MAX_KEY];
    char *out = text;

    (void) inf_json_unescape(&p, end, end, &out, text + MAX_KEY);
    return inf_object_find(object, inf_slice(text, (size_t) (out - text)));
}

/* Adds the name of a parameter, known or not; duplicates are an error. */
static inf_err_t *
add_key(inf_infer_reader_t *r)
{
    inf_member_value_t key;
    bool fresh;
    inf_err_t *err = describe(r, r->scan.tokens.pos);

    if (err != NULL) {
        return err;
    }

    check_scalar(r, INF_JSON_KEY);

    if (r->member != NULL) {
        fresh = !inf_description_has(r->open, r->member->slot);

    } else {
        last_value(r, INF_JSON_KEY, &key);
        err = inf_description_text(r->open, &key, &r->key);
        if (err == NULL) {
            err = inf_names_add(&r->keys, r->key, 0, &fresh);
        }

        if (err != NULL) {
            return err;
        }

        if (memchr(r->key.data, '\0', r->key.len) != NULL) {
            inf_description_note(r->open, "NUL character in a name.",
                                 r->scan.tokens.start);
        }
    }

    if (!fresh) {
        inf_description_note(r->open, "A parameter appears twice.",
                             r->scan.tokens.start);
    }

    return NULL;
}

/* ---- values ---- */

static void
note_value(inf_infer_reader_t *r, inf_json_event_t event)
{
    uint8_t slot = r->member->slot;

    last_value(r, event, &r->open->values[slot]);
    r->open->seen |= 1u << slot;
}

/* Handles the first event of a member's value. */
static inf_err_t *
on_value(inf_infer_reader_t *r, inf_json_event_t event)
{
    const inf_member_t *m = r->member;
    bool open = event == INF_JSON_ARRAY_BEGIN
                || event == INF_JSON_OBJECT_BEGIN;

    r->depth = r->scan.depth;
    r->state = open ? STATE_SKIP : STATE_MEMBERS;

    if (r->object->parameters) {
        return on_parameter(r, event);
    }

    if (m == NULL) {
        return NULL;
    }

    note_value(r, event);
    r->mark = r->scan.tokens.start;

    if (m->kind == INF_MEMBER_LIST && event != INF_JSON_ARRAY_BEGIN) {
        return member_error(m->name,
                            "attempt to access JSON non-array as array");
    }

    if (enter(r, event)) {
        return NULL;
    }

    inf_err_t *err = describe(r, r->scan.tokens.pos);
    if (err == NULL) {
        check_scalar(r, event);
    }

    return err;
}

/* Enters the value that its first event begins; false: a scalar, or of a wrong
   kind. */
static bool
enter(inf_infer_reader_t *r, inf_json_event_t event)
{
    const inf_member_t *m = r->member;

    switch (m->kind) {

    case INF_MEMBER_LIST:
        r->list = m;
        r->state = STATE_LIST;
        return true;

    case INF_MEMBER_DATA:
        r->state = r->state == STATE_SKIP ? STATE_DATA : STATE_MEMBERS;
        return true;

    case INF_MEMBER_OBJECT:
        if (event != INF_JSON_OBJECT_BEGIN) {
            return false;
        }

        inf_names_init(&r->keys, r->tables.arena);
        r->object = m->object;
        r->events = 0;
        r->state = STATE_MEMBERS;
        return true;

    case INF_MEMBER_SHAPE:
        if (event != INF_JSON_ARRAY_BEGIN) {
            return false;
        }

        r->shape.count = 0;
        r->shape.state = INF_SHAPE_GOOD;
        r->events = 0;
        r->state = STATE_SHAPE;
        return true;

    case INF_MEMBER_SCALAR:
        break;
    }

    return false;
}

static inf_err_t *
on_parameter(inf_infer_reader_t *r, inf_json_event_t event)
{
    inf_err_t *err;

    if (r->state == STATE_SKIP) {
        if (r->object->at_once && r->member != NULL) {
            /* as with any other value that it cannot have */
            static const inf_member_value_t none = { .kind = INF_JSON_NULL };

            return r->member->take(r->open, r->member, &none);
        }

        if (r->object->at_once) {
            return inf_err_new(INF_ERR_INVALID_ARG, INF_PARAMETER_WRONG_KIND,
                               (int) r->key.len, r->key.data);
        }

        /* a tensor may have unknown parameters */
        event = INF_JSON_NULL;
        err = describe(r, r->scan.tokens.start);
    } else {
        err = count_event(r);
        if (err == NULL) {
            err = describe(r, r->scan.tokens.pos);
        }
    }

    if (err != NULL) {
        return err;
    }

    check_scalar(r, event);

    if (r->member != NULL) {
        note_value(r, event);
    }

    if (r->object->at_once && r->late == NULL) {
        r->late = take_parameter(r, event);
    }

    return NULL;
}

static inf_err_t *
take_parameter(inf_infer_reader_t *r, inf_json_event_t event)
{
    inf_member_value_t value;
    inf_infer_parameter_t custom;

    last_value(r, event, &value);
    r->cost = TAKE_COST;
    if (r->member != NULL) {
        return r->member->take(r->open, r->member, &value);
    }

    inf_err_t *err = inf_description_custom(r->open, r->key, &value, &custom);
    return err != NULL ? err : inf_tables_add_parameter(&r->tables, &custom);
}

static inf_err_t *
on_dimension(inf_infer_reader_t *r, inf_json_event_t event)
{
    inf_member_value_t value;

    if (r->scan.depth > r->depth) {
        return member_error(r->member->name, "attempt to access JSON "
                            "non-unsigned-integer as unsigned-integer");
    }

    inf_err_t *err = count_event(r);
    if (err != NULL) {
        return err;
    }

    if (event == INF_JSON_ARRAY_END) {
        r->state = STATE_MEMBERS;
        return describe(r, r->scan.tokens.pos);
    }

    last_value(r, event, &value);
    inf_description_add_dim(r->open, &value);
    return NULL;
}

/* ---- limits and errors ---- */

/* The name of the member of the last event. */
static const char *
described_name(const inf_infer_reader_t *r)
{
    return r->object->parameters ? "parameters" : r->member->name;
}

static inf_err_t *
count_event(inf_infer_reader_t *r)
{
    if (++r->events > MAX_EVENTS) {
        return member_error(described_name(r), "too many values in it");
    }

    return NULL;
}

/* Checks a text or number, the last token, for all readers.  Integers and ASCII
   need no check. */
static void
check_scalar(inf_infer_reader_t *r, inf_json_event_t event)
{
    const inf_json_tokens_t *t = &r->scan.tokens;

    if (event == INF_JSON_NUMBER ? !t->integer : !t->ascii) {
        inf_description_check(r->open, t, event);
    }
}

/* Limits the bytes of a description, which are read twice; data and skipped
   values do not count. */
static inf_err_t *
describe(inf_infer_reader_t *r, uint64_t end)
{
    inf_description_t *d = r->open;

    d->described += end - r->mark;
    r->mark = end;
    return d->described <= r->limits.max_piece_bytes ? NULL : too_long(r);
}

static inf_err_t *
too_long(const inf_infer_reader_t *r)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
                       "Unable to parse '%s': %s is described in more than "
                       "%u bytes", described_name(r), r->open->object->whole,
                       r->limits.max_piece_bytes);
}

static inf_err_t *
syntax_error(const inf_infer_reader_t *r, const char *reason)
{
    if (r->state == STATE_DATA && r->scan.too_deep) {
        return member_error("data", "JSON nesting depth exceeds maximum "
                            "allowed limit (100)");
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       INF_INFER_PARSE_FAILED "%s at %llu", reason,
                       (unsigned long long) r->scan.tokens.pos);
}

static inf_err_t *
member_error(const char *name, const char *why)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s': %s", name,
                       why);
}
