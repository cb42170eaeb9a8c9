/*
 * environment.h - the interpreter that runs a model, and the variables it is
 *                 started with: those of the server, or of the environment
 *                 that the model names (EXECUTION_ENV_PATH).
 *
 * Owner    The backend owns the set; each model owns what it has opened.  The
 *          strings of an environment live until it is closed.
 * Thread   Models open and close theirs from several loading threads.
 * Units    bytes, s.
 * Errors   INVALID_ARG naming the parameter's value, the file or the entry of
 *          an archive that is wrong.  INTERNAL: the system's reason.
 * Route    ModelInitialize -> [environment] -> posix_spawn
 *
 * An archive is extracted into a private directory, once for all models that
 * name it while its time and size stay, and removed when the last of them is
 * closed.
 */

#ifndef PY_ENVIRONMENT_H
#define PY_ENVIRONMENT_H

#include <stdint.h>

#include "common/error.h"

typedef struct py_environments_s py_environments_t;
typedef struct py_environment_s py_environment_t;

typedef struct {
    const char *directory;      /* where archives are extracted; NULL: TMPDIR,
                                   or /tmp                                   */
    uint64_t    archive_bytes;  /* of the files in one, at most              */
    unsigned    activate_s;     /* that an activate script may take          */
} py_environment_options_t;

BK_CHECK TRITONSERVER_Error *py_environments_new(
    const py_environment_options_t *options, py_environments_t **out);

/* Every environment has been closed; set may be NULL. */
void py_environments_free(py_environments_t *set);

/* value: the model's EXECUTION_ENV_PATH; NULL or "": the interpreter is
 * python, or where that is NULL or "" the first python3 of the PATH.
 * model_directory is what $$TRITON_MODEL_DIRECTORY stands for. */
BK_CHECK TRITONSERVER_Error *py_environment_open(py_environments_t *set,
    const char *value, const char *model_directory, const char *python,
    py_environment_t **out);

/* Every process of the environment has ended; e may be NULL. */
void py_environment_close(py_environment_t *e);

/* An absolute path. */
const char *py_environment_python(const py_environment_t *e);

/* "NAME=value" strings, with a NULL at the end. */
char *const *py_environment_variables(const py_environment_t *e);

#endif /* PY_ENVIRONMENT_H */
