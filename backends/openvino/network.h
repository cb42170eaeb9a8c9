/*
 * network.h - reads a model's file, adapts and compiles it.
 *
 * Owner    The model; instances borrow the compiled network.
 * Thread   read and adapt on ModelInitialize's; compile by one instance's
 *          loader at a time; then request, is_current and spoil by any
 *          instance's, and the rest is read by anyone.
 * Units    dims are elements, rows are of the batch dimension.
 * Errors   the library's own message with the file's path.  INVALID_ARG: the
 *          file cannot take the shapes that the configuration asks for.
 * Route    model -> [network] -> fit, complete, instance
 */

#ifndef VINO_NETWORK_H
#define VINO_NETWORK_H

#include "options.h"

#include "common/tensors.h"

#include <pthread.h>

typedef struct {
    const vino_runtime_t *rt;           /* set in read                       */
    ov_core_t            *own_core;     /* with an extension, else NULL      */
    const char           *path;         /* the model's                       */
    ov_model_t           *source;       /* set in read and adapt             */
    const vino_options_t *options;      /* the model's, NULL before compile  */
    bk_tensors_t          tensors;      /* set until it is compiled          */
    int64_t               fixed_rows;   /* of each run, 0: any               */
    bool                  alone;        /* one instance runs it              */
    pthread_mutex_t       lock;         /* guards the next two               */
    ov_compiled_model_t  *compiled;     /* NULL: to be made by the next run  */
    uint64_t              generation;   /* of compiled                       */
} vino_network_t;

/* path is borrowed. */
BK_CHECK TRITONSERVER_Error *vino_network_read(vino_network_t **out,
    const vino_runtime_t *rt, const bk_model_config_t *config,
    const vino_options_t *options, const char *path);
void vino_network_free(vino_network_t *n);

/* Gives the network the shapes, datatypes and names of the complete
 * configuration. */
BK_CHECK TRITONSERVER_Error *vino_network_adapt(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);

/* With the properties in options, which are borrowed from then on. */
BK_CHECK TRITONSERVER_Error *vino_network_compile(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);

/* A request of the compiled model, which is made if it is not there. */
BK_CHECK TRITONSERVER_Error *vino_network_request(vino_network_t *n,
    ov_infer_request_t **request, uint64_t *generation);
bool vino_network_is_current(vino_network_t *n, uint64_t generation);

/* After a run that has not come to its end: nodes behind that point may keep
 * its shapes, and later runs of other shapes would use them.  No request of
 * this generation is run again. */
void vino_network_spoil(vino_network_t *n, uint64_t generation);

#endif /* VINO_NETWORK_H */
