/*
 * message_path.h - where in a message or text a codec stands, for its errors.
 *
 * Owner    the caller's memory; {0} is the empty path.
 * Thread   one at a time.
 * Units    none.
 * Errors   A path too long for its room is cut, never overrun.
 * Route    codecs push what they enter and pop what they leave; an error
 *          text takes inf_path_text().
 */

#ifndef INF_PROTO_MESSAGE_PATH_H
#define INF_PROTO_MESSAGE_PATH_H

#include <stddef.h>

#include "core/base/slice.h"

typedef struct {
    char    text[240];      /* NUL-terminated, "input[0].dims"              */
    size_t  len;
} inf_path_t;

/* Each push gives the mark that pop takes back. */
size_t inf_path_push(inf_path_t *p, inf_slice_t name);
size_t inf_path_push_index(inf_path_t *p, size_t index);
size_t inf_path_push_key(inf_path_t *p, inf_slice_t key);
void inf_path_pop(inf_path_t *p, size_t mark);

/* The path, and what stands between it and a reason: ": ", "" at the top. */
const char *inf_path_text(const inf_path_t *p);
const char *inf_path_colon(const inf_path_t *p);

#define INF_PATH_SHOWN 48

/* src as it may stand in an error or log line: at most 40 bytes, printable;
   dst takes at least INF_PATH_SHOWN bytes and is returned. */
const char *inf_path_show(char *dst, inf_slice_t src);

/* Line and column of an offset in text, both from 1. */
void inf_path_position(inf_slice_t text, size_t at, size_t *line,
    size_t *column);

#endif /* INF_PROTO_MESSAGE_PATH_H */
