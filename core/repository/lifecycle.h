/*
 * lifecycle.h - loads, reloads and unloads models, and has their states.
 *
 * Owner    The server owns it.  The lifecycle holds one reference of every
 *          READY model and owns all backends until it is freed.
 * Thread   any, including backends' threads; long operations run on its own
 *          loader threads.  Operations on one model run in order of arrival;
 *          different models do not wait for each other.
 * Units    ns, ms where a name says so.
 * Errors   A failed load becomes the version's state and reason, and the
 *          operation's error, worded as in the C API.  UNAVAILABLE: it is
 *          stopping.
 * Route    service -> [lifecycle] -> model source, plug-in operations ->
 *          registry
 */

#ifndef INF_REPOSITORY_LIFECYCLE_H
#define INF_REPOSITORY_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/cache/response_cache.h"
#include "core/model/config_storage.h"
#include "core/proto/core_config.h"
#include "core/repository/agent_ops.h"
#include "core/repository/inventory.h"
#include "core/repository/load_threads.h"
#include "core/repository/model_id.h"
#include "core/repository/model_stamp.h"
#include "core/repository/override.h"
#include "core/repository/plugin_ops.h"
#include "core/repository/registry.h"
#include "core/repository/repositories.h"
#include "core/sched/runtime.h"

typedef struct inf_lifecycle_s inf_lifecycle_t;

/* States, as in the repository index. */
typedef enum {
    INF_VERSION_UNKNOWN,        /* a directory, no attempt                   */
    INF_VERSION_LOADING,
    INF_VERSION_READY,
    INF_VERSION_UNLOADING,
    INF_VERSION_UNAVAILABLE
} inf_version_state_t;

/* The state's name in the protocols, such as "READY". */
const char *inf_version_state_name(inf_version_state_t state);

typedef struct {
    const char *name;           /* the model's title in the log              */
    int64_t     version;        /* -1: agents, before versions are known     */
    uint64_t    stamp;          /* of its files, never 0                     */
    bool        requested;      /* by a client, in a request that no earlier
                                   core had                                  */
} inf_load_attempt_t;

/* Callbacks around each load of a version; set by the service. */
typedef struct {
    /* Called before a load; an error forbids it.  *mark is passed to end. */
    inf_err_t *(*begin)(void *userp, const inf_load_attempt_t *load,
        void **mark);
    void (*end)(void *userp, void *mark, bool late);

    /* The load took too long and was given up.  end follows if the call
       returns. */
    void (*late)(void *userp, void *mark);
} inf_load_watch_ops_t;

/* Callbacks on loads and unloads by request, on the loader's thread, before the
   request is answered. */
typedef struct {
    void (*loaded)(void *userp, const inf_model_id_t *id,
        const inf_override_t *override, bool implicit);

    /* implicit: it was loaded only with an ensemble, which would load it
       again. */
    void (*unloaded)(void *userp, const inf_model_id_t *id, bool implicit);

    /* The model is loaded and unloaded by configuration again. */
    void (*forgotten)(void *userp, const inf_model_id_t *id);
} inf_load_note_ops_t;

typedef struct {
    struct inf_server_s         *server;
    const inf_plugin_ops_t      *plugins;
    inf_registry_t              *registry;
    const inf_repositories_t    *repositories;      /* outlive the lifecycle */
    void                       (*changed)(void *userp); /* after a publish   */
    void                        *userp;
    const inf_agent_ops_t       *agents;            /* NULL: none            */
    inf_core_config_t           *core_config;       /* at the start; takes a
                                                       reference             */
    bool                         load_composing;    /* of ensembles, with them;
                                                       otherwise like all
                                                       models                */
    inf_gpus_t                   gpus;              /* available to models   */
    const inf_idle_ops_t        *idle;              /* of instance threads   */
    void                        *idle_userp;
    inf_response_cache_t        *cache;             /* NULL: none            */
    inf_rate_gate_t             *rate_gate;         /* NULL: no limits;
                                                       outlives it           */
    const inf_stuck_limit_t     *stuck_limit;       /* NULL: none; outlives
                                                       it                     */
    const inf_load_watch_ops_t  *watch;             /* NULL: none            */
    void                        *watch_userp;
    void                       (*gpu_failed)(inf_model_t *model,
                                     const char *why);  /* a load broke a GPU;
                                                           NULL: none        */
    const inf_load_note_ops_t   *notes;             /* NULL: none            */
    void                        *notes_userp;
    struct inf_children_s       *children;          /* set by the lifecycle  */
    inf_load_threads_t          *threads;           /* set by the lifecycle  */
} inf_lifecycle_options_t;

