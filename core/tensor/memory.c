#include "core/tensor/memory.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/tensor/pool.h"

#define SHARE_RANK  2u          /* held while the driver starts              */
#define POOL_RANK   80u         /* last in the order of locks                */
#define STREAM_RANK 81u
#define STREAMS_MAX 16u         /* limit of idle streams per GPU             */

typedef struct {
    inf_lock_t  lock;           /* rank 80; guards pool                      */
    inf_pool_t  pool;
    char       *base;           /* NULL: no pool; set in new()               */
    uint64_t    size;           /* likewise                                  */
} range_t;

typedef struct {
    range_t     range;          /* has its own lock                          */
    uint64_t    virtual;        /* set in new()                              */
    inf_lock_t  lock;           /* rank 81; guards idle, idle_count          */
    void       *idle[STREAMS_MAX];
    uint32_t    idle_count;
} gpu_t;

struct inf_memory_s {
    inf_cuda_t *cuda;           /* these are set in new(), then constant    */
    char       *why_none;       /* why there is no driver; NULL: unknown     */
    bool        broken;         /* why_none is about an existing driver      */
    char       *left_out[INF_CUDA_DEVICES_MAX]; /* reason; NULL: usable, or only
                                                   its capability            */
    double      min_capability;
    range_t     pinned;
    gpu_t       gpus[INF_CUDA_DEVICES_MAX];     /* by the driver's number    */
    int32_t     usable[INF_CUDA_DEVICES_MAX];
    size_t      usable_count;
};

static inf_err_t *open_driver(inf_memory_t *m, const char *driver);
static void open_gpus(inf_memory_t *m, const inf_memory_options_t *o);
static void open_gpu(inf_memory_t *m, int device,
    const inf_memory_options_t *o);
static inf_err_t *open_context(inf_memory_t *m, int device, uint64_t bytes);
static void open_peers(inf_memory_t *m);
static inf_err_t *open_pinned(inf_memory_t *m, uint64_t bytes);
static inf_err_t *open_pool(inf_memory_t *m, int device, uint64_t bytes);
static uint64_t bytes_for(const inf_memory_pool_size_t *sizes, size_t count,
    int device, uint64_t usual);
static void close_gpu(inf_memory_t *m, int device);
static bool anything_used(inf_memory_t *m);
static inf_memory_t *pin_begin(void);
static bool pin_end(inf_err_t *err, uint64_t size);
static bool pins_read_only(const inf_memory_t *m);
static inf_err_t *range_alloc(range_t *r, uint64_t size, void **out,
    const char *what, int64_t id);
static inf_err_t *range_free(range_t *r, void *base, const char *what,
    int64_t id);
static inf_memory_usage_of_pool_t range_usage(range_t *r);
static inf_err_t *no_driver(const inf_memory_t *m, inf_memory_type_t type);
static gpu_t *gpu_of(inf_memory_t *m, int64_t device);
static inf_err_t *no_gpu(const inf_memory_t *m, int64_t device);

/* The manager without a server: CPU memory only. */
static inf_memory_t memory_none = { .min_capability = INF_MEMORY_CAPABILITY };

/* The manager of all servers; seq_cst, or acquire by readers. */
static _Atomic(inf_memory_t *) memory_shared = &memory_none;
static uint32_t memory_shares;          /* share_lock                        */

/* Rank 2; guards creation and end of the shared manager. */
static inf_lock_t share_lock = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = SHARE_RANK
};

inf_err_t *
inf_memory_new(const inf_memory_options_t *options, inf_memory_t **out)
{
    inf_memory_t *m = calloc(1, sizeof(*m));
    *out = NULL;
    if (m == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&m->pinned.lock, POOL_RANK);
    for (size_t i = 0; i < INF_CUDA_DEVICES_MAX; i++) {
        inf_lock_init(&m->gpus[i].range.lock, POOL_RANK);
        inf_lock_init(&m->gpus[i].lock, STREAM_RANK);
    }
    m->min_capability = options->min_capability;

    inf_err_t *err = open_driver(m, options->driver);
    if (err != NULL) {
        inf_memory_free(m);
        return err;
    }

    if (m->cuda != NULL) {
        open_gpus(m, options);
        inf_err_log(open_pinned(m, options->pinned_bytes));
    }
    *out = m;
    return NULL;
}

