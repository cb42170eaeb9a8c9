/*
 * network.h - a model's file as the library reads, changes and compiles it.
 *
 * Owner    The model owns it; instances borrow it, compiled.
 * Thread   read and adapt on ModelInitialize's; compile by one instance's
 *          loader at a time; then read by anyone.
 * Units    dims are elements, rows are of the batch dimension.
 * Errors   the library's own message with the file's path.  INVALID_ARG: the
 *          file cannot take the shapes that the configuration asks for.
 * Route    model -> [network] -> fit, complete, instance
 */

#ifndef VINO_NETWORK_H
#define VINO_NETWORK_H

#include "options.h"

#include "common/tensors.h"

typedef struct {
    const vino_runtime_t *rt;
    ov_core_t            *own_core;     /* with an extension, else NULL      */
    const char           *path;         /* the model's                       */
    ov_model_t           *source;       /* NULL once it is compiled          */
    ov_compiled_model_t  *compiled;     /* NULL before                       */
    bk_tensors_t          tensors;
    int64_t               fixed_rows;   /* of each run, 0: any               */
} vino_network_t;

/* path is borrowed. */
BK_CHECK TRITONSERVER_Error *vino_network_read(vino_network_t **out,
    const vino_runtime_t *rt, const bk_model_config_t *config,
    const vino_options_t *options, const char *path);
void vino_network_free(vino_network_t *n);

/* Shapes, types and names as the complete configuration has them. */
BK_CHECK TRITONSERVER_Error *vino_network_adapt(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);

/* With the properties in options; the source is gone afterwards. */
BK_CHECK TRITONSERVER_Error *vino_network_compile(vino_network_t *n,
    const bk_model_config_t *config, const vino_options_t *options);

#endif /* VINO_NETWORK_H */
