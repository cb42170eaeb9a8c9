/*
 * shm_object.h - a part of a POSIX shared memory object that a client names,
 *                mapped: what may be named, and what is checked.
 *
 * Owner    The caller gets a mapping and gives it back with close.
 * Thread   any that may wait for the kernel.
 * Units    bytes.
 * Errors   INVALID_ARG: the key, the range or the object are none for clients,
 *          or the object is not the one that was asked for.  INTERNAL: there
 *          is no such object, or it can't be mapped.  UNAVAILABLE: too many are
 *          mapped.
 * Route    shm_region -> [shm object] -> kernel
 *
 * Clients are not trusted, and the server's own shared memory has names, too:
 * names that the server's processes use are no keys, and neither is
 * another name of an object that this process has mapped for itself.
 */

#ifndef INF_TENSOR_SHM_OBJECT_H
#define INF_TENSOR_SHM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

/* Tells an object from any other of that name. */
typedef struct {
    uint64_t device;
    uint64_t inode;
    uint32_t owner;             /* a user                                    */
} inf_shm_identity_t;

typedef struct {
    void     *base;
    uint64_t  size;
    uint32_t  fault;            /* place in shm_fault's table                */
    inf_shm_identity_t identity;
} inf_shm_object_t;

/* name: the region's, for errors.  Readable and writable.  known: what must be
   behind the key, an object that was opened once before, by a core that has
   found that it is a client's; NULL: any object of clients. */
INF_CHECK inf_err_t *inf_shm_object_open(const char *name, const char *key,
    uint64_t offset, uint64_t size, const inf_shm_identity_t *known,
    inf_shm_object_t *out);

/* Unmaps it; nobody may use the memory any more. */
void inf_shm_object_close(inf_shm_object_t *o);

/* The client has made the object shorter, and somebody has used what is
   missing now. */
bool inf_shm_object_is_broken(const inf_shm_object_t *o);

#endif /* INF_TENSOR_SHM_OBJECT_H */
