/*
 * lifecycle.h - loads, reloads and unloads models, and knows their states.
 *
 * Owner    The server owns it.  It holds one reference of every READY model
 *          and owns all backends until it is freed.
 * Thread   any, backends' own threads too; what takes time runs on its own
 *          loader threads.  Operations on one model run one after another
 *          in the order they came; different models don't wait for each
 *          other.
 * Units    ns, ms where a name says so.
 * Errors   A load's failure becomes the version's state and reason and the
 *          operation's error, in the words of the C API.
 *          UNAVAILABLE: it is stopping.
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

/* As the repository index names them. */
typedef enum {
    INF_VERSION_UNKNOWN,        /* there is a directory, nothing was tried   */
    INF_VERSION_LOADING,
    INF_VERSION_READY,
    INF_VERSION_UNLOADING,
    INF_VERSION_UNAVAILABLE
} inf_version_state_t;

/* "READY" and so on: a constant of the protocols. */
const char *inf_version_state_name(inf_version_state_t state);

typedef struct {
    const char *name;           /* as the log names the model                */
    int64_t     version;        /* -1: its agents, before its versions are
                                   known                                     */
    uint64_t    stamp;          /* of its files, never 0                     */
    bool        requested;      /* by a client; no earlier core had that
                                   request                                   */
} inf_load_attempt_t;

/* Callbacks around each load of a version; set by the service. */
typedef struct {
    /* An error: the version must not be loaded.  *mark is for end. */
    inf_err_t *(*begin)(void *userp, const inf_load_attempt_t *load,
        void **mark);
    void (*end)(void *userp, void *mark, bool late);

    /* The load has taken too long: nobody waits for it any more.  end follows,
       late then, if it ever returns. */
    void (*late)(void *userp, void *mark);
} inf_load_watch_ops_t;

/* Callbacks on loads and unloads by request, on the loader's thread, before
   the request is answered. */
typedef struct {
    void (*loaded)(void *userp, const inf_model_id_t *id,
        const inf_override_t *override, bool implicit);

    /* implicit: it had only come with an ensemble, with which it would come
       again. */
    void (*unloaded)(void *userp, const inf_model_id_t *id, bool implicit);

    /* Nothing of that counts any more: it comes and goes by itself. */
    void (*forgotten)(void *userp, const inf_model_id_t *id);
} inf_load_note_ops_t;

typedef struct {
    struct inf_server_s         *server;
    const inf_plugin_ops_t      *plugins;
    inf_registry_t              *registry;
    const inf_repositories_t    *repositories;      /* outlive it            */
    void                       (*changed)(void *userp); /* after a publish   */
    void                        *userp;
    const inf_agent_ops_t       *agents;            /* NULL: none            */
    inf_core_config_t           *core_config;       /* of the start; it takes
                                                       a reference           */
    bool                         load_composing;    /* of ensembles, with them;
                                                       else they come as all
                                                       models do             */
    inf_gpus_t                   gpus;              /* that models may use   */
    const inf_idle_ops_t        *idle;              /* for instance threads  */
    void                        *idle_userp;
    inf_response_cache_t        *cache;             /* NULL: none            */
    inf_rate_gate_t             *rate_gate;         /* NULL: no limits; it
                                                       outlives it too       */
    const inf_stuck_limit_t     *stuck_limit;       /* NULL: none; it outlives
                                                       it too                 */
    const inf_load_watch_ops_t  *watch;             /* NULL: nobody          */
    void                        *watch_userp;
    void                       (*gpu_failed)(inf_model_t *model,
                                     const char *why);  /* its load did that;
                                                           NULL: nobody      */
    const inf_load_note_ops_t   *notes;             /* NULL: nobody          */
    void                        *notes_userp;
    struct inf_children_s       *children;          /* the lifecycle's own,  */
    inf_load_threads_t          *threads;           /* as is this            */
} inf_lifecycle_options_t;

