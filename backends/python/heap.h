/*
 * heap.h - allocates blocks in one direction's part of the channel.
 *
 * Owner    The side that writes there.  Bookkeeping is in private memory, safe
 *          from the other side; blocks have ids, which are checked when they
 *          are freed.
 * Thread   one at a time; the caller's lock.
 * Units    bytes; a block's length is a power of two.
 * Errors   false: out of memory, or out of addresses.
 * Route    message, tensor -> [heap] -> channel
 *
 * The heap is a range of addresses in a sparse file: a block longer than its
 * contents costs no pages.  Idle pages beyond PY_HEAP_IDLE are returned to the
 * system.
 */

#ifndef PY_HEAP_H
#define PY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_HEAP_CLASSES 37             /* 2^0 to 2^36                       */
#define PY_HEAP_LEAST   8              /* 256 bytes                         */
#define PY_HEAP_IDLE    (UINT64_C(64) << 20)

typedef struct {
    uint64_t offset;                    /* in the file                       */
    uint32_t next;                      /* next free one of its class        */
    uint8_t  order;
    bool     used;
    bool     cold;                      /* free, without pages               */
} py_block_t;

typedef struct {
    int          fd;                    /* for trimming; not owned           */
    uint64_t     top;
    uint64_t     end;
    uint64_t     in_use;
    uint64_t     idle;                  /* in free blocks with pages         */
    py_block_t *blocks;
    uint32_t     count;
    uint32_t     capacity;
    uint32_t     free[PY_HEAP_CLASSES];    /* id + 1; 0: none               */
} py_heap_t;

/* Covers size bytes of the file from begin on. */
void py_heap_init(py_heap_t *h, int fd, uint64_t begin, uint64_t size);
void py_heap_fini(py_heap_t *h);

/* Allocates a block of at least size bytes, at offset in the file. */
bool py_heap_alloc(py_heap_t *h, uint64_t size, uint32_t *id,
    uint64_t *offset);

/* Frees a block; false: no such block, or already free. */
bool py_heap_free(py_heap_t *h, uint64_t id);

#endif /* PY_HEAP_H */
