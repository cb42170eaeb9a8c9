/* cuda_copies.c - copies and fills, done when their stream is waited for. */

#include "inside.h"

#include <stdlib.h>
#include <string.h>

/* Whether all of them are mapped, piece by piece, where a device may look. */
static bool
is_mapped_locked(uintptr_t at, size_t size, int device)
{
    uintptr_t from = at;

    while (from < at + size) {
        const block_t *b = find_locked(from, 1);
        if (b == NULL || b->backing == NULL || !b->reachable
            || (device >= 0 && b->device != device))
        {
            return false;
        }
        from = b->base + b->size;
    }
    return true;
}

/* NULL, and wrong: those bytes are not of a device (of that one: >= 0). */
static char *
device_bytes_locked(const char *function, inf_cu_ptr_t at, size_t size,
    int device)
{
    const block_t *b = find_locked((uintptr_t) at, 1);
    bool known = b != NULL && b->device >= 0 && (b->backing != NULL
        ? is_mapped_locked((uintptr_t) at, size, device)
        : find_locked((uintptr_t) at, size) == b
            && (device < 0 || b->device == device));

    if (!known) {
        wrong_locked(function, "not memory of that device", 0);
        return NULL;
    }
    return b->bytes + ((uintptr_t) at - b->base);
}

/* false, and wrong: an address of a device is given as one of the host, or
   the device may only read there. */
static bool
host_bytes_locked(const char *function, const void *at, size_t size,
    bool written, bool *pageable)
{
    for (int i = 0; i < DEVICES; i++) {
        const char *window = fake.devices[i].window;
        if (window != NULL && (const char *) at >= window
            && (const char *) at < window + FAKE_CUDA_MEMORY)
        {
            wrong_locked(function, "not memory of the host", 0);
            return false;
        }
    }

    *pageable = false;
    for (uintptr_t p = (uintptr_t) at, until = p + size; p < until; ) {
        const block_t *b = find_locked(p, 1);
        if (b == NULL || b->device >= 0) {
            *pageable = true;
            return true;
        }
        if (written && b->read_only) {
            wrong_locked(function, "memory that a device only reads", 0);
            return false;
        }
        p = b->base + b->size;
    }
    return true;
}

/* Where a stream of the current device is meant. */
static stream_t *
own_stream_locked(const char *function, inf_cu_stream_t stream)
{
    stream_t *s = stream_locked(stream);

    if (s == NULL || current() == NULL || s->device != number_of(current())) {
        wrong_locked(function, "the stream is another device's", 0);
        return NULL;
    }
    return s;
}

result_t
cuMemcpyHtoDAsync_v2(inf_cu_ptr_t dst, const void *src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = own_stream_locked(__func__, stream);
        if (s == NULL) {
            return end(INF_CU_INVALID_CONTEXT);
        }

        work_t w = { .moved = FAKE_CUDA_TO_DEVICE, .src = src, .size = size };
        w.dst = device_bytes_locked(__func__, dst, size, s->device);
        rc = w.dst == NULL
            || !host_bytes_locked(__func__, src, size, false, &w.pageable)
            ? INF_CU_INVALID_VALUE : queue_locked(__func__, s, w);
    }
    return end(rc);
}

result_t
cuMemcpyDtoHAsync_v2(void *dst, inf_cu_ptr_t src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = own_stream_locked(__func__, stream);
        if (s == NULL) {
            return end(INF_CU_INVALID_CONTEXT);
        }

        work_t w = { .moved = FAKE_CUDA_TO_HOST, .dst = dst, .size = size };
        w.src = device_bytes_locked(__func__, src, size, s->device);
        rc = w.src == NULL
            || !host_bytes_locked(__func__, dst, size, true, &w.pageable)
            ? INF_CU_INVALID_VALUE : queue_locked(__func__, s, w);
    }
    return end(rc);
}

result_t
cuMemcpyDtoDAsync_v2(inf_cu_ptr_t dst, inf_cu_ptr_t src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = own_stream_locked(__func__, stream);
        if (s == NULL) {
            return end(INF_CU_INVALID_CONTEXT);
        }

        work_t w = { .moved = FAKE_CUDA_ON_DEVICE, .size = size };
        w.dst = device_bytes_locked(__func__, dst, size, s->device);
        w.src = device_bytes_locked(__func__, src, size, s->device);
        rc = w.dst == NULL || w.src == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, w);
    }
    return end(rc);
}

result_t
cuMemcpyPeerAsync(inf_cu_ptr_t dst, inf_cu_context_t to_context,
    inf_cu_ptr_t src, inf_cu_context_t from_context, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = own_stream_locked(__func__, stream);
        if (s == NULL) {
            return end(INF_CU_INVALID_CONTEXT);
        }

        work_t w = { .moved = FAKE_CUDA_TO_PEER, .size = size };
        w.dst = device_bytes_locked(__func__, dst, size,
            number_of(to_context));
        w.src = device_bytes_locked(__func__, src, size,
            number_of(from_context));
        rc = w.dst == NULL || w.src == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, w);
    }
    return end(rc);
}

result_t
cuMemsetD8Async(inf_cu_ptr_t dst, unsigned char value, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = own_stream_locked(__func__, stream);
        if (s == NULL) {
            return end(INF_CU_INVALID_CONTEXT);
        }

        work_t w = { .kind = WORK_FILL, .value = value, .size = size };
        w.dst = device_bytes_locked(__func__, dst, size, s->device);
        rc = w.dst == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, w);
    }
    return end(rc);
}
