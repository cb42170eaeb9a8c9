/*
 * model_set.h - all models: their desired states, and the next work for
 *               threads.
 *
 * Owner    The caller owns the set; the set owns records and waiting edits.
 * Thread   the caller's lock.  A passive object: events and `now` in; edits to
 *          carry out, callers to answer and models that leave service out; no
 *          clock, thread, lock or I/O inside.
 * Units    ns on the monotonic clock.  Turns count edits in the order they were
 *          queued, from 1.
 * Errors   The caller allocates before the call, also texts (reason.h): nothing
 *          here fails or allocates, but a call may ask for more room for a
 *          text.
 * Route    lifecycle's events -> [model set] -> loader threads
 *
 * An edit is submitted, taken by a thread, and then ended, or put back to wait
 * for a listing or for composing models.  In between its record is RUNNING, and
 * that thread alone uses the record's source.
 */

#ifndef INF_REPOSITORY_MODEL_SET_H
#define INF_REPOSITORY_MODEL_SET_H

#include "core/repository/ensemble_graph.h"
#include "core/repository/load.h"
#include "core/repository/model_record.h"
#include "core/repository/reconcile.h"

typedef struct {
    /* model leaves service; the set gives up a reference of it.  why (may be
       NULL) is a reference that is taken. */
    void (*leaves)(inf_model_t *model, inf_reason_t *why, inf_link_t *gone);

    /* Whether list is the current list. */
    bool (*is_current)(void *userp, const inf_repository_list_t *list);

    /* Whether the start left out that model. */
    bool (*is_barred)(void *userp, const inf_model_id_t *id);
} inf_model_set_ops_t;

typedef struct {
    const inf_model_set_ops_t *ops;
    void                      *userp;
    inf_link_t                 models;      /* records, by id                */
    size_t                     model_count;
    inf_ensemble_graph_t       graph;       /* of all records                */
    inf_link_t                 loads;       /* records that are QUEUED       */
    inf_link_t                 unloads;
    inf_link_t                 left;        /* records with versions that left
                                               service; drain is due         */
    inf_link_t                 lost;        /* of their ensembles, those to
                                               leave service next            */
    uint32_t                   busy;        /* edits not ended               */
    uint32_t                   starting;    /* of them, those of the start   */
    uint32_t                   holds;       /* while not 0, no edit begins   */
    uint64_t                   exits;       /* process exits                 */
    uint64_t                   turns;
    uint64_t                   rounds;      /* searches for stale ensembles  */
    bool                       stopping;
} inf_model_set_t;

/* Initializes an empty set; ops and userp outlive it.  ops are called with the
   caller's lock held. */
void inf_model_set_init(inf_model_set_t *set, const inf_model_set_ops_t *ops,
    void *userp);

/* Frees the records; no edit waits or runs. */
void inf_model_set_fini(inf_model_set_t *set);

/* The record of a model, or NULL. */
inf_model_record_t *inf_model_set_find(const inf_model_set_t *set,
    const inf_model_id_t *id);

/* Iterates over records by id; r NULL: the first. */
inf_model_record_t *inf_model_set_next(const inf_model_set_t *set,
    const inf_model_record_t *r);

/* Adds r, which the set then owns. */
void inf_model_set_insert(inf_model_set_t *set, inf_model_record_t *r);

/* ---- edits -------------------------------------------------------------- */

/* Submits edit, which the set owns until it is taken.  Not while stopping. */
void inf_model_set_submit(inf_model_set_t *set, inf_model_record_t *r,
    inf_edit_t *edit);

/*
 * Apply an inventory, one model after another; no record may be freed
 * meanwhile. comes: whether an edit must be submitted to the model of n, which
 * is present: a poll compares its files first, a start loads it, otherwise
 * LISTED decides in its turn.  next_leaving: the next record after r (NULL: the
 * first) of a model in no repository, or in two, to which LISTED must be
 * submitted; NULL: end.
 */
bool inf_model_set_comes(inf_model_set_t *set, const inf_inventory_t *l,
    const inf_repository_name_t *n);
inf_model_record_t *inf_model_set_next_leaving(inf_model_set_t *set,
    const inf_inventory_t *l, inf_model_record_t *r);

/*
 * Takes the next edit to carry out, or NULL.  unloads: of the unloads,
 * otherwise of the others.  Its kind may have changed, even to NOTHING:
 * consequences of a listing, and whether earlier decisions still hold, are
 * decided here.
 */
inf_edit_t *inf_model_set_take(inf_model_set_t *set, bool unloads);

/* Puts a taken edit back to the front of its record to wait: QUEUED for a
   thread, LISTING, or COMPOSING as long as inf_model_set_waits has said.  It is
   taken again afterwards.  Not while stopping. */
void inf_model_set_put_back(inf_model_set_t *set, inf_edit_t *edit,
    inf_model_state_t state);

/* Continues edits that wait for a listing, which came or failed. */
void inf_model_set_listed(inf_model_set_t *set);

/*
 * Ends a taken edit; takes err.  *caller: to be answered, or NULL.  *gone: a
 * record to be freed, or NULL.  true: the set owns edit again (a failed rebuild
 * that is tried later); otherwise the caller frees it.
 */
bool inf_model_set_end(inf_model_set_t *set, inf_edit_t *edit, inf_err_t *err,
    uint64_t now_ns, inf_caller_t **caller, inf_model_record_t **gone);

