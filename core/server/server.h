/*
 * server.h - the models of one core, and the functions of a server on them.
 *
 * Owner    main, or the embedding program, owns the server; sessions, models
 *          and requests refer to it.  TRITONSERVER_Server of the ABI is the
 *          same object.
 * Thread   any, after start.
 * Units    ns; ms where the configuration has ms.
 * Errors   start: a repository that cannot be opened is logged, not fatal.
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

/* State of the start. */
typedef enum {
    INF_SERVER_SCANS,       /* not all loads are queued                      */
    INF_SERVER_LOADS,
    INF_SERVER_STARTED      /* all loads had ended at a query                */
} inf_server_start_t;

/*
 * Called when the process can no longer use a GPU. guilty: the model of the
 * single request running there; NULL: not known.  loading: the model was being
 * loaded.  Any thread, no lock held; may end the process.
 */
typedef void (*inf_gpu_failed_fn)(const struct inf_model_s *guilty,
    bool loading, const char *why);

/* Beside a ModelControl: clients may load archives. */
#define INF_SERVER_ARCHIVES 0x100u

struct inf_server_s {
    inf_core_config_t                *config;   /* these are set in new() or
                                                   have their own locks; config:
                                                   of the start, a reference */
    inf_registry_t                    registry;
    inf_lifecycle_t                  *lifecycle;
    inf_pollers_t                    *pollers;  /* of remote repositories    */
    inf_poll_t                       *poll;     /* in poll mode only         */
    _Atomic uint32_t                  control;  /* seq_cst; a ModelControl, and
                                                   INF_SERVER_ARCHIVES       */
    struct inf_journal_s             *journal;  /* NULL: none                */
    bool                              polls;    /* polls on a timer, in poll
                                                   mode                      */
    inf_repositories_t                repositories;
    inf_repository_change_t          *change;   /* pending change of
                                                   repositories              */
    _Atomic bool                      strict_readiness; /* seq_cst           */
    bool                              follows;  /* a core may have run before
                                                   this one                  */
    _Atomic bool                      ready;    /* relaxed: last result of
                                                   inf_server_ready          */
    inf_rate_gate_t                  *rate_gate;    /* NULL: no limits       */
    inf_stuck_limit_t                 stuck_limit;
    _Atomic uint64_t                  max_json_bytes;   /* relaxed           */
    _Atomic uint64_t                  responses_used;   /* relaxed: bytes of all
                                                           workers' response
                                                           arenas, as last
                                                           counted by the
                                                           host              */
    _Atomic uint64_t                  responses_bound;  /* relaxed: their
                                                           limit             */
    _Atomic(inf_server_start_t)       start;    /* seq_cst                   */
    _Atomic bool                      stopping; /* seq_cst                   */
    _Atomic uint64_t                  exit_timeout_ns;  /* seq_cst: of the
                                                           configuration, or set
                                                           by the C API      */
    inf_lock_t                        drain_lock;   /* rank 1; guards nothing:
                                                       serializes drains     */
    inf_canceller_t                   canceller;    /* these are set in new()
                                                       or have their own
                                                       locks                 */
    inf_readiness_t                  *readiness;
    inf_cpu_metrics_t                 cpu_metrics;
    bool                              has_memory;   /* has called
                                                       inf_memory_share      */
    inf_gpu_metrics_t                *gpu_metrics;  /* NULL: none            */
    inf_server_cache_t                cache;
    inf_tracer_t                     *tracer;
    inf_shm_regions_t                *regions;      /* of clients            */
    inf_gpu_failed_fn                 gpu_failed;   /* of the host, or NULL  */
};

/* Functions to open and call plug-ins; set by abi (core/abi/plugins.h). */
typedef struct {
    const inf_plugin_ops_t   *backends;
    const inf_agent_ops_t    *agents;
    const inf_cache_opener_t *caches;
} inf_server_plugins_t;

/* The program around the server: its settings and callbacks; the table is
   static. */
typedef struct {
    const inf_server_plugins_t *plugins;
    void           (*changed)(void *userp);     /* a model was added or
                                                   removed                   */
    const inf_idle_ops_t *idle;                 /* NULL: none                */
    bool             cache_required;            /* otherwise serve without it */
    bool             polls;     /* poll on a timer in poll mode; otherwise on
                                   request                                   */
    int              journal_fd;    /* 0: none                               */
    bool             follows;       /* a core may have run before this one: its
                                       unanswered requests are sent here     */
    inf_gpu_failed_fn gpu_failed;   /* NULL: models stay, not ready          */
} inf_server_host_t;

struct inf_crash_page_s;

/* Queues the load of every model, or with explicit control of the models in
   load_models; returns before they are ready.  page may be NULL. */
INF_CHECK inf_err_t *inf_server_start(inf_core_config_t *config,
    const inf_server_host_t *host, void *userp,
    struct inf_crash_page_s *page, inf_server_t **out);

/*
 * Applies the settings that can change in a running server: repositories,
 * model control, load options, strict readiness, the stuck limit and the size
 * of JSON; the rest is done by inf_client_settings_configure.  before: the
 * configuration in force until now.  Returns at once.
 */
INF_CHECK inf_err_t *inf_server_reconfigure(inf_server_t *server,
    const inf_core_config_t *before, inf_core_config_t *now);

/* Unloads everything within drain_ns, then frees.  false: a model is still
   busy, nothing was freed.  server may be NULL. */
bool inf_server_stop(inf_server_t *server, uint64_t drain_ns);

/* Starts no more loads and waits, at most drain_ns, for those under way.
   Called before stop, while clients wait for this server. */
void inf_server_end_loads(inf_server_t *server, uint64_t drain_ns);

/* Rejects new sequences; sequences in progress may end until then.  For a
   stopping server whose clients can still send requests. */
void inf_server_end_sequences(inf_server_t *server, uint64_t until_ns);

/* attended false: no client can send any more, and requests that wait for
   others to come proceed. */
void inf_server_attend(inf_server_t *server, bool attended);

/* The two parts of stop: unload (repeatable after a failure), and free. */
bool inf_server_drain(inf_server_t *server, uint64_t drain_ns);
void inf_server_free(inf_server_t *server);

/* Readiness without asking backends.  A server that is ready stays so while a
   configuration change is being reconciled with its models. */
bool inf_server_ready(inf_server_t *server);

/* Tells the host that a GPU has failed; server may be NULL. */
void inf_server_gpu_failed(inf_server_t *server, const inf_model_t *guilty,
    bool loading, const char *why);

/* Reports to the host a GPU failure found by calls of the core itself. */
void inf_server_check_gpus(inf_server_t *server);

/*
 * Whether models that a previous core may have had are still to be loaded.
 * Call before looking up a model: once this is false, a model that is not
 * found did not exist.
 */
bool inf_server_restoring(inf_server_t *server);

/* Whether a model of that name may be one of them; call after looking it up.
   Once this is false, a loaded model is found. */
bool inf_server_restores(inf_server_t *server, inf_slice_t name);

#endif /* INF_SERVER_SERVER_H */
