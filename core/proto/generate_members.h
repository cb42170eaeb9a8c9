/*
 * generate_members.h - the JSON of a generate request as a list of its
 *                      members, each with the position of its value.
 *
 * Owner    The caller's JSON and arena; names are unescaped into the arena.
 * Thread   any.
 * Units    Offsets and lengths are bytes from the JSON's first byte.
 * Errors   INVALID_ARG: invalid JSON, not an object, too many members; with
 *          the position.
 * Route    request arena -> copy -> [members] -> model's inputs, parameters.
 *
 * The model determines the use of a member (core/model/generate_request.h).
 */

#ifndef INF_PROTO_GENERATE_MEMBERS_H
#define INF_PROTO_GENERATE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/json_scan.h"

#define INF_GENERATE_MAX_MEMBERS 16384u

/* The member whose members count as the request's. */
#define INF_GENERATE_PARAMETERS "parameters"

typedef struct {
    inf_slice_t      name;
    uint64_t         name_offset;
    bool             repeated;  /* an earlier member has the name            */
    bool             inner;     /* a member of the parameters                */
    inf_json_event_t kind;      /* the value's first event                   */
    uint64_t         offset;    /* of the value                              */
    uint64_t         length;
    inf_json_tally_t tally;     /* of the value itself, or the array's       */
} inf_generate_member_t;

typedef struct {
    inf_slice_t                  json;
    const inf_generate_member_t *id;        /* NULL: none                    */
    bool                         has_parameters;
    const inf_generate_member_t *members;   /* in order of the text, with
                                               members of the parameters     */
    uint32_t                     count;
} inf_generate_members_t;

/* Reads the whole text; json must stay valid as long as *out. */
INF_CHECK inf_err_t *inf_generate_members_read(inf_generate_members_t *out,
    inf_slice_t json, inf_arena_t *arena);

/* The error of a member whose name is repeated. */
INF_CHECK inf_err_t *inf_generate_member_repeated(
    const inf_generate_member_t *member);

/* The text of a string member: UTF-8, NUL-terminated. */
INF_CHECK inf_err_t *inf_generate_member_text(
    const inf_generate_members_t *list, const inf_generate_member_t *member,
    inf_arena_t *arena, inf_slice_t *out);

#endif /* INF_PROTO_GENERATE_MEMBERS_H */