void
inf_memory_free(inf_memory_t *m)
{
    if (m == NULL) {
        return;
    }

    if (m->pinned.base != NULL) {
        inf_err_log(inf_cuda_free_pinned(m->cuda, m->usable[0],
            m->pinned.base));
        inf_pool_fini(&m->pinned.pool);
    }
    for (size_t i = 0; i < m->usable_count; i++) {
        close_gpu(m, m->usable[i]);
    }
    inf_cuda_close(m->cuda);

    for (size_t i = 0; i < INF_CUDA_DEVICES_MAX; i++) {
        inf_lock_fini(&m->gpus[i].range.lock);
        inf_lock_fini(&m->gpus[i].lock);
    }
    inf_lock_fini(&m->pinned.lock);
    for (size_t i = 0; i < INF_CUDA_DEVICES_MAX; i++) {
        free(m->left_out[i]);
    }
    free(m->why_none);
    free(m);
}

/* Starts the driver under the lock: a second server that starts must wait for
   it. */
inf_err_t *
inf_memory_share(const inf_memory_options_t *options)
{
    inf_memory_t *made = NULL;
    inf_err_t *err = NULL;

    inf_lock(&share_lock);

    if (atomic_load(&memory_shared) == &memory_none) {
        err = inf_memory_new(options, &made);
        if (err == NULL) {
            atomic_store(&memory_shared, made);
        }
    }
    if (err == NULL) {
        memory_shares++;
    }

    inf_unlock(&share_lock);

    if (err == NULL && made == NULL) {
        inf_log(INF_LOG_INFO, "this process has its memory pools already:"
            " their sizes stay those of its first server");
    }
    return err;
}

void
inf_memory_unshare(void)
{
    inf_memory_t *gone = NULL;
    bool kept = false;

    inf_lock(&share_lock);

    if (--memory_shares == 0) {
        gone = atomic_load(&memory_shared);
        kept = anything_used(gone);
        if (kept) {
            gone = NULL;
        } else {
            atomic_store(&memory_shared, &memory_none);
        }
    }

    inf_unlock(&share_lock);

    inf_memory_free(gone);
    if (kept) {
        inf_log(INF_LOG_WARN, "memory pools outlive their servers: something"
            " allocated from them was never freed");
    }
}

bool
inf_memory_pins(void)
{
    return inf_memory_shared()->usable_count > 0;
}

bool
inf_memory_pin(void *base, uint64_t size)
{
    inf_memory_t *m = pin_begin();

    return m != NULL && pin_end(inf_cuda_pin(m->cuda, m->usable[0], base,
        size, false), size);
}

bool
inf_memory_pin_read_only(void *base, uint64_t size)
{
    inf_memory_t *m = pin_begin();
    if (m == NULL) {
        return false;
    }
    if (pins_read_only(m)) {
        return pin_end(inf_cuda_pin(m->cuda, m->usable[0], base, size, true),
            size);
    }

    if (mprotect(base, size, PROT_READ | PROT_WRITE) != 0) {
        return pin_end(inf_err_os(errno, "cannot make memory writable"), size);
    }
    if (!pin_end(inf_cuda_pin(m->cuda, m->usable[0], base, size, false),
        size))
    {
        (void) mprotect(base, size, PROT_READ);
        return false;
    }
    return true;
}

/* The process's manager with a share; NULL: it has no GPU. */
static inf_memory_t *
pin_begin(void)
{
    inf_lock(&share_lock);
    inf_memory_t *m = atomic_load(&memory_shared);
    bool possible = m->usable_count > 0;
    memory_shares += possible;
    inf_unlock(&share_lock);
    return possible ? m : NULL;
}

/* Whether the memory was pinned.  Takes err. */
static bool
pin_end(inf_err_t *err, uint64_t size)
{
    if (err == NULL) {
        return true;
    }

    inf_log(INF_LOG_WARN, "%llu bytes stay pageable: %s",
        (unsigned long long) size, inf_err_msg(err));
    inf_err_free(err);
    inf_memory_unshare();
    return false;
}

static bool
pins_read_only(const inf_memory_t *m)
{
    bool all = true;

    for (size_t i = 0; i < m->usable_count; i++) {
        all &= inf_cuda_device(m->cuda, m->usable[i])->pins_read_only;
    }
    return all;
}

