/*
 * lifecycle_parts.h - what the files of the lifecycle share: lifecycle.c (the
 *                     object, what it tells), lifecycle_loaders.c (its
 *                     threads, which carry edits out), lifecycle_calls.c
 *                     (loads and unloads by request),
 *                     lifecycle_desired.c (what is desired without one),
 *                     lifecycle_names.c (which models a name means),
 *                     lifecycle_load.c (a load),
 *                     lifecycle_stuck.c (loads that don't return),
 *                     lifecycle_ensemble.c (models made of others),
 *                     lifecycle_end.c (publishing, finalizing),
 *                     lifecycle_exit.c (when a process of a model exits).
 *
 * Owner    The lifecycle owns the model set and its threads.
 * Thread   as lifecycle.h; fields say under which lock.
 * Units    ns.
 * Errors   as lifecycle.h.
 * Route    lifecycle -> model set -> lifecycle_loaders -> lifecycle_load ->
 *          lifecycle_end
 */

#ifndef INF_REPOSITORY_LIFECYCLE_PARTS_H
#define INF_REPOSITORY_LIFECYCLE_PARTS_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/base/os/loading_place.h"
#include "core/repository/agent_table.h"
#include "core/repository/backend_table.h"
#include "core/repository/children.h"
#include "core/repository/load.h"
#include "core/repository/load_threads.h"
#include "core/repository/model_set.h"

/* Maximum of loaders; half of them are temporary ones. */
#define INF_LOADERS_MAX 256u

/* Bytes of a title in the log and in answers about stuck loads, with the
   NUL. */
#define INF_STUCK_NAME 512

typedef struct inf_destroyer_s inf_destroyer_t;

typedef enum {
    INF_LOADER_FREE,
    INF_LOADER_RUNS,
    INF_LOADER_STUCK,           /* its load was given up, and has not
                                   returned                                   */
    INF_LOADER_ENDED            /* to be joined                              */
} inf_loader_state_t;

typedef enum {
    INF_LISTING_WHOLE,          /* all were listed                           */
    INF_LISTING_PARTIAL,        /* one was never listed                      */
    INF_LISTING_PENDING         /* a listing is running                      */
} inf_listing_state_t;

typedef enum {
    INF_REAPER_NONE,            /* no thread                                 */
    INF_REAPER_RUNS,
    INF_REAPER_ENDS             /* told to end                               */
} inf_reaper_state_t;

typedef struct {
    struct inf_lifecycle_s *lc;
    inf_loader_state_t      state;
    bool                    unloads;    /* takes unloads only                */
    const inf_edit_t       *edit;       /* being carried out; NULL: none     */
    uint64_t                busy_ns;    /* start of the edit; 0: none        */
    bool                    replaced;   /* another loader replaces it until the
                                           edit ends                         */
    pthread_t               thread;
} inf_loader_t;

struct inf_lifecycle_s {
    inf_lifecycle_options_t  options;       /* these are set in new()        */
    inf_backend_table_t     *backends;
    inf_agent_table_t       *agents;
    inf_timekeeper_t         timekeeper;    /* of all models                 */

    inf_lock_t               publish_lock;  /* rank 5: one snapshot at a time;
                                               reports of READY versions wait
                                               for it                        */
    inf_lock_t               lock;      /* rank 10; guards what follows      */
    inf_cond_t               work;      /* something queued, or stopping     */
    inf_cond_t               idle;      /* an edit or a model ended          */
    inf_core_config_t       *core_config;   /* a reference; never NULL       */
    inf_model_set_t          set;
    uint64_t                 listings;  /* listings done or failed, and changes
                                           of repositories                   */
    inf_listing_state_t      listing;   /* of the repositories whose models are
                                           all desired                       */
    void                   (*relist)(void *userp);  /* NULL: none            */
    void                    *relist_userp;
    uint64_t                 alive;     /* models not yet destroyed          */
    inf_model_id_t          *barred;    /* left out at the start; constant
                                           while edits run                   */
    size_t                   barred_count;
    inf_link_t               destroyers;    /* threads of models to be
                                               destroyed                     */
    inf_cond_t               reap;      /* work for the reaper: a destroyer
                                           added or done, a loader to replace,
                                           a failed publish, an exit         */
    bool                     unpublished;   /* the last publish failed       */
    uint64_t                 patience_ns;   /* of a busy loader before it is
                                               replaced                      */
    inf_link_t               exits;     /* see lifecycle_exit.c              */
    inf_reaper_state_t       reaper_state;
    pthread_t                reaper;
    inf_loader_t             loaders[INF_LOADERS_MAX];
    uint32_t                 running;   /* loaders for loads                 */
    uint32_t                 enough;    /* wanted; surplus ones end          */
    inf_link_t               calls;     /* loads' calls into backends        */
    uint64_t                 last_call; /* number of the last call           */
    uint64_t                 stuck;     /* loads given up that have not
                                           returned                          */
    uint64_t                 failed_patience_ns;    /* set in new(): for a load
                                                       with a failed process  */
    uint64_t                 failed_checked_ns;     /* used by the reaper     */
    inf_load_threads_t       threads;   /* of loads; has its own lock        */
    _Atomic bool             stopping;  /* seq_cst; copy of set.stopping for
                                           loads without the lock            */
};

