/*
 * shm_object.h - maps a part of a POSIX shared memory object named by a
 *                client, and checks its name and range.
 *
 * Owner    The caller owns the mapping and ends it by close.
 * Thread   any that may wait for the kernel.
 * Units    bytes.
 * Errors   INVALID_ARG: key, range or object is not allowed for clients, or
 *          the object differs from known.  INTERNAL: there is no such object,
 *          or it cannot be mapped.  UNAVAILABLE: too many mappings.
 * Route    shm_region -> [shm object] -> kernel
 *
 * Clients are not trusted, and the server's own shared memory has names too:
 * names used by the server's processes are rejected, as are other names of an
 * object that this process has mapped for itself.
 */

#ifndef INF_TENSOR_SHM_OBJECT_H
#define INF_TENSOR_SHM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

/* Distinguishes objects of the same name. */
typedef struct {
    uint64_t device;
    uint64_t inode;
    uint32_t owner;             /* user id                                   */
} inf_shm_identity_t;

typedef struct {
    void     *base;
    uint64_t  size;
    uint32_t  fault;            /* place in the table of shm_fault           */
    inf_shm_identity_t identity;
} inf_shm_object_t;

/* Maps the range readable and writable.  name: of the region, for errors.
   known: the object that key must name, which a previous core accepted as a
   client's; NULL: any object of clients. */
INF_CHECK inf_err_t *inf_shm_object_open(const char *name, const char *key,
    uint64_t offset, uint64_t size, const inf_shm_identity_t *known,
    inf_shm_object_t *out);

/* Unmaps the memory, which must not be in use. */
void inf_shm_object_close(inf_shm_object_t *o);

/* Whether the client has truncated the object and a missing part was
   accessed. */
bool inf_shm_object_is_broken(const inf_shm_object_t *o);

#endif /* INF_TENSOR_SHM_OBJECT_H */
