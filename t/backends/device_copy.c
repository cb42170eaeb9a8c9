/*
 * device_copy.c - OUT is IN, by way of the GPU of its instance: real calls of
 * the driver that INFERENCE_CUDA_DRIVER names.  OUT is asked for in the memory
 * that the model's parameter "want" names: GPU, CPU_PINNED or CPU.  Bytes go
 * through that GPU if neither end is there, else they are copied once; one wait
 * for the whole batch.  A model with an
 * input STATE answers with that, and IN is its next state.  PATH, where the
 * model has it, says where the bytes came from and went to.  An instance on no
 * GPU calls no driver and can read the host alone.
 */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

#define MOST_GPUS 64

typedef unsigned long long address_t;

static struct {
    int (*init)(unsigned);
    int (*device)(int *, int);
    int (*retain)(void **, int);
    int (*release)(int);
    int (*push)(void *);
    int (*pop)(void **);
    int (*stream_new)(void **, unsigned);
    int (*stream_free)(void *);
    int (*sync)(void *);
    int (*to_device)(address_t, const void *, size_t, void *);
    int (*to_host)(void *, address_t, size_t, void *);
    int (*on_device)(address_t, address_t, size_t, void *);
    int (*to_peer)(address_t, void *, address_t, void *, size_t, void *);
} cu;

typedef struct {
    TRITONBACKEND_MemoryManager *manager;
    TRITONSERVER_MemoryType      want;
    bool                         on_gpu;
    bool                         path;      /* the model has that output     */
    bool                         batches;
    int32_t                      device;
    void                        *contexts[MOST_GPUS];   /* NULL: not retained */
    void                        *stream;
} instance_t;

typedef struct {
    char                   *base;
    uint64_t                size;
    TRITONSERVER_MemoryType type;
    int64_t                 id;
} place_t;

typedef struct {
    TRITONBACKEND_Response *response;
    TRITONBACKEND_State    *state;
    TRITONSERVER_Error     *err;
    place_t                 scratch;        /* base NULL: none               */
    char                    path[256];
} job_t;

static TRITONSERVER_Error *
checked(int rc, const char *what)
{
    char text[96];

    if (rc == 0) {
        return NULL;
    }
    snprintf(text, sizeof(text), "device_copy: %s: the driver says %d", what,
        rc);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text);
}

TRITONSERVER_Error *
TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    static const struct {
        const char *symbol;
        void       *field;
    } rows[] = {
        { "cuInit", &cu.init },
        { "cuDeviceGet", &cu.device },
        { "cuDevicePrimaryCtxRetain", &cu.retain },
        { "cuDevicePrimaryCtxRelease_v2", &cu.release },
        { "cuCtxPushCurrent_v2", &cu.push },
        { "cuCtxPopCurrent_v2", &cu.pop },
        { "cuStreamCreate", &cu.stream_new },
        { "cuStreamDestroy_v2", &cu.stream_free },
        { "cuStreamSynchronize", &cu.sync },
        { "cuMemcpyHtoDAsync_v2", &cu.to_device },
        { "cuMemcpyDtoHAsync_v2", &cu.to_host },
        { "cuMemcpyDtoDAsync_v2", &cu.on_device },
        { "cuMemcpyPeerAsync", &cu.to_peer }
    };
    const char *path = getenv("INFERENCE_CUDA_DRIVER");
    void       *library;

    (void) backend;
    library = dlopen(path != NULL && path[0] != '\0' ? path : "libcuda.so.1",
        RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library != NULL && i < sizeof(rows) / sizeof(rows[0]);
        i++)
    {
        void *found = dlsym(library, rows[i].symbol);
        memcpy(rows[i].field, &found, sizeof(found));
        if (found == NULL) {
            return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                rows[i].symbol);
        }
    }
    return library != NULL ? checked(cu.init(0), "cuInit") : NULL;
}

