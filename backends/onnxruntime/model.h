/*
 * model.h - a model of the onnxruntime backend: its file and configuration.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize; instances borrow it.
 * Thread   written by new and free, but for the spare session, which any
 *          instance's thread may take while instances load in parallel, and
 *          the shared ones.
 * Units    none.
 * Errors   as session, complete and options have them, with the model's name.
 * Route    ModelInitialize -> [model] -> instance
 */

#ifndef ORT_MODEL_H
#define ORT_MODEL_H

#include "session.h"

#include "common/model_config.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct ort_shared_s ort_shared_t;

typedef struct {
    ort_runtime_t           *rt;            /* set in new                    */
    TRITONBACKEND_Model     *handle;        /* set in new                    */
    bk_model_config_t        config;        /* set in new                    */
    bool                     share;         /* set in new: a session of the
                                             * library for all instances on
                                             * a device                      */
    _Atomic(ort_session_t *) spare;         /* seq_cst: made to complete the
                                             * configuration; goes to the
                                             * first CPU instance            */
    pthread_mutex_t          lock;          /* guards shared                 */
    ort_shared_t            *shared;
} ort_model_t;

/* As common/entry.h has them; *out, model: an ort_model_t. */
BK_CHECK TRITONSERVER_Error *ort_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void ort_model_free(void *model);

/* A session for an instance of that kind, checked against the
 * configuration; the caller's, to be freed before the model. */
BK_CHECK TRITONSERVER_Error *ort_model_open_session(ort_model_t *m,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id,
    ort_session_t **out);

#endif /* ORT_MODEL_H */
