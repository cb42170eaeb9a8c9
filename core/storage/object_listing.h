/*
 * object_listing.h - the objects that a service lists.
 *
 * Owner    The caller's memory: init, add, fini.
 * Thread   one at a time.
 * Units    bytes; ns since 1970.
 * Errors   none but a lack of memory.
 * Route    readers of pages -> [listing] -> object client, storage
 */

#ifndef INF_STORAGE_OBJECT_LISTING_H
#define INF_STORAGE_OBJECT_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/error.h"

#define INF_OBJECT_KEY_MAX 1024u    /* limit of the services                 */

typedef struct {
    char     *key;          /* of an object, or a prefix that ends in '/'    */
    char     *etag;         /* without quotes; NULL: a prefix                */
    uint64_t  size;
    int64_t   modified_ns;
} inf_object_t;

typedef struct {
    inf_object_t *items;            /* in the order of the pages             */
    size_t        count;
    size_t        capacity;
    char         *next;             /* continuation token; NULL: the end     */
} inf_object_listing_t;

/* Whether it is a prefix, or a directory's mark without content. */
static inline bool
inf_object_is_directory(const inf_object_t *o)
{
    size_t len = strlen(o->key);
    return len > 0 && o->key[len - 1] == '/';
}

/* init: an empty listing; fini frees the entries and empties it. */
void inf_object_listing_init(inf_object_listing_t *l);
void inf_object_listing_fini(inf_object_listing_t *l);

/* Takes the object's texts and leaves it empty.  false: no memory. */
bool inf_object_listing_take(inf_object_listing_t *l, inf_object_t *o);

/* Removes the entries from count on. */
void inf_object_listing_cut(inf_object_listing_t *l, size_t count);

/* Frees the object's texts and empties it. */
void inf_object_fini(inf_object_t *o);

#endif /* INF_STORAGE_OBJECT_LISTING_H */
