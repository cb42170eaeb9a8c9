/*
 * memory_usage.h - the memory that a backend reports for its model and
 *                  instances.
 *
 * Owner    The model, for itself and for each instance; a new report replaces
 *          the previous one.
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

/* The last report; zeroed memory is empty. */
typedef struct {
    inf_memory_row_t *rows;         /* under the model's usage_lock          */
    size_t            count;        /* under the model's usage_lock          */
} inf_memory_usage_t;

/* Replaces usage, of model or one of its instances, by a copy of rows; count 0
   frees it. */
INF_CHECK inf_err_t *inf_model_report_memory(struct inf_model_s *model,
    inf_memory_usage_t *usage, const inf_memory_row_t *rows, size_t count);

/* Sums by type and id over the model and its instances, sorted; the caller
   frees *rows, which is NULL without rows. */
INF_CHECK inf_err_t *inf_model_memory_usage(struct inf_model_s *model,
    inf_memory_row_t **rows, size_t *count);

#endif /* INF_MODEL_MEMORY_USAGE_H */
