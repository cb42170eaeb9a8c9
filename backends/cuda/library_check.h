/*
 * library_check.h - whether a model.so ends where its segments say.
 *
 * Owner    nobody: it opens and closes the file.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a library of which a part is missing.
 * Route    library -> [library check] -> dlopen
 *
 * The loader maps segments without a look at the file's size: reading one that
 * is not there ends the process by SIGBUS.  All else that may be wrong it says
 * itself.
 */

#ifndef GPU_LIBRARY_CHECK_H
#define GPU_LIBRARY_CHECK_H

#include "common/error.h"

BK_CHECK TRITONSERVER_Error *gpu_library_check(const char *path);

#endif /* GPU_LIBRARY_CHECK_H */
