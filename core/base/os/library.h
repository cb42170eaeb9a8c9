/*
 * library.h - a foreign library opened at run time, by a table of functions.
 *
 * Owner    The process: the library stays open.
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND: the library cannot be opened.  UNSUPPORTED: the library
 *          lacks a function.
 * Route    cuda_driver, nvml -> [library] -> dlopen
 */

#ifndef INF_BASE_OS_LIBRARY_H
#define INF_BASE_OS_LIBRARY_H

#include <stddef.h>

#include "core/base/error.h"

/* A function's name, and where a struct of functions has its pointer. */
typedef struct {
    const char *symbol;
    size_t      offset;
} inf_library_row_t;

/* Opens the library and fills the struct at functions, count rows of it.  lacks
   ends the message on a function that is not there. */
INF_CHECK inf_err_t *inf_library_open(const char *name,
    const inf_library_row_t *rows, size_t count, const char *lacks,
    void *functions);

#endif /* INF_BASE_OS_LIBRARY_H */
