/*
 * xgboost_json.h - reads a model of XGBoost in JSON before treelite does.
 *
 * Owner    nothing is kept of the text.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: xgboost_document's, or no value at the byte that is
 *          named.
 * Route    model file -> [xgboost_json] -> xgboost_document; then treelite
 *
 * Only as much of the syntax is checked as it takes to see the values as
 * treelite does; the rest is left to it.
 */

#ifndef TREES_XGBOOST_JSON_H
#define TREES_XGBOOST_JSON_H

#include "common/error.h"

#include <stddef.h>

/* Checks all trees in the text. */
BK_CHECK TRITONSERVER_Error *trees_xgboost_json_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_JSON_H */
