/*
 * server_cache.h - the response cache that a configuration asks for.
 *
 * Owner    The server owns it from before its first model until after the
 *          last.
 * Thread   open, close: one at a time.
 * Units    none.
 * Errors   the cache plug-in's.
 * Route    server -> [server cache] -> cache plug-in, response cache
 */

#ifndef INF_SERVER_SERVER_CACHE_H
#define INF_SERVER_SERVER_CACHE_H

#include "core/cache/response_cache.h"
#include "core_config.pb-c.h"

typedef struct {
    const inf_cache_opener_t *opener;   /* NULL: there is no cache           */
    inf_cache_plugin_t       *plugin;
    inf_response_cache_t     *cache;    /* NULL: none                        */
} inf_server_cache_t;

/* Without a name in the configuration there is none, which is no error. */
INF_CHECK inf_err_t *inf_server_cache_open(inf_server_cache_t *c,
    const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config);

/* Whether that can be opened, as far as it is known without a library. */
INF_CHECK inf_err_t *inf_server_cache_check(const inf_cache_opener_t *opener,
    const NginxInference__CoreConfig *config);

/* c may be {0} or closed. */
void inf_server_cache_close(inf_server_cache_t *c);

#endif /* INF_SERVER_SERVER_CACHE_H */
