/* bls_response.c - see bls_response.h */

#include "bls_response.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

/* Provided by our server; in NVIDIA's any model may have a response cache. */
bool inf_outputs_are_cached(TRITONSERVER_InferenceRequest *request)
    __attribute__((weak));

/* An output's memory: a block or a piece on a GPU, passed to the interpreter
   later, or the backend's own. */
typedef struct {
    py_link_t  *link;
    uint64_t    offset;
    uint32_t    id;
    bool        given;
    bool        hidden;
    bool        on_gpu;
    py_gpu_place_t place;       /* then                                      */
} output_t;

static TRITONSERVER_Error *allocator_of(
    TRITONSERVER_ResponseAllocator **out);
static TRITONSERVER_Error *output_alloc(
    TRITONSERVER_ResponseAllocator *allocator, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t type_id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual_type,
    int64_t *actual_id);
static bool gpu_alloc(const py_bls_outputs_t *o, size_t size, output_t *out,
    void **buffer);
static TRITONSERVER_Error *output_release(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
    int64_t type_id);
static TRITONSERVER_Error *write_outputs(const py_bls_outputs_t *o,
    py_writer_t *w, TRITONSERVER_InferenceResponse *response);
static TRITONSERVER_Error *write_copy(py_link_t *link, py_writer_t *w,
    const void *base, size_t size);
static TRITONSERVER_Error *write_response_parameters(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);

TRITONSERVER_Error *
py_bls_outputs_set(py_bls_outputs_t *o, TRITONSERVER_InferenceRequest *request,
    TRITONSERVER_InferenceResponseCompleteFn_t on_response, void *userp)
{
    TRITONSERVER_ResponseAllocator *allocator;

    o->hidden = inf_outputs_are_cached == NULL
        || inf_outputs_are_cached(request);
    TRITONSERVER_Error *err = allocator_of(&allocator);
    return err != NULL ? err
        : TRITONSERVER_InferenceRequestSetResponseCallback(request,
            allocator, o, on_response, userp);
}

void
py_bls_response_write(const py_bls_outputs_t *o, py_writer_t *w,
    TRITONSERVER_InferenceResponse *response)
{
    size_t begin = w->len;

    TRITONSERVER_Error *err = response == NULL ? NULL
        : TRITONSERVER_InferenceResponseError(response);
    py_write_list(w, 3);
    if (err == NULL && response != NULL) {
        py_write_none(w);
        err = write_outputs(o, w, response);
        if (err == NULL) {
            err = write_response_parameters(w, response);
        }
        if (err == NULL) {
            return;
        }

        py_blocks_free(o->link, w->data + begin, w->len - begin);
        w->len = begin;
        py_write_list(w, 3);
    }

    py_error_write(w, err);
    py_write_list(w, 0);
    py_write_list(w, 0);
    bk_err_drop(err);
}

static TRITONSERVER_Error *
write_outputs(const py_bls_outputs_t *o, py_writer_t *w,
    TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseOutputCount(
        response, &count);
    py_write_list(w, count);
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        TRITONSERVER_DataType datatype;
        TRITONSERVER_MemoryType type;
        const int64_t *shape;
        const char *name;
        const void *base;
        uint64_t dims;
        int64_t type_id;
        size_t size;
        void *userp;

        err = TRITONSERVER_InferenceResponseOutput(response, i, &name,
            &datatype, &shape, &dims, &base, &size, &type, &type_id, &userp);
        if (err != NULL) {
            break;
        }

        py_write_list(w, 4);
        py_write_string(w, name);
        py_write_int(w, datatype);
        py_write_list(w, (uint32_t) dims);
        for (uint64_t k = 0; k < dims; k++) {
            py_write_int(w, shape[k]);
        }

        output_t *out = userp;
        if (out != NULL && out->on_gpu) {
            out->place.length = size;
            py_write_gpu(w, &out->place);
            out->given = !w->failed;
        } else if (out == NULL || size <= PY_INLINE_MAX) {
            py_write_bytes(w, base, base == NULL ? 0 : size);
        } else if (out->hidden) {
            err = write_copy(o->link, w, base, size);
        } else {
            py_write_block(w, out->id, out->offset, size);
            out->given = !w->failed;
        }
    }
    return err;
}

