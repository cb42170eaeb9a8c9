/*
 * copy.h - moves tensor bytes between kinds of memory, several at a time.
 *
 * Owner    The caller's memory: init, copies, finish.  Source and destination
 *          stay the caller's until finish has returned.
 * Thread   one.
 * Units    bytes.
 * Errors   UNAVAILABLE: a GPU that is not in use; else what the driver says.
 *          After an error finish still has to be called.
 * Route    states, gathering of inputs -> [copies] -> driver
 *
 * Between host kinds a copy is done at once; one from or to a GPU is queued
 * and done when finish returns: one wait for each GPU, however many copies.
 * Copies of one batch must not depend on each other.
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

#define INF_COPIES_STREAMS 8u       /* GPUs of one batch; more wait sooner   */

typedef struct {
    inf_memory_t *memory;
    uint32_t      count;
    struct {
        int64_t   device;
        void     *stream;
    } streams[INF_COPIES_STREAMS];
} inf_copies_t;

/* No stream is taken before the first copy to or from a GPU. */
void inf_copies_init(inf_copies_t *c, inf_memory_t *memory);

/* Waits for everything queued.  The first error, if there were several. */
INF_CHECK inf_err_t *inf_copies_finish(inf_copies_t *c);

/* Copies at once in host memory, else queues the copy; both places stay as
   they are until finish. */
INF_CHECK inf_err_t *inf_copies_add(inf_copies_t *c, const inf_place_t *to,
    const inf_place_t *from, uint64_t size);

/* Fills with zeros. */
INF_CHECK inf_err_t *inf_copies_zero(inf_copies_t *c, const inf_place_t *to,
    uint64_t size);

/* The buffers of an input, one behind the other; INVALID_ARG: they are more
   than size bytes. */
INF_CHECK inf_err_t *inf_copies_gather(inf_copies_t *c, const inf_place_t *to,
    uint64_t size, const inf_buffer_t *buffers, uint32_t count);

/* One copy and the wait for it. */
INF_CHECK inf_err_t *inf_memory_copy(inf_memory_t *memory,
    const inf_place_t *to, const inf_place_t *from, uint64_t size);

#endif /* INF_TENSOR_COPY_H */
