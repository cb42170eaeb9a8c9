/*
 * copy.h - copies tensor bytes between kinds of memory, in batches.
 *
 * Owner    The caller's memory: init, copies, finish.  Source and destination
 *          stay valid and unchanged until finish has returned.
 * Thread   one.
 * Units    bytes.
 * Errors   UNAVAILABLE: a GPU that is not in use; otherwise the driver's
 *          error.  After an error finish must still be called.
 * Route    states, gathering of inputs -> [copies] -> driver
 *
 * A copy between host kinds is done at once; one from or to a GPU is queued
 * and done when finish returns, with one wait for each GPU.  Copies of one
 * batch must not depend on each other.
 */

#ifndef INF_TENSOR_COPY_H
#define INF_TENSOR_COPY_H

#include "core/tensor/memory.h"
#include "core/tensor/request.h"

typedef struct {
    void              *base;
    inf_memory_type_t  type;
    int64_t            id;
} inf_place_t;

#define INF_COPIES_STREAMS 8u       /* GPUs in one batch; with more it waits
                                       earlier                               */

typedef struct {
    inf_memory_t *memory;
    uint32_t      count;
    struct {
        int64_t   device;
        void     *stream;
    } streams[INF_COPIES_STREAMS];
} inf_copies_t;

/* Takes no stream before the first copy to or from a GPU. */
void inf_copies_init(inf_copies_t *c, inf_memory_t *memory);

/* Waits for all queued copies and returns the first error. */
INF_CHECK inf_err_t *inf_copies_finish(inf_copies_t *c);

/* Copies at once within host memory; otherwise queues the copy, and both places
   must not change until finish. */
INF_CHECK inf_err_t *inf_copies_add(inf_copies_t *c, const inf_place_t *to,
    const inf_place_t *from, uint64_t size);

/* Fills memory with zeros. */
INF_CHECK inf_err_t *inf_copies_zero(inf_copies_t *c, const inf_place_t *to,
    uint64_t size);

/* Copies the buffers of an input, one after another; INVALID_ARG: they have
   more than size bytes. */
INF_CHECK inf_err_t *inf_copies_gather(inf_copies_t *c, const inf_place_t *to,
    uint64_t size, const inf_buffer_t *buffers, uint32_t count);

/* Makes one copy and waits for it. */
INF_CHECK inf_err_t *inf_memory_copy(inf_memory_t *memory,
    const inf_place_t *to, const inf_place_t *from, uint64_t size);

#endif /* INF_TENSOR_COPY_H */
