/*
 * memory.h - the kinds of memory for tensors: CPU, pinned, GPU.
 *
 * Owner    The process has one manager, which all servers share.  The options
 *          of the first server count.  The last unshare frees the pools,
 *          unless memory is still allocated; then the next share takes them.
 *          Allocated memory is the caller's.
 * Thread   share, unshare: any, one at a time.  All others: any.  A pool has
 *          one lock; CPU memory has none.
 * Units    bytes.  GPUs have the driver's numbers.
 * Errors   CPU: UNAVAILABLE without memory.  CPU_PINNED and GPU: UNSUPPORTED
 *          without a driver.  With a driver: INTERNAL for CPU_PINNED without a
 *          pool, else UNAVAILABLE.
 * Route    backend -> abi -> [memory] -> pool, driver; states, copies
 *
 * Order: share, then alloc and release of the shared manager, then unshare.
 */

#ifndef INF_TENSOR_MEMORY_H
#define INF_TENSOR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/tensor/cuda_driver.h"
#include "core/tensor/sink.h"

#define INF_MEMORY_PINNED_DEFAULT (UINT64_C(1) << 28)
#define INF_MEMORY_CUDA_DEFAULT   (UINT64_C(1) << 26)   /* for each GPU      */

/* Address range of one growable state on each GPU. */
#define INF_MEMORY_VIRTUAL_DEFAULT (UINT64_C(1) << 30)

/* The default least compute capability, as number and as text for backends. */
#define INF_MEMORY_CAPABILITY      7.5
#define INF_MEMORY_CAPABILITY_TEXT "7.500000"

/* Environment variable with the driver's library; empty: none. */
#define INF_MEMORY_DRIVER_ENV "INFERENCE_CUDA_DRIVER"

typedef struct inf_memory_s inf_memory_t;

typedef struct {
    int64_t  device;
    uint64_t bytes;
} inf_memory_pool_size_t;

typedef struct {
    const char                   *driver;       /* NULL: from the environment,
                                                   else the default name     */
    uint64_t                      pinned_bytes; /* 0: no pinned memory       */
    const inf_memory_pool_size_t *cuda;         /* other GPUs: default       */
    size_t                        cuda_count;
    const inf_memory_pool_size_t *virtual;      /* likewise: address ranges  */
    size_t                        virtual_count;
    double                        min_capability;
    bool                          peer_access;
} inf_memory_options_t;

typedef struct {
    uint64_t total;             /* 0: no such pool                           */
    uint64_t used;
} inf_memory_usage_of_pool_t;

/* Creates a manager of its own, for tests.  A missing kind of memory is logged,
   and is no error. */
INF_CHECK inf_err_t *inf_memory_new(const inf_memory_options_t *options,
    inf_memory_t **out);
void inf_memory_free(inf_memory_t *m);

/* The first share creates the manager of the process; the last unshare, of as
   many, frees the manager. */
INF_CHECK inf_err_t *inf_memory_share(const inf_memory_options_t *options);
void inf_memory_unshare(void);

/* Whether the process has GPUs, so that pinning has a use. */
bool inf_memory_pins(void);

/*
 * Pins whole pages of the caller for all GPUs.  false: there are no GPUs, or
 * pinning failed, which is logged.  After true the caller calls unpin; until
 * then the manager stays, as after share.
 */
bool inf_memory_pin(void *base, uint64_t size);

/* The same for a shared mapping that is read-only and that GPUs only read.  The
   pages become writable in this process if a GPU cannot pin them otherwise. */
bool inf_memory_pin_read_only(void *base, uint64_t size);
void inf_memory_unpin(void *base);

/* The manager of the process, never NULL.  Before the first share the manager
   has CPU memory only. */
inf_memory_t *inf_memory_shared(void);

/* Allocates memory of exactly that kind.  A size of 0 gives a valid pointer. */
INF_CHECK inf_err_t *inf_memory_alloc(inf_memory_t *m, inf_memory_type_t type,
    int64_t id, uint64_t size, void **out);

/* Whether that kind exists: CPU, or a kind with a pool, even a full one. */
bool inf_memory_has(inf_memory_t *m, inf_memory_type_t type, int64_t id);

/* Frees memory of inf_memory_alloc.  INVALID_ARG: base is no allocation of that
   kind. */
INF_CHECK inf_err_t *inf_memory_release(inf_memory_t *m, void *base,
    inf_memory_type_t type, int64_t id);

/* The usable GPUs, ascending; the array is valid as long as m. */
const int32_t *inf_memory_gpus(const inf_memory_t *m, size_t *count);

/* no_gpus: why no GPU is usable; NULL: there is no driver or no GPU.  left_out:
   why one GPU is not usable; NULL: for its capability alone, or there is no
   such GPU.  Both texts are valid as long as m. */
const char *inf_memory_no_gpus(const inf_memory_t *m);
const char *inf_memory_left_out(const inf_memory_t *m, int64_t device);

/* The least compute capability of usable GPUs. */
double inf_memory_min_capability(const inf_memory_t *m);

/* The driver; NULL: there is none. */
inf_cuda_t *inf_memory_driver(const inf_memory_t *m);

/*
 * Failures of GPUs, as in cuda_driver.h.  check_gpu queries the driver;
 * UNAVAILABLE, with the reason: the GPU has failed; NULL also for a GPU that is
 * not in use.  gpu_failure: the reason found before; NULL: none.  failed_gpu:
 * the first GPU that has failed; -1: none.
 */
INF_CHECK inf_err_t *inf_memory_check_gpu(inf_memory_t *m, int64_t device);
const char *inf_memory_gpu_failure(const inf_memory_t *m, int64_t device);
int64_t inf_memory_failed_gpu(const inf_memory_t *m);

/* The size of the address range of one growable memory on that GPU. */
uint64_t inf_memory_virtual_bytes(inf_memory_t *m, int64_t device);

/* take: a stream of that GPU, an idle one if there is one.  give: a stream
   whose copies are all done. */
INF_CHECK inf_err_t *inf_memory_take_stream(inf_memory_t *m, int64_t device,
    void **out);
void inf_memory_give_stream(inf_memory_t *m, int64_t device, void *stream);

/* The fraction of a GPU's memory in use by all processes, 0 to 1. */
INF_CHECK inf_err_t *inf_memory_gpu_fill(inf_memory_t *m, int64_t device,
    double *out);

/* Size and use of a pool; zeros for an unknown GPU. */
inf_memory_usage_of_pool_t inf_memory_pinned_usage(inf_memory_t *m);
inf_memory_usage_of_pool_t inf_memory_gpu_usage(inf_memory_t *m,
    int64_t device);

/* "CPU", "CPU_PINNED", "GPU" */
const char *inf_memory_type_name(inf_memory_type_t type);

#endif /* INF_TENSOR_MEMORY_H */
