/*
 * lifecycle_parts.h - what the files of the lifecycle share.
 *
 * Owner    The lifecycle owns the model set and its threads.
 * Thread   As lifecycle.h.  The fields say which lock guards them.
 * Units    ns.
 * Errors   As lifecycle.h.
 * Route    lifecycle -> model set -> lifecycle_loaders -> lifecycle_load ->
 *          lifecycle_publish
 *
 * The files call each other in one direction only: lifecycle, lifecycle_end,
 * lifecycle_loaders, lifecycle_load, lifecycle_build, and then those with the
 * steps of all of these.
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
    uint64_t                busy_ns;    /* start of the edit                 */
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
    inf_model_ids_t          barred;    /* left out at the start; constant
                                           while edits run                   */
    inf_link_t               destroyed; /* loaded versions that are not used
                                           any more                          */
    inf_cond_t               reap;      /* work for the reaper: a version
                                           unused or destroyed, a loader to
                                           replace, a failed publish, an exit */
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
    uint64_t                 failed_patience_ns;    /* set in new(): for a load
                                                       with a failed process  */
    uint64_t                 failed_checked_ns;     /* used by the reaper     */
    inf_load_threads_t       threads;   /* of loads; has its own lock        */
    _Atomic bool             stopping;  /* seq_cst; copy of set.stopping for
                                           loads without the lock            */
};

typedef enum {
    INF_LOADED_LIVES,
    INF_LOADED_UNUSED,          /* waits for the thread that destroys it     */
    INF_LOADED_ENDS,            /* is being destroyed                        */
    INF_LOADED_ENDED            /* the thread is to be joined                */
} inf_loaded_state_t;

/* The lifecycle's data of a loaded version: model->owner.  It has all that
   destroying the model takes, so that destroying cannot fail. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;
    inf_model_source_t *source;         /* a reference                       */
    inf_core_config_t  *core_config;    /* a reference                       */
    inf_link_t          link;           /* while it leaves service; then in
                                           lc->destroyed                     */
    inf_model_t        *model;          /* since it leaves service           */
    inf_reason_t       *why;            /* of that; a reference, or NULL     */
    inf_loaded_state_t  state;          /* under lc->lock                    */
    pthread_t           thread;         /* that destroys it                  */
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

/* start starts the configured number of loaders, and one for unloads.  After an
   error the started ones run until the lifecycle stops.  add starts one more;
   UNAVAILABLE with INF_CAUSE_FULL: there is no room. */
INF_CHECK inf_err_t *inf_lifecycle_start_loaders(inf_lifecycle_t *lc);
INF_CHECK inf_err_t *inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc,
    bool unloads) INF_NEEDS(lc->lock);

/* Rejects the edits that wait, and waits for the running ones.  false: a load
   does not finish. */
bool inf_lifecycle_stop_loaders(inf_lifecycle_t *lc, uint64_t until);

/* The edit that this thread carries out; NULL: the thread is no loader. */
const inf_edit_t *inf_lifecycle_own_edit(void);

/* ---- lifecycle_submit.c -------------------------------------------------- */

/* Submits edit, which is taken, to the model of that id. */
void inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_edit_t *edit);

/* Rejects an edit that was not in the set.  Takes edit and err. */
void inf_lifecycle_reject(inf_lifecycle_t *lc, inf_edit_t *edit,
    inf_err_t *err);

/* The error of an edit that is rejected because the lifecycle stops. */
INF_CHECK inf_err_t *inf_lifecycle_stopping(const char *name);

/* ---- lifecycle_listing.c ------------------------------------------------- */

/* Whether a listing that is still to come may have the model of edit, which is
   in no repository of list.  space: the namespace; "": any. */
bool inf_lifecycle_is_pending(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, const char *space);

/* ---- lifecycle_load.c ---------------------------------------------------- */

/* A reference of the configuration, for a load that begins now. */
inf_core_config_t *inf_lifecycle_core_config(inf_lifecycle_t *lc);

/* run_load carries out a load; the error is the answer to the caller of edit.
   *run LISTING or COMPOSING: a thread continues edit later.  The thread leaves
   place before new versions serve.  run_unload carries out an unload. */
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

/*
 * begin and end enclose a call into a plug-in, and report the call to the load
 * callbacks.  version -1: a call of the model's agents.  Otherwise the build of
 * that version; owner is the owner of the new version, NULL for a change of a
 * serving one.  After an error of begin neither the call nor end follows.
 *
 * A build has a time limit; after end, inf_load_is_late says whether the call
 * has exceeded the limit.
 */