/*
 * Ends the edit of l, whose call into a backend takes too long, with err
 * (taken).  Its thread owns the edit until inf_model_set_returned.  Returns the
 * caller to answer, or NULL.  *rebuild is taken, and becomes NULL, if a rebuild
 * is to be tried later.
 */
inf_caller_t *inf_model_set_time_out(inf_model_set_t *set, inf_load_t *l,
    inf_reason_t *reason, inf_err_t *err, inf_edit_t **rebuild,
    uint64_t now_ns);

/* Called when the thread of such a load of r has returned, and nothing of the
   load is left.  r has versions, so it stays. */
void inf_model_set_returned(inf_model_record_t *r);

/* Moves all waiting edits to dropped, to be ended by the caller; no more are
   submitted, and records stay. */
void inf_model_set_stop(inf_model_set_t *set, inf_link_t *dropped);

/* Whether a model of that name has an edit while the start runs.  composing:
   ensembles load their models, so an ensemble whose configuration is not read
   yet may need any name. */
bool inf_model_set_is_starting(const inf_model_set_t *set, inf_slice_t name,
    bool composing);

/* Ends an edit that inf_model_set_stop returned; the caller frees it. */
inf_caller_t *inf_model_set_end_dropped(inf_model_set_t *set,
    inf_edit_t *edit, inf_err_t *err);

/* Queues due rebuilds; returns the time of the next, UINT64_MAX: none. */
uint64_t inf_model_set_tick(inf_model_set_t *set, uint64_t now_ns);

/* ---- consequences of an edit --------------------------------------------- */

/* Begins a search for ensembles that are not made of what r serves now. */
uint64_t inf_model_set_round(inf_model_set_t *set);

/* The next of them, or NULL; edit (or NULL) is what has made them stale. */
inf_model_record_t *inf_model_set_stale(inf_model_set_t *set,
    const inf_model_record_t *r, const inf_edit_t *edit, uint64_t round);

/* Submits refresh, a REFRESH, to such an ensemble; the caller of edit (which
   may be NULL) waits for it, too. */
void inf_model_set_refresh(inf_model_set_t *set, inf_model_record_t *e,
    inf_edit_t *edit, inf_edit_t *refresh, uint64_t round);

/* Submits unload, of cause ORPHAN, to the model of step i of what edit has
   unloaded.  false: that model is needed, or gone. */
bool inf_model_set_unload_orphan(inf_model_set_t *set, inf_edit_t *edit,
    size_t i, inf_edit_t *unload);

/* ---- changes of serving versions ----------------------------------------- */

/* Begins a load: versions that do not serve become LOADING.  merged, which is
   taken, has room for these and the record's own.  true: the registry must be
   published. */
bool inf_model_set_begin(inf_model_set_t *set, inf_load_t *l,
    inf_record_version_t *merged);

/* Ends a load that cannot begin: versions go on serving, with reason.  known:
   the model exists, or has existed. */
void inf_model_set_reject(inf_edit_t *edit, bool known, inf_reason_t *reason);

/* Sets the plan (taken) of the ensemble of l.  *circular: whether the ensemble
   depends on itself. */
void inf_model_set_ask(inf_model_set_t *set, inf_load_t *l,
    inf_graph_plan_t *plan, bool *circular);

/* Whether l must wait for edits of its composing models that were queued
   earlier. */
bool inf_model_set_waits(inf_model_set_t *set, inf_load_t *l);

/* Takes the composing models that serve now into l->composing, which has room;
   or sets l->lack.  *same: the ensemble is made of them already.  false: call
   again with more room. */
INF_CHECK bool inf_model_set_gather(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *same);

/*
 * Ends the build of a load: all its versions come into service at once, or none
 * unless *whole.  *whole becomes false, with l->lack, if a composing model has
 * gone meanwhile.  *plan is to be freed.  Then drain is due.  false: nothing
 * happened, call again with more room.
 */
INF_CHECK bool inf_model_set_swap(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *whole, inf_graph_plan_t **plan);

/* Takes all versions of edit's model out of service.  Returns the model's
   source, which it loses.  Then drain is due. */
inf_model_source_t *inf_model_set_unload(inf_model_set_t *set,
    inf_edit_t *edit, inf_link_t *gone);

/* Takes ensembles out of service that need versions which left service or
   failed. false: call again with more room. */
INF_CHECK bool inf_model_set_drain(inf_model_set_t *set, inf_link_t *gone,
    inf_reason_room_t *room);

/*
 * Handles the exit of a process that model needs: its version leaves service
 * and is rebuilt after a delay.  If a version was served by model, takes
 * rebuild and references of reason, and drain is due.  NULL: none was.
 */
inf_record_version_t *inf_model_set_exit(inf_model_set_t *set,
    inf_model_record_t *r, const inf_model_t *model, inf_edit_t *rebuild,
    inf_reason_t *reason, uint64_t now_ns);

/* await: whether a wait for an edit of name, inside own's load, would never
   end. false: it counts as waiting until inf_model_set_awaited. */
bool inf_model_set_await(inf_model_set_t *set, inf_model_record_t *own,
    const char *name);
void inf_model_set_awaited(inf_model_record_t *own);

#endif /* INF_REPOSITORY_MODEL_SET_H */
