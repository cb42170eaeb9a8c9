/*
 * buf.h - a byte buffer that grows.
 *
 * Owner    The caller's memory: init, use, fini.  inf_buf_give passes the
 *          bytes (malloc'ed, NUL-terminated) to the caller and leaves the
 *          buffer empty.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   A failed growth sets b->failed, and later appends do nothing; check
 *          once with inf_buf_status at the end.
 * Route    writers of text: JSON, metrics, messages -> [buffer]
 */

#ifndef INF_BASE_BUF_H
#define INF_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

typedef struct {
    char   *data;       /* NUL-terminated after the first append           */
    size_t  len;
    size_t  cap;
    bool    failed;
    bool    fixed;      /* data is the caller's and does not grow          */
} inf_buf_t;

/* The first append allocates memory. */
void inf_buf_init(inf_buf_t *b);
void inf_buf_fini(inf_buf_t *b);

/* Uses the caller's memory of cap bytes; without fini. */
void inf_buf_init_fixed(inf_buf_t *b, char *data, size_t cap);

/* Empties b and keeps its memory. */
void inf_buf_reset(inf_buf_t *b);

/* Makes room for n more bytes; false, with b->failed set: no memory. */
bool inf_buf_reserve(inf_buf_t *b, size_t n);

/* Append; without memory b->failed is set and nothing is appended. */
void inf_buf_put(inf_buf_t *b, const void *data, size_t len);
void inf_buf_puts(inf_buf_t *b, const char *s);
void inf_buf_putc(inf_buf_t *b, char c);
void inf_buf_printf(inf_buf_t *b, const char *fmt, ...) INF_PRINTF(2, 3);

/* NULL, or the out-of-memory error if any append failed. */
INF_CHECK inf_err_t *inf_buf_status(const inf_buf_t *b);

/* The bytes, to be freed with free(); "" if nothing was appended. */
char *inf_buf_give(inf_buf_t *b, size_t *len);

static inline inf_slice_t
inf_buf_slice(const inf_buf_t *b)
{
    return inf_slice(b->data != NULL ? b->data : "", b->len);
}

#endif /* INF_BASE_BUF_H */
