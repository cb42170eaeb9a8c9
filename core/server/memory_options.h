/*
 * memory_options.h - sets up the process's memory by the core's configuration.
 *
 * Owner    A server that called this ends with inf_memory_unshare.
 * Thread   the one that starts the server.
 * Units    bytes.
 * Errors   INVALID_ARG: a setting that is not a compute capability.
 * Route    server start -> [memory options] -> memory
 */

#ifndef INF_SERVER_MEMORY_OPTIONS_H
#define INF_SERVER_MEMORY_OPTIONS_H

#include "core/base/error.h"
#include "core_config.pb-c.h"

/* Calls inf_memory_share with the sizes, peers and compute capability of
   config. */
INF_CHECK inf_err_t *inf_memory_share_configured(
    const NginxInference__CoreConfig *config);

#endif /* INF_SERVER_MEMORY_OPTIONS_H */