/* Copies options, not the objects that it points to: they outlive the
   lifecycle.  Starts the threads; nothing is loaded before
   inf_lifecycle_start. */
INF_CHECK inf_err_t *inf_lifecycle_new(const inf_lifecycle_options_t *options,
    inf_lifecycle_t **out);

/* The name of a loaded model as the log has it, for a signal handler. */
const char *inf_lifecycle_title(const inf_model_t *model);

/* After inf_lifecycle_stop; calls the backends' finalizers. */
void inf_lifecycle_free(inf_lifecycle_t *lc);

/* Loads from now on go by core_config, of which it takes a reference; what is
   loaded keeps what it was loaded with.  One at a time. */
void inf_lifecycle_reconfigure(inf_lifecycle_t *lc,
    inf_core_config_t *core_config);

/*
 * Queues what is to be loaded at the start: all models that lie in the
 * repositories, or those named ("*" alone means all), but for those in except.
 * A name that no repository has is a model that failed; while a listing is
 * pending it waits for that.  Once.
 */
INF_CHECK inf_err_t *inf_lifecycle_start(inf_lifecycle_t *lc, bool all,
    char *const *names, size_t count, const inf_model_id_t *except,
    size_t except_count);

/*
 * One more of those at the start, as it was loaded before; takes override.
 * implicit: only because an ensemble needed it.
 */
INF_CHECK inf_err_t *inf_lifecycle_restore(inf_lifecycle_t *lc,
    const inf_model_id_t *id, inf_override_t *override, bool implicit);

/* No operation begins between the two: operations that depend on each other
   are queued together, without attempts in vain. */
void inf_lifecycle_hold(inf_lifecycle_t *lc);
void inf_lifecycle_release(inf_lifecycle_t *lc);

/* How an operation ended; takes err.  On a loader thread, or at once on the
   caller's when nothing could be queued.  NULL where nobody asks. */
typedef void (*inf_lifecycle_done_fn)(void *userp, inf_err_t *err);

/*
 * Loads a model, or loads it again: its directory is read anew, versions
 * that changed are built beside the old ones, which serve until all new ones
 * are ready.  If one fails, the old ones stay.  Without any change nothing
 * happens.  Takes override, which may be NULL.  With namespacing all models
 * of that name are meant, and those that lie in no repository any more while
 * others do are unloaded.
 *
 * An ensemble is made when the models that it names have been loaded, and
 * rebuilt whenever one of them was; it has ended when that has, too.  One
 * that can't be made because of them is made as soon as it can.
 */
INF_CHECK inf_err_t *inf_lifecycle_load(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override);
void inf_lifecycle_load_async(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override, inf_lifecycle_done_fn done, void *userp);

/* The same for a request that a core before this one had and didn't answer: it
   ends no quarantine. */
void inf_lifecycle_load_again_async(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override, inf_lifecycle_done_fn done, void *userp);

/* One of them, by nobody's request: its files have changed. */
void inf_lifecycle_load_id_async(inf_lifecycle_t *lc,
    const inf_model_id_t *id, inf_lifecycle_done_fn done, void *userp);

/*
 * Takes all versions of a model out of service; they drain in the background.
 * So do ensembles that it belongs to, until it is back.  A name that nobody
 * knows is fine.  dependents: also what only came with it and serves nobody
 * else.
 */
INF_CHECK inf_err_t *inf_lifecycle_unload(inf_lifecycle_t *lc,
    const char *name, bool dependents);
void inf_lifecycle_unload_async(inf_lifecycle_t *lc, const char *name,
    bool dependents, inf_lifecycle_done_fn done, void *userp);

/*
 * The repositories, the desired models or load options are others, or a listing
 * has come: has models of repositories that have gone unloaded; with all those
 * loaded that lie there now and aren't, or come from elsewhere, else those that
 * are newly named or have failed; what isn't named any more is unloaded unless
 * a request loaded it.  A model loaded from where it lies is not touched.
 * FIRST at_start: also those come that the start would have loaded, and a name
 * that is in two repositories is served by neither.
 */
