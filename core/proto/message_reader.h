/*
 * message_reader.h - fills a message from a text, by descriptor: what the text
 *                    format and the JSON form have in common.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   any.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG: "<file>:<line>:<column>: <field>: <what is wrong>", or
 *          without a file "<field>: <what is wrong> at byte <offset>".
 * Route    text format, JSON -> [reader] -> message_field.h
 *
 * A syntax cuts the text into tokens and turns them into names and scalars.
 * Fields, lists, maps, oneofs, what may stand twice and where the reader
 * stands are the same for all.
 */

#ifndef INF_PROTO_MESSAGE_READER_H
#define INF_PROTO_MESSAGE_READER_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message.h"
#include "core/proto/message_path.h"

typedef enum {
    INF_TOKEN_END,
    INF_TOKEN_NAME,             /* any bare word                             */
    INF_TOKEN_INTEGER,
    INF_TOKEN_REAL,             /* any other number                          */
    INF_TOKEN_STRING,           /* with its quotes, escapes as written       */
    INF_TOKEN_SYMBOL,           /* one character                             */
    INF_TOKEN_BAD               /* reader.reason says why                    */
} inf_token_kind_t;

typedef struct {
    inf_token_kind_t  kind;
    inf_slice_t       text;
    size_t            at;       /* where it begins; BAD: what is wrong       */
} inf_token_t;

typedef struct inf_message_reader_s inf_message_reader_t;

typedef struct {
    /* The token at r->next, and r->next behind it. */
    inf_token_t (*next)(inf_message_reader_t *r);

    /* Takes a field's name and what always stands between it and a value. */
    inf_err_t *(*name)(inf_message_reader_t *r, inf_slice_t *name);

    /* Takes a scalar; strings are views of r->string. */
    inf_err_t *(*scalar)(inf_message_reader_t *r,
        const ProtobufCFieldDescriptor *f, inf_scalar_t *v);

    /* The same from a map's key.  NULL: maps are lists of entries. */
    inf_err_t *(*key)(inf_message_reader_t *r,
        const ProtobufCFieldDescriptor *f, inf_slice_t name, size_t at,
        inf_scalar_t *v);

    const char *object;         /* what a message begins with, for errors    */
    const char *verb;           /* of a oneof's member                       */
    const char *too_deep;       /* the error about INF_MESSAGE_DEPTH         */
    bool        json;           /* the root has braces and members commas,
                                   one more may stand at an end, null unsets,
                                   the last of a name given twice counts,
                                   names may be lowerCamelCase               */
} inf_message_syntax_t;

/* The key that is looked for while a text is read. */
typedef struct {
    inf_slice_t  rest;          /* of it, from here on; data NULL: not here  */
    unsigned     fields;        /* of it, entered so far                     */
    unsigned     best;          /* as many led to the place                  */
    size_t       place;
} inf_message_seek_t;

struct inf_message_reader_s {
    const inf_message_syntax_t  *syntax;
    const char                  *file;      /* NULL: errors tell the offset  */
    inf_slice_t                  text;
    size_t                       next;
    inf_token_t                  token;     /* the one to be looked at       */
    const char                  *reason;
    inf_path_t                   path;
    inf_buf_t                    string;    /* the string or key last taken  */
    unsigned                     depth;
    inf_message_seek_t           seek;
};

/* r has syntax, file, text and what is sought; the rest is zero. */
INF_CHECK inf_err_t *inf_message_read(inf_message_reader_t *r,
    const ProtobufCMessageDescriptor *desc, ProtobufCMessage **out);

/* ---- for the syntaxes ---- */

/* Moves to the next token; stays on BAD. */
void inf_reader_next(inf_message_reader_t *r);

/* Takes the symbol c if the reader stands on it. */
bool inf_reader_take(inf_message_reader_t *r, char c);

/* The error about the token that stands where `what` should, about a value
   that was read at `at`, and about anything else there. */
INF_CHECK inf_err_t *inf_reader_expected(const inf_message_reader_t *r,
    const char *what);
INF_CHECK inf_err_t *inf_reader_bad_value(const inf_message_reader_t *r,
    size_t at, const char *what, inf_slice_t value);
INF_CHECK inf_err_t *inf_reader_bad(const inf_message_reader_t *r, size_t at,
    const char *what);

#endif /* INF_PROTO_MESSAGE_READER_H */
