/*
 * model_metadata.h - the metadata of a model that only another server has.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: invalid metadata; out is then undefined.
 * Route    an upstream's answer -> [model metadata] -> client
 */

#ifndef INF_PROTO_MODEL_METADATA_H
#define INF_PROTO_MODEL_METADATA_H

#include "core/base/buf.h"

/* Appends their metadata of the model, restricted to the members of our own;
   metadata of another model are an error. */
INF_CHECK inf_err_t *inf_model_metadata_restrict(inf_slice_t model,
    inf_slice_t theirs, inf_buf_t *out);

#endif /* INF_PROTO_MODEL_METADATA_H */