/* Copies options; the objects they refer to outlive the lifecycle.  Starts the
   threads; nothing is loaded before inf_lifecycle_start. */
INF_CHECK inf_err_t *inf_lifecycle_new(const inf_lifecycle_options_t *options,
    inf_lifecycle_t **out);

/* The model's title in the log; usable in a signal handler. */
const char *inf_lifecycle_title(const inf_model_t *model);

/* After inf_lifecycle_stop; calls the backends' finalizers. */
void inf_lifecycle_free(inf_lifecycle_t *lc);

/* Uses core_config (takes a reference) for later loads; loaded models keep
   theirs, and the log says what differs.  One call at a time. */
void inf_lifecycle_reconfigure(inf_lifecycle_t *lc,
    inf_core_config_t *core_config);

/*
 * Queues the loads of the start: all models in the repositories, or those named
 * ("*" alone: all), except those in except.  A name that no repository has
 * fails, or waits while a listing is pending.  Called once.
 */
INF_CHECK inf_err_t *inf_lifecycle_start(inf_lifecycle_t *lc, bool all,
    char *const *names, size_t count, const inf_model_id_t *except,
    size_t except_count);

/*
 * Queues another load of the start, like an earlier load; takes override.
 * implicit: only because an ensemble needed the model.
 */
INF_CHECK inf_err_t *inf_lifecycle_restore(inf_lifecycle_t *lc,
    const inf_model_id_t *id, inf_override_t *override, bool implicit);

/* Between the two calls no operation begins, so that operations that depend on
   each other are queued together. */
void inf_lifecycle_hold(inf_lifecycle_t *lc);
void inf_lifecycle_release(inf_lifecycle_t *lc);

/* Receives the result of an operation; takes err.  Called on a loader thread,
   or at once in the caller's if nothing was queued.  NULL: no receiver. */
typedef void (*inf_lifecycle_done_fn)(void *userp, inf_err_t *err);

/*
 * Loads a model, or loads it again: reads its directory, builds changed
 * versions and replaces the old ones, which serve meanwhile, when all new ones
 * are ready.  If one fails, the old ones stay.  Without changes nothing
 * happens.  Takes override, which may be NULL.  With namespacing it applies to
 * all models of that name; those whose repository has them no more are unloaded
 * if others exist.
 *
 * An ensemble is built when its composing models are loaded, and rebuilt after
 * each load of one; the operation includes that.  An ensemble that cannot be
 * built because of a composing model is built as soon as it can be.
 */
INF_CHECK inf_err_t *inf_lifecycle_load(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override);

/* again: for a request that an earlier core had and did not answer, which ends
   no quarantine. */
void inf_lifecycle_load_async(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override, bool again, inf_lifecycle_done_fn done,
    void *userp);

/* Loads one of them without a request, because its files have changed. */
void inf_lifecycle_load_id_async(inf_lifecycle_t *lc,
    const inf_model_id_t *id, inf_lifecycle_done_fn done, void *userp);

/*
 * Takes all versions of a model, and ensembles made of it, out of service; they
 * drain in the background.  An unknown name is no error.  dependents: also
 * unloads models that were loaded only with it and are not needed otherwise.
 */
INF_CHECK inf_err_t *inf_lifecycle_unload(inf_lifecycle_t *lc,
    const char *name, bool dependents);
void inf_lifecycle_unload_async(inf_lifecycle_t *lc, const char *name,
    bool dependents, inf_lifecycle_done_fn done, void *userp);

/* Unloads a model whose repository goes, with dependents; no failure of its
   loads counts any more. */
void inf_lifecycle_remove_async(inf_lifecycle_t *lc, const char *name,
    inf_lifecycle_done_fn done, void *userp);