/* The lifecycle's data of a loaded version: model->owner. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;
    inf_model_source_t   *source;       /* a reference                       */
    inf_link_t          gone;           /* while it leaves service           */
    inf_model_t        *model;          /* then                              */
    inf_reason_t       *why;            /* then; a reference, or NULL        */
    inf_core_config_t  *core_config;    /* a reference                       */
    inf_destroyer_t    *destroyer;      /* until it is destroyed             */
} inf_loaded_t;

/* The result of carrying out an edit as far as possible. */
typedef enum {
    INF_RUN_UNCHANGED,          /* ended                                     */
    INF_RUN_CHANGED,            /* ended; other versions serve               */
    INF_RUN_RECOVERED,          /* the same, for an ensemble that had failed */
    INF_RUN_LISTING,            /* waits for a repository's listing          */
    INF_RUN_COMPOSING,          /* waits for composing models                */
    INF_RUN_LATE                /* given up during a call into its backend,
                                   which has ended                           */
} inf_run_t;

/* ---- lifecycle_loaders.c ------------------------------------------------- */

/* Starts the configured number of loaders, and one for unloads; after an error,
   started ones run until the lifecycle stops.  add: one more; UNAVAILABLE with
   INF_CAUSE_FULL: no room. */
INF_CHECK inf_err_t *inf_lifecycle_start_loaders(inf_lifecycle_t *lc);
INF_CHECK inf_err_t *inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc,
    bool unloads) INF_NEEDS(lc->lock);

/* Lets running loads finish and rejects waiting ones.  false: a load does not
   finish. */
bool inf_lifecycle_stop_loaders(inf_lifecycle_t *lc, uint64_t until);

/* The edit of this loader thread; NULL: not a loader. */
const inf_edit_t *inf_lifecycle_own_edit(void);

/* Submits edit, which is taken, to the model of that id. */
void inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_edit_t *edit);

/* Rejects an edit that was not in the set; takes both. */
void inf_lifecycle_reject(inf_lifecycle_t *lc, inf_edit_t *edit,
    inf_err_t *err);

/* ---- lifecycle_desired.c ------------------------------------------------- */

/* Whether the start left out that model. */
bool inf_lifecycle_is_barred(const inf_lifecycle_t *lc,
    const inf_model_id_t *id);
void inf_lifecycle_unbar(inf_lifecycle_t *lc);

/* Whether edit may find its model of that namespace ("": any), which is in no
   repository of list, after another listing. */
bool inf_lifecycle_is_pending(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, const char *space);

/* ---- lifecycle.c --------------------------------------------------------- */

/* The configuration for a load that begins now; a reference. */
inf_core_config_t *inf_lifecycle_core_config(inf_lifecycle_t *lc);

/* ---- lifecycle_load.c: the error goes to the caller ---------------------- */

/* Carries out a load.  LISTING, COMPOSING: edit is continued later, by any
   thread. place is left before new versions serve. */
INF_CHECK inf_err_t *inf_lifecycle_run_load(inf_lifecycle_t *lc,
    inf_edit_t *edit, inf_loading_place_t *place, inf_run_t *run);
void inf_lifecycle_run_unload(inf_lifecycle_t *lc, inf_edit_t *edit);

/* ---- lifecycle_build.c --------------------------------------------------- */

/* Builds the versions of l, leaves place and swaps. */
INF_CHECK inf_err_t *inf_lifecycle_build(inf_load_t *l,
    inf_loading_place_t *place);

/* Frees a load that ends while it waits; l may be NULL. */
void inf_lifecycle_load_drop(inf_load_t *l);

/* ---- lifecycle_stuck.c --------------------------------------------------- */

/* Enclose a call into a plug-in, and report it to the load callbacks: the build
   of that version (owner: its owner; NULL: a change of a serving one), or -1:
   the model's agents.  A build has a time limit; inf_load_is_late tells
   afterwards whether it was exceeded.  No call after an error of begin. */
INF_CHECK inf_err_t *inf_load_call_begin(inf_load_t *l, int64_t version,
    const void *owner);
