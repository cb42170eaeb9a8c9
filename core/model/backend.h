/*
 * backend.h - one backend: a shared library, its settings, its state.
 *
 * Owner    The lifecycle's backend table owns it until the server ends; models
 *          refer to it.
 * Thread   Fields are set while it is loaded, then read by any; state is the
 *          backend's own.
 * Units    none.
 * Errors   none here.
 * Route    repository finds the library, abi opens it and sets the fields.
 */

#ifndef INF_MODEL_BACKEND_H
#define INF_MODEL_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/model/instance_groups.h"

/* value of TRITONBACKEND_EXECUTION_DEVICE_BLOCKING */
#define INF_BACKEND_DEVICE_BLOCKING 1u

struct inf_json_text_s;
struct inf_plugin_s;

typedef struct inf_backend_s {
    char       *name;
    char       *library;            /* full path                             */
    char       *dir;                /* directory of its files                */
    void       *state;              /* the backend's own                     */
    uint32_t    execution_policy;   /* TRITONBACKEND_ExecutionPolicy         */
    bool        parallel_loading;

    inf_preferred_group_t *preferred;   /* from GetBackendAttribute          */
    uint32_t               preferred_count;

    struct {                        /* used by the table of backends         */
        inf_link_t  link;
        uint64_t    opened_with;        /* hash of its settings              */
        bool        opened_as_python;   /* settings are the Python backend's */
        uint64_t    file;               /* file last found at its library's
                                           path; 0: none                     */
    } repository;

    struct {
        struct inf_plugin_s    *plugin; /* handle and entry points           */
        struct inf_json_text_s *config; /* {"cmdline":{...}}                 */
    } abi;
} inf_backend_t;

#endif /* INF_MODEL_BACKEND_H */
