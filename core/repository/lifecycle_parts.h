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

/* Half of them for those that lend a hand for a while. */
#define INF_LOADERS_MAX 256u

/* Of a model's title in the log and in answers about stuck loads, with the
   end. */
#define INF_STUCK_NAME 512

typedef struct inf_destroyer_s inf_destroyer_t;

typedef enum {
    INF_LOADER_FREE,
    INF_LOADER_RUNS,
    INF_LOADER_STUCK,           /* its load was given up and has not returned */
    INF_LOADER_ENDED            /* to be joined                              */
} inf_loader_state_t;

typedef enum {
    INF_LISTING_WHOLE,          /* each was listed                           */
    INF_LISTING_PARTIAL,        /* one was never listed                      */
    INF_LISTING_PENDING         /* its listing is under way                  */
} inf_listing_state_t;

typedef enum {
    INF_REAPER_NONE,            /* there is no thread                        */
    INF_REAPER_RUNS,
    INF_REAPER_ENDS             /* it is told to                             */
} inf_reaper_state_t;

typedef struct {
    struct inf_lifecycle_s *lc;
    inf_loader_state_t      state;
    bool                    unloads;    /* takes unloads, no loads           */
    const inf_edit_t       *edit;       /* that it carries out; NULL: none   */
    uint64_t                busy_ns;    /* its edit began; 0: none           */
    bool                    replaced;   /* another loads in its place until
                                           that has ended                    */
    pthread_t               thread;
} inf_loader_t;

struct inf_lifecycle_s {
    inf_lifecycle_options_t  options;       /* these are set in new()        */
    inf_backend_table_t     *backends;
    inf_agent_table_t       *agents;
    inf_timekeeper_t         timekeeper;    /* of all models                 */

    inf_lock_t               publish_lock;  /* rank 5: one snapshot at a
                                               time; who tells of READY
                                               versions waits for it         */
    inf_lock_t               lock;      /* rank 10; guards what follows      */
    inf_cond_t               work;      /* something queued, or stopping     */
    inf_cond_t               idle;      /* an edit or a model ended          */
    inf_core_config_t       *core_config;   /* a reference; never NULL       */
    inf_model_set_t          set;
    uint64_t                 listings;  /* that have come, or failed, or
                                           changed place                     */
    inf_listing_state_t      listing;   /* of the repositories of which all
                                           models are desired                */
    void                   (*relist)(void *userp);  /* NULL: nobody          */
    void                    *relist_userp;
    uint64_t                 alive;     /* model objects not yet destroyed   */
    inf_model_id_t          *barred;    /* what the start left out; constant
                                           while edits are carried out       */
    size_t                   barred_count;
    inf_link_t               destroyers;    /* models to be destroyed, and
                                               their threads                 */
    inf_cond_t               reap;      /* one more, or one has ended, or a
                                           loader has something to do, or a
                                           publish has failed, or a process
                                           has exited                        */
    bool                     unpublished;   /* the registry lacks what was to
                                               be published last             */
    uint64_t                 patience_ns;   /* with a load before another
                                               loader takes what waits       */
    inf_link_t               exits;     /* lifecycle_exit.c                  */
    inf_reaper_state_t       reaper_state;
    pthread_t                reaper;
    inf_loader_t             loaders[INF_LOADERS_MAX];
    uint32_t                 running;   /* loaders that take loads           */
    uint32_t                 enough;    /* of them; more than that end       */
    inf_link_t               calls;     /* of loads into backends            */
    uint64_t                 last_call; /* its number                        */
    uint64_t                 stuck;     /* loads that were given up and have
                                           not returned                      */
    uint64_t                 failed_patience_ns;    /* set in new(): with a
                                           load of which a process has failed */
    uint64_t                 failed_checked_ns;     /* the reaper's           */
    inf_load_threads_t       threads;   /* of those loads; its own lock      */
    _Atomic bool             stopping;  /* seq_cst; as set.stopping, read by
                                           loads without the lock            */
};

/* The lifecycle's part of a loaded version: model->owner. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;
    inf_model_source_t   *source;       /* a reference                       */
    inf_link_t          gone;           /* while it is taken out of service  */
    inf_model_t        *model;          /* then                              */
    inf_reason_t       *why;            /* then; a reference, or NULL        */
    inf_core_config_t  *core_config;    /* likewise                          */
    inf_destroyer_t    *destroyer;      /* its own once it is destroyed      */
} inf_loaded_t;

