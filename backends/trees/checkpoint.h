/*
 * checkpoint.h - whether a treelite checkpoint is as long as it says.
 *
 * Owner    nothing is kept of the file.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG naming the field whose end is not in the file, or the
 *          version.
 * Route    model file -> [checkpoint] -> treelite
 *
 * treelite reads a checkpoint without asking whether the bytes are there, and
 * makes arrays of any length that it finds; so the lengths are compared with
 * the file first.  The contents of the arrays are checked by forest.
 */

#ifndef TREES_CHECKPOINT_H
#define TREES_CHECKPOINT_H

#include "common/error.h"

#include <stddef.h>

/* Compares all lengths in a checkpoint of len bytes with len. */
BK_CHECK TRITONSERVER_Error *trees_checkpoint_check(const void *data,
    size_t len);

#endif /* TREES_CHECKPOINT_H */
