/*
 * xgboost_ubj.h - whether UBJSON is whole and nested no deeper than a model of
 *                 XGBoost.
 *
 * Owner    nothing is kept of the file.
 * Thread   any.
 * Units    bytes; levels of arrays and objects.
 * Errors   INVALID_ARG: it is deeper, or no UBJSON at the byte that is named.
 * Route    model file -> [xgboost_ubj] -> treelite
 *
 * treelite's parser calls itself for each level, also of what it passes over,
 * and takes any count of values that need no bytes: a file of brackets would
 * end the process, a count would keep the load busy for ever.
 */

#ifndef TREES_XGBOOST_UBJ_H
#define TREES_XGBOOST_UBJ_H

#include "common/error.h"

#include <stddef.h>

BK_CHECK TRITONSERVER_Error *trees_xgboost_ubj_check(const void *data,
    size_t len);

#endif /* TREES_XGBOOST_UBJ_H */
