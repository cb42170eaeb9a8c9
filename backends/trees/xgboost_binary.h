/*
 * xgboost_binary.h - checks that a file in XGBoost's first format is not
 *                    truncated.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG naming the truncated part.
 * Route    model file -> [xgboost_binary] -> treelite
 *
 * treelite allocates any length before it reads: a few wrong bytes would
 * request more memory than there is.
 */

#ifndef TREES_XGBOOST_BINARY_H
#define TREES_XGBOOST_BINARY_H

#include "common/error.h"

#include <stddef.h>

/* Compares all lengths in the file of len bytes with len. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_binary_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_BINARY_H */
