/*
 * entry.h - the entry points of a backend as a table of functions.
 *
 * Owner    What new and open give belongs to the core's backend, model and
 *          instance objects until free and close.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from open and new; per request from execute.
 * Route    core -> [entry] -> the backend's runtime, model and instance
 *
 * For backends whose CMakeLists.txt calls backend_table_library: they define
 * bk_backend, and entry.c has the functions that the core looks for.
 */

#ifndef BK_ENTRY_H
#define BK_ENTRY_H

#include "error.h"

typedef struct {
    /* The runtime's library, once a process; both may be NULL. */
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

    /* NULL: an instance that has been made is ready. */
    TRITONSERVER_Error *(*ready)(void *instance);

    /* Fields of the configuration that it acts on, of those that
     * unused_fields.h has; NULL ends the list, or is the list: none.  Others
     * that are set are named in the log once a load. */
    const char *const *used_fields;

    /* Parameters of models that it reads, NULL ends the list; one that ends in
     * "*" stands for all that begin so.  Others that a model has are named in
     * the log likewise.  NULL is the list: models may have any. */
    const char *const *parameters;

    bool cpu_only;      /* models without an instance group run on the CPU,
                         * where there is a GPU, too                         */
} bk_backend_t;

extern const bk_backend_t bk_backend;

#endif /* BK_ENTRY_H */
