/*
 * slice.h - bytes by pointer and length, not necessarily NUL-terminated.
 *
 * Owner    The owner of the bytes; a slice is a view.
 * Thread   that of the bytes.
 * Units    bytes.
 * Errors   none.
 * Route    names and texts as arguments and results of functions.
 */

#ifndef INF_BASE_SLICE_H
#define INF_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    const char *data;
    size_t      len;
} inf_slice_t;

/* The slice of a literal. */
#define INF_SLICE(s) ((inf_slice_t) { (s), sizeof(s) - 1 })

static inline inf_slice_t
inf_slice(const char *data, size_t len)
{
    return (inf_slice_t) { data, len };
}

static inline inf_slice_t
inf_slice_str(const char *s)
{
    return (inf_slice_t) { s, s != NULL ? strlen(s) : 0 };
}

static inline bool
inf_slice_eq(inf_slice_t a, inf_slice_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif /* INF_BASE_SLICE_H */
