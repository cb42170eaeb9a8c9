/*
 * server.h - the models of one core and what may be asked about them.
 *
 * Owner    main, or the program that embeds us, owns the server; sessions,
 *          models and requests refer to it.  It is the ABI's
 *          TRITONSERVER_Server too.
 * Thread   any, once started.
 * Units    ns, ms where the configuration says so.
 * Errors   start: a repository that can't be opened is logged, not fatal.
 * Route    core_main, api_server -> [server] -> lifecycle, registry
 */

#ifndef INF_SERVER_SERVER_H
#define INF_SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/cache/cache_ops.h"
#include "core/proto/core_config.h"
#include "core/repository/agent_ops.h"
#include "core/repository/lifecycle.h"
#include "core/repository/plugin_ops.h"
#include "core/repository/polling.h"
#include "core/repository/registry.h"
#include "core/repository/repository_change.h"
#include "core/server/canceller.h"
#include "core/server/cpu_metrics.h"
#include "core/server/gpu_metrics.h"
#include "core/server/readiness.h"
#include "core/server/server_cache.h"
#include "core/server/tracer.h"
#include "core/tensor/shm_region.h"

typedef struct inf_server_s inf_server_t;

/* How far the start is. */
typedef enum {
    INF_SERVER_SCANS,       /* not all of its loads are queued               */
    INF_SERVER_LOADS,
    INF_SERVER_STARTED      /* all of them had ended when somebody asked     */
} inf_server_start_t;

/*
 * The process can't use a GPU any more.  guilty: the model whose single
 * request, the only one under way there, has done that; NULL: it is not known.
 * loading: the model was being loaded.  Any thread, no lock held; may end the
 * process.
 */
typedef void (*inf_gpu_failed_fn)(const struct inf_model_s *guilty,
    bool loading, const char *why);

struct inf_server_s {
    inf_core_config_t                *config;   /* these are set in new(),
                                                   or have locks of their
                                                   own; config: of the
                                                   start, a reference        */
    inf_registry_t                    registry;
    inf_lifecycle_t                  *lifecycle;
    inf_pollers_t                    *pollers;  /* of remote repositories    */
    inf_poll_t                       *poll;     /* polls in that mode only   */
    _Atomic uint32_t                  control;  /* seq_cst; a ModelControl   */
    struct inf_journal_s             *journal;  /* NULL: none                */
    bool                              polls;    /* by itself, in that mode   */
    inf_repositories_t                repositories;
    inf_repository_change_t          *change;   /* of them                   */
    _Atomic bool                      strict_readiness; /* seq_cst           */
    bool                              follows;  /* another core may have been
                                                   there                     */
    _Atomic bool                      ready;    /* relaxed: the last answer of
                                                   inf_server_ready          */
    inf_rate_gate_t                  *rate_gate;    /* NULL: no limits       */
    inf_stuck_limit_t                 stuck_limit;
    _Atomic uint64_t                  responses_used;   /* relaxed: bytes of
                                                           all workers' response
                                                           arenas, as the host
                                                           has last counted  */
    _Atomic uint64_t                  responses_bound;  /* relaxed: of them  */
    _Atomic(inf_server_start_t)       start;    /* seq_cst                   */
    _Atomic bool                      stopping; /* seq_cst                   */
    _Atomic uint64_t                  exit_timeout_ns;  /* seq_cst: of the
                                                           configuration, or
                                                           the C API's       */
    inf_lock_t                        drain_lock;   /* rank 1; guards
                                                       nothing: one drain at
                                                       a time                */
    inf_canceller_t                   canceller;    /* these are set in
                                                       new(), or have locks
                                                       of their own          */
    inf_readiness_t                  *readiness;
    inf_cpu_metrics_t                 cpu_metrics;
    bool                              has_memory;   /* shares the process's  */
    inf_gpu_metrics_t                *gpu_metrics;  /* NULL: there are none  */
    inf_server_cache_t                cache;
    inf_tracer_t                     *tracer;
    inf_shm_regions_t                *regions;      /* of clients            */
    inf_gpu_failed_fn                 gpu_failed;   /* the host's, or NULL   */
};

/* How plug-ins are opened and called; abi fills it in (core/abi/plugins.h). */
typedef struct {
    const inf_plugin_ops_t   *backends;
    const inf_agent_ops_t    *agents;
    const inf_cache_opener_t *caches;
} inf_server_plugins_t;

/* The program around the server: what it provides and is told; the table is
   static. */
typedef struct {
    const inf_server_plugins_t *plugins;
    void           (*changed)(void *userp);     /* models came or went       */
    const inf_idle_ops_t *idle;                 /* NULL: none                */
    bool             cache_required;            /* else serve without it     */
    bool             polls;     /* in poll mode by itself; else when asked   */
    int              journal_fd;    /* 0: none                               */
    bool             follows;       /* another core may have been there: what
                                       it has not answered comes here        */
    inf_gpu_failed_fn gpu_failed;   /* NULL: its models stay, not ready      */
} inf_server_host_t;

struct inf_crash_page_s;

/* Queues the load of every model, with explicit control of those that
   load_models names; returns before they are ready.  page may be NULL. */
INF_CHECK inf_err_t *inf_server_start(inf_core_config_t *config,
    const inf_server_host_t *host, void *userp,
    struct inf_crash_page_s *page, inf_server_t **out);

/*
 * Takes over what can change in a running server: its repositories, who loads
 * what of them, what loads go by, strict readiness, and when instances are
 * stuck; the rest is inf_client_settings_configure's.  before: what was in
 * force until now.  Returns at once.
 */
INF_CHECK inf_err_t *inf_server_reconfigure(inf_server_t *server,
    const inf_core_config_t *before, inf_core_config_t *now);

/* Unloads everything, at most drain_ns; then frees.  false: some model is
   still busy, nothing was freed.  server may be NULL. */
bool inf_server_stop(inf_server_t *server, uint64_t drain_ns);

/* The server is stopping: new sequences are rejected, sequences under way may
   end until then.  For a server whose clients can still send requests. */
void inf_server_end_sequences(inf_server_t *server, uint64_t until_ns);

/* attended is false: no client can send anything more, and what waits for
   others to come goes on. */
void inf_server_attend(inf_server_t *server, bool attended);

/* The two halves of it: unload (again, if it was in vain), and free. */
bool inf_server_drain(inf_server_t *server, uint64_t drain_ns);
void inf_server_free(inf_server_t *server);

/* As far as the server itself knows; its models' backends are not asked.  A
   server that is ready stays so while a change of the configuration has still
   to be reconciled with its models. */
bool inf_server_ready(inf_server_t *server);

/* Tells the host of a GPU that has failed; server may be NULL. */
void inf_server_gpu_failed(inf_server_t *server, const inf_model_t *guilty,
    bool loading, const char *why);

/* Tells it of one that calls of the core itself have found. */
void inf_server_check_gpus(inf_server_t *server);

/*
 * Another core may have been there before, and the models that it may have had
 * are not all loaded yet.  Ask before a model is looked up: once this is false,
 * what is not found was not there.
 */
bool inf_server_restoring(inf_server_t *server);

/* Whether one of them may be a model of that name; ask after it was looked up.
   Once this is false, what it has loaded is found. */
bool inf_server_restores(inf_server_t *server, inf_slice_t name);

#endif /* INF_SERVER_SERVER_H */
