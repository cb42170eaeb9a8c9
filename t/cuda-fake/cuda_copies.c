/* cuda_copies.c - streams, and copies that are done when one is waited for. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

result_t
cuStreamCreate(inf_cu_stream_t *stream, unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || flags != INF_CU_STREAM_NON_BLOCK))
    {
        rc = wrong_locked(__func__, "no context, or flags",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = calloc(1, sizeof(*s));
        assert(s != NULL);
        s->device = number_of(current());
        fake.streams++;
        *stream = s;
    }
    return end(rc);
}

static void
drop_locked(stream_t *s, bool perform)
{
    copy_t *c = s->first;

    while (c != NULL) {
        copy_t *next = c->next;
        if (perform && c->src != NULL) {
            memmove(c->dst, c->src, c->size);
        } else if (perform) {
            memset(c->dst, c->value, c->size);
        }
        free(c);
        fake.queued--;
        c = next;
    }
    s->first = NULL;
    s->last = NULL;
}

result_t
cuStreamDestroy_v2(inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;

    if (s->first != NULL) {
        wrong_locked(__func__, "copies were never waited for", 0);
    }
    drop_locked(s, false);
    free(s);
    fake.streams--;
    return end(rc);
}

/* As the real one: what failed is gone, the stream goes on. */
result_t
cuStreamSynchronize(inf_cu_stream_t stream)
{
    BEGIN();
    fake.waits++;
    drop_locked(stream, rc == INF_CU_SUCCESS);
    return end(rc);
}

static result_t
queue_locked(const char *function, stream_t *s, char *dst, const char *src,
    unsigned char value, size_t size)
{
    if (current() == NULL || s->device != number_of(current())) {
        return wrong_locked(function, "the stream is another device's",
            INF_CU_INVALID_CONTEXT);
    }

    copy_t *c = calloc(1, sizeof(*c));
    assert(c != NULL);
    *c = (copy_t) { NULL, dst, src, value, size };
    if (s->last == NULL) {
        s->first = c;
    } else {
        s->last->next = c;
    }
    s->last = c;
    fake.queued++;
    return INF_CU_SUCCESS;
}

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

/* false, and wrong: an address of a device is given as one of the host. */
static bool
host_bytes_locked(const char *function, const void *at)
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
    return true;
}

result_t
cuMemcpyHtoDAsync_v2(inf_cu_ptr_t dst, const void *src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;

    if (rc == INF_CU_SUCCESS) {
        char *to = device_bytes_locked(__func__, dst, size, s->device);
        rc = to == NULL || !host_bytes_locked(__func__, src)
            ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, to, src, 0, size);
    }
    return end(rc);
}

result_t
cuMemcpyDtoHAsync_v2(void *dst, inf_cu_ptr_t src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;

    if (rc == INF_CU_SUCCESS) {
        const char *from = device_bytes_locked(__func__, src, size,
            s->device);
        rc = from == NULL || !host_bytes_locked(__func__, dst)
            ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, dst, from, 0, size);
    }
    return end(rc);
}

result_t
cuMemcpyDtoDAsync_v2(inf_cu_ptr_t dst, inf_cu_ptr_t src, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;

    if (rc == INF_CU_SUCCESS) {
        char *to = device_bytes_locked(__func__, dst, size, s->device);
        const char *from = device_bytes_locked(__func__, src, size,
            s->device);
        rc = to == NULL || from == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, to, from, 0, size);
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
        char *to = device_bytes_locked(__func__, dst, size,
            number_of(to_context));
        const char *from = device_bytes_locked(__func__, src, size,
            number_of(from_context));
        rc = to == NULL || from == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, stream, to, from, 0, size);
    }
    return end(rc);
}

result_t
cuMemsetD8Async(inf_cu_ptr_t dst, unsigned char value, size_t size,
    inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;

    if (rc == INF_CU_SUCCESS) {
        char *to = device_bytes_locked(__func__, dst, size, s->device);
        rc = to == NULL ? INF_CU_INVALID_VALUE
            : queue_locked(__func__, s, to, NULL, value, size);
    }
    return end(rc);
}
