/*
 * model.h - a model of backend openvino: its file and configuration.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize; instances borrow it.
 * Thread   written by new and free, but for the compiled network, which the
 *          first instance makes while the others wait.
 * Units    none.
 * Errors   as its parts have them, with the model's name.
 * Route    ModelInitialize -> [model] -> instance
 */

#ifndef VINO_MODEL_H
#define VINO_MODEL_H

#include "network.h"

#include <pthread.h>

typedef struct {
    vino_runtime_t      *rt;            /* set in new                        */
    TRITONBACKEND_Model *handle;        /* set in new                        */
    bk_model_config_t    config;        /* set in new                        */
    char                *path;          /* set in new; the model file        */
    pthread_mutex_t      lock;          /* guards the next two, until the
                                         * network is compiled               */
    vino_options_t       options;       /* under lock: properties            */
    vino_network_t      *network;       /* under lock: compiled, tensors'
                                         * symbols                           */
} vino_model_t;

/* The functions of bk_backend_t (common/entry.h). */
BK_CHECK TRITONSERVER_Error *vino_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void vino_model_free(void *model);

/* The network is compiled once, for all instances together. */
BK_CHECK TRITONSERVER_Error *vino_model_compile(vino_model_t *m);

#endif /* VINO_MODEL_H */
