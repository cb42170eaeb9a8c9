/*
 * checkpoint.h - checks that a treelite checkpoint is not truncated.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG naming the truncated field, or the unknown version.
 * Route    model file -> [checkpoint] -> treelite
 *
 * treelite does not compare the lengths in a checkpoint with the size of the
 * file, and allocates arrays of any length, so the lengths are checked first.
 * forest.h checks the contents of the arrays.
 */

#ifndef TREES_CHECKPOINT_H
#define TREES_CHECKPOINT_H

#include "common/error.h"

#include <stddef.h>

/* Compares all lengths in a checkpoint of len bytes with len. */
BK_CHECK TRITONSERVER_Error *trees_checkpoint_check(const void *data,
    size_t len);

#endif /* TREES_CHECKPOINT_H */
