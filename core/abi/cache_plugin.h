/*
 * cache_plugin.h - opens the cache that a server is to use: a library, or the
 *                  built-in one.
 *
 * Owner    The server owns it; it outlives everything that looks up in it.
 * Thread   open, close: one; the operations: any.
 * Units    none.
 * Errors   NOT_FOUND: no such cache, or an entry point is missing, with its
 *          name.  INVALID_ARG: a name that is no name.  Else what the cache's
 *          own initialize said.
 * Route    server -> [cache plug-in] -> TRITONCACHE_Cache*
 *
 * <directory>/<name>/libtritoncache_<name>.so of the first directory that has
 * it; "local" is built in where no directory has one.
 */

#ifndef INF_ABI_CACHE_PLUGIN_H
#define INF_ABI_CACHE_PLUGIN_H

#include <stddef.h>

#include "core/cache/cache_ops.h"

/* Whether spec's cache is there: no library is opened, but the built-in cache
   reads its settings. */
INF_CHECK inf_err_t *inf_cache_plugin_check(const inf_cache_spec_t *spec);

/* Loads spec's library and initializes a cache with spec's settings. */
INF_CHECK inf_err_t *inf_cache_plugin_open(const inf_cache_spec_t *spec,
    inf_cache_plugin_t **out);

/* Finalize, then the library goes; plugin may be NULL. */
void inf_cache_plugin_close(inf_cache_plugin_t *plugin);

/* Ours: looks up in memory and never waits. */
bool inf_cache_plugin_is_builtin(const inf_cache_plugin_t *plugin);

/* Their first argument is the plug-in. */
extern const inf_cache_ops_t inf_cache_plugin_ops;

/* All of these, for the server. */
extern const inf_cache_opener_t inf_cache_plugin_opener;

#endif /* INF_ABI_CACHE_PLUGIN_H */
