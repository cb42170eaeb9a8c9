/*
 * bytes.h - BYTES tensors as they come and go: one element after the other.
 *
 * Owner    what a reader gives is the buffer's.
 * Thread   one reader, one thread.
 * Units    An element is its length (4 bytes, little endian) and that many
 *          bytes; they may hold anything, zeros included.
 * Errors   INVALID_ARG: lengths don't add up to the elements of the shape.
 * Route    batch -> [bytes] -> the runtime, and back
 */

#ifndef BK_BYTES_H
#define BK_BYTES_H

#include "error.h"

#include <stddef.h>

#define BK_BYTES_PREFIX 4u

typedef struct {
    const unsigned char *at;
    uint64_t             left;
    uint64_t             index;         /* of the next element               */
    uint64_t             elements;
    const char          *what;          /* "input", "output": for errors     */
    const char          *name;          /* of the tensor                     */
} bk_bytes_t;

/* Rejects fewer bytes than so many elements need, before a runtime makes room
 * for elements that nobody sent. */
BK_CHECK TRITONSERVER_Error *bk_bytes_open(bk_bytes_t *b, const char *what,
    const char *name, const void *data, uint64_t len_bytes, uint64_t elements);

/* The next of the elements; fails where it, or what is behind the last, does
 * not fit. */
BK_CHECK TRITONSERVER_Error *bk_bytes_next(bk_bytes_t *b, const char **text,
    uint32_t *len);

/* Writes the length of an element; its bytes go behind it. */
void bk_bytes_put_len(void *to, uint32_t len);

#endif /* BK_BYTES_H */
