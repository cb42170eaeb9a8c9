/*
 * infer_members.h - the members of an inference request: a table of each
 *                   object's names, values and functions.
 *
 * Owner    Texts and shapes are copied into the arena; no pointer to the JSON
 *          is kept.
 * Thread   one at a time; the tables are constant.
 * Units    Offsets are bytes from the JSON's first byte.
 * Errors   INVALID_ARG, UNSUPPORTED, naming the member and the tensor.
 * Route    request reader -> [members] -> tables of the request.
 *
 * The reader notes the position of each value.  At the end of an object its
 * members are taken in the order of the table, which determines the first
 * error.  Parameters of the request are taken in the order of the text.
 */

#ifndef INF_PROTO_INFER_MEMBERS_H
#define INF_PROTO_INFER_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/proto/infer_request.h"
#include "core/proto/json_scan.h"

#define INF_MEMBERS_MAX 10u     /* of a tensor, its parameters included      */

/* Arguments: the key's length and bytes.  Doubles are accepted too. */
#define INF_PARAMETER_WRONG_KIND "parameter '%.*s' has invalid type. It" \
    " should be either 'int', 'bool', or 'string'."

#define INF_INFER_PARSE_FAILED "failed to parse the request JSON buffer: "

typedef struct inf_member_s inf_member_t;
typedef struct inf_object_s inf_object_t;
typedef struct inf_description_s inf_description_t;

/* The value behind a member's name. */
typedef enum {
    INF_MEMBER_SCALAR,
    INF_MEMBER_SHAPE,           /* an array of integers                      */
    INF_MEMBER_OBJECT,          /* with members of its own                   */
    INF_MEMBER_LIST,            /* an array of such objects                  */
    INF_MEMBER_DATA             /* skipped, its leaves are counted           */
} inf_member_kind_t;

/* The position of a value in the JSON, quotes included. */
typedef struct {
    uint64_t offset;
    uint64_t length;
    uint8_t  kind;              /* inf_json_event_t; BEGIN: a container      */
    bool     escaped;
} inf_member_value_t;

struct inf_member_s {
    const char         *name;
    size_t              len;
    inf_member_kind_t   kind;
    bool                needed;
    bool                real;   /* NaN and Infinity are allowed              */
    bool                in_region;  /* used with a shm region only           */
    uint8_t             slot;   /* of its value in the description           */
    size_t              field;  /* of the target, for take                   */

    /* Turns the value into the target's field; NULL: the reader does. */
    inf_err_t        *(*take)(inf_description_t *d, const inf_member_t *m,
                              const inf_member_value_t *v);
    const inf_object_t *object; /* OBJECT, LIST: description of the object   */
};

struct inf_object_s {
    const char         *what;   /* "input", "output", NULL: the request      */
    const char         *whole;  /* for errors about the whole object         */
    const inf_member_t *members;
    size_t              count;
    bool                parameters;     /* any name is allowed, once         */
    bool                at_once;        /* members are taken when read       */
};

/* The root of the grammar, and an input of it. */
extern const inf_object_t inf_object_request;
extern const inf_object_t inf_object_input;

typedef enum {
    INF_SHAPE_GOOD,
    INF_SHAPE_WRONG,            /* a dimension is negative or not an integer */
    INF_SHAPE_WIDE              /* a dimension exceeds int64                 */
} inf_shape_state_t;

/* The part of a shape that was read. */
typedef struct {
    uint32_t          count;    /* of dimensions, including excess ones      */
    inf_shape_state_t state;    /* by the first invalid dimension            */
    int64_t           dims[INF_MAX_DIMS];
} inf_shape_t;

/* The target of an input's or output's members. */
typedef struct {
    inf_slice_t name;
    uint32_t    datatype;
    uint64_t    element_count;
    uint64_t    binary_size;
    bool        binary;         /* binary_data                               */
    uint64_t    classification;
    inf_slice_t shm_region;
    uint64_t    shm_offset;
    uint64_t    shm_byte_size;
} inf_tensor_t;

/* An object being read, with its parameters. */
struct inf_description_s {
    const inf_object_t    *object;
    inf_arena_t           *arena;
    const char            *json;        /* set before each call              */
    void                  *target;      /* inf_tensor_t, inf_infer_request_t */
    inf_slice_t            name;        /* of the tensor, once known         */
    uint32_t               index;       /* of the input or output            */
    uint64_t               max_bytes;   /* of a decoded tensor               */
    uint64_t               described;   /* bytes so far, without data        */
    const char            *fault;       /* of a name, text or number; or NULL */
    uint64_t               fault_at;
    uint32_t               seen;        /* bit per value present             */
    inf_member_value_t     values[INF_MEMBERS_MAX];
    inf_shape_t           *shape;       /* of an input                       */
    inf_json_tally_t       leaves;      /* of data                           */
};

static inline bool
inf_description_has(const inf_description_t *d, uint8_t slot)
{
    return (d->seen >> slot & 1) != 0;
}

/* The row of that name; NULL: none. */
static inline const inf_member_t *
inf_object_find(const inf_object_t *object, inf_slice_t name)
{
    const inf_member_t *end = object->members + object->count;

    for (const inf_member_t *m = object->members; m != end; m++) {
        if (m->len == name.len && memcmp(m->name, name.data, m->len) == 0) {
            return m;
        }
    }

    return NULL;
}

/* Notes a fault of the last token, a text or number: out of range, or not
   UTF-8.  Integers and ASCII need no check. */
void inf_description_check(inf_description_t *d, const inf_json_tokens_t *t,
    inf_json_event_t event);

/* Notes a fault, unless there is one already; reason is a constant. */
void inf_description_note(inf_description_t *d, const char *reason,
    uint64_t at);

/* The noted fault; NULL: none. */
INF_CHECK inf_err_t *inf_description_fault(const inf_description_t *d);

/* Takes all members of d, setting the fields of its target. */
INF_CHECK inf_err_t *inf_description_take(inf_description_t *d);

/* Takes a parameter of the request without a row; name is in the arena. */
INF_CHECK inf_err_t *inf_description_custom(inf_description_t *d,
    inf_slice_t name, const inf_member_value_t *v,
    inf_infer_parameter_t *out);

/* A NUL-terminated copy of a string, unescaped. */
INF_CHECK inf_err_t *inf_description_text(const inf_description_t *d,
    const inf_member_value_t *v, inf_slice_t *out);

/* Adds an element to a shape. */
void inf_description_add_dim(inf_description_t *d,
    const inf_member_value_t *v);

/* Make the row of a tensor whose members have been taken. */
INF_CHECK inf_err_t *inf_description_input(const inf_description_t *d,
    inf_infer_input_t *out);
INF_CHECK inf_err_t *inf_description_output(const inf_description_t *d,
    inf_infer_output_t *out);

#endif /* INF_PROTO_INFER_MEMBERS_H */
