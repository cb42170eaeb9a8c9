/*
 * index_join.h - joins two repository indexes.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   An invalid index is an error; out is then unchanged.
 * Route    the core's answer, an upstream's answer -> [index join] -> client
 */

#ifndef INF_PROTO_INDEX_JOIN_H
#define INF_PROTO_INDEX_JOIN_H

#include "core/base/buf.h"

/* Appends ours, and the rows of theirs whose names are not in ours, with name,
   version, state and reason. */
INF_CHECK inf_err_t *inf_index_join(inf_slice_t ours, inf_slice_t theirs,
    inf_buf_t *out);

#endif /* INF_PROTO_INDEX_JOIN_H */
