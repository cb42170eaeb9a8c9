/*
 * xgboost_ubj.h - reads a model of XGBoost in UBJSON before treelite does.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a fault of xgboost_document.h, or no UBJSON at a byte,
 *          which the text names.
 * Route    model file -> [xgboost_ubj] -> xgboost_document; then treelite
 *
 * treelite's parser accepts any count of values without bytes, and would be
 * busy for ever with a huge one.
 */

#ifndef TREES_XGBOOST_UBJ_H
#define TREES_XGBOOST_UBJ_H

#include "common/error.h"

#include <stddef.h>

/* Checks all trees in the file. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_ubj_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_UBJ_H */
