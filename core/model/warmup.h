/*
 * warmup.h - runs samples on every instance before its model is ready.
 *
 * Owner    The loader owns the samples, which outlive the runs.
 * Thread   new, free: the loader's.  run: the instance's thread, several
 *          instances at once.
 * Units    bytes.
 * Errors   INVALID_ARG, naming the sample: its data cannot be made, the model
 *          rejects its inputs, or the backend answered with an error.
 *          UNAVAILABLE: it is stopping.
 * Route    configuration, storage -> [warm-up] -> normalise -> executor
 *          -> backend
 *
 * Samples bypass the scheduler.  Their inputs are checked and reshaped as those
 * of a client's request; tensors that are no inputs of the model, such as
 * controls, reach the backend as described in the sample.
 */

#ifndef INF_MODEL_WARMUP_H
#define INF_MODEL_WARMUP_H

#include "core/model/config_storage.h"
#include "core/model/model.h"
#include "core/tensor/request.h"

typedef struct inf_warmup_s inf_warmup_t;

/* As the executor's: takes the requests; the array stays the caller's. */
typedef void (*inf_warmup_execute_fn)(inf_instance_t *instance,
    inf_request_t **requests, uint32_t count);

/* Makes the samples; *out NULL: model->built has none. */
INF_CHECK inf_err_t *inf_warmup_new(const inf_storage_t *st,
    const char *model_dir, const inf_model_t *model, inf_warmup_t **out);
void inf_warmup_free(inf_warmup_t *w);

/* Runs every sample on the instance and waits for its answers, until the first
   failure.  stopping (or NULL) ends it between two runs. */
INF_CHECK inf_err_t *inf_warmup_run(const inf_warmup_t *w,
    inf_instance_t *instance, inf_warmup_execute_fn execute,
    const _Atomic bool *stopping);

#endif /* INF_MODEL_WARMUP_H */
