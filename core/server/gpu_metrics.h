/*
 * gpu_metrics.h - the families nv_gpu_* and nv_energy_consumption, with one
 *                 row for each usable GPU.
 *
 * Owner    The server.
 * Thread   write: any.  If the last reading is too old, one caller reads the
 *          GPUs without a lock; the others use the last reading.
 * Units    as each family's help text says; ns for times.
 * Errors   Only out of memory.  A GPU's field that could not be read three
 *          times in a row keeps its last value, or has no row.
 * Route    metrics text -> [GPU metrics] -> nvml.c
 */

#ifndef INF_SERVER_GPU_METRICS_H
#define INF_SERVER_GPU_METRICS_H

#include <stdint.h>

#include "core/base/buf.h"
#include "core/tensor/memory.h"

typedef struct inf_gpu_metrics_s inf_gpu_metrics_t;

/* *out is NULL without a GPU or management library, or if the environment has
   TRITON_SERVER_CPU_ONLY.  A reading is used for half an interval. */
INF_CHECK inf_err_t *inf_gpu_metrics_new(const inf_memory_t *memory,
    uint64_t interval_ns, inf_gpu_metrics_t **out);
void inf_gpu_metrics_free(inf_gpu_metrics_t *g);

/* Appends the families; g may be NULL. */
void inf_gpu_metrics_write(inf_gpu_metrics_t *g, uint64_t now_ns,
    inf_buf_t *out);

#endif /* INF_SERVER_GPU_METRICS_H */