void inf_load_call_end(inf_load_t *l);

/* give_up_stuck: gives up loads whose call takes too long, and answers their
   callers; no lock is held.  next_stuck: the time of the next check. */
void inf_lifecycle_give_up_stuck(inf_lifecycle_t *lc);
uint64_t inf_lifecycle_next_stuck_locked(const inf_lifecycle_t *lc,
    uint64_t now_ns) INF_NEEDS(lc->lock);

/* Called when a late load that began at since_ns has returned, with nothing
   left; takes edit. */
void inf_lifecycle_load_returned(inf_lifecycle_t *lc, inf_edit_t *edit,
    uint64_t since_ns);

/* ---- lifecycle_ensemble.c
   ------------------------------------------------- */

/* Called after l has read an ensemble's configuration: loads composing models
   if necessary.  LISTING, COMPOSING: waits for their repository, or for them;
   otherwise takes them. */
inf_run_t inf_lifecycle_gather(inf_load_t *l);

/* Takes the composing models that serve now.  Versions that cannot be made fail
   with a reason; versions made of the same models are kept. */
void inf_lifecycle_take_composing(inf_load_t *l);

/* renew: makes room for a text, with the lock released.  drain: carries out the
   drain after a change of serving versions, before it is published. */
void inf_lifecycle_renew_locked(inf_lifecycle_t *lc, inf_reason_room_t *room)
    INF_NEEDS(lc->lock);
void inf_lifecycle_drain_locked(inf_lifecycle_t *lc, inf_link_t *gone,
    inf_reason_room_t *room) INF_NEEDS(lc->lock);

/* Releases models that left service; after publishing, without the lock. */
void inf_lifecycle_let_go(inf_link_t *gone);

/* Refreshes ensembles that are not made of what r serves now; the caller of
   edit, which may be NULL, waits for that, too. */
void inf_lifecycle_refresh(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_edit_t *edit);

/* Unloads models that were loaded only with the model edit has unloaded. */
void inf_lifecycle_unload_orphans(inf_lifecycle_t *lc, inf_edit_t *edit);

/* ---- lifecycle_names.c --------------------------------------------------- */

/* Replaces edit, of a name, by an edit for each model of that name; *run:
   whether it waits.  Or changes its kind, to be carried out. */
INF_CHECK inf_err_t *inf_lifecycle_run_name(inf_lifecycle_t *lc,
    inf_edit_t *edit, inf_run_t *run);

/* ---- lifecycle_end.c ----------------------------------------------------- */

extern const inf_model_set_ops_t inf_lifecycle_set_ops;

/* Publishes all READY versions as the snapshot for requests. */
void inf_lifecycle_publish(inf_lifecycle_t *lc);

/* The same with publish_lock taken before a version became READY, so that no
   reader sees a READY version that requests cannot find. */
void inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
    INF_GIVES(lc->publish_lock);

/* The means to destroy a model, allocated when it is built. */
INF_CHECK inf_err_t *inf_destroyer_new(inf_destroyer_t **out);
void inf_destroyer_free(inf_destroyer_t *d);

/* The reaper: destroys unreferenced models, each on its own thread, replaces
   stuck loaders, and queues due rebuilds.  stop: joins ended threads, when
   nothing is alive or the rest is not waited for. */
INF_CHECK inf_err_t *inf_lifecycle_start_reaper(inf_lifecycle_t *lc);
void inf_lifecycle_stop_reaper(inf_lifecycle_t *lc);

/* Iterates over models being finalized; *at begins as NULL.  The result is only
   compared.  NULL: end. */
const inf_model_t *inf_lifecycle_next_leaving_locked(
    const inf_lifecycle_t *lc, const inf_link_t **at);

extern const inf_model_ops_t inf_lifecycle_model_ops;

/* ---- lifecycle_exit.c: versions whose process has exited ----------------- */

/* Callback for inf_children_new; userp is the lifecycle. */
void inf_lifecycle_child_died(void *userp, inf_model_t *model,
    const char *why);

/* Writes "now", or "in 5 s". */
void inf_lifecycle_put_delay(uint64_t delay_ns, char *text, size_t cap);

/* Joins threads that have handled an exit; all: waits for the others, too. */
void inf_lifecycle_reap_exits(inf_lifecycle_t *lc, bool all);

/*
 * stranded: whether all live models wait for exited processes.  forget: gives
 * them up and removes what they left in /dev/shm.
 */
bool inf_lifecycle_stranded(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
void inf_lifecycle_forget_stranded(inf_lifecycle_t *lc);

#endif /* INF_REPOSITORY_LIFECYCLE_PARTS_H */
