/*
 * message_reader.h - fills a message from a text, by descriptor: the common
 *                    part of the text format and the JSON form.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   any.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG: "<file>:<line>:<column>: <field>: <what is wrong>", or
 *          without a file "<field>: <what is wrong> at byte <offset>".
 * Route    text format, JSON -> [reader] -> message_field.h
 *
 * A syntax splits the text into tokens and converts them to names and scalars.
 * Fields, lists, maps, oneofs, duplicates and error positions are handled here
 * for all syntaxes.
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
    INF_TOKEN_STRING,           /* with its quotes, not unescaped            */
    INF_TOKEN_SYMBOL,           /* one character                             */
    INF_TOKEN_BAD               /* reader.reason is the cause                */
} inf_token_kind_t;

typedef struct {
    inf_token_kind_t  kind;
    inf_slice_t       text;
    size_t            at;       /* its start; BAD: position of the fault     */
} inf_token_t;

typedef struct inf_message_reader_s inf_message_reader_t;

typedef struct {
    /* Returns the token at r->next and moves r->next past it. */
    inf_token_t (*next)(inf_message_reader_t *r);

    /* Takes a field's name and the symbol required between it and a value. */
    inf_err_t *(*name)(inf_message_reader_t *r, inf_slice_t *name);

    /* Takes a scalar; strings are views of r->string. */
    inf_err_t *(*scalar)(inf_message_reader_t *r,
        const ProtobufCFieldDescriptor *f, inf_scalar_t *v);

    /* Takes a map's key.  NULL: maps are lists of entries. */
    inf_err_t *(*key)(inf_message_reader_t *r,
        const ProtobufCFieldDescriptor *f, inf_slice_t name, size_t at,
        inf_scalar_t *v);

    const char *object;         /* first symbol of a message, for errors     */
    const char *verb;           /* for errors about a member of a oneof      */
    const char *too_deep;       /* error text for INF_MESSAGE_DEPTH          */
    bool        json;           /* the root has braces and members commas, one
                                   may trail, null unsets, the last of duplicate
                                   names counts, names may be lowerCamelCase */
} inf_message_syntax_t;

/* A key searched for while a text is read. */
typedef struct {
    inf_slice_t  rest;          /* rest of the key from here on; data NULL: not
                                   on its path                               */
    unsigned     fields;        /* number of its fields entered so far       */
    unsigned     best;          /* highest fields with a position            */
    size_t       place;
} inf_message_seek_t;

struct inf_message_reader_s {
    const inf_message_syntax_t  *syntax;
    const char                  *file;      /* NULL: errors have the offset  */
    inf_slice_t                  text;
    size_t                       next;
    inf_token_t                  token;     /* current token                 */
    const char                  *reason;
    inf_path_t                   path;
    inf_buf_t                    string;    /* last string or key taken      */
    unsigned                     depth;
    inf_message_seek_t           seek;
};

/* r has syntax, file, text and optionally a key to seek; the rest is zero. */
INF_CHECK inf_err_t *inf_message_read(inf_message_reader_t *r,
    const ProtobufCMessageDescriptor *desc, ProtobufCMessage **out);

/* ---- for the syntaxes ---- */

/* Moves to the next token; stays on BAD. */
void inf_reader_next(inf_message_reader_t *r);

/* Takes the symbol c if it is the current token. */
bool inf_reader_take(inf_message_reader_t *r, char c);

/* Errors: the current token instead of `what`, an invalid value read at `at`,
   and any other fault there. */
INF_CHECK inf_err_t *inf_reader_expected(const inf_message_reader_t *r,
    const char *what);
INF_CHECK inf_err_t *inf_reader_bad_value(const inf_message_reader_t *r,
    size_t at, const char *what, inf_slice_t value);
INF_CHECK inf_err_t *inf_reader_bad(const inf_message_reader_t *r, size_t at,
    const char *what);

#endif /* INF_PROTO_MESSAGE_READER_H */
