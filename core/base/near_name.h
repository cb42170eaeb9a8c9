/*
 * near_name.h - finds the known name most similar to a misspelled one ("did
 *               you mean ...?").
 *
 * Owner    The caller's memory; best is one of the offered names, not copied.
 * Thread   one at a time.
 * Units    bytes of a name, ignoring case, '_' and '-'.
 * Errors   none: a name of more than INF_NEAR_NAME_MAX bytes has no similar
 *          one.
 * Route    message reader, check of nginx -t -> [near name]
 */

#ifndef INF_BASE_NEAR_NAME_H
#define INF_BASE_NEAR_NAME_H

#include <stddef.h>

#include "core/base/slice.h"

#define INF_NEAR_NAME_MAX 64u

typedef struct {
    const char *best;                   /* nearest so far; NULL: none is near */
    size_t      distance;               /* upper limit for a nearer name     */
    size_t      len;
    char        wanted[INF_NEAR_NAME_MAX];
} inf_near_name_t;

/* wanted is the misspelled name, which is copied. */
void inf_near_name_init(inf_near_name_t *n, inf_slice_t wanted);

/* known is a valid name. */
void inf_near_name_offer(inf_near_name_t *n, const char *known);

#endif /* INF_BASE_NEAR_NAME_H */
