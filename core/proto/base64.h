/*
 * base64.h - base64.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   false: a character is not base64; out is then undefined.
 * Route    REST bodies with files, JSON of messages, tokens -> [base64]
 */

#ifndef INF_PROTO_BASE64_H
#define INF_PROTO_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/slice.h"

/* Size of a buffer that is large enough for len characters. */
static inline size_t
inf_base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* Decodes text; blanks and line ends are skipped, padding may be missing. */
bool inf_base64_decode(inf_slice_t text, uint8_t *out, size_t *len);

/* Append bytes; url: RFC 4648's alphabet for URLs, without padding. */
void inf_base64_put(inf_buf_t *out, inf_slice_t bytes);
void inf_base64_put_url(inf_buf_t *out, inf_slice_t bytes);

#endif /* INF_PROTO_BASE64_H */
