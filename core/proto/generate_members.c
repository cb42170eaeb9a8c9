#include "core/proto/generate_members.h"

#include <string.h>

#include "core/proto/infer_names.h"
#include "core/proto/json_string.h"
#include "core/proto/message_utf8.h"

#define PARSE_FAILED "failed to parse the request JSON buffer: "

typedef struct {
    inf_generate_members_t *out;
    inf_arena_t            *arena;
    inf_json_scan_t         scan;
    inf_names_t             names;
    inf_generate_member_t  *members;
    uint32_t                count;
    uint32_t                capacity;
    uint32_t                id;         /* number of the id's member, or
                                           capacity                          */
} reader_t;

static inf_err_t *read_object(reader_t *r, bool top);
static inf_err_t *read_value(reader_t *r, inf_generate_member_t *m);
static inf_err_t *skip_container(reader_t *r, inf_generate_member_t *m);
static inf_err_t *read_key(reader_t *r, inf_slice_t *name);
static inf_err_t *add_member(reader_t *r, inf_slice_t name,
    inf_generate_member_t **out);
static inf_err_t *unescape(inf_slice_t json, uint64_t offset, uint64_t length,
    uint64_t decoded, inf_arena_t *arena, inf_slice_t *out);
static inf_err_t *fault(const char *reason, uint64_t at);

static inf_json_event_t
next(reader_t *r)
{
    return inf_json_scan_next(&r->scan, r->out->json.data,
                              r->out->json.data + r->out->json.len, true);
}

static inf_err_t *
syntax_error(const reader_t *r)
{
    return fault(r->scan.reason, r->scan.tokens.pos);
}

inf_err_t *
inf_generate_members_read(inf_generate_members_t *out, inf_slice_t json,
    inf_arena_t *arena)
{
    reader_t r = { .out = out, .arena = arena, .id = UINT32_MAX };

    *out = (inf_generate_members_t) { .json = json };
    inf_json_scan_init(&r.scan, INF_JSON_MAX_DEPTH);
    inf_names_init(&r.names, arena);
    r.scan.nonfinite = true;

    inf_json_event_t event = next(&r);
    if (event == INF_JSON_ERROR) {
        return syntax_error(&r);
    }
    if (event != INF_JSON_OBJECT_BEGIN) {
        return inf_err_new(INF_ERR_INVALID_ARG, "attempt to get members for "
                           "non-object: the request is no object");
    }

    inf_err_t *err = read_object(&r, true);
    if (err == NULL && next(&r) != INF_JSON_END) {
        err = syntax_error(&r);
    }
    if (err != NULL) {
        return err;
    }

    out->members = r.members;
    out->count = r.count;
    out->id = r.id < r.count ? &r.members[r.id] : NULL;
    return NULL;
}

/* Reads an object; top: the request, not its parameters. */
static inf_err_t *
read_object(reader_t *r, bool top)
{
    inf_json_event_t event;

    while ((event = next(r)) == INF_JSON_KEY) {
        inf_generate_member_t *m = NULL;
        inf_slice_t name;

        inf_err_t *err = read_key(r, &name);
        if (err != NULL) {
            return err;
        }

        if (top && inf_slice_eq(name, INF_SLICE(INF_GENERATE_PARAMETERS))) {
            if (r->out->has_parameters) {
                return fault("A member appears twice.", r->scan.tokens.start);
            }
            r->out->has_parameters = true;

            event = next(r);
            if (event == INF_JSON_ERROR) {
                return syntax_error(r);
            }
            if (event != INF_JSON_OBJECT_BEGIN) {
                return inf_err_new(INF_ERR_INVALID_ARG, "Expected JSON object"
                                   " for keyword: '%s': attempt to access JSON"
                                   " non-object as object",
                                   INF_GENERATE_PARAMETERS);
            }

            err = read_object(r, false);

        } else {
            err = add_member(r, name, &m);
            if (err == NULL) {
                m->inner = !top;
                if (top && inf_slice_eq(name, INF_SLICE("id"))) {
                    r->id = r->count - 1;
                }
                err = read_value(r, m);
            }
        }

        if (err != NULL) {
            return err;
        }
    }

    return event == INF_JSON_OBJECT_END ? NULL : syntax_error(r);
}

