/*
 * lifecycle_parts.h - what the files of the lifecycle share: lifecycle.c (the
 *                     operations' queues and threads), lifecycle_start.c (the
 *                     first of them), lifecycle_absence.c (those that wait for
 *                     a repository), lifecycle_op.c (who is told how they
 *                     ended), lifecycle_load.c (what they do),
 *                     lifecycle_ensemble.c (to models made of others),
 *                     lifecycle_follow.c (when the repositories change),
 *                     lifecycle_names.c (which models a name means),
 *                     lifecycle_end.c (publishing, taking apart),
 *                     lifecycle_lost.c (when a process of a model dies),
 *                     lifecycle_terms.c (options that change).
 *
 * Owner    The lifecycle owns records, queued operations and its threads.
 * Thread   as lifecycle.h; fields say under which lock.
 * Units    ns.
 * Errors   as lifecycle.h.
 * Route    lifecycle -> lifecycle_load -> lifecycle_end
 */

#ifndef INF_REPOSITORY_LIFECYCLE_PARTS_H
#define INF_REPOSITORY_LIFECYCLE_PARTS_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/repository/agent_table.h"
#include "core/repository/backend_table.h"
#include "core/repository/children.h"
#include "core/repository/loading_place.h"
#include "core/repository/model_record.h"

/* Half of them for those that lend a hand for a while. */
#define INF_LOADERS_MAX 256u

typedef struct inf_load_s inf_load_t;
typedef struct inf_destroyer_s inf_destroyer_t;

typedef struct inf_lifecycle_op_s {
    inf_link_t             link;        /* in its record's ops               */
    inf_model_record_t    *record;
    inf_op_kind_t          kind;
    int64_t                version;     /* of RELOAD; -1: all                */
    bool                   start;       /* one of those at the start         */
    bool                   unload;      /* of NAMED; else it loads           */
    bool                   asked;       /* of LOAD: by request               */
    bool                   all;         /* of FOLLOW: whatever lies there    */
    bool                   fresh;       /* of FOLLOW: it is newly named      */
    bool                   dropped;     /* of FOLLOW: it isn't named; once
                                           decided: that's why it goes       */
    bool                   adopt;       /* of FOLLOW: it stays all the same;
                                           once decided: that it does        */
    bool                   wanted;      /* the model, from now on            */
    bool                   forget;      /* of UNLOAD: failures, too          */
    bool                   dependents;  /* of UNLOAD: what came only with it */
    bool                   orphan;      /* of UNLOAD: unless it is needed    */
    bool                   implicit;    /* of LOAD: an ensemble needs it; of
                                           UNLOAD, once it ran: one did      */
    bool                   late;        /* it has waited for a repository    */
    bool                   at_start;    /* of FOLLOW: one of the start came  */
    bool                   ambiguous;   /* of UNLOAD: it lies in two: failed */
    bool                   inside;      /* a load waits for it               */
    bool                   made_good;   /* of RENEW: a load that had failed  */
    uint64_t               turn;        /* when it was queued: 1, 2, ...     */
    inf_load_t            *load;        /* as far as it got; NULL: it hasn't
                                           begun                             */
    inf_graph_plan_t      *plan;        /* of UNLOAD: what it was made of    */
    struct inf_lifecycle_op_s *parent;  /* who asked is told after this has
                                           ended, too; NULL: nobody waits    */
    uint32_t               left;        /* itself, and those it is parent of
                                           (under lc->lock)                  */
    inf_err_t             *err;         /* how it ended itself               */
    inf_repository_list_t *list;        /* of UNLOAD: it was decided on these;
                                           NULL: whatever there is           */
    inf_override_t        *override;
    inf_loading_place_t   *place;       /* while it runs                     */
    inf_lifecycle_done_fn  done;        /* NULL: nobody asks                 */
    void                  *userp;
} inf_lifecycle_op_t;

typedef enum {
    INF_LOADER_FREE,
    INF_LOADER_RUNS,
    INF_LOADER_ENDED            /* to be joined                              */
} inf_loader_state_t;

typedef struct {
    struct inf_lifecycle_s *lc;
    inf_loader_state_t      state;
    bool                    unloads;    /* takes unloads, no loads           */
    uint64_t                busy_ns;    /* its operation began; 0: none      */
    bool                    replaced;   /* another loads in its place until
                                           that has ended                    */
    pthread_t               thread;
} inf_loader_t;

struct inf_lifecycle_terms_s {
    _Atomic uint32_t        refs;
    inf_lifecycle_options_t options;    /* whole, once they are in force     */
    void                  (*release)(void *userp);      /* NULL: nothing     */
    void                   *userp;
};

