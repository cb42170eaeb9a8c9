/*
 * metadata_join.h - the metadata of two servers as those of one.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: invalid metadata; out is then undefined.
 * Route    the core's answer, an upstream's answer -> [metadata join] ->
 *          client
 */

#ifndef INF_PROTO_METADATA_JOIN_H
#define INF_PROTO_METADATA_JOIN_H

#include "core/base/buf.h"

/* Appends our server's metadata, with only those of its extensions that theirs
   also lists. */
INF_CHECK inf_err_t *inf_metadata_join(inf_slice_t ours, inf_slice_t theirs,
    inf_buf_t *out);

#endif /* INF_PROTO_METADATA_JOIN_H */
