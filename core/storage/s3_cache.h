/*
 * s3_cache.h - fetched objects on disk: one file each, hard links in the
 *              directories that models are loaded from.
 *
 * Owner    The storage owns the cache; a directory belongs to its holder until
 *          release.
 * Thread   any.
 * Units    bytes.
 * Errors   INTERNAL names the path and what the system said.
 * Route    S3 storage -> [cache] -> S3 client
 *
 * It lies in TRITON_AWS_MOUNT_DIRECTORY or /tmp, in a directory that only this
 * user may enter.  An object is fetched once per ETag, also over restarts of
 * the core; what no model uses goes, oldest first, beyond 8 GiB.  Directories
 * of a process that died go when the next one opens the cache.
 */

#ifndef INF_STORAGE_S3_CACHE_H
#define INF_STORAGE_S3_CACHE_H

#include "core/base/error.h"
#include "core/storage/s3_client.h"

typedef struct inf_s3_cache_s inf_s3_cache_t;

/* Nothing is made on disk yet. */
INF_CHECK inf_err_t *inf_s3_cache_new(inf_s3_cache_t **out);
void inf_s3_cache_free(inf_s3_cache_t *cache);

/*
 * A new directory with the objects of listing, each under its key without the
 * first skip bytes, fetched where the cache lacks them.
 */
INF_CHECK inf_err_t *inf_s3_cache_directory(inf_s3_cache_t *cache,
    inf_s3_client_t *client, const inf_s3_listing_t *listing, size_t skip,
    char **directory);

/* Removes the directory and frees its name. */
void inf_s3_cache_release(inf_s3_cache_t *cache, char *directory);

#endif /* INF_STORAGE_S3_CACHE_H */
