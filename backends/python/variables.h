/*
 * variables.h - the environment variables of a process to be started.
 *
 * Owner    The caller owns a list, until py_variables_free.
 * Thread   one list, one thread; environ is only read.
 * Units    s.
 * Errors   INTERNAL naming the environment's activate script, with its output
 *          on stderr.
 * Route    environment -> [variables] -> posix_spawn
 */

#ifndef PY_VARIABLES_H
#define PY_VARIABLES_H

#include "common/error.h"

/* "NAME=value" strings, followed by NULL. */
typedef struct {
    char   **items;
    size_t   count;
} py_variables_t;

/* Copies this process's variables. */
BK_CHECK TRITONSERVER_Error *py_variables_own(py_variables_t *v);

/* Sets this process's variables as after activating the environment in
   directory.  A virtual environment (pyvenv.cfg) sets VIRTUAL_ENV, a conda
   environment CONDA_PREFIX and the variables of its bin/activate; both put
   their bin first in PATH and unset PYTHONHOME.  A script that takes longer
   than limit_s is killed, which is an error. */
BK_CHECK TRITONSERVER_Error *py_variables_activated(py_variables_t *v,
    const char *directory, unsigned limit_s);

/* The value of a variable, or NULL. */
const char *py_variables_get(const py_variables_t *v, const char *name);

/* Frees the list, which may be empty. */
void py_variables_free(py_variables_t *v);

#endif /* PY_VARIABLES_H */