INF_CHECK inf_err_t *inf_lifecycle_reconcile(inf_lifecycle_t *lc,
    const inf_inventory_query_t *q);

/* Whether the poll of l has to compare the files of n, one of its models. */
bool inf_lifecycle_comes(inf_lifecycle_t *lc, const inf_inventory_t *l,
    const inf_repository_name_t *n);

/* Has unloaded what the poll of l finds nowhere, or in two repositories; done
   is called count times. */
INF_CHECK inf_err_t *inf_lifecycle_unload_missing(inf_lifecycle_t *lc,
    inf_inventory_t *l, inf_lifecycle_done_fn done, void *userp,
    size_t *count);

/*
 * Whether dir, which has that stamp now, isn't what the model was last loaded
 * from; false while an operation on it is under way.
 */
bool inf_lifecycle_differs(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_repository_t *repository, const char *dir,
    const inf_model_stamp_t *stamp);

/*
 * A load that finds its model nowhere while a listing is pending waits, without
 * a thread.  resume: a listing has come or failed, pending loads go on.
 * relist (or NULL) is called, on any thread, when a model is missed that may
 * lie in a repository that has failed: it is to be listed again.
 */
void inf_lifecycle_resume_pending(inf_lifecycle_t *lc);
void inf_lifecycle_on_relist(inf_lifecycle_t *lc,
    void (*relist)(void *userp), void *userp);
void inf_lifecycle_relist(inf_lifecycle_t *lc);

/* Whether the start has still to load a model of that name, or one that may
   turn out to need it.  Once it is false, what it has loaded is published. */
bool inf_lifecycle_is_starting(inf_lifecycle_t *lc, inf_slice_t name);

/* How many loads have been given up because their backend didn't return, and
   still have a thread there. */
uint64_t inf_lifecycle_stuck_loads(inf_lifecycle_t *lc);

/* Waits until nothing is queued or loading. */
void inf_lifecycle_wait(inf_lifecycle_t *lc);

/* Whether all that was to be loaded at the start has been tried; and whether
   every version that is wanted is READY. */
bool inf_lifecycle_settled(inf_lifecycle_t *lc);
bool inf_lifecycle_all_ready(inf_lifecycle_t *lc);

/* One row for the index; version -1: the model has none. */
typedef void (*inf_lifecycle_row_fn)(void *userp, const char *name,
    int64_t version, inf_version_state_t state, const char *reason);

/*
 * The repository index: what lies in the repositories now and what became of
 * it, by id, versions ascending; fn runs under the lifecycle's lock.
 * ready_only: READY versions, and models that are in more than one repository.
 * An error: a repository can't be listed.
 */
INF_CHECK inf_err_t *inf_lifecycle_repository_index(inf_lifecycle_t *lc,
    bool ready_only, inf_lifecycle_row_fn fn, void *userp);

/* The same rows, with the last listing of each remote repository: for people
   who ask every other second. */
INF_CHECK inf_err_t *inf_lifecycle_status_rows(inf_lifecycle_t *lc,
    inf_lifecycle_row_fn fn, void *userp);

/* New sequences are rejected; returns when those under way have ended or after
   timeout_ns. */
void inf_lifecycle_end_sequences(inf_lifecycle_t *lc, uint64_t timeout_ns);

/* As inf_runner_attend, for all models. */
void inf_lifecycle_attend(inf_lifecycle_t *lc, bool attended);

/* Unpublishes everything and waits, at most timeout_ns, until the last model
   is destroyed.  false: some still live. */
bool inf_lifecycle_stop(inf_lifecycle_t *lc, uint64_t timeout_ns);

#endif /* INF_REPOSITORY_LIFECYCLE_H */
