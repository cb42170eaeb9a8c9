/*
 * xgboost_binary.h - whether a file in XGBoost's first format is as long as
 *                    it says.
 *
 * Owner    nothing is kept of the file.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG naming the part whose end is not in the file.
 * Route    model file -> [xgboost_binary] -> treelite
 *
 * treelite makes room for any length that it finds before it reads: a few
 * wrong bytes would ask for more memory than there is.
 */

#ifndef TREES_XGBOOST_BINARY_H
#define TREES_XGBOOST_BINARY_H

#include "common/error.h"

#include <stddef.h>

/* Compares all lengths in the file of len bytes with len. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_binary_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_BINARY_H */
