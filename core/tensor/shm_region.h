/*
 * shm_region.h - the shared memory regions registered by clients, system and
 *                CUDA: names for memory of tensors.
 *
 * Owner    A server has one set.  A registered region has a reference of the
 *          set and of each request that uses it: after being unregistered it
 *          is unmapped with the last reference.
 * Thread   any.  The set has one lock, held for searches; registering waits
 *          for the kernel or a driver without a lock.
 * Units    bytes.
 * Errors   register: as in shm_object.h; ALREADY_EXISTS, the name is taken;
 *          UNSUPPORTED, regions are off; UNAVAILABLE, too many regions or
 *          bytes; INVALID_ARG, larger than the limit.  find, list: NOT_FOUND,
 *          INVALID_ARG for a range; find: UNAVAILABLE, the region may still be
 *          restored.
 * Route    server's calls -> [regions] <- infer
 *
 * The client may write to a region at any time, also while it is read: data to
 * be checked must be copied first (model/private_inputs.h).
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

/* Constant after registration, except refs. */
typedef struct {
    _Atomic uint32_t   refs;            /* up relaxed, down acq_rel          */
    inf_shm_kind_t     kind;
    char              *name;
    char              *key;             /* SYSTEM                            */
    uint64_t           offset;          /* SYSTEM: in the object             */
    int64_t            device;          /* CUDA                              */
    uint64_t           byte_size;
    char              *base;            /* first byte of the region          */
    inf_shm_object_t   object;          /* SYSTEM                            */
    inf_budget_t      *budget;          /* SYSTEM: counts its pages; NULL: not
                                           counted                           */
    uint8_t            handle[INF_CUDA_IPC_SIZE];   /* CUDA                  */
} inf_shm_region_t;

/* Creates a set without regions, which is off. */
INF_CHECK inf_err_t *inf_shm_regions_new(inf_shm_regions_t **out);

/* Unregisters all regions, none of which may be in use.  set may be NULL. */
void inf_shm_regions_free(inf_shm_regions_t *set);

/* Sets whether regions of a previous core are still to be restored: requests
   for a missing region then fail with INF_CAUSE_STARTING. */
void inf_shm_regions_set_restoring(inf_shm_regions_t *set, bool restoring);

/* Off: unregisters all regions, and rejects registrations. */
void inf_shm_regions_switch(inf_shm_regions_t *set, bool on);
bool inf_shm_regions_are_on(inf_shm_regions_t *set);

/* Limits the pages of all system regions until they are unmapped, and the
   copies of inputs in regions; existing regions stay.  A new set has no
   limits. */
void inf_shm_regions_bound(inf_shm_regions_t *set, uint64_t region_bytes,
    uint64_t copy_bytes);

/* Bytes of system regions, for metrics. */
uint64_t inf_shm_regions_bytes(const inf_shm_regions_t *set);

/* The budget of copies, for inf_request_t. */
inf_budget_t *inf_shm_regions_copies(inf_shm_regions_t *set);

/* Registers a POSIX shared memory object; key: its name. */
INF_CHECK inf_err_t *inf_shm_register_system(inf_shm_regions_t *set,
    const char *name, const char *key, uint64_t offset, uint64_t byte_size);

/* Registers a region of a previous core: the object must be the same. */
INF_CHECK inf_err_t *inf_shm_restore_system(inf_shm_regions_t *set,
    const char *name, const char *key, uint64_t offset, uint64_t byte_size,
    const inf_shm_identity_t *identity);

/* Registers another process's GPU memory; handle: INF_CUDA_IPC_SIZE bytes. */
INF_CHECK inf_err_t *inf_shm_register_cuda(inf_shm_regions_t *set,
    const char *name, inf_slice_t handle, int64_t device, uint64_t byte_size);

/* Unregisters a region; name "": all of that kind.  A missing one is no
   error. */
void inf_shm_unregister(inf_shm_regions_t *set, inf_shm_kind_t kind,
    const char *name);

/* Finds a region with the bytes [offset, offset + size); *out is a
   reference. */
INF_CHECK inf_err_t *inf_shm_region_find(inf_shm_regions_t *set,
    inf_slice_t name, uint64_t offset, uint64_t size, inf_shm_region_t **out);
void inf_shm_region_unref(inf_shm_region_t *region);

/* INVALID_ARG: the client has truncated the memory while it was used. */
INF_CHECK inf_err_t *inf_shm_region_check(const inf_shm_region_t *region);

/* The memory type of tensors in the region. */
static inline inf_memory_type_t
inf_shm_region_memory(const inf_shm_region_t *region)
{
    return region->kind == INF_SHM_CUDA ? INF_MEMORY_GPU : INF_MEMORY_CPU;
}

/* Lists the regions of that kind by name, with references; name "": all.
   list_free releases the list and its references. */
INF_CHECK inf_err_t *inf_shm_regions_list(inf_shm_regions_t *set,
    inf_shm_kind_t kind, const char *name, inf_shm_region_t ***list,
    size_t *count);
void inf_shm_regions_list_free(inf_shm_region_t **list, size_t count);

#endif /* INF_TENSOR_SHM_REGION_H */
