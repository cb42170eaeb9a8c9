/*
 * text_format_token.h - splits the text format into tokens.
 *
 * Owner    The caller's memory.  A token is a view of the text.
 * Thread   any.
 * Units    offsets are bytes from the text's first.
 * Errors   A token of kind BAD: *reason is the cause.
 * Route    text_format.c alone.
 */

#ifndef INF_PROTO_TEXT_FORMAT_TOKEN_H
#define INF_PROTO_TEXT_FORMAT_TOKEN_H

#include "core/base/buf.h"
#include "core/base/slice.h"
#include "core/proto/message_reader.h"

/* Returns the token at *at and moves *at past it.  Integers are decimal, 0x
   hexadecimal or 0 octal; a real may end in f. */
inf_token_t inf_text_token(inf_slice_t text, size_t *at, const char **reason);

/* Appends the unescaped bytes of a STRING token, whose escapes the lexer has
   checked. */
void inf_token_unescape(inf_slice_t token, inf_buf_t *out);

/* The value of an INTEGER token; false above UINT64_MAX. */
bool inf_token_integer(inf_slice_t token, uint64_t *out);

#endif /* INF_PROTO_TEXT_FORMAT_TOKEN_H */
