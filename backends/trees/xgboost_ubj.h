/*
 * xgboost_ubj.h - reads a model of XGBoost in UBJSON before treelite does.
 *
 * Owner    nothing is kept of the file.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: xgboost_document's, or no UBJSON at the byte that is
 *          named.
 * Route    model file -> [xgboost_ubj] -> xgboost_document; then treelite
 *
 * treelite's parser takes any count of values that need no bytes: a count
 * would keep the load busy for ever.
 */

#ifndef TREES_XGBOOST_UBJ_H
#define TREES_XGBOOST_UBJ_H

#include "common/error.h"

#include <stddef.h>

/* Checks all trees in the file. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_ubj_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_UBJ_H */
