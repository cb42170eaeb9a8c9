/*
 * model_set.h - all models: what is desired of each, and what threads have to
 *               do about it next.
 *
 * Owner    The caller owns the set; the set owns records and the edits that
 *          wait in them.
 * Thread   the caller's lock.  A passive object: events and `now` in, edits to
 *          be carried out, callers to be answered and models that leave
 *          service out; no clock, thread, lock or I/O inside.
 * Units    ns on the monotonic clock.  Turns count edits in the order they
 *          were queued, from 1.
 * Errors   The caller allocates before the call, texts too (reason.h): nothing
 *          here fails or allocates, but a call may want more room for a text.
 * Route    lifecycle's events -> [model set] -> loader threads
 *
 * An edit is submitted, taken by a thread, and then ended, or made to wait for
 * a listing or for composing models: in between, its record is RUNNING and
 * belongs to that thread as far as its source goes.
 */

#ifndef INF_REPOSITORY_MODEL_SET_H
#define INF_REPOSITORY_MODEL_SET_H

#include "core/repository/ensemble_graph.h"
#include "core/repository/load.h"
#include "core/repository/model_record.h"
#include "core/repository/reconcile.h"

typedef struct {
    /* model, of which the set gives a reference up, leaves service; why (may
       be NULL) is a reference that is taken. */
    void (*leaves)(inf_model_t *model, inf_reason_t *why, inf_link_t *gone);

    /* Whether list is what there is. */
    bool (*is_current)(void *userp, const inf_repository_list_t *list);

    /* Whether the start left that model to somebody else. */
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
    inf_link_t                 left;        /* records of which something has
                                               left service; drain is due    */
    inf_link_t                 lost;        /* of their ensembles, those that
                                               leave service in turn         */
    uint32_t                   busy;        /* edits that haven't ended      */
    uint32_t                   starting;    /* of them, those of the start   */
    uint32_t                   holds;       /* no edit begins meanwhile      */
    uint64_t                   exits;       /* processes that have exited    */
    uint64_t                   turns;
    uint64_t                   rounds;      /* searches for what is stale    */
    bool                       stopping;
} inf_model_set_t;

/* An empty set; ops and userp outlive it.  ops are called with the lock of the
   caller held. */
void inf_model_set_init(inf_model_set_t *set, const inf_model_set_ops_t *ops,
    void *userp);

/* No edit waits or runs; frees the records. */
void inf_model_set_fini(inf_model_set_t *set);

/* NULL: nothing is known of it. */
inf_model_record_t *inf_model_set_find(const inf_model_set_t *set,
    const inf_model_id_t *id);

/* One after another, by id; r NULL: the first. */
inf_model_record_t *inf_model_set_next(const inf_model_set_t *set,
    const inf_model_record_t *r);

/* r is the set's from now on. */
void inf_model_set_insert(inf_model_set_t *set, inf_model_record_t *r);

/* ---- edits -------------------------------------------------------------- */

/* edit is the set's until it is taken.  Not while the set is stopping. */
void inf_model_set_submit(inf_model_set_t *set, inf_model_record_t *r,
    inf_edit_t *edit);

/*
 * Consequences of an inventory, one model after another; none may go
 * meanwhile.  comes: whether an edit has to be submitted to the model of n,
 * which lies there: a poll compares its files first, a start loads it, else
 * LISTED decides when its turn comes.  next_leaving: the next record after r
 * (NULL: the first), of a model that lies nowhere or in two repositories, to
 * which LISTED has to be submitted; NULL: no other.
 */
bool inf_model_set_comes(inf_model_set_t *set, const inf_inventory_t *l,
    const inf_repository_name_t *n);
inf_model_record_t *inf_model_set_next_leaving(inf_model_set_t *set,
    const inf_inventory_t *l, inf_model_record_t *r);

/*
 * The next edit to be carried out, or NULL.  unloads: of the unloads, else of
 * the others.  Its kind may be another now, NOTHING too: what follows from a
 * listing, and whether what was decided earlier still holds, is decided here.
 */
inf_edit_t *inf_model_set_take(inf_model_set_t *set, bool unloads);

/* The edit that was taken goes back to the front of its record and waits:
   QUEUED, for a thread; LISTING; MEMBERS, as far as inf_model_set_waits has
   said how long.  It is taken again when that has come.  Not while the set is
   stopping. */
void inf_model_set_put_back(inf_model_set_t *set, inf_edit_t *edit,
    inf_model_state_t state);

/* A listing has come, or failed: what waits for one goes on. */
void inf_model_set_listed(inf_model_set_t *set);

/*
 * The edit that was taken has ended; takes err.  *caller: to be answered, or
 * NULL.  *gone: a record that nothing needs any more, to be freed, or NULL.
 * true: edit is the set's again (a rebuild that failed, and is tried later),
 * else it is the caller's to free.
 */
bool inf_model_set_end(inf_model_set_t *set, inf_edit_t *edit, inf_err_t *err,
    uint64_t now_ns, inf_caller_t **caller, inf_model_record_t **gone);

/*
 * The call of l into a backend takes too long: its edit has ended with err,
 * which is taken, though its thread has not returned.  The edit is the thread's
 * until inf_model_set_returned.  The caller, to be answered, or NULL.  *rebuild
 * is taken, and NULL then, if a rebuild has to be tried later.
 */
