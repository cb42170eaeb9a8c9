/*
 * cache.h - compiled code in a directory, by a hash of all its sources.
 *
 * Owner    The caller's struct owns the directory's descriptor until
 *          gpu_cache_close; the caller frees code with free().
 * Thread   open and close: one; then any, in any number of processes.
 * Units    bytes.
 * Errors   none.  A directory that other users can write to is not used, a
 *          truncated or foreign file counts as missing, and a file that cannot
 *          be written is omitted; each is logged.
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

/* A part of the hashed data. */
typedef struct {
    const void *data;
    size_t      len;
} gpu_key_part_t;

/* path NULL: a private directory in /var/tmp.  open removes files that dead
 * processes have not completed; open and write keep the 1024 most recently
 * used files. */
void gpu_cache_open(gpu_cache_t *c, const char *path);
void gpu_cache_close(gpu_cache_t *c);

/* Hashes the parts and their lengths; false: the hash library failed. */
bool gpu_key_make(gpu_key_t *key, const gpu_key_part_t *parts, size_t count);

/* Reads the code; false: it is missing.  *len does not count its final zero.
 * write stores it. */
bool gpu_cache_read(const gpu_cache_t *c, const gpu_key_t *key, char **code,
    size_t *len);
void gpu_cache_write(const gpu_cache_t *c, const gpu_key_t *key,
    const char *code, size_t len);

#endif /* GPU_CACHE_H */
