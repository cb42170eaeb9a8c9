/*
 * object_cache.h - a cache of fetched objects on disk: one file each, with hard
 *              links in the directories that models are loaded from.
 *
 * Owner    The storage owns the cache; a directory belongs to its holder until
 *          release.
 * Thread   any.
 * Units    bytes.
 * Errors   INTERNAL, with the path and the system's reason.  INVALID_ARG: an
 *          object was replaced, or left the cache, meanwhile: list again.
 * Route    object storage -> [cache] -> object client
 *
 * The cache is in the service's mount directory or /tmp, in a directory that
 * only this user may enter.  An object is fetched once per ETag, also across
 * restarts of the core; beyond 8 GiB unused objects are removed, oldest first.
 * Directories of an ended process are removed when the next one opens the
 * cache.
 */

#ifndef INF_STORAGE_OBJECT_CACHE_H
#define INF_STORAGE_OBJECT_CACHE_H

#include "core/base/error.h"
#include "core/storage/object_client.h"

typedef struct inf_object_cache_s inf_object_cache_t;

/* Creates nothing on disk yet. */
INF_CHECK inf_err_t *inf_object_cache_new(
    const inf_object_service_t *service, inf_object_cache_t **out);
void inf_object_cache_free(inf_object_cache_t *cache);

/*
 * Creates a directory with the objects of listing, each under its key without
 * the first skip bytes, fetching those that the cache lacks.
 */
INF_CHECK inf_err_t *inf_object_cache_directory(inf_object_cache_t *cache,
    inf_object_client_t *client, const inf_object_listing_t *listing,
    size_t skip, char **directory);

/* Removes the directory and frees its name. */
void inf_object_cache_release(inf_object_cache_t *cache, char *directory);

#endif /* INF_STORAGE_OBJECT_CACHE_H */
