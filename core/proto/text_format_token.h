/*
 * text_format_token.h - cuts the text format into tokens.
 *
 * Owner    The caller's memory: init, next.  A token is a view of the text.
 * Thread   one at a time.
 * Units    lines and columns count from 1, columns are bytes.
 * Errors   A token of kind BAD carries the reason in lexer.reason.
 * Route    text_format.c alone.
 */

#ifndef INF_PROTO_TEXT_FORMAT_TOKEN_H
#define INF_PROTO_TEXT_FORMAT_TOKEN_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"

typedef enum {
    INF_TOKEN_END,
    INF_TOKEN_NAME,
    INF_TOKEN_INTEGER,      /* decimal, 0x hexadecimal, 0 octal              */
    INF_TOKEN_FLOAT,        /* may end in f                                  */
    INF_TOKEN_STRING,       /* with its quotes, escapes as written           */
    INF_TOKEN_SYMBOL,       /* one character                                 */
    INF_TOKEN_BAD
} inf_token_kind_t;

typedef struct {
    inf_token_kind_t  kind;
    inf_slice_t       text;
    size_t            line;
    size_t            column;
} inf_token_t;

typedef struct {
    inf_slice_t   text;
    size_t        at;
    size_t        line;
    size_t        line_start;
    inf_token_t   token;        /* the one to be looked at                   */
    const char   *reason;
} inf_lexer_t;

/* Stands on the first token. */
void inf_lexer_init(inf_lexer_t *l, inf_slice_t text);

/* Moves to the next token; stays on END and BAD. */
void inf_lexer_next(inf_lexer_t *l);

/* Appends the bytes that a STRING token means.  The token was accepted by
   the lexer, so every escape is complete. */
void inf_token_unescape(inf_slice_t token, inf_buf_t *out);

/* The value of an INTEGER token; false above UINT64_MAX. */
bool inf_token_integer(inf_slice_t token, uint64_t *out);

#endif /* INF_PROTO_TEXT_FORMAT_TOKEN_H */
