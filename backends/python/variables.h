/*
 * variables.h - the environment variables of a process to be started.
 *
 * Owner    A list belongs to the caller and ends with py_variables_free.
 * Thread   one list, one thread; environ is only read.
 * Units    s.
 * Errors   INTERNAL naming the environment's activate script, with what the
 *          script wrote to stderr.
 * Route    environment -> [variables] -> posix_spawn
 */

#ifndef PY_VARIABLES_H
#define PY_VARIABLES_H

#include "common/error.h"

/* "NAME=value" strings with a NULL at the end. */
typedef struct {
    char   **items;
    size_t   count;
} py_variables_t;

/* This process's own. */
BK_CHECK TRITONSERVER_Error *py_variables_own(py_variables_t *v);

/* This process's own as they are after activation of the environment in
 * directory.  A virtual environment (pyvenv.cfg) says VIRTUAL_ENV, a conda
 * environment CONDA_PREFIX and what its bin/activate sets; both put their bin
 * in front of PATH and end PYTHONHOME.  A script that takes longer than limit_s
 * is killed, and fails. */
BK_CHECK TRITONSERVER_Error *py_variables_activated(py_variables_t *v,
    const char *directory, unsigned limit_s);

/* NULL: there is none. */
const char *py_variables_get(const py_variables_t *v, const char *name);

/* Does nothing to an empty list. */
void py_variables_free(py_variables_t *v);

#endif /* PY_VARIABLES_H */
