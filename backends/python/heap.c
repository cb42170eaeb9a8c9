/* heap.c - see heap.h */

#include "heap.h"

#include <fcntl.h>
#include <stdlib.h>

#define TRIM_LEAST 16                   /* shorter blocks keep their pages   */

static uint8_t order_of(uint64_t size);
static bool block_new(py_heap_t *h, uint8_t order, uint32_t *id);

void
py_heap_init(py_heap_t *h, int fd, uint64_t begin, uint64_t size)
{
    *h = (py_heap_t) { .fd = fd, .top = begin, .end = begin + size };
}

void
py_heap_fini(py_heap_t *h)
{
    free(h->blocks);
    h->blocks = NULL;
    h->count = 0;
    h->capacity = 0;
}

bool
py_heap_alloc(py_heap_t *h, uint64_t size, uint32_t *id, uint64_t *offset)
{
    if (size > UINT64_C(1) << (PY_HEAP_CLASSES - 1)) {
        return false;
    }

    uint8_t order = order_of(size);
    if (h->free[order] != 0) {
        *id = h->free[order] - 1;
        h->free[order] = h->blocks[*id].next;

    } else if (!block_new(h, order, id)) {
        return false;
    }

    py_block_t *b = &h->blocks[*id];
    if (!b->used && !b->cold) {
        h->idle -= UINT64_C(1) << order;
    }
    b->used = true;
    b->cold = false;
    h->in_use += UINT64_C(1) << order;
    *offset = b->offset;
    return true;
}

bool
py_heap_free(py_heap_t *h, uint64_t id)
{
    if (id >= h->count || !h->blocks[id].used) {
        return false;
    }

    py_block_t *b = &h->blocks[id];
    uint64_t size = UINT64_C(1) << b->order;

    b->used = false;
    h->in_use -= size;
    if (h->idle + size > PY_HEAP_IDLE && b->order >= TRIM_LEAST
        && fallocate(h->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            (off_t) b->offset, (off_t) size) == 0)
    {
        b->cold = true;

    } else {
        h->idle += size;
    }

    b->next = h->free[b->order];
    h->free[b->order] = (uint32_t) id + 1;
    return true;
}

static uint8_t
order_of(uint64_t size)
{
    uint8_t order = PY_HEAP_LEAST;

    while (UINT64_C(1) << order < size) {
        order++;
    }
    return order;
}

static bool
block_new(py_heap_t *h, uint8_t order, uint32_t *id)
{
    uint64_t size = UINT64_C(1) << order;
    uint64_t align = size < 4096 ? size : 4096;
    uint64_t offset = (h->top + align - 1) & ~(align - 1);

    if (offset > h->end || size > h->end - offset || h->count == UINT32_MAX) {
        return false;
    }

    if (h->count == h->capacity) {
        uint32_t capacity = h->capacity == 0 ? 64 : h->capacity * 2;
        py_block_t *wider = capacity < h->capacity ? NULL
            : realloc(h->blocks, capacity * sizeof(*wider));
        if (wider == NULL) {
            return false;
        }
        h->blocks = wider;
        h->capacity = capacity;
    }

    h->top = offset + size;
    *id = h->count++;
    h->blocks[*id] = (py_block_t) {
        .offset = offset, .order = order, .cold = true
    };
    return true;
}
