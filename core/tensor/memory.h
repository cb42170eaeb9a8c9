/*
 * memory.h - the memory that tensors may lie in: CPU, pinned, GPU.
 *
 * Owner    One manager serves the process: servers share it, the first one's
 *          options count, and the pools go with the last one (or, while
 *          something is still allocated, stay for the next).  Memory that it
 *          hands out belongs to the caller.
 * Thread   share, unshare: any, they wait for each other.  The rest: any.  A
 *          pool has one lock; CPU memory takes none.
 * Units    bytes; GPUs by the number the driver counts them by.
 * Errors   CPU: UNAVAILABLE without memory.  Without a driver CPU_PINNED and
 *          GPU are UNSUPPORTED.  With one: CPU_PINNED without a pool is
 *          INTERNAL, everything else that can't be had UNAVAILABLE.
 * Route    backend -> abi -> [memory] -> pool, driver; states, copies
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

/* Addresses for one state that grows, on each GPU. */
#define INF_MEMORY_VIRTUAL_DEFAULT (UINT64_C(1) << 30)

/* The least compute capability, as number and as backends are told. */
#define INF_MEMORY_CAPABILITY      7.5
#define INF_MEMORY_CAPABILITY_TEXT "7.500000"

/* Which library is the driver; set and empty: none. */
#define INF_MEMORY_DRIVER_ENV "INFERENCE_CUDA_DRIVER"

typedef struct inf_memory_s inf_memory_t;

typedef struct {
    int64_t  device;
    uint64_t bytes;
} inf_memory_pool_size_t;

typedef struct {
    const char                   *driver;       /* NULL: the environment's,
                                                   else the usual name       */
    uint64_t                      pinned_bytes; /* 0: no pinned memory       */
    const inf_memory_pool_size_t *cuda;         /* of other GPUs: default    */
    size_t                        cuda_count;
    const inf_memory_pool_size_t *virtual;      /* likewise: addresses       */
    size_t                        virtual_count;
    double                        min_capability;
    bool                          peer_access;
} inf_memory_options_t;

typedef struct {
    uint64_t total;             /* 0: there is no such pool                  */
    uint64_t used;
} inf_memory_usage_of_pool_t;

/* A manager of one's own: what can't be had is logged, not an error. */
INF_CHECK inf_err_t *inf_memory_new(const inf_memory_options_t *options,
    inf_memory_t **out);
void inf_memory_free(inf_memory_t *m);

/* The process's: made by the first call, gone with as many unshares. */
INF_CHECK inf_err_t *inf_memory_share(const inf_memory_options_t *options);
void inf_memory_unshare(void);

/* Whether the process has GPUs, for which memory can be pinned. */
bool inf_memory_pins(void);

/*
 * Pins whole pages of the caller's for the process's GPUs; false: there are
 * none, or it can't be done (which is logged).  Until unpin (not for false)
 * the process keeps its memory, as with share.
 */
bool inf_memory_pin(void *base, uint64_t size);

/* The same for a shared mapping that is read-only and that GPUs only read.
   Where one of them can't have such memory, the pages become writable here. */
bool inf_memory_pin_read_only(void *base, uint64_t size);
void inf_memory_unpin(void *base);

/* Never NULL: before the first share it has CPU memory only. */
inf_memory_t *inf_memory_shared(void);

/* size 0 gives a valid pointer.  No kind stands in for another. */
INF_CHECK inf_err_t *inf_memory_alloc(inf_memory_t *m, inf_memory_type_t type,
    int64_t id, uint64_t size, void **out);

/* Whether there is any of that kind: a pool, full or not, or the CPU's. */
bool inf_memory_has(inf_memory_t *m, inf_memory_type_t type, int64_t id);

/* INVALID_ARG: base is not what inf_memory_alloc gave for that kind. */
INF_CHECK inf_err_t *inf_memory_release(inf_memory_t *m, void *base,
    inf_memory_type_t type, int64_t id);

/* The GPUs that may be used, ascending; the array lives as long as m. */
const int32_t *inf_memory_gpus(const inf_memory_t *m, size_t *count);

/* Why none is (NULL: there is no driver, or nothing for it to drive), and why
   that one is not; NULL: no reason but its capability, or that there is none.
   Both live as long as m. */
const char *inf_memory_no_gpus(const inf_memory_t *m);
const char *inf_memory_left_out(const inf_memory_t *m, int64_t device);

/* The compute capability that they have at least. */
double inf_memory_min_capability(const inf_memory_t *m);

/* NULL: there is none. */
inf_cuda_t *inf_memory_driver(const inf_memory_t *m);

/*
 * Whether a GPU has failed for this process: asked of the driver (UNAVAILABLE:
 * the reason; NULL for a GPU that is not used), or as far as is known (NULL: it
 * has not).  failed_gpu: the first that has, -1: none.
 */
INF_CHECK inf_err_t *inf_memory_check_gpu(inf_memory_t *m, int64_t device);
const char *inf_memory_gpu_failure(const inf_memory_t *m, int64_t device);
int64_t inf_memory_failed_gpu(const inf_memory_t *m);

/* How long a range of addresses is that memory on that GPU grows in. */
uint64_t inf_memory_virtual_bytes(inf_memory_t *m, int64_t device);

/* A stream of that GPU, from those that are idle if there are; give it back
   with nothing left in it. */
INF_CHECK inf_err_t *inf_memory_take_stream(inf_memory_t *m, int64_t device,
    void **out);
void inf_memory_give_stream(inf_memory_t *m, int64_t device, void *stream);

/* The fraction of a GPU's memory that is in use, by anybody; 0 to 1. */
INF_CHECK inf_err_t *inf_memory_gpu_fill(inf_memory_t *m, int64_t device,
    double *out);

/* Size and use of a pool; zeros for a GPU that is unknown. */
inf_memory_usage_of_pool_t inf_memory_pinned_usage(inf_memory_t *m);
inf_memory_usage_of_pool_t inf_memory_gpu_usage(inf_memory_t *m,
    int64_t device);

/* "CPU", "CPU_PINNED", "GPU" */
const char *inf_memory_type_name(inf_memory_type_t type);

#endif /* INF_TENSOR_MEMORY_H */
