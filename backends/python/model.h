/*
 * model.h - a model of the python backend: its files and its interpreter.
 *
 * Owner    The core's model owns it as its state.
 * Thread   written by new, then read by any until free, but for
 *          `serving`.
 * Units    none.
 * Errors   new: an invalid configuration or file, or the exception raised by
 *          completing the configuration.
 * Route    ModelInitialize -> [model] -> instances
 */

#ifndef PY_MODEL_H
#define PY_MODEL_H

#include <stdatomic.h>

#include "environment.h"
#include "gpu_inputs.h"
#include "settings.h"

/* State of the backend, for all models. */
typedef struct {
    py_settings_t       settings;
    py_environments_t  *environments;
    py_gpus_t          *gpus;
    char              *package;     /* directory of our Python files         */
} py_backend_t;

typedef struct {
    TRITONBACKEND_Model *handle;
    TRITONSERVER_Server *server;
    const py_backend_t  *backend;
    bk_model_config_t    config;
    const char          *name;
    uint64_t             version;
    const char          *directory;     /* of the model                      */
    char                *version_dir;
    char                *backend_dir;   /* of a backend that is a model.py;
                                           NULL: the model has its own       */
    char                *file;          /* imported file                     */
    py_environment_t     *environment;
    atomic_int           *serving;      /* seq_cst: interpreters that serve  */
    py_model_settings_t   settings;
    bool                 decoupled;
    bool                 batching;
} py_model_t;

/* The state of TRITONBACKEND_Initialize and Finalize. */
BK_CHECK TRITONSERVER_Error *py_backend_new(py_backend_t **out,
    TRITONBACKEND_Backend *backend);
void py_backend_free(py_backend_t *b);

/* The state of TRITONBACKEND_ModelInitialize and ModelFinalize. */
BK_CHECK TRITONSERVER_Error *py_model_new(py_model_t **out,
    TRITONBACKEND_Model *handle);
void py_model_free(py_model_t *m);

#endif /* PY_MODEL_H */
