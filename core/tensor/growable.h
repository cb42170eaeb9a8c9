/*
 * growable.h - memory of the host or a GPU that grows without moving: a range
 *              of addresses, whose first part has memory.
 *
 * Owner    The state that uses it.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   UNAVAILABLE: the range or the GPU's memory is exhausted, or the GPU
 *          is not in use; out of memory; otherwise the driver's error.  After
 *          an error nothing has changed.
 * Route    state.c (use_growable_memory) -> [growable] -> kernel, driver
 */

#ifndef INF_TENSOR_GROWABLE_H
#define INF_TENSOR_GROWABLE_H

#include "core/tensor/memory.h"

typedef struct inf_growable_s inf_growable_t;

#define INF_GROWABLE_HOST       (-1)            /* instead of a GPU          */
#define INF_GROWABLE_HOST_RANGE (16ull << 30)   /* addresses only            */

/* Reserves a range, on a GPU of the size in the process's options; no
   memory. */
INF_CHECK inf_err_t *inf_growable_new(inf_memory_t *memory, int64_t device,
    inf_growable_t **out);

/* g may be NULL. */
void inf_growable_free(inf_growable_t *g);

/* Provides memory for at least size bytes; existing contents stay.  Does not
   shrink. */
INF_CHECK inf_err_t *inf_growable_fit(inf_growable_t *g, uint64_t size);

/* The first byte, at a constant address. */
void *inf_growable_base(const inf_growable_t *g);

/* Memory type and id; the host's id is 0. */
inf_memory_type_t inf_growable_type(const inf_growable_t *g);
int64_t inf_growable_id(const inf_growable_t *g);

#endif /* INF_TENSOR_GROWABLE_H */
