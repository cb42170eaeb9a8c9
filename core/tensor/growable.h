/*
 * growable.h - memory of the host or a GPU that grows without moving: a range
 *              of addresses, of which the begin has memory.
 *
 * Owner    The state that uses it.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   UNAVAILABLE: the range ends, the GPU has no more memory, or may
 *          not be used; out of memory; else what the driver says.  Nothing
 *          changes then.
 * Route    state.c (use_growable_memory) -> [growable] -> kernel, driver
 */

#ifndef INF_TENSOR_GROWABLE_H
#define INF_TENSOR_GROWABLE_H

#include "core/tensor/memory.h"

typedef struct inf_growable_s inf_growable_t;

#define INF_GROWABLE_HOST       (-1)            /* instead of a GPU          */
#define INF_GROWABLE_HOST_RANGE (16ull << 30)   /* only addresses            */

/* On a GPU as long a range as the process's options say; no memory yet. */
INF_CHECK inf_err_t *inf_growable_new(inf_memory_t *memory, int64_t device,
    inf_growable_t **out);

/* May be NULL. */
void inf_growable_free(inf_growable_t *g);

/* Memory for at least size bytes; what was there stays.  Never less. */
INF_CHECK inf_err_t *inf_growable_fit(inf_growable_t *g, uint64_t size);

/* The first byte, which never moves. */
void *inf_growable_base(const inf_growable_t *g);

/* Where it lies; the host's id is 0. */
inf_memory_type_t inf_growable_type(const inf_growable_t *g);
int64_t inf_growable_id(const inf_growable_t *g);

#endif /* INF_TENSOR_GROWABLE_H */
