/*
 * base64.h - bytes from base64 as clients send them in JSON.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   a character that is none of base64's; out holds rubbish then.
 * Route    REST bodies with files -> [base64]
 */

#ifndef INF_PROTO_BASE64_H
#define INF_PROTO_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/slice.h"

/* Room that is enough for the bytes of len characters. */
static inline size_t
inf_base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* Blanks and line ends are skipped, padding may be missing. */
bool inf_base64_decode(inf_slice_t text, uint8_t *out, size_t *len);

#endif /* INF_PROTO_BASE64_H */
