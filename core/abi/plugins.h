/*
 * plugins.h - the functions that open and call the plug-ins of a server.
 *
 * Owner    The table is static.
 * Thread   any.
 * Units    none.
 * Errors   those of each kind of plug-in.
 * Route    server -> [plugins] -> backends, repository agents, caches
 */

#ifndef INF_ABI_PLUGINS_H
#define INF_ABI_PLUGINS_H

#include "core/server/server.h"

/* For inf_server_start. */
extern const inf_server_plugins_t inf_abi_plugins;

#endif /* INF_ABI_PLUGINS_H */