void
inf_memory_unpin(void *base)
{
    inf_memory_t *m = inf_memory_shared();

    inf_err_log(inf_cuda_unpin(m->cuda, m->usable[0], base));
    inf_memory_unshare();
}

inf_memory_t *
inf_memory_shared(void)
{
    return atomic_load_explicit(&memory_shared, memory_order_acquire);
}

inf_err_t *
inf_memory_alloc(inf_memory_t *m, inf_memory_type_t type, int64_t id,
    uint64_t size, void **out)
{
    *out = NULL;

    switch (type) {
    case INF_MEMORY_CPU:
        *out = malloc(size > 0 ? size : 1);
        return *out != NULL ? NULL : inf_err_new(INF_ERR_UNAVAILABLE,
            "cannot allocate %llu bytes of CPU memory",
            (unsigned long long) size);

    case INF_MEMORY_CPU_PINNED:
        if (m->cuda == NULL) {
            return no_driver(m, type);
        }
        if (m->pinned.base == NULL) {
            return inf_err_new(INF_ERR_INTERNAL, "failed to allocate pinned"
                " system memory: no pinned memory pool");
        }
        return range_alloc(&m->pinned, size, out, "CPU_PINNED", id);

    case INF_MEMORY_GPU:
        if (m->cuda == NULL) {
            return no_driver(m, type);
        }
        if (gpu_of(m, id) == NULL) {
            return no_gpu(m, id);
        }
        if (m->gpus[id].range.base == NULL) {
            return inf_err_new(INF_ERR_UNAVAILABLE, "failed to allocate GPU"
                " memory: no memory pool for GPU %lld", (long long) id);
        }
        return range_alloc(&m->gpus[id].range, size, out, "GPU", id);
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown memory type %d",
        (int) type);
}

inf_err_t *
inf_memory_release(inf_memory_t *m, void *base, inf_memory_type_t type,
    int64_t id)
{
    switch (type) {
    case INF_MEMORY_CPU:
        free(base);
        return NULL;
    case INF_MEMORY_CPU_PINNED:
        return m->cuda == NULL ? no_driver(m, type)
            : range_free(&m->pinned, base, "CPU_PINNED", id);
    case INF_MEMORY_GPU:
        return m->cuda == NULL ? no_driver(m, type)
            : gpu_of(m, id) == NULL ? no_gpu(m, id)
            : range_free(&m->gpus[id].range, base, "GPU", id);
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unknown memory type %d",
        (int) type);
}

bool
inf_memory_has(inf_memory_t *m, inf_memory_type_t type, int64_t id)
{
    const gpu_t *gpu = type == INF_MEMORY_GPU ? gpu_of(m, id) : NULL;

    return type == INF_MEMORY_CPU
        || (type == INF_MEMORY_CPU_PINNED && m->pinned.base != NULL)
        || (gpu != NULL && gpu->range.base != NULL);
}

const int32_t *
inf_memory_gpus(const inf_memory_t *m, size_t *count)
{
    *count = m->usable_count;
    return m->usable;
}

const char *
inf_memory_no_gpus(const inf_memory_t *m)
{
    return m->broken ? m->why_none : NULL;
}

const char *
inf_memory_left_out(const inf_memory_t *m, int64_t device)
{
    return device >= 0 && device < (int64_t) INF_CUDA_DEVICES_MAX
        ? m->left_out[device] : NULL;
}

inf_err_t *
inf_memory_check_gpu(inf_memory_t *m, int64_t device)
{
    return m->cuda == NULL || gpu_of(m, device) == NULL ? NULL
        : inf_cuda_check(m->cuda, device);
}

const char *
inf_memory_gpu_failure(const inf_memory_t *m, int64_t device)
{
    return m->cuda != NULL ? inf_cuda_failure(m->cuda, device) : NULL;
}

int64_t
inf_memory_failed_gpu(const inf_memory_t *m)
{
    for (size_t i = 0; i < m->usable_count; i++) {
        if (inf_memory_gpu_failure(m, m->usable[i]) != NULL) {
            return m->usable[i];
        }
    }
    return -1;
}

