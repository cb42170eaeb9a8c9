/*
 * message_path.h - the position of a codec in a message or text, for its
 *                  errors.
 *
 * Owner    The caller's memory; {0} is the empty path.
 * Thread   one at a time.
 * Units    none.
 * Errors   A path that is too long is truncated.
 * Route    Codecs push on entry and pop on exit; error texts contain
 *          inf_path_text().
 */

#ifndef INF_PROTO_MESSAGE_PATH_H
#define INF_PROTO_MESSAGE_PATH_H

#include <stddef.h>

#include "core/base/slice.h"

typedef struct {
    char    text[240];      /* NUL-terminated, "input[0].dims"              */
    size_t  len;
} inf_path_t;

/* push returns a mark, to which pop returns. */
size_t inf_path_push(inf_path_t *p, inf_slice_t name);
size_t inf_path_push_index(inf_path_t *p, size_t index);
size_t inf_path_push_key(inf_path_t *p, inf_slice_t key);
void inf_path_pop(inf_path_t *p, size_t mark);

/* The path, and the separator before a reason: ": ", or "" at the top. */
const char *inf_path_text(const inf_path_t *p);
const char *inf_path_colon(const inf_path_t *p);

#define INF_PATH_SHOWN 48

/* src in a form for errors and log lines: at most 40 bytes, printable; dst has
   at least INF_PATH_SHOWN bytes and is returned. */
const char *inf_path_show(char *dst, inf_slice_t src);

/* Line and column of an offset in text, both from 1. */
void inf_path_position(inf_slice_t text, size_t at, size_t *line,
    size_t *column);

#endif /* INF_PROTO_MESSAGE_PATH_H */
