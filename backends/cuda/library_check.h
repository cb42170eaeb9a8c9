/*
 * library_check.h - checks that a model.so is not truncated.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a part of the library is missing.
 * Route    library -> [library check] -> dlopen
 *
 * dlopen() maps segments without checking the file's size: reading a missing
 * one ends the process by SIGBUS.  It reports all other errors itself.
 */

#ifndef GPU_LIBRARY_CHECK_H
#define GPU_LIBRARY_CHECK_H

#include "common/error.h"

/* Succeeds if every segment is in the file, and for a file that dlopen()
 * will reject by itself. */
BK_CHECK TRITONSERVER_Error *gpu_library_check(const char *path);

#endif /* GPU_LIBRARY_CHECK_H */