struct inf_lifecycle_s {
    inf_lifecycle_options_t  options;       /* constant; terms may differ    */
    inf_backend_table_t     *backends;
    inf_agent_table_t       *agents;
    inf_timekeeper_t         timekeeper;    /* of all models                 */

    inf_lock_t               publish_lock;  /* rank 5: one snapshot at a
                                               time; who tells of READY
                                               versions waits for it         */
    inf_lock_t               lock;      /* rank 10; guards what follows      */
    inf_cond_t               work;      /* something queued, or stopping     */
    inf_cond_t               idle;      /* an operation or a model ended     */
    inf_lifecycle_terms_t   *terms;     /* a reference; never NULL           */
    inf_link_t               models;    /* records, by id                    */
    size_t                   model_count;
    inf_link_t               loads;     /* records whose turn it is          */
    inf_link_t               unloads;
    uint32_t                 busy;      /* operations queued or running      */
    uint32_t                 starting;  /* of them, those of the start       */
    bool                     unseen;    /* a repository of which all models
                                           are wanted was never listed       */
    bool                     unlisted;  /* its listing is awaited            */
    void                   (*again)(void *userp);   /* NULL: nobody          */
    void                    *again_userp;
    uint64_t                 alive;     /* model objects not yet destroyed   */
    inf_ensemble_graph_t     graph;     /* of all records                    */
    uint64_t                 turns;     /* operations queued so far          */
    uint64_t                 rounds;    /* looks for what is to be renewed   */
    uint32_t                 holds;     /* no operation begins meanwhile     */
    inf_model_id_t          *barred;    /* what the start left out; constant
                                           while operations run              */
    size_t                   barred_count;
    inf_link_t               destroyers;    /* models to be destroyed, and
                                               their threads                 */
    inf_cond_t               reap;      /* one more, or one has ended, or a
                                           loader has something to do, or a
                                           publish has failed                */
    bool                     unpublished;   /* the registry lacks what was to
                                               be published last             */
    uint64_t                 patience_ns;   /* with a load before another
                                               loader takes what waits       */
    bool                     reaper_ends;
    inf_link_t               losses;    /* lifecycle_lost.c                  */
    bool                     stopping;
    bool                     reaper_runs;   /* the owner's               */
    pthread_t                reaper;
    inf_loader_t             loaders[INF_LOADERS_MAX];
    uint32_t                 running;   /* loaders that take loads           */
    uint32_t                 enough;    /* of them; more than that end       */
};

/* The lifecycle's part of a loaded version: model->owner. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;
    inf_model_home_t   *home;           /* a reference                       */
    inf_link_t          gone;           /* while it is taken out of service  */
    inf_model_t        *model;          /* then                              */
    char               *why;            /* then; may be NULL                 */
    inf_lifecycle_terms_t *terms;       /* likewise                          */
    inf_destroyer_t    *destroyer;      /* its own once it is destroyed      */
} inf_loaded_t;

/* One version that is wanted. */
typedef struct {
    int64_t      version;
    bool         keep;          /* READY, and would be the same again        */
    bool         waited;        /* for one of its members                    */
    inf_model_t *stays;         /* the one that is kept and may have other
                                   instances; a reference, or NULL           */
    struct inf_instance_change_s *change;   /* of it                         */
    inf_model_t *model;         /* built by this load; a reference           */
    inf_model_t *serves;        /* the same once it has come into service    */
    inf_err_t   *err;
    char        *reason;        /* err as text; NULL: none, or no memory     */
    uint64_t     took_ns;
} inf_load_version_t;

struct inf_load_s {
    inf_lifecycle_t     *lc;
    inf_lifecycle_op_t  *op;
    inf_model_record_t  *record;
    inf_lifecycle_terms_t *terms;       /* a reference                       */
    inf_model_home_t    *home;          /* a reference                       */
    bool                 in_place;      /* it only lends its settings to the
                                           record's, which stays             */
    bool                 fresh;         /* home is not the record's          */
    inf_load_version_t  *versions;      /* ascending                         */
    size_t               count;
    inf_model_t        **released;      /* what commit takes out of service  */
    size_t               released_count;
    inf_model_home_t    *left;          /* the record's until now            */
    bool                 parked;        /* op waits for a repository         */
    bool                 ensemble;
    bool                 awaits;        /* a repository that may have one of
                                           its members                       */
    inf_model_t        **members;       /* by step; references               */
    size_t               member_count;
    char                *lack;          /* which is missing; NULL: none      */
};

/* ---- lifecycle.c -------------------------------------------------------- */