double
inf_memory_min_capability(const inf_memory_t *m)
{
    return m->min_capability;
}

inf_cuda_t *
inf_memory_driver(const inf_memory_t *m)
{
    return m->cuda;
}

uint64_t
inf_memory_virtual_bytes(inf_memory_t *m, int64_t device)
{
    const gpu_t *gpu = gpu_of(m, device);
    return gpu != NULL ? gpu->virtual : 0;
}

inf_err_t *
inf_memory_take_stream(inf_memory_t *m, int64_t device, void **out)
{
    gpu_t *gpu = gpu_of(m, device);
    *out = NULL;
    if (gpu == NULL) {
        return m->cuda == NULL ? no_driver(m, INF_MEMORY_GPU)
            : no_gpu(m, device);
    }

    inf_lock(&gpu->lock);
    if (gpu->idle_count > 0) {
        *out = gpu->idle[--gpu->idle_count];
    }
    inf_unlock(&gpu->lock);

    return *out != NULL ? NULL : inf_cuda_stream_new(m->cuda, device, out);
}

void
inf_memory_give_stream(inf_memory_t *m, int64_t device, void *stream)
{
    gpu_t *gpu = gpu_of(m, device);

    inf_lock(&gpu->lock);
    if (gpu->idle_count < STREAMS_MAX) {
        gpu->idle[gpu->idle_count++] = stream;
        stream = NULL;
    }
    inf_unlock(&gpu->lock);

    if (stream != NULL) {
        inf_err_log(inf_cuda_stream_free(m->cuda, device, stream));
    }
}

inf_err_t *
inf_memory_gpu_fill(inf_memory_t *m, int64_t device, double *out)
{
    uint64_t left, all;

    if (gpu_of(m, device) == NULL) {
        return m->cuda == NULL ? no_driver(m, INF_MEMORY_GPU)
            : no_gpu(m, device);
    }

    inf_err_t *err = inf_cuda_memory_info(m->cuda, device, &left, &all);
    if (err == NULL) {
        *out = all > 0 && left <= all ? (double) (all - left) / (double) all
            : 0;
    }
    return err;
}

inf_memory_usage_of_pool_t
inf_memory_pinned_usage(inf_memory_t *m)
{
    return range_usage(&m->pinned);
}

inf_memory_usage_of_pool_t
inf_memory_gpu_usage(inf_memory_t *m, int64_t device)
{
    return gpu_of(m, device) != NULL ? range_usage(&m->gpus[device].range)
        : (inf_memory_usage_of_pool_t) { 0, 0 };
}

const char *
inf_memory_type_name(inf_memory_type_t type)
{
    switch (type) {
    case INF_MEMORY_CPU:
        return "CPU";
    case INF_MEMORY_CPU_PINNED:
        return "CPU_PINNED";
    case INF_MEMORY_GPU:
        return "GPU";
    }

    return "<invalid>";
}

/* Opens the driver.  A missing one is normal and not logged, a failing one is.
   Only out of memory is an error. */
static inf_err_t *
open_driver(inf_memory_t *m, const char *driver)
{
    const char *library = driver != NULL ? driver
        : getenv(INF_MEMORY_DRIVER_ENV);
    if (library == NULL) {
        library = INF_CUDA_LIBRARY;
    }

    inf_err_t *err = library[0] == '\0' ? inf_err_new(INF_ERR_NOT_FOUND,
            "the CUDA driver is switched off by an empty %s",
            INF_MEMORY_DRIVER_ENV)
        : inf_cuda_open(library, &m->cuda);
    if (err == NULL) {
        return NULL;
    }

    m->broken = inf_err_code(err) != INF_ERR_NOT_FOUND;
    if (m->broken) {
        inf_log(INF_LOG_WARN, "no GPUs: %s", inf_err_msg(err));
    } else {
        inf_log(INF_LOG_NOTICE, "CPU only: no CUDA driver (%s)",
            inf_err_msg(err));
    }
    m->why_none = strdup(inf_err_msg(err));
    inf_err_free(err);
    return m->why_none != NULL ? NULL : inf_err_nomem();
}