/* Copies the output into a block for the interpreter. */
static TRITONSERVER_Error *
write_copy(py_link_t *link, py_writer_t *w, const void *base, size_t size)
{
    uint64_t offset;
    uint32_t id;

    void *to = py_link_alloc(link, size, &id, &offset);
    if (to == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no room for the %zu"
            " bytes of an output in the memory shared with the interpreter",
            size);
    }

    memcpy(to, base, size);
    py_write_block(w, id, offset, size);
    if (w->failed) {
        py_link_free(link, id);
    }
    return NULL;
}

static TRITONSERVER_Error *
write_response_parameters(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseParameterCount(
        response, &count);
    py_write_list(w, count);
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        TRITONSERVER_ParameterType type;
        const void *value;
        const char *key;

        err = TRITONSERVER_InferenceResponseParameter(response, i, &key,
            &type, &value);
        if (err != NULL) {
            break;
        }

        py_write_list(w, 2);
        py_write_string(w, key);
        py_parameter_write(w, type, value);
    }
    return err;
}

void
py_bls_response_delete(TRITONSERVER_InferenceResponse *response)
{
    if (response != NULL) {
        bk_err_log(TRITONSERVER_InferenceResponseDelete(response),
            "cannot delete a response");
    }
}

/* One allocator for the process: it has no state and outlives all responses. */
static TRITONSERVER_Error *
allocator_of(TRITONSERVER_ResponseAllocator **out)
{
    /* guards allocator */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&lock);
    if (allocator == NULL) {
        err = TRITONSERVER_ResponseAllocatorNew(&allocator, output_alloc,
            output_release, NULL);
    }
    *out = allocator;
    pthread_mutex_unlock(&lock);
    return err;
}

/* false: there is no such memory, and the CPU's is taken. */
static bool
gpu_alloc(const py_bls_outputs_t *o, size_t size, output_t *out,
    void **buffer)
{
    bk_buffer_t at;

    TRITONSERVER_Error *err = py_gpu_alloc(&o->link->gpu, o->gpu, size,
        &out->place, &at);
    if (err != NULL) {
        py_gpu_tell(&o->link->gpu, err);
        return false;
    }

    *buffer = at.base;
    return true;
}

static TRITONSERVER_Error *
output_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t type_id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual_type,
    int64_t *actual_id)
{
    py_bls_outputs_t *o = userp;

    (void) allocator;
    (void) type_id;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer = NULL;
    *buffer_userp = NULL;
    if (size == 0) {
        return NULL;
    }

    output_t *out = calloc(1, sizeof(*out));
    if (out == NULL) {
        return bk_err_nomem("an output");
    }

    out->hidden = o->hidden;
    out->on_gpu = type == TRITONSERVER_MEMORY_GPU && o->gpu >= 0 && !o->hidden
        && gpu_alloc(o, size, out, buffer);
    if (out->on_gpu) {
        out->link = py_link_ref(o->link);
        *buffer_userp = out;
        *actual_type = TRITONSERVER_MEMORY_GPU;
        *actual_id = o->gpu;
        return NULL;
    }

    *buffer = o->hidden ? malloc(size)
        : py_link_alloc(o->link, size, &out->id, &out->offset);
    if (*buffer == NULL) {
        free(out);
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no room for the %zu"
            " bytes of output \"%s\" in the memory shared with the "
            "interpreter", size, name);
    }

    out->link = py_link_ref(o->link);
    *buffer_userp = out;
    return NULL;
}

static TRITONSERVER_Error *
output_release(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
    int64_t type_id)
{
    output_t *out = buffer_userp;

    (void) allocator;
    (void) size;
    (void) type;
    (void) type_id;
    if (out != NULL) {
        if (out->hidden) {
            free(buffer);
        } else if (out->on_gpu) {
            if (!out->given) {
                py_gpu_give_back(&out->link->gpu, out->place.piece);
            }
            py_gpu_unref(&out->link->gpu, out->place.piece);
        } else if (!out->given) {
            py_link_free(out->link, out->id);
        }
        py_link_unref(out->link);
        free(out);
    }
    return NULL;
}