/*
 * Applies an inventory after a change of repositories, desired models or load
 * options, or a listing.  Models of removed repositories are unloaded.  If all
 * models are desired, those not loaded, or loaded from elsewhere, are loaded;
 * otherwise newly named and failed ones.  Models that are no longer named are
 * unloaded unless a request loaded them.  A model loaded from its present place
 * is not touched.  FIRST at_start: also loads models of the start; a name in
 * two repositories is served by neither.
 */
INF_CHECK inf_err_t *inf_lifecycle_reconcile(inf_lifecycle_t *lc,
    const inf_inventory_query_t *q);

/* Whether the poll of l has to compare the files of n, one of its models. */
bool inf_lifecycle_comes(inf_lifecycle_t *lc, const inf_inventory_t *l,
    const inf_repository_name_t *n);

/* Unloads models that the poll of l finds nowhere, or in two repositories;
   calls done *count times. */
INF_CHECK inf_err_t *inf_lifecycle_unload_missing(inf_lifecycle_t *lc,
    inf_inventory_t *l, inf_lifecycle_done_fn done, void *userp,
    size_t *count);

/*
 * Whether dir, with this stamp, differs from the model's last load; false while
 * an operation on the model runs.
 */
bool inf_lifecycle_differs(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_repository_t *repository, const char *dir,
    const inf_model_stamp_t *stamp);

/*
 * A load that does not find its model while a listing is pending waits without
 * a thread.  resume: continues such loads after a listing came or failed.
 * relist (or NULL) is called, on any thread, if a missing model may be in a
 * repository whose listing failed: list it again.
 */
void inf_lifecycle_resume_pending(inf_lifecycle_t *lc);
void inf_lifecycle_on_relist(inf_lifecycle_t *lc,
    void (*relist)(void *userp), void *userp);
void inf_lifecycle_relist(inf_lifecycle_t *lc);

/* Whether the start may still load a model of that name.  Once false, the
   loaded models are published. */
bool inf_lifecycle_is_starting(inf_lifecycle_t *lc, inf_slice_t name);

/* Number of loads given up whose backend call has not returned. */
uint64_t inf_lifecycle_stuck_loads(inf_lifecycle_t *lc);

/* Waits until nothing is queued or loading. */
void inf_lifecycle_wait(inf_lifecycle_t *lc);

/* settled: whether all loads of the start have been tried.  all_ready: whether
   every wanted version is READY. */
bool inf_lifecycle_settled(inf_lifecycle_t *lc);
bool inf_lifecycle_all_ready(inf_lifecycle_t *lc);

/* A row of the index; version -1: the model has none. */
typedef void (*inf_lifecycle_row_fn)(void *userp, const char *name,
    int64_t version, inf_version_state_t state, const char *reason);

/*
 * The repository index: present models and their states, by id and ascending
 * version; fn runs under the lifecycle's lock.  ready_only: READY versions, and
 * models in more than one repository.  Error: a repository cannot be listed.
 */
INF_CHECK inf_err_t *inf_lifecycle_repository_index(inf_lifecycle_t *lc,
    bool ready_only, inf_lifecycle_row_fn fn, void *userp);

/* The same rows from the last listing of remote repositories, for the status
   page, which asks often. */
INF_CHECK inf_err_t *inf_lifecycle_status_rows(inf_lifecycle_t *lc,
    inf_lifecycle_row_fn fn, void *userp);

/* Rejects new sequences; returns when live ones have ended, or after
   timeout_ns. */
void inf_lifecycle_end_sequences(inf_lifecycle_t *lc, uint64_t timeout_ns);

/* As inf_runner_attend, for all models. */
void inf_lifecycle_attend(inf_lifecycle_t *lc, bool attended);

/* Starts no more loads and waits, at most timeout_ns, for those under way;
   models go on serving. */
void inf_lifecycle_end_loads(inf_lifecycle_t *lc, uint64_t timeout_ns);

/* Unpublishes all models and waits, at most timeout_ns, until the last one is
   destroyed.  false: some still live. */
bool inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns);

#endif /* INF_REPOSITORY_LIFECYCLE_H */
