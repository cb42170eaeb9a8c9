/*
 * server.h - the models of one core and what may be asked about them.
 *
 * Owner    main owns the server; sessions and models refer to it.
 * Thread   any, once started.
 * Units    ns, ms where the configuration says so.
 * Errors   start: a repository that can't be opened is logged, not fatal.
 * Route    core_main -> [server] -> lifecycle, registry
 */

#ifndef INF_SERVICE_SERVER_H
#define INF_SERVICE_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/repository/lifecycle.h"
#include "core/repository/registry.h"
#include "core_config.pb-c.h"

typedef struct inf_server_s inf_server_t;

struct inf_server_s {
    const NginxInference__CoreConfig *config;   /* outlives the server       */
    inf_registry_t                    registry;
    inf_lifecycle_t                  *lifecycle;
    inf_storage_t                   **storages;
    size_t                            storage_count;
    inf_backend_setting_t            *settings;
    _Atomic bool                      scanned;  /* all loads are queued      */
    _Atomic bool                      stopping;
};

/* What the server tells and lends its surroundings; the table is static. */
typedef struct {
    void           (*changed)(void *userp);     /* models came or went       */
    const inf_idle_ops_t *idle;                 /* NULL: none                */
} inf_server_host_t;

struct inf_crash_page_s;

/* Queues the load of every model; returns before they are ready.  page may
   be NULL. */
INF_CHECK inf_err_t *inf_server_start(const NginxInference__CoreConfig *config,
    const inf_server_host_t *host, void *userp,
    struct inf_crash_page_s *page, inf_server_t **out);

/* Unloads everything, at most drain_ns; then frees.  false: some model is
   still busy, nothing was freed.  server may be NULL. */
bool inf_server_stop(inf_server_t *server, uint64_t drain_ns);

bool inf_server_ready(inf_server_t *server);

#endif /* INF_SERVICE_SERVER_H */
