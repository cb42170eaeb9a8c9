/*
 * cache_plugin.h - opens the cache of a server: a library, or the built-in
 *                  one.
 *
 * Owner    The server owns it; it outlives all lookups.
 * Thread   open, close: one; the operations: any.
 * Units    none.
 * Errors   NOT_FOUND: a missing entry point, named in the text.  INVALID_ARG:
 *          no such cache, or an invalid name.  Otherwise the error of the
 *          cache's initialize.
 * Route    server -> [cache plug-in] -> TRITONCACHE_Cache*
 *
 * The library is <directory>/<name>/libtritoncache_<name>.so of the first
 * directory that has it; "local" is built in, unless a directory has it.
 */

#ifndef INF_ABI_CACHE_PLUGIN_H
#define INF_ABI_CACHE_PLUGIN_H

#include <stddef.h>

#include "core/cache/cache_ops.h"

/* Loads spec's library and initializes a cache with spec's settings. */
INF_CHECK inf_err_t *inf_cache_plugin_open(const inf_cache_spec_t *spec,
    inf_cache_plugin_t **out);

/* Finalizes the cache and closes its library; plugin may be NULL. */
void inf_cache_plugin_close(inf_cache_plugin_t *plugin);

/* Whether it is the built-in cache, which never waits in a lookup. */
bool inf_cache_plugin_is_builtin(const inf_cache_plugin_t *plugin);

/* The first argument of each operation is the plug-in. */
extern const inf_cache_ops_t inf_cache_plugin_ops;

/* The functions above, for the server. */
extern const inf_cache_opener_t inf_cache_plugin_opener;

#endif /* INF_ABI_CACHE_PLUGIN_H */
