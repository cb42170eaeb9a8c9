/*
 * environment.h - the interpreter that runs a model, and its environment
 *                 variables: the server's, or those of the model's environment
 *                 (EXECUTION_ENV_PATH).
 *
 * Owner    The backend owns the set; each model owns what it has opened.
 *          Strings of an environment are valid until it is closed.
 * Thread   Models open and close theirs from several loading threads.
 * Units    bytes, s.
 * Errors   INVALID_ARG naming the invalid value, file or entry of an archive.
 *          INTERNAL: the system's error.
 * Route    ModelInitialize -> [environment] -> posix_spawn
 *
 * An archive is extracted into a private directory, once for all models that
 * name it while its time and size stay, and removed after the last of them.
 */

#ifndef PY_ENVIRONMENT_H
#define PY_ENVIRONMENT_H

#include <stdint.h>

#include "common/error.h"

typedef struct py_environments_s py_environments_t;
typedef struct py_environment_s py_environment_t;

typedef struct {
    const char *directory;      /* for archives; NULL: TMPDIR, or /tmp       */
    uint64_t    archive_bytes;  /* limit of an archive's files               */
    unsigned    activate_s;     /* limit of an activate script               */
} py_environment_options_t;

/* Creates an empty set. */
BK_CHECK TRITONSERVER_Error *py_environments_new(
    const py_environment_options_t *options, py_environments_t **out);

/* Frees the set, which may be NULL; every environment is closed. */
void py_environments_free(py_environments_t *set);

/* Opens an environment.  value: the model's EXECUTION_ENV_PATH, in which
   $$TRITON_MODEL_DIRECTORY is model_directory.  NULL or "": uses python, or if
   that is NULL or "" the first python3 in PATH. */
BK_CHECK TRITONSERVER_Error *py_environment_open(py_environments_t *set,
    const char *value, const char *model_directory, const char *python,
    py_environment_t **out);

/* Closes e, which may be NULL; its processes have ended. */
void py_environment_close(py_environment_t *e);

/* The interpreter's absolute path. */
const char *py_environment_python(const py_environment_t *e);

/* "NAME=value" strings, followed by NULL. */
char *const *py_environment_variables(const py_environment_t *e);

#endif /* PY_ENVIRONMENT_H */
