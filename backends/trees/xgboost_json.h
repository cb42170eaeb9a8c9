/*
 * xgboost_json.h - whether JSON is nested no deeper than a model of XGBoost.
 *
 * Owner    nothing is kept of the text.
 * Thread   any.
 * Units    bytes; levels of arrays and objects.
 * Errors   INVALID_ARG: it is deeper.
 * Route    model file -> [xgboost_json] -> treelite
 *
 * treelite's parser calls itself for each level that it passes over: a text of
 * brackets alone would end the process.
 */

#ifndef TREES_XGBOOST_JSON_H
#define TREES_XGBOOST_JSON_H

#include "common/error.h"

#include <stddef.h>

BK_CHECK TRITONSERVER_Error *trees_xgboost_json_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_JSON_H */