static void
open_gpus(inf_memory_t *m, const inf_memory_options_t *o)
{
    int count = inf_cuda_device_count(m->cuda);

    for (int i = 0; i < count; i++) {
        open_gpu(m, i, o);
    }
    if (o->peer_access) {
        open_peers(m);
    }

    for (size_t i = 0; i < o->cuda_count; i++) {
        if (o->cuda[i].device < 0 || o->cuda[i].device >= count) {
            inf_log(INF_LOG_WARN, "a memory pool of %llu bytes is asked for"
                " on GPU %lld, which does not exist",
                (unsigned long long) o->cuda[i].bytes,
                (long long) o->cuda[i].device);
        }
    }
}

/* Opens a GPU; an unusable GPU is treated as missing, with a reason. */
static void
open_gpu(inf_memory_t *m, int device, const inf_memory_options_t *o)
{
    const inf_cuda_device_t *about = inf_cuda_device(m->cuda, device);
    uint64_t bytes = bytes_for(o->cuda, o->cuda_count, device,
        INF_MEMORY_CUDA_DEFAULT);

    if (inf_cuda_device_fault(m->cuda, device) == NULL
        && about->capability < (int) lround(o->min_capability * 10))
    {
        inf_log(INF_LOG_INFO, "GPU %d (%s) is left out: its compute capability"
            " is %d.%d, the least is %g", device, about->name,
            about->capability / 10, about->capability % 10,
            o->min_capability);
        return;
    }

    inf_err_t *err = open_context(m, device, bytes);
    if (err != NULL) {
        m->left_out[device] = strdup(inf_err_msg(err));
        inf_err_log(inf_err_add(err, "GPU %d (%s) is left out", device,
            about->name));
        return;
    }

    m->usable[m->usable_count++] = device;
    m->gpus[device].virtual = bytes_for(o->virtual, o->virtual_count, device,
        INF_MEMORY_VIRTUAL_DEFAULT);
    inf_log(INF_LOG_INFO, "GPU %d: %s, compute capability %d.%d, memory pool"
        " of %llu bytes", device, about->name, about->capability / 10,
        about->capability % 10,
        (unsigned long long) m->gpus[device].range.size);
}

/* Opens the context and the pool.  A GPU without its pool is usable, unless it
   has failed. */
static inf_err_t *
open_context(inf_memory_t *m, int device, uint64_t bytes)
{
    inf_err_t *err = inf_cuda_use(m->cuda, device);
    if (err != NULL || bytes == 0) {
        return err;
    }

    err = open_pool(m, device, bytes);
    if (err != NULL && inf_cuda_failure(m->cuda, device) != NULL) {
        return err;
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "GPU %d (%s) has no memory pool of %llu"
            " bytes", device, inf_cuda_device(m->cuda, device)->name,
            (unsigned long long) bytes));
    }
    return NULL;
}

/* Enables peer access; without it copies between GPUs pass through the host. */
static void
open_peers(inf_memory_t *m)
{
    for (size_t i = 0; i < m->usable_count; i++) {
        for (size_t k = 0; k < m->usable_count; k++) {
            inf_err_t *err = i == k ? NULL : inf_cuda_reach_peer(m->cuda,
                m->usable[i], m->usable[k]);
            if (err != NULL) {
                inf_log(INF_LOG_WARN, "no peer access: %s", inf_err_msg(err));
                inf_err_free(err);
            }
        }
    }
}

static inf_err_t *
open_pinned(inf_memory_t *m, uint64_t bytes)
{
    range_t *r = &m->pinned;
    void *base = NULL;

    if (bytes == 0 || m->usable_count == 0) {
        return NULL;
    }

    inf_err_t *err = inf_pool_init(&r->pool, bytes);
    if (err == NULL) {
        err = inf_cuda_alloc_pinned(m->cuda, m->usable[0],
            inf_pool_size(&r->pool), &base);
    }
    if (err != NULL) {
        inf_pool_fini(&r->pool);
        return inf_err_add(err, "there is no pinned memory: %llu bytes can't"
            " be had", (unsigned long long) bytes);
    }

    r->base = base;
    r->size = inf_pool_size(&r->pool);
    return NULL;
}

