/* gpu_blocks.c - see gpu_blocks.h */

#include "gpu_blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_UNIT (UINT64_C(2) << 20)
#define ALIGNMENT  UINT64_C(512)

_Static_assert(sizeof(gpu_ipc_t) == PY_GPU_HANDLE, "a handle in messages");

static TRITONSERVER_Error *block_with(py_gpu_blocks_t *b,
    gpu_device_t *device, uint64_t length, uint32_t *block);
static TRITONSERVER_Error *block_add(py_gpu_blocks_t *b,
    gpu_device_t *device, uint64_t length, uint32_t *block);
static TRITONSERVER_Error *block_open(py_gpu_block_t *block,
    gpu_device_t *device, uint64_t size);
static TRITONSERVER_Error *block_share(py_gpu_block_t *block);
static void block_free(py_gpu_block_t *block);
static TRITONSERVER_Error *piece_new(py_gpu_blocks_t *b, uint32_t *piece);
static py_gpu_piece_t *piece_find(py_gpu_blocks_t *b, uint64_t id);
static void piece_unref(py_gpu_blocks_t *b, py_gpu_piece_t *p);
static bool widen(void **entries, uint32_t *count, uint32_t most,
    size_t size);
static uint64_t id_of(uint32_t generation, uint32_t index);
static uint64_t aligned(uint64_t v, uint64_t unit);

void
py_gpu_blocks_init(py_gpu_blocks_t *b)
{
    *b = (py_gpu_blocks_t) { .gpus = NULL };
    pthread_mutex_init(&b->lock, NULL);
}

void
py_gpu_blocks_fini(py_gpu_blocks_t *b)
{
    for (uint32_t i = 0; i < b->block_count; i++) {
        block_free(&b->blocks[i]);
    }

    free(b->blocks);
    free(b->pieces);
    py_gpus_unref(b->gpus);
    pthread_mutex_destroy(&b->lock);
}

TRITONSERVER_Error *
py_gpu_alloc(py_gpu_blocks_t *b, int64_t gpu, uint64_t length,
    py_gpu_place_t *place, bk_buffer_t *to)
{
    gpu_device_t *device;
    uint32_t block = 0, index = 0;

    if (b->gpus == NULL || length == 0 || length > INT64_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "no memory of GPUs can have %" PRIu64 " bytes here", length);
    }

    TRITONSERVER_Error *err = py_gpus_device(b->gpus, gpu, &device);
    if (err != NULL) {
        return err;
    }

    pthread_mutex_lock(&b->lock);
    err = piece_new(b, &index);
    if (err == NULL) {
        err = block_with(b, device, length, &block);
    }
    if (err == NULL) {
        py_gpu_block_t *k = &b->blocks[block];
        py_gpu_piece_t *p = &b->pieces[index];

        *p = (py_gpu_piece_t) {
            .offset = k->used, .length = length, .block = block, .refs = 2,
            .generation = p->generation + 1, .given = true
        };
        k->used = aligned(k->used + length, ALIGNMENT);
        k->pieces++;

        *place = (py_gpu_place_t) {
            .piece = id_of(p->generation, index), .length = length,
            .gpu = (uint64_t) gpu, .offset = p->offset,
            .block = id_of(k->generation, block), .size = k->size
        };
        memcpy(place->handle, &k->handle, sizeof(k->handle));
        *to = (bk_buffer_t) {
            .base = (void *) (uintptr_t) (k->base + p->offset),
            .len_bytes = length, .type = TRITONSERVER_MEMORY_GPU, .id = gpu
        };
    }
    pthread_mutex_unlock(&b->lock);
    return err;
}

TRITONSERVER_Error *
py_gpu_ref(py_gpu_blocks_t *b, uint64_t piece, uint64_t length,
    bk_buffer_t *at)
{
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&b->lock);
    py_gpu_piece_t *p = piece_find(b, piece);
    if (p == NULL || !p->given || length > p->length) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the interpreter has"
            " named memory of a GPU that it does not have");
    } else {
        const py_gpu_block_t *k = &b->blocks[p->block];

        p->refs++;
        *at = (bk_buffer_t) {
            .base = (void *) (uintptr_t) (k->base + p->offset),
            .len_bytes = length, .type = TRITONSERVER_MEMORY_GPU,
            .id = k->device->ordinal
        };
    }
    pthread_mutex_unlock(&b->lock);
    return err;
}

void
py_gpu_unref(py_gpu_blocks_t *b, uint64_t piece)
{
    pthread_mutex_lock(&b->lock);
    piece_unref(b, piece_find(b, piece));
    pthread_mutex_unlock(&b->lock);
}

void
py_gpu_give_back(py_gpu_blocks_t *b, uint64_t piece)
{
    pthread_mutex_lock(&b->lock);
    py_gpu_piece_t *p = piece_find(b, piece);
    if (p != NULL && p->given) {
        p->given = false;
        piece_unref(b, p);
    }
    pthread_mutex_unlock(&b->lock);
}

/* A block with pieces has been named to the interpreter meanwhile, which opens
   it again. */
void
py_gpu_closed(py_gpu_blocks_t *b, uint64_t block)
{
    uint32_t index = (uint32_t) block;

    pthread_mutex_lock(&b->lock);
    if (index < b->block_count && b->blocks[index].pieces == 0
        && b->blocks[index].generation == block >> 32)
    {
        block_free(&b->blocks[index]);
    }
    pthread_mutex_unlock(&b->lock);
}

