/*
 * server_cache.h - the response cache of a configuration.
 *
 * Owner    The server, from before its first model until after the last.
 * Thread   open, close: one call at a time.
 * Units    none.
 * Errors   those of the cache plug-in.
 * Route    server -> [server cache] -> cache plug-in, response cache
 */

#ifndef INF_SERVER_SERVER_CACHE_H
#define INF_SERVER_SERVER_CACHE_H

#include "core/cache/response_cache.h"
#include "core_config.pb-c.h"

typedef struct {
    const inf_cache_opener_t *opener;   /* NULL: no cache                    */
    inf_cache_plugin_t       *plugin;
    inf_response_cache_t     *cache;    /* NULL: no cache                    */
    inf_err_t                *failure;  /* why the configured one is missing;
                                           set by the server                 */
} inf_server_cache_t;

/* Opens the configured cache; without a name there is none, which is no
   error. */
INF_CHECK inf_err_t *inf_server_cache_open(inf_server_cache_t *c,
    const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config);

/* Checks whether the cache can be opened, without loading a library. */
INF_CHECK inf_err_t *inf_server_cache_check(const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config);

/* c may be {0} or closed. */
void inf_server_cache_close(inf_server_cache_t *c);

#endif /* INF_SERVER_SERVER_CACHE_H */