static inf_err_t *
read_value(reader_t *r, inf_generate_member_t *m)
{
    const inf_json_tokens_t *t = &r->scan.tokens;

    m->kind = next(r);
    m->offset = t->start;
    m->tally.count = 1;

    switch (m->kind) {
    case INF_JSON_OBJECT_BEGIN:
    case INF_JSON_ARRAY_BEGIN:
        return skip_container(r, m);
    case INF_JSON_STRING:
        m->tally.kinds = INF_JSON_KIND_STRING;
        m->tally.string_bytes = t->decoded;
        break;
    case INF_JSON_NUMBER:
    case INF_JSON_NONFINITE:
        m->tally.kinds = INF_JSON_KIND_NUMBER;
        break;
    case INF_JSON_TRUE:
    case INF_JSON_FALSE:
        m->tally.kinds = INF_JSON_KIND_BOOL;
        break;
    case INF_JSON_NULL:
        m->tally.kinds = INF_JSON_KIND_NULL;
        break;
    default:
        return syntax_error(r);
    }

    m->length = t->pos - m->offset;
    return NULL;
}

static inf_err_t *
skip_container(reader_t *r, inf_generate_member_t *m)
{
    const inf_slice_t json = r->out->json;

    m->tally = (inf_json_tally_t) { 0 };

    inf_json_event_t event = inf_json_scan_skip(&r->scan, json.data,
        json.data + json.len, true, r->scan.depth, &m->tally);
    if (event != INF_JSON_OBJECT_END && event != INF_JSON_ARRAY_END) {
        return syntax_error(r);
    }

    m->length = r->scan.tokens.pos - m->offset;
    return NULL;
}

static inf_err_t *
read_key(reader_t *r, inf_slice_t *name)
{
    const inf_json_tokens_t *t = &r->scan.tokens;
    inf_err_t *err = unescape(r->out->json, t->start, t->pos - t->start,
                              t->decoded, r->arena, name);

    if (err == NULL && memchr(name->data, '\0', name->len) != NULL) {
        err = fault("NUL character in a name.", t->start);
    }

    return err;
}

/* Adds a member; a name is repeated in request and parameters together. */
static inf_err_t *
add_member(reader_t *r, inf_slice_t name, inf_generate_member_t **out)
{
    uint64_t at = r->scan.tokens.start;
    bool fresh;

    if (r->count == INF_GENERATE_MAX_MEMBERS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "the request has more than %u"
                           " members", INF_GENERATE_MAX_MEMBERS);
    }

    inf_err_t *err = inf_names_add(&r->names, name, r->count, &fresh);
    if (err != NULL) {
        return err;
    }

    if (r->count == r->capacity) {
        inf_generate_member_t *members = inf_arena_grow(r->arena, r->members,
            r->count, &r->capacity, sizeof(*members));
        if (members == NULL) {
            return inf_err_nomem();
        }
        r->members = members;
    }

    *out = &r->members[r->count++];
    **out = (inf_generate_member_t) {
        .name = name, .name_offset = at, .repeated = !fresh
    };
    return NULL;
}

inf_err_t *
inf_generate_member_repeated(const inf_generate_member_t *member)
{
    return fault("A member appears twice.", member->name_offset);
}

inf_err_t *
inf_generate_member_text(const inf_generate_members_t *list,
    const inf_generate_member_t *member, inf_arena_t *arena, inf_slice_t *out)
{
    return unescape(list->json, member->offset, member->length,
                    member->tally.string_bytes, arena, out);
}

/* Unescapes the string with its quotes at [offset, offset + length). */
static inf_err_t *
unescape(inf_slice_t json, uint64_t offset, uint64_t length, uint64_t decoded,
    inf_arena_t *arena, inf_slice_t *out)
{
    const char *p = json.data + offset + 1;
    const char *end = json.data + offset + length - 1;
    char *text = inf_arena_alloc(arena, (size_t) decoded + 1);
    char *last = text;

    if (text == NULL) {
        return inf_err_nomem();
    }

    if (!inf_json_unescape(&p, end, end, &last, text + decoded)
        || !inf_utf8_valid(inf_slice(text, (size_t) (last - text))))
    {
        return fault("Invalid UTF-8 in string.", offset);
    }

    *last = '\0';
    *out = inf_slice(text, (size_t) (last - text));
    return NULL;
}

static inf_err_t *
fault(const char *reason, uint64_t at)
{
    return inf_err_new(INF_ERR_INVALID_ARG, PARSE_FAILED "%s at %llu", reason,
                       (unsigned long long) at);
}
