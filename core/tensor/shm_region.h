/*
 * shm_region.h - the shared memory regions that clients have registered, of
 *                both kinds: names for memory that tensors lie in.
 *
 * Owner    A server has one set.  A registered region is the set's, and that
 *          of each request that uses it (references): one that is
 *          unregistered is unmapped when the last of them has ended.
 * Thread   any.  The set has one lock, held for a search; registering waits
 *          for the kernel or a driver, and holds no lock then.
 * Units    bytes.
 * Errors   register: as shm_object.h; ALREADY_EXISTS, the name is taken;
 *          UNSUPPORTED, regions are off; UNAVAILABLE, there are too many, or
 *          too many bytes in them; INVALID_ARG, there never may be as many.
 *          find, list: NOT_FOUND, INVALID_ARG for a range; find:
 *          UNAVAILABLE, it may still be restored.
 * Route    server's calls -> [regions] <- infer
 *
 * The client may write to a region at any time, also while it is read here:
 * what is checked must be copied first (model/private_inputs.h).
 */

#ifndef INF_TENSOR_SHM_REGION_H
#define INF_TENSOR_SHM_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/budget.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/tensor/cuda_driver.h"
#include "core/tensor/shm_object.h"
#include "core/tensor/sink.h"

#define INF_SHM_REGIONS_MAX  4096u
#define INF_SHM_NAME_MAX     1024u

typedef struct inf_shm_regions_s inf_shm_regions_t;

typedef enum {
    INF_SHM_SYSTEM,
    INF_SHM_CUDA
} inf_shm_kind_t;

/* Nothing of it changes after it was registered. */
typedef struct {
    _Atomic uint32_t   refs;            /* up relaxed, down acq_rel          */
    inf_shm_kind_t     kind;
    char              *name;
    char              *key;             /* SYSTEM                            */
    uint64_t           offset;          /* SYSTEM: in the object             */
    int64_t            device;          /* CUDA                              */
    uint64_t           byte_size;
    char              *base;            /* of the region's first byte        */
    inf_shm_object_t   object;          /* SYSTEM                            */
    inf_budget_t      *budget;          /* SYSTEM: of its pages; NULL: they
                                           are not counted                   */
    uint8_t            handle[INF_CUDA_IPC_SIZE];   /* CUDA                  */
} inf_shm_region_t;

/* A set without regions, which is off. */
INF_CHECK inf_err_t *inf_shm_regions_new(inf_shm_regions_t **out);

/* Unregisters everything; nobody may use a region any more.  set may be
   NULL. */
void inf_shm_regions_free(inf_shm_regions_t *set);

/* Whether regions of another core are still to be restored: requests for one
   that is not there are told to come again then (INF_CAUSE_STARTING). */
void inf_shm_regions_set_restoring(inf_shm_regions_t *set, bool restoring);

/* Off: unregisters all regions, and rejects registrations from then on. */
void inf_shm_regions_switch(inf_shm_regions_t *set, bool on);
bool inf_shm_regions_are_on(inf_shm_regions_t *set);

/* Of the pages of all system regions until they are unmapped, and of copies of
   inputs in regions; regions that are there stay.  A new set has no bounds. */
void inf_shm_regions_bound(inf_shm_regions_t *set, uint64_t region_bytes,
    uint64_t copy_bytes);

/* Bytes of system regions, for the metrics. */
uint64_t inf_shm_regions_bytes(const inf_shm_regions_t *set);

/* For inf_request_t. */
inf_budget_t *inf_shm_regions_copies(inf_shm_regions_t *set);

/* key: of a POSIX shared memory object. */
INF_CHECK inf_err_t *inf_shm_register_system(inf_shm_regions_t *set,
    const char *name, const char *key, uint64_t offset, uint64_t byte_size);

/* As it was registered with another core: the object must be the same. */
INF_CHECK inf_err_t *inf_shm_restore_system(inf_shm_regions_t *set,
    const char *name, const char *key, uint64_t offset, uint64_t byte_size,
    const inf_shm_identity_t *identity);

/* handle: of another process's GPU memory, INF_CUDA_IPC_SIZE bytes. */
INF_CHECK inf_err_t *inf_shm_register_cuda(inf_shm_regions_t *set,
    const char *name, inf_slice_t handle, int64_t device, uint64_t byte_size);

/* name "": all of that kind.  One that is not there is no error. */
void inf_shm_unregister(inf_shm_regions_t *set, inf_shm_kind_t kind,
    const char *name);

/* A region with the bytes [offset, offset + size): a reference. */
INF_CHECK inf_err_t *inf_shm_region_find(inf_shm_regions_t *set,
    inf_slice_t name, uint64_t offset, uint64_t size, inf_shm_region_t **out);
void inf_shm_region_unref(inf_shm_region_t *region);

/* INVALID_ARG: the client has taken away the memory while it was used. */
INF_CHECK inf_err_t *inf_shm_region_check(const inf_shm_region_t *region);

/* Where tensors of the region lie, for the memory manager. */
static inline inf_memory_type_t
inf_shm_region_memory(const inf_shm_region_t *region)
{
    return region->kind == INF_SHM_CUDA ? INF_MEMORY_GPU : INF_MEMORY_CPU;
}

/* Those of that kind by name, with references; name "": all.  The list and
   its references are given back with list_free. */
INF_CHECK inf_err_t *inf_shm_regions_list(inf_shm_regions_t *set,
    inf_shm_kind_t kind, const char *name, inf_shm_region_t ***list,
    size_t *count);
void inf_shm_regions_list_free(inf_shm_region_t **list, size_t count);

#endif /* INF_TENSOR_SHM_REGION_H */