INF_CHECK inf_err_t *inf_load_call_begin(inf_load_t *l, int64_t version,
    const void *owner);
void inf_load_call_end(inf_load_t *l);

/* give_up_stuck gives up loads whose call takes too long, and answers their
   callers; called without a lock.  next_stuck: when to call that again. */
void inf_lifecycle_give_up_stuck(inf_lifecycle_t *lc);
uint64_t inf_lifecycle_next_stuck_locked(const inf_lifecycle_t *lc,
    uint64_t now_ns) INF_NEEDS(lc->lock);

/* Called when a load that was given up has returned, and nothing is left of the
   load, which began at since_ns.  Takes edit. */
void inf_lifecycle_load_returned(inf_lifecycle_t *lc, inf_edit_t *edit,
    uint64_t since_ns);

/* ---- lifecycle_ensemble.c ------------------------------------------------ */

/* Called when l has read the configuration of an ensemble: loads the composing
   models if that is necessary.  LISTING: l waits for their repository.
   COMPOSING: l waits for the composing models.  Otherwise l has taken them. */
inf_run_t inf_lifecycle_gather(inf_load_t *l);

/* Takes the composing models that serve now.  A version of l that cannot be
   made of them fails with a reason.  A version that is made of them stays. */
void inf_lifecycle_take_composing(inf_load_t *l);

/* renew makes room for a text, and releases the lock meanwhile.  drain carries
   out the drain that is due after a change of serving versions, before the
   change is published. */
void inf_lifecycle_renew_locked(inf_lifecycle_t *lc, inf_reason_room_t *room)
    INF_NEEDS(lc->lock);
void inf_lifecycle_drain_locked(inf_lifecycle_t *lc, inf_link_t *gone,
    inf_reason_room_t *room) INF_NEEDS(lc->lock);

/* Drops the references of models that left service.  Called after publishing,
   without the lock. */
void inf_lifecycle_let_go(inf_link_t *gone);

/* Submits a refresh of each ensemble that is not made of what r serves now.
   The caller of edit, which may be NULL, waits for the refreshes, too. */
void inf_lifecycle_refresh(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_edit_t *edit);

/* Submits an unload of each model that was loaded only for the ensemble that
   edit has unloaded. */
void inf_lifecycle_unload_orphans(inf_lifecycle_t *lc, inf_edit_t *edit);

/* ---- lifecycle_names.c --------------------------------------------------- */

/* Replaces edit, which is for a name, by one edit for each model of that name.
   If no model has the name, or edit brings the model's files, edit becomes one
   for a single model, and is carried out next.  run: whether edit waits for a
   listing. */
INF_CHECK inf_err_t *inf_lifecycle_run_name(inf_lifecycle_t *lc,
    inf_edit_t *edit, inf_run_t *run);

/* ---- lifecycle_publish.c ------------------------------------------------- */

/* Publishes all READY versions as the snapshot for requests. */
void inf_lifecycle_publish(inf_lifecycle_t *lc);

/* The same for a caller who has taken publish_lock before a version became
   READY, so that no reader sees a READY version that requests cannot find. */
void inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
    INF_GIVES(lc->publish_lock);

/* ---- lifecycle_end.c ----------------------------------------------------- */

extern const inf_model_set_ops_t inf_lifecycle_set_ops;

/* The reaper thread destroys unreferenced models, each on a thread of its own,
   gives up stuck loads, replaces their loaders and queues due rebuilds.  stop
   joins the threads that have ended; called when no model is alive, or when
   nobody waits for the rest. */
INF_CHECK inf_err_t *inf_lifecycle_start_reaper(inf_lifecycle_t *lc);
void inf_lifecycle_stop_reaper(inf_lifecycle_t *lc);

extern const inf_model_ops_t inf_lifecycle_model_ops;

/* ---- lifecycle_exit.c: versions whose process has exited ----------------- */

/* Callback for inf_children_new; userp is the lifecycle. */
void inf_lifecycle_child_died(void *userp, inf_model_t *model,
    const char *why);

/* Writes "now", or "in 5 s". */
void inf_lifecycle_put_delay(uint64_t delay_ns, char *text, size_t cap);

/* Joins the threads that have handled an exit.  all: waits for the threads that
   handle one now, too. */
void inf_lifecycle_reap_exits(inf_lifecycle_t *lc, bool all);

/* stranded: whether all live models wait for exited processes.  forget gives
   these models up, and removes what they have left in /dev/shm. */
bool inf_lifecycle_stranded(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
void inf_lifecycle_forget_stranded(inf_lifecycle_t *lc);

#endif /* INF_REPOSITORY_LIFECYCLE_PARTS_H */
