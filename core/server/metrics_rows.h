/*
 * metrics_rows.h - values of the metrics families for each model: a row for
 *                  the model, and one for its instances on each GPU.
 *
 * Owner    The rows belong to the caller, from init to fini; their models
 *          outlive them.
 * Thread   one at a time per list.
 * Units    as in statistics.h.
 * Errors   out of memory.
 * Route    statistics of models and instances -> [metrics rows] -> metrics
 *          text
 */

#ifndef INF_SERVER_METRICS_ROWS_H
#define INF_SERVER_METRICS_ROWS_H

#include "core/base/buf.h"
#include "core/server/ready_models.h"

/* Values are read once and written family by family. */
typedef struct {
    inf_model_t           *model;
    const inf_latencies_t *latencies;   /* NULL: not enabled                 */
    char                  *labels;      /* "_tag=..,gpu_uuid=..,model=..":
                                           all before reason and version     */
    char                   version[32]; /* "version=.."                      */
    int32_t                device_id;   /* of the GPU; -1: the model's row   */
    inf_statistics_t       s;
    uint64_t               waiting;     /* requests in queues; of a GPU: 0   */
    uint64_t               executing;   /* likewise                          */
    uint64_t               stuck;       /* instances; likewise               */
} inf_metrics_row_t;

typedef struct {
    inf_metrics_row_t *items;
    size_t             count;
    size_t             cap;
} inf_metrics_rows_t;

/* by_gpu: instances on GPUs get rows of their own. */
INF_CHECK inf_err_t *inf_metrics_rows_init(inf_metrics_rows_t *rows,
    const inf_ready_models_t *ready, bool by_gpu);

/* Also valid after a failed init. */
void inf_metrics_rows_fini(inf_metrics_rows_t *rows);

/* Writes name_suffix{labels,version="1"} and a space; a reason is added as a
   label. */
void inf_metrics_row_put(const inf_metrics_row_t *row, const char *name,
    const char *suffix, const char *reason, inf_buf_t *out);

/* The same with one more label: "le" or "quantile". */
void inf_metrics_row_put_last(const inf_metrics_row_t *row, const char *name,
    const char *suffix, const char *label, const char *value, inf_buf_t *out);

#endif /* INF_SERVER_METRICS_ROWS_H */
