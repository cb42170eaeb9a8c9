/*
 * lightgbm.h - whether a text of LightGBM is whole.
 *
 * Owner    nothing is kept of the text.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the text ends before its trees do.
 * Route    model file -> [lightgbm] -> treelite
 *
 * treelite takes the trees that are there for the model, and what is missing
 * of the last one for repetitions of its last number.
 */

#ifndef TREES_LIGHTGBM_H
#define TREES_LIGHTGBM_H

#include "common/error.h"

#include <stddef.h>

BK_CHECK TRITONSERVER_Error *trees_lightgbm_check(const void *data,
    size_t len);

#endif /* TREES_LIGHTGBM_H */
