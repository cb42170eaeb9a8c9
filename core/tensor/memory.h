/*
 * memory.h - the kinds of memory for tensors: CPU, pinned, GPU.
 *
 * Owner    One manager serves the process: servers share it, the options of
 *          the first count, and the pools are freed with the last server (or
 *          kept for the next if memory is still allocated).  Allocated memory
 *          belongs to the caller.
 * Thread   share, unshare: any, serialized.  The rest: any.  A pool has one
 *          lock; CPU memory has none.
 * Units    bytes; GPUs by the driver's numbers.
 * Errors   CPU: UNAVAILABLE without memory.  Without a driver CPU_PINNED and
 *          GPU are UNSUPPORTED.  With a driver: CPU_PINNED without a pool is
 *          INTERNAL, all other failures are UNAVAILABLE.
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

/* Creates a separate manager; missing kinds of memory are logged, not an
   error. */
INF_CHECK inf_err_t *inf_memory_new(const inf_memory_options_t *options,
    inf_memory_t **out);
void inf_memory_free(inf_memory_t *m);

/* share creates the process's manager in the first call; as many unshare calls
   free it. */
INF_CHECK inf_err_t *inf_memory_share(const inf_memory_options_t *options);
void inf_memory_unshare(void);

/* Whether the process has GPUs, for which memory can be pinned. */
bool inf_memory_pins(void);

/*
 * Pins whole pages of the caller for the process's GPUs; false: no GPUs, or a
 * failure (which is logged).  Until unpin (not after false) the process keeps
 * its manager, as with share.
 */
bool inf_memory_pin(void *base, uint64_t size);

/* Likewise for a shared read-only mapping that GPUs only read.  If a GPU cannot
   pin such memory, the pages become writable in this process. */
bool inf_memory_pin_read_only(void *base, uint64_t size);
void inf_memory_unpin(void *base);

/* Not NULL: before the first share it has CPU memory only. */
inf_memory_t *inf_memory_shared(void);

/* size 0 gives a valid pointer.  No other kind is used instead. */
INF_CHECK inf_err_t *inf_memory_alloc(inf_memory_t *m, inf_memory_type_t type,
    int64_t id, uint64_t size, void **out);

/* Whether that kind exists: a pool, full or not, or the CPU's. */
bool inf_memory_has(inf_memory_t *m, inf_memory_type_t type, int64_t id);

/* INVALID_ARG: base was not allocated by inf_memory_alloc with that kind. */
INF_CHECK inf_err_t *inf_memory_release(inf_memory_t *m, void *base,
    inf_memory_type_t type, int64_t id);

/* The usable GPUs, ascending; the array is valid as long as m. */
const int32_t *inf_memory_gpus(const inf_memory_t *m, size_t *count);

/* no_gpus: why no GPU is usable (NULL: no driver, or no GPUs).  left_out: why
   that GPU is not usable; NULL: only its capability, or no such GPU.  Both are
   valid as long as m. */
const char *inf_memory_no_gpus(const inf_memory_t *m);
const char *inf_memory_left_out(const inf_memory_t *m, int64_t device);

/* The least compute capability of usable GPUs. */
double inf_memory_min_capability(const inf_memory_t *m);

/* NULL: none. */
inf_cuda_t *inf_memory_driver(const inf_memory_t *m);

/*
 * Failures of a GPU in this process: check queries the driver (UNAVAILABLE:
 * the reason; NULL for a GPU not in use), gpu_failure is the known reason
 * (NULL: none).  failed_gpu: the first failed one, -1: none.
 */
INF_CHECK inf_err_t *inf_memory_check_gpu(inf_memory_t *m, int64_t device);
const char *inf_memory_gpu_failure(const inf_memory_t *m, int64_t device);
int64_t inf_memory_failed_gpu(const inf_memory_t *m);

/* The size of the address range for growable memory on that GPU. */
uint64_t inf_memory_virtual_bytes(inf_memory_t *m, int64_t device);

/* Takes a stream of that GPU, an idle one if possible; give: all its copies
   must be done. */
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