inf_caller_t *inf_model_set_time_out(inf_model_set_t *set, inf_load_t *l,
    inf_reason_t *reason, inf_err_t *err, inf_edit_t **rebuild,
    uint64_t now_ns);

/* The thread of such a load of r, which has versions and so stays, has
   returned, and nothing of the load is left. */
void inf_model_set_returned(inf_model_record_t *r);

/* All edits that wait, for the caller to end; none is submitted any more, and
   their records stay. */
void inf_model_set_stop(inf_model_set_t *set, inf_link_t *dropped);

/* Whether an edit of a model of that name is under way while the start is.
   composing: ensembles bring what they are made of, so that one whose
   configuration was not read yet may need any name. */
bool inf_model_set_is_starting(const inf_model_set_t *set, inf_slice_t name,
    bool composing);

/* An edit of inf_model_set_stop has ended; as above, the edit is the
   caller's to free. */
inf_caller_t *inf_model_set_end_dropped(inf_model_set_t *set,
    inf_edit_t *edit, inf_err_t *err);

/* Queues rebuilds that are due by now; when the next one is, UINT64_MAX: none
   waits. */
uint64_t inf_model_set_tick(inf_model_set_t *set, uint64_t now_ns);

/* ---- what follows from an edit ------------------------------------------ */

/* A search begins for ensembles that are not made of what r serves now. */
uint64_t inf_model_set_round(inf_model_set_t *set);

/* The next of them, or NULL; edit (or NULL) is what has made them stale. */
inf_model_record_t *inf_model_set_stale(inf_model_set_t *set,
    const inf_model_record_t *r, const inf_edit_t *edit, uint64_t round);

/* refresh, a REFRESH, is submitted to such an ensemble; the caller of edit
   (which may be NULL) waits for it, too. */
void inf_model_set_refresh(inf_model_set_t *set, inf_model_record_t *e,
    inf_edit_t *edit, inf_edit_t *refresh, uint64_t round);

/* unload, of cause ORPHAN, is submitted to the model of step i of what edit
   has unloaded.  false: that is needed, or gone. */
bool inf_model_set_unload_orphan(inf_model_set_t *set, inf_edit_t *edit,
    size_t i, inf_edit_t *unload);

/* ---- moves of what serves ----------------------------------------------- */

/* A load begins: what of its versions doesn't serve is LOADING.  merged has
   room for these and the record's own, and is taken.  true: something that
   the registry tells has changed. */
bool inf_model_set_begin(inf_model_set_t *set, inf_load_t *l,
    inf_record_version_t *merged);

/* The load can't even begin: what serves goes on, and says why.  known: there
   is, or was, such a model. */
void inf_model_set_reject(inf_edit_t *edit, bool known, inf_reason_t *reason);

/* The plan of the ensemble of l is known; it is taken. */
void inf_model_set_ask(inf_model_set_t *set, inf_load_t *l,
    inf_graph_plan_t *plan, bool *circular);

/* Whether l has to wait for edits of its composing models that were queued
   before. */
bool inf_model_set_waits(inf_model_set_t *set, inf_load_t *l);

/* l takes the composing models that serve now; l->composing has room.  Or
   l->lack says why it can't be made of them.  *same: it is made of them
   already.  false: to be called again with more room. */
INF_CHECK bool inf_model_set_gather(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *same);

/*
 * The load has built its versions: all of them come into service at once, or,
 * unless *whole, none.  *whole becomes false, with l->lack, when a composing
 * model has gone meanwhile.  *plan is to be freed.  Then drain is due.  false:
 * nothing has happened, it is to be called again with more room.
 */
INF_CHECK bool inf_model_set_swap(inf_model_set_t *set, inf_load_t *l,
    inf_reason_room_t *room, bool *whole, inf_graph_plan_t **plan);

/* All versions of edit's model leave service.  Returns the model's source: it
   has none any more.  Then drain is due. */
inf_model_source_t *inf_model_set_unload(inf_model_set_t *set,
    inf_edit_t *edit, inf_link_t *gone);

/* Ensembles that can't be without what has gone out of service or failed leave
   service, too.  false: to be called again with more room. */
INF_CHECK bool inf_model_set_drain(inf_model_set_t *set, inf_link_t *gone,
    inf_reason_room_t *room);

/*
 * A process that model needs has exited: the version is out of service and is
 * rebuilt after a delay.  rebuild is taken, and references of reason, if a
 * version served by it; then drain is due.  NULL: none did.
 */
inf_record_version_t *inf_model_set_exit(inf_model_set_t *set,
    inf_model_record_t *r, const inf_model_t *model, inf_edit_t *rebuild,
    inf_reason_t *reason, uint64_t now_ns);

/* Whether waiting for an edit of name from within own's load would never end.
   false: until inf_model_set_awaited, it counts as waiting. */
bool inf_model_set_await(inf_model_set_t *set, inf_model_record_t *own,
    const char *name);
void inf_model_set_awaited(inf_model_record_t *own);

#endif /* INF_REPOSITORY_MODEL_SET_H */
