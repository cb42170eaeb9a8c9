#include "core/tensor/copy.h"

#include <string.h>

static int64_t device_of(const inf_place_t *place);
static inf_err_t *stream_of(inf_copies_t *c, int64_t device, void **out);

void
inf_copies_init(inf_copies_t *c, inf_memory_t *memory)
{
    c->memory = memory;
    c->count = 0;
}

inf_err_t *
inf_copies_finish(inf_copies_t *c)
{
    inf_err_t *first = NULL;

    for (uint32_t i = 0; i < c->count; i++) {
        inf_err_t *err = inf_cuda_stream_sync(inf_memory_driver(c->memory),
            c->streams[i].device, c->streams[i].stream);
        inf_memory_give_stream(c->memory, c->streams[i].device,
            c->streams[i].stream);
        if (first == NULL) {
            first = err;
        } else {
            inf_err_log(err);
        }
    }

    c->count = 0;
    return first;
}

inf_err_t *
inf_copies_add(inf_copies_t *c, const inf_place_t *to,
    const inf_place_t *from, uint64_t size)
{
    int64_t target = device_of(to);
    int64_t source = device_of(from);
    void *stream;

    if (size == 0) {
        return NULL;
    }
    if (target == INF_CUDA_HOST && source == INF_CUDA_HOST) {
        memcpy(to->base, from->base, size);
        return NULL;
    }

    int64_t device = target != INF_CUDA_HOST ? target : source;
    inf_err_t *err = stream_of(c, device, &stream);
    return err != NULL ? err : inf_cuda_copy(inf_memory_driver(c->memory),
        device, stream, to->base, target, from->base, source, size);
}

inf_err_t *
inf_copies_zero(inf_copies_t *c, const inf_place_t *to, uint64_t size)
{
    int64_t device = device_of(to);
    void *stream;

    if (size == 0) {
        return NULL;
    }
    if (device == INF_CUDA_HOST) {
        memset(to->base, 0, size);
        return NULL;
    }

    inf_err_t *err = stream_of(c, device, &stream);
    return err != NULL ? err : inf_cuda_zero(inf_memory_driver(c->memory),
        device, stream, to->base, size);
}

inf_err_t *
inf_copies_gather(inf_copies_t *c, const inf_place_t *to, uint64_t size,
    const inf_buffer_t *buffers, uint32_t count)
{
    inf_place_t at = *to;

    for (uint32_t i = 0; i < count; i++) {
        const inf_buffer_t *b = &buffers[i];
        const inf_place_t from = {
            (void *) b->base, b->memory_type, b->memory_id
        };

        if (b->size > size) {
            return inf_err_new(INF_ERR_INVALID_ARG, "buffer %u of %u has %llu"
                " bytes, there is room for %llu", i, count,
                (unsigned long long) b->size, (unsigned long long) size);
        }

        inf_err_t *err = inf_copies_add(c, &at, &from, b->size);
        if (err != NULL) {
            return err;
        }
        at.base = (char *) at.base + b->size;
        size -= b->size;
    }

    return NULL;
}

inf_err_t *
inf_memory_copy(inf_memory_t *memory, const inf_place_t *to,
    const inf_place_t *from, uint64_t size)
{
    inf_copies_t c;
    inf_copies_init(&c, memory);

    inf_err_t *err = inf_copies_add(&c, to, from, size);
    inf_err_t *late = inf_copies_finish(&c);
    if (err != NULL) {
        inf_err_free(late);
        return err;
    }
    return late;
}

/* The device of a place; an invalid id must not become the host. */
static int64_t
device_of(const inf_place_t *place)
{
    return place->type != INF_MEMORY_GPU ? INF_CUDA_HOST
        : place->id >= 0 ? place->id : INT64_MAX;
}

/* The batch's stream of that GPU. */
static inf_err_t *
stream_of(inf_copies_t *c, int64_t device, void **out)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->streams[i].device == device) {
            *out = c->streams[i].stream;
            return NULL;
        }
    }

    if (c->count == INF_COPIES_STREAMS) {
        inf_err_t *err = inf_copies_finish(c);
        if (err != NULL) {
            return err;
        }
    }

    inf_err_t *err = inf_memory_take_stream(c->memory, device, out);
    if (err == NULL) {
        c->streams[c->count].device = device;
        c->streams[c->count++].stream = *out;
    }
    return err;
}
