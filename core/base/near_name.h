/*
 * near_name.h - of names that are known, the one that a mistyped name is most
 *               like ("did you mean ...?").
 *
 * Owner    The caller; best is one of the names offered, and lives as long.
 * Thread   one at a time.
 * Units    bytes of a name without case, '_' and '-', which people mix up.
 * Errors   none: a name of more than INF_NEAR_NAME_MAX bytes is like no other.
 * Route    message reader, check of nginx -t -> [near name]
 */

#ifndef INF_BASE_NEAR_NAME_H
#define INF_BASE_NEAR_NAME_H

#include <stddef.h>

#include "core/base/slice.h"

#define INF_NEAR_NAME_MAX 64u

typedef struct {
    const char *best;                   /* so far; NULL: none is near        */
    size_t      distance;               /* of a nearer one, at most          */
    size_t      len;
    char        wanted[INF_NEAR_NAME_MAX];
} inf_near_name_t;

/* wanted is the mistyped name; nothing is kept of it. */
void inf_near_name_init(inf_near_name_t *n, inf_slice_t wanted);

/* known is a name that would be right. */
void inf_near_name_offer(inf_near_name_t *n, const char *known);

#endif /* INF_BASE_NEAR_NAME_H */
