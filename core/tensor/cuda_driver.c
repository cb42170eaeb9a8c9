#include "core/tensor/cuda_driver.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/os/library.h"
#include "core/tensor/cuda_functions.h"

typedef struct {
    int               handle;       /* driver's handle of the ordinal        */
    inf_cu_context_t  context;      /* primary; NULL: not in use             */
    inf_cuda_device_t about;
    char             *fault;        /* why its properties are unknown        */
    _Atomic bool      fails;        /* relaxed: a thread writes why          */
    _Atomic bool      failed;       /* release, acquire: why is written      */
    char              why[256];
} device_t;

struct inf_cuda_s {
    inf_cu_functions_t f;
    int                count;
    device_t           devices[INF_CUDA_DEVICES_MAX];
};

static inf_err_t *load(inf_cuda_t *cuda, const char *library);
static inf_err_t *add_device(inf_cuda_t *cuda, int ordinal);
static inf_err_t *read_device(inf_cuda_t *cuda, int ordinal);
static void write_uuid(char *out, size_t cap, const inf_cu_uuid_t *uuid);
static device_t *device_in_use(inf_cuda_t *cuda, int64_t device);
static inf_cu_allocation_t allocation_on(const inf_cuda_t *cuda,
    int64_t device);
static inf_err_t *not_in_use(const inf_cuda_t *cuda, int64_t device);
static inf_err_t *enter(inf_cuda_t *cuda, int64_t device);
static inf_err_t *leave(inf_cuda_t *cuda, inf_cu_result_t rc, int64_t device,
    const char *what);
static void ask_whether_it_opens(inf_cuda_t *cuda, int64_t device,
    inf_cu_result_t rc);
static void ask_whether_it_lives(inf_cuda_t *cuda, int64_t device,
    inf_cu_result_t rc);
static bool may_be_its_end(inf_cu_result_t rc);
static void note_failure(inf_cuda_t *cuda, int64_t device, inf_cu_result_t rc);
static void put_error(const inf_cuda_t *cuda, inf_cu_result_t rc, char *text,
    size_t cap);
static inf_err_t *failed(const inf_cuda_t *cuda, inf_cu_result_t rc,
    const char *what);

static inf_cu_ptr_t
address(const void *p)
{
    return (inf_cu_ptr_t) (uintptr_t) p;
}

static void *
pointer(inf_cu_ptr_t p)
{
    return (void *) (uintptr_t) p;
}

inf_err_t *
inf_cuda_open(const char *library, inf_cuda_t **out)
{
    inf_cuda_t *cuda = calloc(1, sizeof(*cuda));
    *out = NULL;
    if (cuda == NULL) {
        return inf_err_nomem();
    }

    int count = 0;
    inf_err_t *err = load(cuda, library);
    if (err == NULL) {
        inf_cu_result_t rc = cuda->f.init(0);
        if (rc == INF_CU_SUCCESS) {
            rc = cuda->f.device_count(&count);
        }
        if (rc == INF_CU_NO_DEVICE) {
            count = 0;                  /* a driver without devices          */
        } else if (rc != INF_CU_SUCCESS) {
            err = inf_err_add(failed(cuda, rc, "cannot start the driver"),
                "%s", library);
        }
    }

    for (int i = 0; err == NULL && i < count
        && i < (int) INF_CUDA_DEVICES_MAX; i++)
    {
        err = add_device(cuda, i);
    }
    if (err != NULL) {
        inf_cuda_close(cuda);
        return err;
    }

    *out = cuda;
    return NULL;
}

void
inf_cuda_close(inf_cuda_t *cuda)
{
    if (cuda == NULL) {
        return;
    }

    for (int i = 0; i < cuda->count; i++) {
        device_t *d = &cuda->devices[i];
        free(d->fault);
        if (d->context == NULL) {
            continue;
        }

        inf_cu_result_t rc = cuda->f.context_release(d->handle);
        if (rc != INF_CU_SUCCESS) {
            inf_err_log(failed(cuda, rc, "cannot release a GPU's context"));
        }
    }
    free(cuda);
}

int
inf_cuda_device_count(const inf_cuda_t *cuda)
{
    return cuda->count;
}

const inf_cuda_device_t *
inf_cuda_device(const inf_cuda_t *cuda, int64_t device)
{
    return device >= 0 && device < cuda->count ? &cuda->devices[device].about
        : NULL;
}

const char *
inf_cuda_device_fault(const inf_cuda_t *cuda, int64_t device)
{
    return device >= 0 && device < cuda->count ? cuda->devices[device].fault
        : NULL;
}

