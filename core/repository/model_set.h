/*
 * model_set.h - all models: their desired states, and the next work for
 *               threads.
 *
 * Owner    The caller owns the set.  The set owns its records and the edits
 *          that wait.
 * Thread   all functions with the caller's lock held.  The set has no clock,
 *          thread, lock or I/O.
 * Units    ns on the monotonic clock.  A turn is the number of an edit in the
 *          order of queueing, from 1.
 * Errors   No function fails or allocates: the caller allocates before the
 *          call.  A function that needs more room for a text (reason.h) returns
 *          false, and is called again with more room.
 * Route    lifecycle's events -> [model set] -> loader threads
 *
 * An edit has this life: submit; take, by a thread; then end, or put_back when
 * the edit has to wait for a listing or for composing models.  From take to end
 * the record is RUNNING, and that thread alone uses the record's source.
 *
 * A function that takes versions out of service says "drain is due": the caller
 * then calls inf_model_set_drain() before the lock is released.
 */

#ifndef INF_REPOSITORY_MODEL_SET_H
#define INF_REPOSITORY_MODEL_SET_H

#include "core/repository/ensemble_graph.h"
#include "core/repository/load.h"
#include "core/repository/model_record.h"
#include "core/repository/reconcile.h"

typedef struct {
    /* model leaves service, with a reference that the set had.  Takes why, a
       reference or NULL. */
    void (*leaves)(inf_model_t *model, inf_reason_t *why, inf_link_t *gone);

    /* The facts for that model, and an inventory of list. */
    inf_reconcile_facts_t (*facts)(void *userp,
        const inf_repository_list_t *list, const inf_model_id_t *id);
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
    inf_link_t                 to_leave;    /* of their ensembles, those to
                                               leave service next            */
    uint32_t                   busy;        /* edits not ended               */
    uint32_t                   starting;    /* of them, those of the start   */
    uint32_t                   holds;       /* while not 0, no edit begins   */
    uint64_t                   exits;       /* process exits                 */
    uint64_t                   turns;
    uint64_t                   rounds;      /* searches for stale ensembles  */
    bool                       stopping;
} inf_model_set_t;

/* Initializes an empty set.  ops and userp outlive the set; the set calls ops
   with the caller's lock held. */
void inf_model_set_init(inf_model_set_t *set, const inf_model_set_ops_t *ops,
    void *userp);

/* Frees the records when no edit waits or runs. */
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

/* Submits edit to r; the set owns the edit until a take.  Not while
   stopping. */
void inf_model_set_submit(inf_model_set_t *set, inf_model_record_t *r,
    inf_edit_t *edit);

/*
 * comes and next_leaving apply an inventory, one model after another.  No
 * record is freed between the calls.
 *
 * comes: whether the present model of n needs an edit.  The caller decides
 * which: a poll compares the files first, a start loads the model, and
 * otherwise LISTED decides in its turn.
 *
 * next_leaving: the next record after r (NULL: the first) of a model in no
 * repository or in two; the caller submits LISTED to that model.  NULL: end.
 */
bool inf_model_set_comes(inf_model_set_t *set, const inf_inventory_t *l,
    const inf_repository_name_t *n);
inf_model_record_t *inf_model_set_next_leaving(inf_model_set_t *set,
    const inf_inventory_t *l, inf_model_record_t *r);

/*
 * Takes the next edit to carry out, or NULL.  unloads: an edit that unloads;
 * false: one that does not.  The take decides what a listing means and whether
 * earlier decisions still hold, so the kind of the edit may have changed since
 * submit, even to NOTHING.  An unload by request is passed over while the load
 * of an ensemble, which came before, is made of that model.
 */
inf_edit_t *inf_model_set_take(inf_model_set_t *set, bool unloads);

/* Puts a taken edit back to the front of its record.  state says what the edit
   waits for: QUEUED, LISTING, or COMPOSING (as inf_model_set_waits has said).
   A later take returns the edit again.  Not while stopping. */
void inf_model_set_put_back(inf_model_set_t *set, inf_edit_t *edit,
    inf_model_state_t state);

/* Continues edits that wait for a listing, which came or failed. */
void inf_model_set_listed(inf_model_set_t *set);

/*
 * Ends a taken edit with err, which is taken.  *caller, if not NULL, is to be
 * answered; *gone, if not NULL, is a record to be freed.  false: the caller
 * frees edit.  true: the set owns edit again, a failed rebuild to try later.
 */
bool inf_model_set_end(inf_model_set_t *set, inf_edit_t *edit, inf_err_t *err,
    uint64_t now_ns, inf_caller_t **caller, inf_model_record_t **gone);

/*
 * Ends the edit of l with err, which is taken, because a call into a backend
 * takes too long.  The thread in that call owns the edit until
 * inf_model_set_returned.  Returns the caller to answer, or NULL.  *rebuild
 * becomes NULL if the set takes that edit, to try a rebuild later.
 */
inf_caller_t *inf_model_set_time_out(inf_model_set_t *set, inf_load_t *l,
    inf_reason_t *reason, inf_err_t *err, inf_edit_t **rebuild,
    uint64_t now_ns);