/* That of a GPU, for as long as the instance lives. */
static TRITONSERVER_Error *
context_of(instance_t *self, int64_t gpu, void **out)
{
    int                 handle;
    TRITONSERVER_Error *err;

    if (gpu < 0 || gpu >= MOST_GPUS) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "device_copy: no such GPU");
    }
    if (self->contexts[gpu] == NULL) {
        err = checked(cu.device(&handle, (int) gpu), "cuDeviceGet");
        if (err == NULL) {
            err = checked(cu.retain(&self->contexts[gpu], handle),
                "cuDevicePrimaryCtxRetain");
        }
        if (err != NULL) {
            return err;
        }
    }
    *out = self->contexts[gpu];
    return NULL;
}

static TRITONSERVER_Error *
open_gpu(instance_t *self)
{
    void               *context;
    TRITONSERVER_Error *err = cu.init == NULL
        ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "device_copy: no driver") : NULL;

    if (err == NULL) {
        err = context_of(self, self->device, &context);
    }
    if (err == NULL) {
        err = checked(cu.push(context), "cuCtxPushCurrent");
    }
    if (err == NULL) {
        err = checked(cu.stream_new(&self->stream, 1), "cuStreamCreate");
        cu.pop(&context);
    }
    return err;
}

static void
close_gpu(instance_t *self)
{
    void *context = self->contexts[self->device];

    if (self->stream != NULL && cu.push(context) == 0) {
        cu.stream_free(self->stream);
        cu.pop(&context);
    }
    for (int i = 0; i < MOST_GPUS; i++) {
        int handle;
        if (self->contexts[i] != NULL && cu.device(&handle, i) == 0) {
            cu.release(handle);
        }
    }
}

static TRITONSERVER_Error *
read_config(instance_t *self, TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char           *base;
    size_t                size;
    char                 *text;
    TRITONSERVER_Error   *err;

    err = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (err != NULL) {
        return err;
    }
    err = TRITONSERVER_MessageSerializeToJson(message, &base, &size);
    text = err == NULL ? strndup(base, size) : NULL;
    if (text != NULL) {
        const char *want = strstr(text, "\"want\"");
        self->path = strstr(text, "\"PATH\"") != NULL;
        self->batches = strstr(text, "\"max_batch_size\":0,") == NULL;
        self->want = want == NULL || strstr(want, "\"GPU\"") != NULL
            ? TRITONSERVER_MEMORY_GPU
            : strstr(want, "\"CPU_PINNED\"") != NULL
            ? TRITONSERVER_MEMORY_CPU_PINNED : TRITONSERVER_MEMORY_CPU;
    }
    free(text);
    TRITONSERVER_MessageDelete(message);
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
    TRITONBACKEND_Backend         *backend;
    TRITONBACKEND_Model           *model;
    TRITONSERVER_Error            *err;
    instance_t                    *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "no memory");
    }
    err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (err == NULL) {
        err = TRITONBACKEND_ModelBackend(model, &backend);
    }
    if (err == NULL) {
        err = TRITONBACKEND_BackendMemoryManager(backend, &self->manager);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceKind(instance, &kind);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &self->device);
    }
    if (err == NULL) {
        err = read_config(self, model);
    }
    if (err == NULL) {
        self->on_gpu = kind == TRITONSERVER_INSTANCEGROUPKIND_GPU;
        err = self->on_gpu ? open_gpu(self) : NULL;
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceSetState(instance, self);
    }
    if (err != NULL) {
        close_gpu(self);
        free(self);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void               *state;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);

    if (err == NULL && state != NULL) {
        close_gpu(state);
        free(state);
    }
    return err;
}

