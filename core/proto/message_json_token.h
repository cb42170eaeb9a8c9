/*
 * message_json_token.h - cuts lenient JSON into tokens.
 *
 * Owner    The caller's memory: init, next.  A token is a view of the text.
 * Thread   one at a time.
 * Units    offsets are bytes from the text's first.
 * Errors   A token of kind BAD carries the reason in tokens.reason.
 * Route    message_json_reader.c alone.
 */

#ifndef INF_PROTO_MESSAGE_JSON_TOKEN_H
#define INF_PROTO_MESSAGE_JSON_TOKEN_H

#include "core/base/buf.h"
#include "core/base/slice.h"

typedef enum {
    INF_JTOKEN_END,
    INF_JTOKEN_STRING,      /* with its quotes, escapes as written           */
    INF_JTOKEN_NUMBER,
    INF_JTOKEN_WORD,        /* true, false, null, a bare key                 */
    INF_JTOKEN_SYMBOL,      /* one of {}[]:,                                 */
    INF_JTOKEN_BAD
} inf_jtoken_kind_t;

typedef struct {
    inf_slice_t        text;        /* the whole document                    */
    size_t             at;
    inf_jtoken_kind_t  kind;        /* of the token to be looked at          */
    inf_slice_t        token;
    const char        *reason;
} inf_jtokens_t;

/* Stands on the first token. */
void inf_jtokens_init(inf_jtokens_t *t, inf_slice_t text);

/* Moves to the next token; stays on END and BAD. */
void inf_jtokens_next(inf_jtokens_t *t);

size_t inf_jtokens_offset(const inf_jtokens_t *t);

/* Appends what a STRING token means. */
void inf_jtoken_unescape(inf_slice_t token, inf_buf_t *out);

#endif /* INF_PROTO_MESSAGE_JSON_TOKEN_H */