inf_err_t *
inf_cuda_use(inf_cuda_t *cuda, int64_t device)
{
    if (device < 0 || device >= cuda->count) {
        return not_in_use(cuda, device);
    }

    device_t *d = &cuda->devices[device];
    if (d->fault != NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%s", d->fault);
    }
    if (d->context != NULL) {
        return NULL;
    }

    inf_cu_context_t context = NULL;
    inf_cu_result_t rc = cuda->f.context_retain(&context, d->handle);
    if (rc != INF_CU_SUCCESS) {
        return inf_err_add(failed(cuda, rc, "cannot make its context"),
            "GPU %lld", (long long) device);
    }

    d->context = context;
    return NULL;
}

inf_err_t *
inf_cuda_check(inf_cuda_t *cuda, int64_t device)
{
    uint64_t left, all;
    const device_t *d = device_in_use(cuda, device);
    if (d == NULL) {
        return not_in_use(cuda, device);
    }

    inf_err_free(inf_cuda_memory_info(cuda, device, &left, &all));
    if (!atomic_load_explicit(&d->fails, memory_order_relaxed)) {
        return NULL;
    }
    while (!atomic_load_explicit(&d->failed, memory_order_acquire)) {
        sched_yield();                  /* another thread writes why         */
    }
    return inf_err_new(INF_ERR_UNAVAILABLE, "%s", d->why);
}

const char *
inf_cuda_failure(const inf_cuda_t *cuda, int64_t device)
{
    return device >= 0 && device < cuda->count
        && atomic_load_explicit(&cuda->devices[device].failed,
            memory_order_acquire) ? cuda->devices[device].why : NULL;
}

inf_err_t *
inf_cuda_reach_peer(inf_cuda_t *cuda, int64_t device, int64_t peer)
{
    const device_t *from = device_in_use(cuda, device);
    const device_t *to = device_in_use(cuda, peer);
    int can = 0;

    if (from == NULL || to == NULL) {
        return not_in_use(cuda, from == NULL ? device : peer);
    }

    inf_cu_result_t rc = cuda->f.can_access_peer(&can, from->handle,
        to->handle);
    if (rc == INF_CU_SUCCESS && !can) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "GPU %lld can't reach the"
            " memory of GPU %lld", (long long) device, (long long) peer);
    }

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }
    if (rc == INF_CU_SUCCESS) {
        rc = cuda->f.enable_peer(to->context, 0);
    }
    return leave(cuda, rc == INF_CU_PEER_ALREADY_ON ? INF_CU_SUCCESS : rc,
        device, "cannot reach another GPU's memory");
}

inf_err_t *
inf_cuda_memory_info(inf_cuda_t *cuda, int64_t device, uint64_t *free_bytes,
    uint64_t *total_bytes)
{
    size_t left = 0, all = 0;
    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    inf_cu_result_t rc = cuda->f.memory_info(&left, &all);
    *free_bytes = left;
    *total_bytes = all;
    return leave(cuda, rc, device, "cannot ask how much memory is free");
}

inf_err_t *
inf_cuda_alloc(inf_cuda_t *cuda, int64_t device, uint64_t size, void **out)
{
    inf_cu_ptr_t base = 0;
    *out = NULL;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.alloc(&base, size), device,
        "cannot allocate memory");
    if (err == NULL) {
        *out = pointer(base);
    }
    return err;
}

inf_err_t *
inf_cuda_free(inf_cuda_t *cuda, int64_t device, void *base)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.free(address(base)),
        device, "cannot free memory");
}

inf_err_t *
inf_cuda_alloc_pinned(inf_cuda_t *cuda, int64_t device, uint64_t size,
    void **out)
{
    void *base = NULL;
    *out = NULL;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.alloc_host(&base, size, INF_CU_HOST_PORTABLE),
        device, "cannot pin host memory");
    if (err == NULL) {
        *out = base;
    }
    return err;
}

inf_err_t *
inf_cuda_free_pinned(inf_cuda_t *cuda, int64_t device, void *base)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.free_host(base), device,
        "cannot free pinned host memory");
}

inf_err_t *
inf_cuda_pin(inf_cuda_t *cuda, int64_t device, void *base, uint64_t size,
    bool read_only)
{
    unsigned flags = read_only ? INF_CU_HOST_PORTABLE | INF_CU_HOST_READ_ONLY
        : INF_CU_HOST_PORTABLE;

    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.register_host(base, size,
        flags), device, "cannot pin host memory in place");
}

inf_err_t *
inf_cuda_unpin(inf_cuda_t *cuda, int64_t device, void *base)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.unregister_host(base),
        device, "cannot unpin host memory");
}