/* Queues it; what lies on no GPU at either end is copied at once. */
static TRITONSERVER_Error *
move(instance_t *self, const place_t *to, const place_t *from)
{
    bool                to_gpu = to->type == TRITONSERVER_MEMORY_GPU;
    bool                from_gpu = from->type == TRITONSERVER_MEMORY_GPU;
    address_t           dst = (address_t) (uintptr_t) to->base;
    address_t           src = (address_t) (uintptr_t) from->base;
    void               *dst_context, *src_context;
    TRITONSERVER_Error *err;

    if (!to_gpu && !from_gpu) {
        memcpy(to->base, from->base, from->size);
        return NULL;
    }
    if (!self->on_gpu) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
            "device_copy: this instance is on no GPU");
    }
    if (!from_gpu) {
        return checked(cu.to_device(dst, from->base, from->size,
            self->stream), "cuMemcpyHtoDAsync");
    }
    if (!to_gpu) {
        return checked(cu.to_host(to->base, src, from->size, self->stream),
            "cuMemcpyDtoHAsync");
    }
    if (to->id == from->id) {
        return checked(cu.on_device(dst, src, from->size, self->stream),
            "cuMemcpyDtoDAsync");
    }
    err = context_of(self, to->id, &dst_context);
    if (err == NULL) {
        err = context_of(self, from->id, &src_context);
    }
    return err != NULL ? err : checked(cu.to_peer(dst, dst_context, src,
        src_context, from->size, self->stream), "cuMemcpyPeerAsync");
}

static void
say(job_t *job, const place_t *place)
{
    size_t len = strlen(job->path);

    snprintf(job->path + len, sizeof(job->path) - len, "%s%s:%lld",
        len > 0 ? " " : "", TRITONSERVER_MemoryTypeString(place->type),
        (long long) place->id);
}

/* To the host by way of the instance's GPU; offset: of to in the output. */
static TRITONSERVER_Error *
detour(instance_t *self, job_t *job, const place_t *to, const place_t *from,
    uint64_t offset, uint64_t total)
{
    TRITONSERVER_Error *err = NULL;
    place_t             there = { .type = TRITONSERVER_MEMORY_GPU,
                                  .id = self->device, .size = from->size };
    void               *base;

    if (job->scratch.base == NULL) {
        err = TRITONBACKEND_MemoryManagerAllocate(self->manager, &base,
            there.type, there.id, total);
        if (err != NULL) {
            return err;
        }
        job->scratch = there;
        job->scratch.base = base;
    }
    there.base = job->scratch.base + offset;
    err = move(self, &there, from);
    return err != NULL ? err : move(self, to, &there);
}

/* All buffers of an input, one behind the other, to to. */
static TRITONSERVER_Error *
gather(instance_t *self, job_t *job, TRITONBACKEND_Input *input, place_t to)
{
    uint64_t            offset = 0;
    uint32_t            count;
    TRITONSERVER_Error *err = TRITONBACKEND_InputProperties(input, NULL, NULL,
        NULL, NULL, NULL, &count);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        place_t     from = { .type = TRITONSERVER_MEMORY_GPU,
                             .id = self->device };
        const void *base;

        err = TRITONBACKEND_InputBuffer(input, i, &base, &from.size,
            &from.type, &from.id);
        from.base = (char *) (uintptr_t) base;
        if (err != NULL || from.size == 0) {
            continue;
        }
        say(job, &from);
        err = self->on_gpu && to.type != TRITONSERVER_MEMORY_GPU
            && (from.type != TRITONSERVER_MEMORY_GPU
                || from.id != self->device)
            ? detour(self, job, &to, &from, offset, to.size)
            : move(self, &to, &from);
        to.base += from.size;
        offset += from.size;
    }
    return err;
}

static TRITONSERVER_Error *
answer_out(instance_t *self, job_t *job, TRITONBACKEND_Input *input)
{
    place_t              out = { .type = self->want, .id = self->device };
    const int64_t       *shape;
    uint32_t             dims;
    void                *base;
    TRITONBACKEND_Output *output;
    TRITONSERVER_Error  *err;

    err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &dims,
        &out.size, NULL);
    if (err == NULL) {
        err = TRITONBACKEND_ResponseOutput(job->response, &output, "OUT",
            TRITONSERVER_TYPE_UINT8, shape, dims);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &base, out.size, &out.type,
            &out.id);
    }
    if (err != NULL || out.size == 0) {
        return err;
    }

    out.base = base;
    err = gather(self, job, input, out);
    say(job, &out);
    return err;
}