void
py_gpu_tell(py_gpu_blocks_t *b, TRITONSERVER_Error *err)
{
    pthread_mutex_lock(&b->lock);
    bool first = !b->told;
    b->told = true;
    pthread_mutex_unlock(&b->lock);

    if (first) {
        bk_log(TRITONSERVER_LOG_WARN, "tensors on a GPU are copied to the CPU"
            " for an interpreter: %s", TRITONSERVER_ErrorMessage(err));
    }
    bk_err_drop(err);
}

/* The smallest block with room, or a new one. */
static TRITONSERVER_Error *
block_with(py_gpu_blocks_t *b, gpu_device_t *device, uint64_t length,
    uint32_t *block)
{
    bool found = false;

    for (uint32_t i = 0; i < b->block_count; i++) {
        py_gpu_block_t *k = &b->blocks[i];

        if (k->device == device && k->pieces == 0) {
            k->used = 0;
        }
        if (k->device == device && k->size >= k->used
            && length <= k->size - k->used
            && (!found || k->size < b->blocks[*block].size))
        {
            *block = i;
            found = true;
        }
    }
    return found ? NULL : block_add(b, device, length, block);
}

static TRITONSERVER_Error *
block_add(py_gpu_blocks_t *b, gpu_device_t *device, uint64_t length,
    uint32_t *block)
{
    uint32_t i = 0;

    while (i < b->block_count && b->blocks[i].device != NULL) {
        i++;
    }
    if (i == b->block_count && !widen((void **) &b->blocks, &b->block_count,
        UINT32_MAX / 2, sizeof(*b->blocks)))
    {
        return bk_err_nomem("memory of GPUs");
    }

    *block = i;
    return block_open(&b->blocks[i], device, aligned(length, BLOCK_UNIT));
}

static TRITONSERVER_Error *
block_open(py_gpu_block_t *block, gpu_device_t *device, uint64_t size)
{
    py_gpu_block_t k = {
        .device = device, .size = size, .generation = block->generation + 1
    };

    TRITONSERVER_Error *err = gpu_enter(device);
    if (err != NULL) {
        return err;
    }

    err = gpu_check(device, device->f->alloc(&k.base, size),
        "cannot allocate %" PRIu64 " bytes of GPU %d", size, device->ordinal);
    if (err == NULL) {
        err = block_share(&k);
        if (err == NULL) {
            *block = k;
        } else {
            bk_err_log(gpu_check(device, device->f->free(k.base),
                "cannot free memory of GPU %d", device->ordinal), "python");
        }
    }
    gpu_leave(device);
    return err;
}

/* The driver gives memory with the bytes that another model has left there. */
static TRITONSERVER_Error *
block_share(py_gpu_block_t *block)
{
    gpu_device_t *device = block->device;
    const gpu_functions_t *f = device->f;

    gpu_result_t rc = f->fill(block->base, 0, block->size, NULL);
    if (rc == GPU_SUCCESS) {
        rc = f->stream_sync(NULL);
    }
    TRITONSERVER_Error *err = gpu_check(device, rc,
        "cannot clear memory of GPU %d", device->ordinal);

    return err != NULL ? err
        : gpu_check(device, f->ipc_get(&block->handle, block->base),
            "GPU %d cannot share memory with another process",
            device->ordinal);
}

static void
block_free(py_gpu_block_t *block)
{
    gpu_device_t *device = block->device;

    if (device != NULL && gpu_enter_to_free(device, "an interpreter")) {
        bk_err_log(gpu_check(device, device->f->free(block->base),
            "cannot free memory of GPU %d", device->ordinal), "python");
        gpu_leave(device);
    }
    block->device = NULL;
}

static TRITONSERVER_Error *
piece_new(py_gpu_blocks_t *b, uint32_t *piece)
{
    uint32_t i = 0;

    while (i < b->piece_count && b->pieces[i].refs != 0) {
        i++;
    }
    if (i == b->piece_count && !widen((void **) &b->pieces, &b->piece_count,
        PY_PIECES_MAX, sizeof(*b->pieces)))
    {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "an interpreter has"
            " %u tensors on GPUs; no more are possible", b->piece_count);
    }

    *piece = i;
    return NULL;
}

static py_gpu_piece_t *
piece_find(py_gpu_blocks_t *b, uint64_t id)
{
    uint32_t i = (uint32_t) id;

    return i < b->piece_count && b->pieces[i].refs != 0
        && b->pieces[i].generation == id >> 32 ? &b->pieces[i] : NULL;
}

static void
piece_unref(py_gpu_blocks_t *b, py_gpu_piece_t *p)
{
    if (--p->refs == 0) {
        b->blocks[p->block].pieces--;
    }
}

/* Doubles a table, up to most entries; new ones are zeroes. */
static bool
widen(void **entries, uint32_t *count, uint32_t most, size_t size)
{
    uint32_t more = *count * 2 + 16 < most ? *count * 2 + 16 : most;

    char *p = more > *count ? realloc(*entries, more * size) : NULL;
    if (p == NULL) {
        return false;
    }

    memset(p + *count * size, 0, (more - *count) * size);
    *entries = p;
    *count = more;
    return true;
}

static uint64_t
id_of(uint32_t generation, uint32_t index)
{
    return (uint64_t) generation << 32 | index;
}

static uint64_t
aligned(uint64_t v, uint64_t unit)
{
    return (v + unit - 1) / unit * unit;
}
