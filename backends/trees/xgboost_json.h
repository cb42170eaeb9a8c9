/*
 * xgboost_json.h - reads a model of XGBoost in JSON before treelite does.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a fault of xgboost_document.h, or no value at a byte,
 *          which the text names.
 * Route    model file -> [xgboost_json] -> xgboost_document; then treelite
 *
 * The syntax is checked only as far as the values depend on it; treelite checks
 * the rest.
 */

#ifndef TREES_XGBOOST_JSON_H
#define TREES_XGBOOST_JSON_H

#include "common/error.h"

#include <stddef.h>

/* Checks all trees in the text. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_json_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_JSON_H */