static TRITONSERVER_Error *
keep_state(instance_t *self, job_t *job, TRITONBACKEND_Request *request,
    TRITONBACKEND_Input *input)
{
    place_t             next = { .type = TRITONSERVER_MEMORY_GPU,
                                 .id = self->device };
    const int64_t      *shape;
    uint32_t            dims;
    void               *base;
    TRITONSERVER_Error *err;

    err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &dims,
        &next.size, NULL);
    if (err == NULL) {
        err = TRITONBACKEND_StateNew(&job->state, request, "STATE_OUT",
            TRITONSERVER_TYPE_UINT8, shape, dims);
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateBuffer(job->state, &base, next.size,
            &next.type, &next.id);
    }
    if (err == NULL) {
        next.base = base;
        err = gather(self, job, input, next);
        say(job, &next);
    }
    return err;
}

static void
queue(instance_t *self, job_t *job, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *in, *state;

    job->err = TRITONBACKEND_RequestInput(request, "IN", &in);
    if (job->err != NULL) {
        return;
    }

    TRITONSERVER_Error *none = TRITONBACKEND_RequestInput(request, "STATE",
        &state);
    if (none != NULL) {
        TRITONSERVER_ErrorDelete(none);
        job->err = answer_out(self, job, in);
        return;
    }

    job->err = answer_out(self, job, state);
    if (job->err == NULL) {
        job->err = keep_state(self, job, request, in);
    }
}

static TRITONSERVER_Error *
answer_path(const instance_t *self, job_t *job)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t                 id = 0, shape[2] = { 1, 1 };
    uint32_t                len = (uint32_t) strlen(job->path);
    TRITONBACKEND_Output   *output;
    void                   *base;
    TRITONSERVER_Error     *err;

    err = TRITONBACKEND_ResponseOutput(job->response, &output, "PATH",
        TRITONSERVER_TYPE_BYTES, shape, self->batches ? 2 : 1);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &base, len + sizeof(len),
            &type, &id);
    }
    if (err == NULL) {
        memcpy(base, &len, sizeof(len));
        memcpy((char *) base + sizeof(len), job->path, len);
    }
    return err;
}

/* Its bytes are there. */
static void
finish(instance_t *self, job_t *job)
{
    if (job->err == NULL && job->state != NULL) {
        job->err = TRITONBACKEND_StateUpdate(job->state);
    }
    if (job->err == NULL && self->path) {
        job->err = answer_path(self, job);
    }
    if (job->scratch.base != NULL) {
        TRITONSERVER_ErrorDelete(TRITONBACKEND_MemoryManagerFree(
            self->manager, job->scratch.base, job->scratch.type,
            job->scratch.id));
    }
    TRITONBACKEND_ResponseSend(job->response,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL, job->err);
    TRITONSERVER_ErrorDelete(job->err);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    void               *state, *context;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(instance,
        &state);
    job_t              *jobs = calloc(count, sizeof(*jobs));

    if (err != NULL || jobs == NULL) {
        free(jobs);
        return err != NULL ? err : TRITONSERVER_ErrorNew(
            TRITONSERVER_ERROR_INTERNAL, "no memory");
    }

    instance_t *self = state;
    context = self->contexts[self->device];
    if (self->on_gpu) {
        cu.push(context);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (TRITONBACKEND_ResponseNew(&jobs[i].response, requests[i]) == NULL)
        {
            queue(self, &jobs[i], requests[i]);
        }
    }
    int rc = self->on_gpu ? cu.sync(self->stream) : 0;
    if (self->on_gpu) {
        cu.pop(&context);
    }

    for (uint32_t i = 0; i < count; i++) {
        if (jobs[i].err == NULL) {
            jobs[i].err = checked(rc, "cuStreamSynchronize");
        }
        if (jobs[i].response != NULL) {
            finish(self, &jobs[i]);
        }
        TRITONBACKEND_RequestRelease(requests[i],
            TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    free(jobs);
    return NULL;
}