inf_err_t *
inf_cuda_stream_new(inf_cuda_t *cuda, int64_t device, void **out)
{
    inf_cu_stream_t stream = NULL;
    *out = NULL;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.stream_create(&stream, INF_CU_STREAM_NON_BLOCK),
        device, "cannot make a stream");
    if (err == NULL) {
        *out = stream;
    }
    return err;
}

inf_err_t *
inf_cuda_stream_free(inf_cuda_t *cuda, int64_t device, void *stream)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.stream_destroy(stream),
        device, "cannot end a stream");
}

inf_err_t *
inf_cuda_stream_sync(inf_cuda_t *cuda, int64_t device, void *stream)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.stream_sync(stream),
        device, "copies failed");
}

inf_err_t *
inf_cuda_copy(inf_cuda_t *cuda, int64_t device, void *stream, void *dst,
    int64_t to, const void *src, int64_t from, uint64_t size)
{
    const inf_cu_functions_t *f = &cuda->f;
    const device_t *target = device_in_use(cuda, to);
    const device_t *source = device_in_use(cuda, from);
    inf_cu_result_t rc;

    if ((to != INF_CUDA_HOST && target == NULL)
        || (from != INF_CUDA_HOST && source == NULL))
    {
        return not_in_use(cuda, to != INF_CUDA_HOST && target == NULL ? to
            : from);
    }

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    if (source == NULL) {
        rc = f->copy_to_device(address(dst), src, size, stream);
    } else if (target == NULL) {
        rc = f->copy_to_host(dst, address(src), size, stream);
    } else if (target == source) {
        rc = f->copy_on_device(address(dst), address(src), size, stream);
    } else {
        rc = f->copy_to_peer(address(dst), target->context, address(src),
            source->context, size, stream);
    }
    return leave(cuda, rc, device, "cannot copy");
}

inf_err_t *
inf_cuda_zero(inf_cuda_t *cuda, int64_t device, void *stream, void *dst,
    uint64_t size)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.fill(address(dst), 0, size,
        stream), device, "cannot fill memory");
}

inf_err_t *
inf_cuda_granule(inf_cuda_t *cuda, int64_t device, uint64_t *out)
{
    size_t granule = 0;
    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    const inf_cu_allocation_t what = allocation_on(cuda, device);
    inf_cu_result_t rc = cuda->f.granularity(&granule, &what,
        INF_CU_GRANULARITY_LEAST);
    *out = granule;
    return leave(cuda, rc, device, "cannot ask how memory grows");
}

inf_err_t *
inf_cuda_reserve(inf_cuda_t *cuda, int64_t device, uint64_t size, void **out)
{
    inf_cu_ptr_t base = 0;
    *out = NULL;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.address_reserve(&base, size, 0, 0, 0), device,
        "cannot reserve addresses");
    if (err == NULL) {
        *out = pointer(base);
    }
    return err;
}

inf_err_t *
inf_cuda_unreserve(inf_cuda_t *cuda, int64_t device, void *base,
    uint64_t size)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.address_free(address(base),
        size), device, "cannot give addresses back");
}

/* Mapped memory stays until it is unmapped, without its handle. */
inf_err_t *
inf_cuda_back(inf_cuda_t *cuda, int64_t device, void *at, uint64_t size)
{
    const inf_cu_functions_t *f = &cuda->f;
    inf_cu_handle_t handle = 0;
    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    const inf_cu_allocation_t what = allocation_on(cuda, device);
    const inf_cu_access_t who = { what.where, INF_CU_ACCESS_BOTH };

    inf_cu_result_t rc = f->create(&handle, size, &what, 0);
    if (rc == INF_CU_SUCCESS) {
        rc = f->map(address(at), size, 0, handle, 0);
        inf_cu_result_t late = f->release(handle);
        if (rc == INF_CU_SUCCESS) {
            rc = late != INF_CU_SUCCESS ? late
                : f->set_access(address(at), size, &who, 1);
            if (rc != INF_CU_SUCCESS) {
                f->unmap(address(at), size);
            }
        }
    }
    return leave(cuda, rc, device, "cannot put memory behind addresses");
}

inf_err_t *
inf_cuda_unback(inf_cuda_t *cuda, int64_t device, void *at, uint64_t size)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.unmap(address(at), size),
        device, "cannot take memory from addresses");
}

inf_err_t *
inf_cuda_ipc_get(inf_cuda_t *cuda, int64_t device, void *base,
    uint8_t handle[INF_CUDA_IPC_SIZE])
{
    inf_cu_ipc_t h = { { 0 } };
    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.ipc_get(&h, address(base)), device,
        "cannot name memory for another process");
    if (err == NULL) {
        memcpy(handle, h.bytes, sizeof(h.bytes));
    }
    return err;
}

