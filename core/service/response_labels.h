/*
 * response_labels.h - the labels of an output to be classified.
 *
 * Owner    The model has the labels; their list is the model's or in the
 *          response's arena.
 * Thread   as the response's.
 * Units    none.
 * Errors   none: the worker reports outputs that cannot be classified.
 * Route    backend -> infer's sink -> [response_labels] -> record
 */

#ifndef INF_SERVICE_RESPONSE_LABELS_H
#define INF_SERVICE_RESPONSE_LABELS_H

#include "core/model/model.h"
#include "core/tensor/response.h"
#include "core/wire/response_record.h"

/* Adds the labels that a worker needs to d, which describes out; rec is the
   request's record, or NULL. */
void inf_response_labels(const inf_model_t *model,
    const inf_infer_record_t *rec, inf_response_t *response,
    const inf_output_t *out, inf_response_output_desc_t *d);

#endif /* INF_SERVICE_RESPONSE_LABELS_H */
