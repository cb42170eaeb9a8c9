/*
 * plugin.h - opens a backend's library and calls its entry points.
 *
 * Owner    The backend table owns backends; a model's lifecycle calls these in
 *          the order of the reference (section 3).
 * Thread   open, close: serialized per backend by the caller; model and
 *          instance calls: loader threads and the destroyer.
 * Units    none.
 * Errors   NOT_FOUND: library or entry point missing, with the loader's text;
 *          otherwise the backend's error.
 * Route    lifecycle -> [plugin] -> backend.
 */

#ifndef INF_ABI_PLUGIN_H
#define INF_ABI_PLUGIN_H

#include "core/repository/plugin_ops.h"

/* open: library, entry points, Initialize and GetBackendAttribute.
   close: Finalize; the library stays mapped, as backends expect.
   model_init, instance_init: after a failure the finalizer is called.
   instance_ready: NULL also if the backend lacks the entry point. */
extern const inf_plugin_ops_t inf_plugin_ops;

/* Calls the entry point Execute; used by execute.c only. */
INF_CHECK inf_err_t *inf_plugin_execute(inf_instance_t *instance,
    inf_request_t **requests, uint32_t count);

#endif /* INF_ABI_PLUGIN_H */