/* Called when the thread of such a load of r has returned and has freed the
   load.  The record stays, because r has versions. */
void inf_model_set_returned(inf_model_record_t *r);

/* Moves all waiting edits to dropped; the caller ends each of them.  Records
   stay.  No edit is submitted afterwards. */
void inf_model_set_stop(inf_model_set_t *set, inf_link_t *dropped);

/* Whether the start has an edit that may load a model of that name.  composing:
   ensembles load their composing models; then an ensemble whose configuration
   is not read yet may need any name. */
bool inf_model_set_is_starting(const inf_model_set_t *set, inf_slice_t name,
    bool composing);

/* Ends an edit that inf_model_set_stop returned; the caller frees it. */
inf_caller_t *inf_model_set_end_dropped(inf_model_set_t *set,
    inf_edit_t *edit, inf_err_t *err);

/* Queues due rebuilds; returns the time of the next, UINT64_MAX: none. */
uint64_t inf_model_set_tick(inf_model_set_t *set, uint64_t now_ns);

/* ---- consequences of an edit --------------------------------------------- */

/* Begins a search for ensembles that are not made of what r serves now.
   Returns the round for the two functions below. */
uint64_t inf_model_set_round(inf_model_set_t *set);

/* The next such ensemble, or NULL.  edit, or NULL, has made the ensembles
   stale. */
inf_model_record_t *inf_model_set_stale(inf_model_set_t *set,
    const inf_model_record_t *r, const inf_edit_t *edit, uint64_t round);

/* Submits refresh, a REFRESH, to such an ensemble.  The caller of edit, which
   may be NULL, waits for refresh, too. */
void inf_model_set_refresh(inf_model_set_t *set, inf_model_record_t *e,
    inf_edit_t *edit, inf_edit_t *refresh, uint64_t round);

/* Submits unload, of cause ORPHAN, to the composing model of step i of the
   ensemble that edit has unloaded.  false: that model is needed, or gone. */
bool inf_model_set_unload_orphan(inf_model_set_t *set, inf_edit_t *edit,
    size_t i, inf_edit_t *unload);

/* ---- changes of serving versions ----------------------------------------- */

/* Begins a load: the versions of l that do not serve become LOADING.  Takes
   merged, which has room for the versions of l and of the record.  true: the
   registry must be published. */
bool inf_model_set_begin(inf_load_t *l, inf_record_version_t *merged);

/* Ends a load that cannot begin.  Serving versions go on, with reason.  known:
   the model exists, or has existed. */
void inf_model_set_reject(inf_edit_t *edit, bool known,
    inf_rejection_t rejection, inf_reason_t *reason);

/* Sets the plan, which is taken, of the ensemble of l.  *circular: whether the
   ensemble depends on itself. */
void inf_model_set_ask(inf_model_set_t *set, inf_load_t *l,
    inf_graph_plan_t *plan, bool *circular);

/* Whether l must wait for edits of its composing models that were queued
   earlier. */
bool inf_model_set_waits(inf_model_set_t *set, inf_load_t *l);

/* Puts the composing models that serve now into l->composing, which has room,
   or sets l->lack.  *same: the ensemble is already made of these models.
   false: call again with more room. */
INF_CHECK bool inf_model_set_gather(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *same);

/*
 * Ends the build of a load: all versions of l come into service at once.  None
 * does if *whole is false; *whole becomes false, with l->lack, if a composing
 * model has gone since the gather.  The caller frees *plan.  Drain is due.
 * false: nothing has changed, call again with more room.
 */
INF_CHECK bool inf_model_set_swap(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *whole, inf_graph_plan_t **plan);

/* Takes all versions of edit's model out of service.  Returns the source of the
   model, which is the caller's now.  Drain is due. */
inf_model_source_t *inf_model_set_unload(inf_model_set_t *set,
    inf_edit_t *edit, inf_link_t *gone);

/* Takes ensembles out of service whose composing models have left service or
   failed.  false: call again with more room. */
INF_CHECK bool inf_model_set_drain(inf_model_set_t *set, inf_link_t *gone,
    inf_reason_room_t *room);

/*
 * Handles the exit of a process that model needs: the version that model serves
 * leaves service, and rebuild, which is taken, is queued after a delay.  The
 * version takes references of reason.  Drain is due.  NULL: model serves no
 * version, and nothing is taken.
 */
inf_record_version_t *inf_model_set_exit(inf_model_set_t *set,
    inf_model_record_t *r, const inf_model_t *model, inf_edit_t *rebuild,
    inf_reason_t *reason, uint64_t now_ns);

/* await: whether a wait for an edit of name, inside the load of own, would
   never end.  false: own counts as waiting until inf_model_set_awaited. */
bool inf_model_set_await(inf_model_set_t *set, inf_model_record_t *own,
    const char *name);
void inf_model_set_awaited(inf_model_record_t *own);

#endif /* INF_REPOSITORY_MODEL_SET_H */
