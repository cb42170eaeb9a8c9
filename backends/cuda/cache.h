/*
 * cache.h - compiled code in a directory, by a hash of all it was made from.
 *
 * Owner    the caller's struct owns the directory's descriptor until
 *          gpu_cache_close; code that is read is the caller's, for free().
 * Thread   open and close: one; then any, in any number of processes.
 * Units    bytes.
 * Errors   none: a directory that others could write to is not used, a file
 *          that is not whole or not ours is as none, and one that cannot be
 *          written is left out.  A log line says so.
 * Route    image -> [cache] -> files
 */

#ifndef GPU_CACHE_H
#define GPU_CACHE_H

#include "common/error.h"

#define GPU_KEY_BYTES 32

typedef struct {
    int directory;                      /* -1: nothing is kept               */
} gpu_cache_t;

typedef struct {
    unsigned char bytes[GPU_KEY_BYTES];
} gpu_key_t;

/* One of the parts that a key is made of. */
typedef struct {
    const void *data;
    size_t      len;
} gpu_key_part_t;

/* path NULL: a directory of the user's own in /var/tmp.  Files of processes
 * that died while writing are removed; open and write keep the 1024 files
 * that were used last. */
void gpu_cache_open(gpu_cache_t *c, const char *path);
void gpu_cache_close(gpu_cache_t *c);

/* A hash of the parts and their lengths; false: the library of hashes
 * failed. */
bool gpu_key_make(gpu_key_t *key, const gpu_key_part_t *parts, size_t count);

/* Whether the code is there; *len does not count the zero behind it. */
bool gpu_cache_read(const gpu_cache_t *c, const gpu_key_t *key, char **code,
    size_t *len);
void gpu_cache_write(const gpu_cache_t *c, const gpu_key_t *key,
    const char *code, size_t len);

#endif /* GPU_CACHE_H */