/* The state of an edit that a thread has carried out as far as it can be
   now. */
typedef enum {
    INF_RUN_UNCHANGED,          /* ended                                     */
    INF_RUN_CHANGED,            /* ended; what serves is other now           */
    INF_RUN_RECOVERED,          /* likewise, an ensemble that had failed     */
    INF_RUN_LISTING,            /* waits for a repository that is still to be
                                   listed                                    */
    INF_RUN_COMPOSING,          /* waits for its composing models            */
    INF_RUN_LATE                /* was given up while a call into its backend
                                   was under way, and has ended then         */
} inf_run_t;

/* ---- lifecycle_loaders.c ------------------------------------------------- */

/* Loaders for loads, as many as the settings say, and one for unloads; after
   an error those that were started go on until the lifecycle stops.  add:
   one more thread; UNAVAILABLE with INF_CAUSE_FULL: there is room for none. */
INF_CHECK inf_err_t *inf_lifecycle_start_loaders(inf_lifecycle_t *lc);
INF_CHECK inf_err_t *inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc,
    bool unloads) INF_NEEDS(lc->lock);

/* A load in progress finishes first; what waits is told that the server stops.
   false: it doesn't finish. */
bool inf_lifecycle_stop_loaders(inf_lifecycle_t *lc, uint64_t until);

/* The edit that this thread carries out; NULL: it is no loader. */
const inf_edit_t *inf_lifecycle_own_edit(void);

/* Submits edit to the model of that id, and takes it. */
void inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_edit_t *edit);

/* An edit that never was in the set; takes both. */
void inf_lifecycle_reject(inf_lifecycle_t *lc, inf_edit_t *edit,
    inf_err_t *err);

/* ---- lifecycle_desired.c ------------------------------------------------- */

/* Whether the start left that model to somebody else. */
bool inf_lifecycle_is_barred(const inf_lifecycle_t *lc,
    const inf_model_id_t *id);
void inf_lifecycle_unbar(inf_lifecycle_t *lc);

/* Whether edit, which needs a model of that namespace ("": any) that is in
   none of the repositories of list, may find it when another is listed. */
bool inf_lifecycle_is_pending(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, const char *space);

/* ---- lifecycle.c --------------------------------------------------------- */

/* The configuration for a load that begins now; a reference. */
inf_core_config_t *inf_lifecycle_core_config(inf_lifecycle_t *lc);

/* ---- lifecycle_load.c: the error is for who asked ------------------------ */

/* LISTING, MEMBERS: edit is carried on later, by any thread.  place is left
   before something new serves. */
INF_CHECK inf_err_t *inf_lifecycle_run_load(inf_lifecycle_t *lc,
    inf_edit_t *edit, inf_loading_place_t *place, inf_run_t *run);
void inf_lifecycle_run_unload(inf_lifecycle_t *lc, inf_edit_t *edit);

/* ---- lifecycle_build.c --------------------------------------------------- */

/* Builds l's versions, leaves place and swaps. */
INF_CHECK inf_err_t *inf_lifecycle_build(inf_load_t *l,
    inf_loading_place_t *place);

/* A load that ends while it waits; l may be NULL. */
void inf_lifecycle_load_drop(inf_load_t *l);

/* ---- lifecycle_stuck.c --------------------------------------------------- */

/* Before and after a call into a plug-in, of which the load callbacks are told:
   the build of that version, by owner or beside what serves (NULL), or -1: the
   model's agents.  A build has a time limit; after the call inf_load_is_late
   says whether it was over.  After an error of begin there is no call. */
INF_CHECK inf_err_t *inf_load_call_begin(inf_load_t *l, int64_t version,
    const void *owner);
void inf_load_call_end(inf_load_t *l);

/* Gives up loads whose call takes too long, and answers their callers; not with
   a lock held.  next: when there is something to do again. */
void inf_lifecycle_give_up_stuck(inf_lifecycle_t *lc);
uint64_t inf_lifecycle_next_stuck_locked(const inf_lifecycle_t *lc,
    uint64_t now_ns) INF_NEEDS(lc->lock);

