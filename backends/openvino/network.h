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
    pthread_mutex_t       lock;         /* guards the rest                   */
    uint32_t              instances;    /* that run it                       */
    uint64_t              compile_ns;   /* time of the last compile          */
    ov_compiled_model_t  *compiled;     /* NULL: the next run compiles it    */
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

/* An instance comes (1) or goes (-1). */
void vino_network_use(vino_network_t *n, int change);

/* Makes a request of the compiled model, which is compiled first if it was
 * invalidated.  *generation is the compiled model's; is_current: whether that
 * has not been invalidated since. */
BK_CHECK TRITONSERVER_Error *vino_network_request(vino_network_t *n,
    ov_infer_request_t **request, uint64_t *generation);
bool vino_network_is_current(vino_network_t *n, uint64_t generation);

/* Called after a run that has failed or was cancelled: nodes that it did not
 * reach keep its shapes, and later runs would use them.  The next request
 * compiles the model again; requests of this generation are not used again.
 * false: another run of this generation has failed before. */
bool vino_network_invalidate(vino_network_t *n, uint64_t generation);

/* Whether a run since that time may be cancelled, although the next one has to
 * compile the model: no other instance runs it, and that takes no longer than
 * the run has taken. */
bool vino_network_may_cancel(vino_network_t *n, uint64_t since_ns);

#endif /* VINO_NETWORK_H */