inf_err_t *
inf_cuda_ipc_open(inf_cuda_t *cuda, int64_t device,
    const uint8_t handle[INF_CUDA_IPC_SIZE], void **out)
{
    inf_cu_ipc_t h;
    inf_cu_ptr_t base = 0;
    *out = NULL;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    memcpy(h.bytes, handle, sizeof(h.bytes));
    err = leave(cuda, cuda->f.ipc_open(&base, h, INF_CU_IPC_LAZY_PEER),
        device, "cannot open another process's memory");
    if (err == NULL) {
        *out = pointer(base);
    }
    return err;
}

inf_err_t *
inf_cuda_range(inf_cuda_t *cuda, int64_t device, const void *at,
    uint64_t *size)
{
    inf_cu_ptr_t base = 0;
    size_t whole = 0;
    *size = 0;

    inf_err_t *err = enter(cuda, device);
    if (err != NULL) {
        return err;
    }

    err = leave(cuda, cuda->f.address_range(&base, &whole, address(at)),
        device, "cannot tell the size of an allocation");
    if (err == NULL) {
        *size = whole - (address(at) - base);
    }
    return err;
}

inf_err_t *
inf_cuda_ipc_close(inf_cuda_t *cuda, int64_t device, void *base)
{
    inf_err_t *err = enter(cuda, device);
    return err != NULL ? err : leave(cuda, cuda->f.ipc_close(address(base)),
        device, "cannot close another process's memory");
}

/* Opens the library and finds every function of the table. */
static inf_err_t *
load(inf_cuda_t *cuda, const char *library)
{
    static const inf_library_row_t rows[] = {
#define INF_CU_ROW(field, name, parameters)                                  \
        { #name, offsetof(inf_cu_functions_t, field) },
        INF_CU_FUNCTIONS(INF_CU_ROW)
#undef INF_CU_ROW
    };

    return inf_library_open(library, rows, sizeof(rows) / sizeof(rows[0]),
        ": the driver is too old", &cuda->f);
}

/* Reads a device; a device that cannot be read does not affect the others. */
static inf_err_t *
add_device(inf_cuda_t *cuda, int ordinal)
{
    device_t *d = &cuda->devices[ordinal];

    cuda->count++;
    inf_err_t *err = read_device(cuda, ordinal);
    if (err != NULL) {
        d->fault = strdup(inf_err_msg(err));
        inf_err_free(err);
        return d->fault != NULL ? NULL : inf_err_nomem();
    }
    return NULL;
}

static inf_err_t *
read_device(inf_cuda_t *cuda, int ordinal)
{
    const inf_cu_functions_t *f = &cuda->f;
    device_t *d = &cuda->devices[ordinal];
    inf_cu_uuid_t uuid = { { 0 } };
    int major = 0, minor = 0, read_only = 0;

    inf_cu_result_t rc = f->device_get(&d->handle, ordinal);
    if (rc == INF_CU_SUCCESS) {
        rc = f->device_name(d->about.name, (int) sizeof(d->about.name),
            d->handle);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = f->device_uuid(&uuid, d->handle);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = f->device_attribute(&major, INF_CU_CAPABILITY_MAJOR, d->handle);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = f->device_attribute(&minor, INF_CU_CAPABILITY_MINOR, d->handle);
    }
    if (rc != INF_CU_SUCCESS) {
        return inf_err_add(failed(cuda, rc, "cannot ask what it is"),
            "GPU %d", ordinal);
    }

    /* a driver older than the attribute cannot pin such memory */
    rc = f->device_attribute(&read_only, INF_CU_PINS_READ_ONLY, d->handle);
    d->about.pins_read_only = rc == INF_CU_SUCCESS && read_only != 0;
    d->about.capability = 10 * major + minor;
    write_uuid(d->about.uuid, sizeof(d->about.uuid), &uuid);
    return NULL;
}

static void
write_uuid(char *out, size_t cap, const inf_cu_uuid_t *uuid)
{
    size_t n = (size_t) snprintf(out, cap, "GPU-");

    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        n += (size_t) snprintf(out + n, cap - n, "%s%02x", dash ? "-" : "",
            (unsigned char) uuid->bytes[i]);
    }
}

/* NULL: the host, no such device, or one without a context. */
static device_t *
device_in_use(inf_cuda_t *cuda, int64_t device)
{
    return device >= 0 && device < cuda->count
        && cuda->devices[device].context != NULL ? &cuda->devices[device]
        : NULL;
}

