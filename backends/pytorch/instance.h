/*
 * instance.h - one instance of a model: an engine and its runner.
 *
 * Owner    The core's instance object owns it from ModelInstanceInitialize
 *          to ModelInstanceFinalize.
 * Thread   new and free on a loader's thread, execute on the instance's.
 * Units    none.
 * Errors   execute fails as a whole only before it has touched a request.
 * Route    instance thread -> [instance] -> common/runner -> engine
 */

#ifndef PT_INSTANCE_H
#define PT_INSTANCE_H

#include "model.h"
#include "names.h"

#include "common/runner.h"

typedef struct {
    pt_model_t    *model;
    pt_engine_t   *engine;
    bool           own;             /* the engine                            */
    pt_places_t    places;
    pt_argument_t *arguments;       /* of one run                            */
    pt_results_t   results;
    bk_runner_t    runner;
} pt_instance_t;

/* As common/entry.h has them; *out, instance: a pt_instance_t. */
BK_CHECK TRITONSERVER_Error *pt_instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
void pt_instance_free(void *instance);
BK_CHECK TRITONSERVER_Error *pt_instance_execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* PT_INSTANCE_H */
