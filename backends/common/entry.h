/*
 * entry.h - the entry points of a backend as a table of functions.
 *
 * Owner    The core's backend, model and instance objects own the objects
 *          from open and new until close and free.
 * Thread   the core's; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from open and new; per request from execute.
 * Route    core -> [entry] -> the backend's runtime, model and instance
 *
 * A backend whose CMakeLists.txt calls backend_table_library defines
 * bk_backend; entry.c exports the functions that the core looks for.
 */

#ifndef BK_ENTRY_H
#define BK_ENTRY_H

#include "error.h"

typedef struct {
    /* Open and close the runtime's library, once a process; both may be
     * NULL. */
    TRITONSERVER_Error *(*open)(void **runtime,
        TRITONBACKEND_Backend *backend);
    void (*close)(void *runtime);

    TRITONSERVER_Error *(*model_new)(void **model,
        TRITONBACKEND_Model *handle, void *runtime);
    void (*model_free)(void *model);

    TRITONSERVER_Error *(*instance_new)(void **instance,
        TRITONBACKEND_ModelInstance *handle, void *model);
    void (*instance_free)(void *instance);
    TRITONSERVER_Error *(*execute)(void *instance,
        TRITONBACKEND_Request **requests, uint32_t count);

    /* NULL: an instance is always ready. */
    TRITONSERVER_Error *(*ready)(void *instance);

    /* The fields of unused_fields.h that the backend uses, ended by NULL; a
     * NULL list: none.  Each load logs the other ones that are set. */
    const char *const *used_fields;

    /* The parameters of models that the backend reads, ended by NULL; "*" at
     * the end of a name stands for any text.  Each load logs the other ones
     * that the model has.  A NULL list: models may have any parameter. */
    const char *const *parameters;

    bool cpu_only;      /* models without an instance group run on the CPU
                         * even if there is a GPU                            */
} bk_backend_t;

extern const bk_backend_t bk_backend;

#endif /* BK_ENTRY_H */