/* Queues op, which it takes. */
void inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_lifecycle_op_t *op);
void inf_lifecycle_submit_locked(inf_lifecycle_t *lc, inf_model_record_t *r,
    inf_lifecycle_op_t *op) INF_NEEDS(lc->lock);

/* The turn of r, whose operation was parked, comes again. */
void inf_lifecycle_resume_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
    INF_NEEDS(lc->lock);

INF_CHECK inf_err_t *inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc,
    bool unloads) INF_NEEDS(lc->lock);

/* ---- lifecycle_start.c --------------------------------------------------- */

/* Whether the start left that model to somebody else. */
bool inf_lifecycle_is_barred(const inf_lifecycle_t *lc,
    const inf_model_id_t *id);
void inf_lifecycle_unbar(inf_lifecycle_t *lc);

/* ---- lifecycle_absence.c: what lies nowhere yet -------------------------- */

typedef enum {
    INF_ABSENCE_FINAL,          /* nobody has it                             */
    INF_ABSENCE_AGAIN,          /* the repositories are others by now        */
    INF_ABSENCE_PARKED          /* op goes on later, maybe it does already   */
} inf_absence_t;

/* A model that op needs, of that namespace ("": any), is in none of the
   repositories of list that may be looked into.  Once op is parked, the thread
   that runs it next has its load. */
inf_absence_t inf_lifecycle_absent(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op, const inf_repository_list_t *list,
    const char *space);

/* Opens the home of l, or l->parked: its op is somebody else's now. */
INF_CHECK inf_err_t *inf_lifecycle_look(inf_load_t *l);

/* ---- lifecycle_op.c ------------------------------------------------------ */

INF_CHECK inf_err_t *inf_lifecycle_op_new(inf_op_kind_t kind,
    inf_lifecycle_done_fn done, void *userp, inf_lifecycle_op_t **out);

/* This thread, a loader, runs it from now on; NULL: it has ended. */
void inf_lifecycle_op_runs(const inf_lifecycle_op_t *op);

/* child follows from parent, which may be NULL: who asked for that is told
   when both have ended. */
void inf_lifecycle_adopt_locked(inf_lifecycle_op_t *parent,
    inf_lifecycle_op_t *child);

/* op has ended; takes both. */
void inf_lifecycle_op_end(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    inf_err_t *err);

/* Takes err; done may be NULL. */
void inf_lifecycle_tell(inf_lifecycle_done_fn done, void *userp,
    inf_err_t *err);

/* Operations that wait are told that the server stops. */
void inf_lifecycle_drop_ops(inf_lifecycle_t *lc);

/* r is the lifecycle's from now on. */
void inf_lifecycle_insert_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
    INF_NEEDS(lc->lock);

/* NULL: nothing is known of it. */
inf_model_record_t *inf_lifecycle_find_locked(const inf_lifecycle_t *lc,
    const inf_model_id_t *id) INF_NEEDS(lc->lock);

/* ---- lifecycle_terms.c --------------------------------------------------- */

/* Those that a load begins with; a reference. */
inf_lifecycle_terms_t *inf_lifecycle_take_terms(inf_lifecycle_t *lc);

/* ---- lifecycle_load.c: one operation; the error is for who asked --------- */

/* *changed: something came into service.  *parked: op goes on later, maybe it
   does already. */
INF_CHECK inf_err_t *inf_lifecycle_run_load(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op, bool *changed, bool *parked);
void inf_lifecycle_run_unload(inf_lifecycle_t *lc, inf_lifecycle_op_t *op);

/* A load that was dropped while it was parked; l may be NULL. */
void inf_lifecycle_load_drop(inf_load_t *l);

/* ---- lifecycle_ensemble.c: models made of others ------------------------- */

extern const inf_graph_ops_t inf_lifecycle_graph_ops;

/*
 * l has read an ensemble's configuration: has its members loaded where they
 * have to be.  true: it waits for them, or for where they lie; l is somebody
 * else's now.
 */
bool inf_lifecycle_gather(inf_load_t *l);

/* Takes the members that serve now.  Versions that can't be made fail with a
   reason, those made of the same members are kept. */
void inf_lifecycle_take_members(inf_load_t *l);

/* Whether something that l was made of has stopped serving meanwhile, or is
   made of it now: then all versions have to fail, with that reason. */
bool inf_lifecycle_members_left_locked(inf_load_t *l);
void inf_lifecycle_fail_all(inf_load_t *l);

/* The graph learns how a load has ended.  A plan to be freed, or NULL. */
inf_graph_plan_t *inf_lifecycle_settle_locked(inf_load_t *l, bool whole);

