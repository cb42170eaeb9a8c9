/*
 * bytes.h - reads and writes BYTES tensors, element by element.
 *
 * Owner    Elements point into the caller's buffer.
 * Thread   one reader, one thread.
 * Units    An element is its length (4 bytes, little endian) and that many
 *          bytes of any value.
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

/* Fails if len_bytes is too small for the number of elements: a runtime then
 * allocates nothing for them. */
BK_CHECK TRITONSERVER_Error *bk_bytes_open(bk_bytes_t *b, const char *what,
    const char *name, const void *data, uint64_t len_bytes, uint64_t elements);

/* Reads the next element.  Fails if its bytes end behind the buffer, or if
 * bytes follow the last element. */
BK_CHECK TRITONSERVER_Error *bk_bytes_next(bk_bytes_t *b, const char **text,
    uint32_t *len);

/* Writes the length of an element, which its bytes follow. */
void bk_bytes_put_len(void *to, uint32_t len);

#endif /* BK_BYTES_H */
