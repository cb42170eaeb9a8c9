/*
 * memory_options.h - the process's memory as the core's configuration asks
 *                    for it.
 *
 * Owner    A server that has shared ends it with inf_memory_unshare.
 * Thread   the one that starts the server.
 * Units    bytes.
 * Errors   INVALID_ARG: a setting that is no compute capability.
 * Route    server start -> [memory options] -> memory
 */

#ifndef INF_SERVER_MEMORY_OPTIONS_H
#define INF_SERVER_MEMORY_OPTIONS_H

#include "core/base/error.h"
#include "core_config.pb-c.h"

/* inf_memory_share with the sizes, the peers and the capability that config
   says. */
INF_CHECK inf_err_t *inf_memory_share_configured(
    const NginxInference__CoreConfig *config);

#endif /* INF_SERVER_MEMORY_OPTIONS_H */
