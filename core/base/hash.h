/*
 * hash.h - a 64-bit hash of bytes for tables of names (FNV-1a, finished).
 *
 * Owner    none.
 * Thread   any.
 * Units    bytes.
 * Errors   none.  The hash is not for keys chosen by clients, only for names
 *          of loaded models.
 * Route    registry, tables of tensors.
 */

#ifndef INF_BASE_HASH_H
#define INF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t
inf_hash(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++) {
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    }

    h ^= h >> 32;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

#endif /* INF_BASE_HASH_H */