/* A load that began at since_ns has returned and left nothing behind; takes
   edit. */
void inf_lifecycle_load_returned(inf_lifecycle_t *lc, inf_edit_t *edit,
    uint64_t since_ns);

/* ---- lifecycle_ensemble.c: models made of others ------------------------- */

/* l has read an ensemble's configuration: has its composing models loaded
   where they have to be.  LISTING, MEMBERS: it waits for where they lie, or
   for them; else it takes them. */
inf_run_t inf_lifecycle_gather(inf_load_t *l);

/* Takes the composing models that serve now.  Versions that can't be made fail
   with a reason, those made of the same models are kept. */
void inf_lifecycle_take_composing(inf_load_t *l);

/* Room for a text; the lock is given up meanwhile.  And the drain that is due
   after a move of what serves, before that is published. */
void inf_lifecycle_renew_locked(inf_lifecycle_t *lc, inf_reason_room_t *room)
    INF_NEEDS(lc->lock);
void inf_lifecycle_drain_locked(inf_lifecycle_t *lc, inf_link_t *gone,
    inf_reason_room_t *room) INF_NEEDS(lc->lock);

/* Models leave service; after publishing, without the lock. */
void inf_lifecycle_let_go(inf_link_t *gone);

/* Ensembles that are not made of what r serves now are refreshed; the caller
   of edit, which may be NULL, waits for that, too. */
void inf_lifecycle_refresh(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_edit_t *edit);

/* Unloads models that only came with the one that edit has unloaded. */
void inf_lifecycle_unload_orphans(inf_lifecycle_t *lc, inf_edit_t *edit);

/* ---- lifecycle_names.c --------------------------------------------------- */

/* Replaces edit, of a name, by edits of each model of that name: *run says
   whether that waits.  Or it becomes one of another kind, to be carried out. */
INF_CHECK inf_err_t *inf_lifecycle_run_name(inf_lifecycle_t *lc,
    inf_edit_t *edit, inf_run_t *run);

/* ---- lifecycle_end.c ----------------------------------------------------- */

extern const inf_model_set_ops_t inf_lifecycle_set_ops;

/* All READY versions become the snapshot that requests are served from. */
void inf_lifecycle_publish(inf_lifecycle_t *lc);

/* The same for who took publish_lock before it made a version READY: nobody
   reads in between of a READY version that requests don't find yet. */
void inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
    INF_GIVES(lc->publish_lock);

/* The means of destroying a model, got when it is built. */
INF_CHECK inf_err_t *inf_destroyer_new(inf_destroyer_t **out);
void inf_destroyer_free(inf_destroyer_t *d);

/* The thread that has models destroyed which nobody refers to any more, each
   on a thread of its own, that sees to it that loads which take for ever hold
   up no others, and that queues rebuilds when they are due.  Stop, once
   nothing is alive or nobody will wait for what is: joins those that have
   ended. */
INF_CHECK inf_err_t *inf_lifecycle_start_reaper(inf_lifecycle_t *lc);
void inf_lifecycle_stop_reaper(inf_lifecycle_t *lc);

/* A model that is being finalized, from the list's start on; *at begins as
   NULL.  The pointer is only to be compared.  NULL: no other. */
const inf_model_t *inf_lifecycle_next_leaving_locked(
    const inf_lifecycle_t *lc, const inf_link_t **at);

extern const inf_model_ops_t inf_lifecycle_model_ops;

/* ---- lifecycle_exit.c: a version whose process has exited ---------------- */

/* For inf_children_new; userp is the lifecycle. */
void inf_lifecycle_child_died(void *userp, inf_model_t *model,
    const char *why);

/* "now", or "in 5 s". */
void inf_lifecycle_put_delay(uint64_t delay_ns, char *text, size_t cap);

/* Joins the threads that are done with an exit; all: those that aren't too. */
void inf_lifecycle_reap_exits(inf_lifecycle_t *lc, bool all);

/*
 * Whether everything that is still alive waits for processes that are gone;
 * forget: nobody will wait for it, what it leaves in /dev/shm is removed.
 */
bool inf_lifecycle_stranded(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
void inf_lifecycle_forget_stranded(inf_lifecycle_t *lc);

#endif /* INF_REPOSITORY_LIFECYCLE_PARTS_H */
