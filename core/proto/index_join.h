/*
 * index_join.h - two repository indexes as one.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   An index that is none is an error; out is as it was then.
 * Route    the core's answer, an upstream's answer -> [index join] -> client
 */

#ifndef INF_PROTO_INDEX_JOIN_H
#define INF_PROTO_INDEX_JOIN_H

#include "core/base/buf.h"

/* Appends ours, and those rows of theirs whose names ours has not: of each the
   texts name, version, state and reason. */
INF_CHECK inf_err_t *inf_index_join(inf_slice_t ours, inf_slice_t theirs,
    inf_buf_t *out);

#endif /* INF_PROTO_INDEX_JOIN_H */
