/*
 * metadata_join.h - another server's metadata beside ours: what both servers
 *                   can do, and a model that only the other one has.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: metadata that are none; then out is of no use.
 * Route    the core's answer, an upstream's answer -> [metadata join] -> client
 */

#ifndef INF_PROTO_METADATA_JOIN_H
#define INF_PROTO_METADATA_JOIN_H

#include "core/base/buf.h"

/* Appends our server's metadata, with those of its extensions that theirs
   lists, too. */
INF_CHECK inf_err_t *inf_metadata_join(inf_slice_t ours, inf_slice_t theirs,
    inf_buf_t *out);

/* Appends their metadata of the model, by those members that our own have; of
   another model they are an error. */
INF_CHECK inf_err_t *inf_metadata_of_model(inf_slice_t model,
    inf_slice_t theirs, inf_buf_t *out);

#endif /* INF_PROTO_METADATA_JOIN_H */