/* Something of r, or all, has gone out of service or failed: so do ensembles
   that can't be without it.  Their models are added to gone. */
void inf_lifecycle_withdraw_dependents_locked(inf_lifecycle_t *lc,
    const inf_model_record_t *r, inf_link_t *gone) INF_NEEDS(lc->lock);

/* After publishing, without the lock. */
void inf_lifecycle_let_go(inf_link_t *gone);

/* Ensembles that are not made of what r serves now are renewed; op, which may
   be NULL, ends after that. */
void inf_lifecycle_renew(inf_lifecycle_t *lc, const inf_model_record_t *r,
    inf_lifecycle_op_t *op);

/* Unloads models that only came with the one that op has unloaded. */
void inf_lifecycle_unload_orphans(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op);

/* Whether one that came only with an ensemble may go now. */
bool inf_lifecycle_is_orphan(inf_lifecycle_t *lc, inf_model_record_t *r);

/* A turn of r has ended: loads that waited for it go on. */
void inf_lifecycle_wake_locked(inf_lifecycle_t *lc, inf_model_record_t *r)
    INF_NEEDS(lc->lock);

/* Whether waiting for an operation on name from within own's load would never
   end.  false: until leave, it counts as waiting. */
bool inf_lifecycle_await_locked(inf_lifecycle_t *lc, inf_model_record_t *own,
    const char *name) INF_NEEDS(lc->lock);
void inf_lifecycle_awaited_locked(inf_model_record_t *own);

/* ---- lifecycle_names.c --------------------------------------------------- */

/* Replaces op by others, or makes it one of another kind.  *parked: as for a
   load. */
INF_CHECK inf_err_t *inf_lifecycle_run_named(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op, bool *parked);

/* ---- lifecycle_follow.c -------------------------------------------------- */

/* Gives op, one that follows, the kind of what it has to do now. */
INF_CHECK inf_err_t *inf_lifecycle_run_follow(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op);

/* ---- lifecycle_end.c ----------------------------------------------------- */

/* All READY versions become the snapshot that requests are served from. */
void inf_lifecycle_publish(inf_lifecycle_t *lc);

/* The same for who took publish_lock before it made a version READY: nobody
   reads in between of a READY version that requests don't find yet. */
void inf_lifecycle_publish_unlock(inf_lifecycle_t *lc)
    INF_GIVES(lc->publish_lock);

/* READY becomes UNLOADING; the reference is the caller's to give up, after
   publishing and without the lock.  NULL: it wasn't READY. */
inf_model_t *inf_lifecycle_withdraw_locked(inf_record_version_t *v);

/* model, which may be NULL, is added to gone: its reference is given up
   later. */
void inf_lifecycle_drop_locked(inf_model_t *model, inf_link_t *gone);

/* The means of destroying a model, got when it is built. */
INF_CHECK inf_err_t *inf_destroyer_new(inf_destroyer_t **out);
void inf_destroyer_free(inf_destroyer_t *d);

/* The thread that has models destroyed which nobody refers to any more, each
   on a thread of its own, and that sees to it that loads which take for ever
   hold up no others.  Stop, once nothing is alive or nobody will wait for
   what is: joins those that have ended. */
INF_CHECK inf_err_t *inf_lifecycle_start_reaper(inf_lifecycle_t *lc);
void inf_lifecycle_stop_reaper(inf_lifecycle_t *lc);

/* A model that is being taken apart, from the list's start on; *at begins as
   NULL.  The pointer is only to be compared.  NULL: no other. */
const inf_model_t *inf_lifecycle_next_leaving_locked(
    const inf_lifecycle_t *lc, const inf_link_t **at);

extern const inf_model_ops_t inf_lifecycle_model_ops;

/* ---- lifecycle_lost.c: a version whose process has died ------------------ */

/* For inf_children_new; userp is the lifecycle. */
void inf_lifecycle_child_died(void *userp, inf_model_t *model,
    const char *why);

/* Before the deaths-th death in a row is made good. */
uint64_t inf_lifecycle_lost_delay_ns(uint32_t deaths);

/* Joins the threads that are done with a loss; all: those that aren't too. */
void inf_lifecycle_reap_losses(inf_lifecycle_t *lc, bool all);

/*
 * Whether everything that is still alive waits for processes that are gone;
 * forget: nobody will wait for it, what it leaves in /dev/shm is removed.
 */
bool inf_lifecycle_stranded(inf_lifecycle_t *lc) INF_NEEDS(lc->lock);
void inf_lifecycle_forget_stranded(inf_lifecycle_t *lc);

#endif /* INF_REPOSITORY_LIFECYCLE_PARTS_H */