static inf_cu_allocation_t
allocation_on(const inf_cuda_t *cuda, int64_t device)
{
    return (inf_cu_allocation_t) {
        .type = INF_CU_ALLOCATION_PINNED,
        .where = { INF_CU_LOCATION_DEVICE, cuda->devices[device].handle }
    };
}

static inf_err_t *
not_in_use(const inf_cuda_t *cuda, int64_t device)
{
    return inf_err_new(INF_ERR_UNAVAILABLE, "GPU %lld is not in use: %s",
        (long long) device, inf_cuda_device(cuda, device) != NULL
        ? "its compute capability is too low, or it has failed"
        : "there is no such device");
}

static inf_err_t *
enter(inf_cuda_t *cuda, int64_t device)
{
    const device_t *d = device_in_use(cuda, device);
    if (d == NULL) {
        return not_in_use(cuda, device);
    }

    inf_cu_result_t rc = cuda->f.context_push(d->context);
    if (rc == INF_CU_SUCCESS) {
        return NULL;
    }
    ask_whether_it_opens(cuda, device, rc);
    return failed(cuda, rc, "cannot enter a GPU's context");
}

/* After a failure rc to enter the context: tries again, and notes a failed
   device. */
static void
ask_whether_it_opens(inf_cuda_t *cuda, int64_t device, inf_cu_result_t rc)
{
    inf_cu_context_t popped;

    if (!may_be_its_end(rc)) {
        return;
    }

    rc = cuda->f.context_push(cuda->devices[device].context);
    if (rc == INF_CU_SUCCESS) {
        cuda->f.context_pop(&popped);
    } else {
        note_failure(cuda, device, rc);
    }
}

/* Leaves the context; rc is the result of the calls since enter. */
static inf_err_t *
leave(inf_cuda_t *cuda, inf_cu_result_t rc, int64_t device, const char *what)
{
    inf_cu_context_t popped;

    ask_whether_it_lives(cuda, device, rc);
    cuda->f.context_pop(&popped);
    return rc == INF_CU_SUCCESS ? NULL
        : inf_err_add(failed(cuda, rc, what), "GPU %lld", (long long) device);
}

/* After a call with result rc, in the context: queries the free memory, which
   is allowed at any time, also during a stream capture. */
static void
ask_whether_it_lives(inf_cuda_t *cuda, int64_t device, inf_cu_result_t rc)
{
    size_t left, all;

    if (may_be_its_end(rc)) {
        rc = cuda->f.memory_info(&left, &all);
        if (rc != INF_CU_SUCCESS) {
            note_failure(cuda, device, rc);
        }
    }
}

/* Whether rc may mean a failed device: not an invalid argument, and not a lack
   of memory. */
static bool
may_be_its_end(inf_cu_result_t rc)
{
    switch (rc) {
    case INF_CU_SUCCESS:
    case INF_CU_INVALID_VALUE:
    case INF_CU_OUT_OF_MEMORY:
    case INF_CU_PEER_UNSUPPORTED:
        return false;
    }
    return true;
}

/* Notes the first failure. */
static void
note_failure(inf_cuda_t *cuda, int64_t device, inf_cu_result_t rc)
{
    device_t *d = &cuda->devices[device];

    if (!atomic_exchange_explicit(&d->fails, true, memory_order_relaxed)) {
        char text[160];
        put_error(cuda, rc, text, sizeof(text));
        snprintf(d->why, sizeof(d->why), "GPU %lld has failed, and answers"
            " every call by %s", (long long) device, text);
        atomic_store_explicit(&d->failed, true, memory_order_release);
    }
}

/* Writes "CUDA_ERROR_UNKNOWN (999): unknown error". */
static void
put_error(const inf_cuda_t *cuda, inf_cu_result_t rc, char *text, size_t cap)
{
    const char *name = NULL;
    const char *words = NULL;

    if (cuda->f.error_name(rc, &name) != INF_CU_SUCCESS || name == NULL) {
        name = "an error unknown to the driver";
    }
    if (cuda->f.error_string(rc, &words) != INF_CU_SUCCESS || words == NULL) {
        words = "no text";
    }
    snprintf(text, cap, "%s (%d): %s", name, rc, words);
}

static inf_err_t *
failed(const inf_cuda_t *cuda, inf_cu_result_t rc, const char *what)
{
    char text[160];

    put_error(cuda, rc, text, sizeof(text));
    inf_err_code_t code = rc == INF_CU_OUT_OF_MEMORY ? INF_ERR_UNAVAILABLE
        : rc == INF_CU_PEER_UNSUPPORTED ? INF_ERR_UNSUPPORTED
        : INF_ERR_INTERNAL;
    return inf_err_new(code, "%s: %s", what, text);
}
