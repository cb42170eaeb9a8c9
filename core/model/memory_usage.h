/*
 * memory_usage.h - what a backend says its model and instances occupy.
 *
 * Owner    The model, for itself and for each instance; a new report replaces
 *          the one before.
 * Thread   any: under the model's usage_lock.
 * Units    bytes.
 * Errors   out of memory.
 * Route    abi's ReportMemoryUsage -> [memory usage] -> statistics.
 */

#ifndef INF_MODEL_MEMORY_USAGE_H
#define INF_MODEL_MEMORY_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/tensor/sink.h"

struct inf_model_s;

typedef struct {
    inf_memory_type_t  memory_type;
    int64_t            memory_id;
    uint64_t           byte_size;
} inf_memory_row_t;

/* One report; zeroed memory is an empty one. */
typedef struct {
    inf_memory_row_t *rows;         /* the model's usage_lock                */
    size_t            count;        /* the model's usage_lock                */
} inf_memory_usage_t;

/* Replaces usage, which is model's or one of its instances', by a copy of
   rows; count 0 frees it. */
INF_CHECK inf_err_t *inf_model_report_memory(struct inf_model_s *model,
    inf_memory_usage_t *usage, const inf_memory_row_t *rows, size_t count);

/* The sum per type and id over the model and its instances, in that order;
   the caller frees *rows, NULL when there are none. */
INF_CHECK inf_err_t *inf_model_memory_usage(struct inf_model_s *model,
    inf_memory_row_t **rows, size_t *count);

#endif /* INF_MODEL_MEMORY_USAGE_H */