static inf_err_t *
open_pool(inf_memory_t *m, int device, uint64_t bytes)
{
    range_t *r = &m->gpus[device].range;
    void *base = NULL;

    inf_err_t *err = inf_pool_init(&r->pool, bytes);
    if (err == NULL) {
        err = inf_cuda_alloc(m->cuda, device, inf_pool_size(&r->pool), &base);
    }
    if (err != NULL) {
        inf_pool_fini(&r->pool);
        return err;
    }

    r->base = base;
    r->size = inf_pool_size(&r->pool);
    return NULL;
}

/* The size for a GPU; the last entry counts. */
static uint64_t
bytes_for(const inf_memory_pool_size_t *sizes, size_t count, int device,
    uint64_t usual)
{
    uint64_t bytes = usual;

    for (size_t i = 0; i < count; i++) {
        if (sizes[i].device == device) {
            bytes = sizes[i].bytes;
        }
    }
    return bytes;
}

static void
close_gpu(inf_memory_t *m, int device)
{
    gpu_t *gpu = &m->gpus[device];

    while (gpu->idle_count > 0) {
        inf_err_log(inf_cuda_stream_free(m->cuda, device,
            gpu->idle[--gpu->idle_count]));
    }
    if (gpu->range.base != NULL) {
        inf_err_log(inf_cuda_free(m->cuda, device, gpu->range.base));
        inf_pool_fini(&gpu->range.pool);
    }
}

static bool
anything_used(inf_memory_t *m)
{
    bool used = range_usage(&m->pinned).used > 0;

    for (size_t i = 0; i < m->usable_count; i++) {
        used |= range_usage(&m->gpus[m->usable[i]].range).used > 0;
    }
    return used;
}

static inf_err_t *
range_alloc(range_t *r, uint64_t size, void **out, const char *what,
    int64_t id)
{
    uint64_t offset = 0;

    inf_lock(&r->lock);
    bool found = inf_pool_alloc(&r->pool, size, &offset);
    uint64_t used = r->pool.used;
    inf_unlock(&r->lock);

    if (!found) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "failed to allocate %llu bytes"
            " of %s memory (id %lld): the pool of %llu bytes has %llu in use",
            (unsigned long long) size, what, (long long) id,
            (unsigned long long) r->size, (unsigned long long) used);
    }

    *out = r->base + offset;
    return NULL;
}

/* Frees a block; NULL is ignored. */
static inf_err_t *
range_free(range_t *r, void *base, const char *what, int64_t id)
{
    uintptr_t at = (uintptr_t) base;
    uintptr_t from = (uintptr_t) r->base;
    bool found = false;

    if (base == NULL) {
        return NULL;
    }

    if (r->base != NULL && at >= from && at - from < r->size) {
        inf_lock(&r->lock);
        found = inf_pool_free(&r->pool, at - from);
        inf_unlock(&r->lock);
    }
    return found ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "%p is no %s memory"
        " (id %lld) that was allocated and not yet freed", base, what,
        (long long) id);
}

static inf_memory_usage_of_pool_t
range_usage(range_t *r)
{
    inf_memory_usage_of_pool_t usage = { r->size, 0 };

    if (r->base != NULL) {
        inf_lock(&r->lock);
        usage.used = r->pool.used;
        inf_unlock(&r->lock);
    }
    return usage;
}

static inf_err_t *
no_driver(const inf_memory_t *m, inf_memory_type_t type)
{
    return inf_err_new(INF_ERR_UNSUPPORTED, "%s memory is not available: %s",
        inf_memory_type_name(type), m->why_none != NULL ? m->why_none
        : "no server has looked for a GPU yet");
}

/* NULL: no such GPU, or not usable. */
static gpu_t *
gpu_of(inf_memory_t *m, int64_t device)
{
    for (size_t i = 0; i < m->usable_count; i++) {
        if (m->usable[i] == device) {
            return &m->gpus[device];
        }
    }
    return NULL;
}

static inf_err_t *
no_gpu(const inf_memory_t *m, int64_t device)
{
    const inf_cuda_device_t *about = inf_cuda_device(m->cuda, device);

    return about == NULL ? inf_err_new(INF_ERR_UNAVAILABLE, "GPU memory is not"
            " available: there is no GPU %lld", (long long) device)
        : inf_err_new(INF_ERR_UNAVAILABLE, "GPU memory is not available: GPU"
            " %lld (%s, compute capability %d.%d) is not used",
            (long long) device, about->name, about->capability / 10,
            about->capability % 10);
}
