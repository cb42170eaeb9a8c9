/*
 * model_edit.h - one change of a model's desired state, and the caller who
 *                waits for that change.
 *
 * Owner    A record owns the edits that wait.  A thread owns the edit that the
 *          thread carries out.  All edits of a caller share the caller; the
 *          thread that ends the last of them answers.
 * Thread   one thread, or the model set's lock.
 * Units    order: of several errors for one caller, the lowest order wins.
 * Errors   new: out of memory.
 * Route    lifecycle -> [edit] -> model set -> loader thread
 *
 * Order: new, call (if somebody waits), then inf_model_set_submit(); after the
 * last leave_caller, answer.
 */

#ifndef INF_REPOSITORY_MODEL_EDIT_H
#define INF_REPOSITORY_MODEL_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/queue.h"
#include "core/repository/ensemble_graph.h"
#include "core/repository/inventory.h"
#include "core/repository/override.h"

/* Order of edits whose error has no receiver. */
#define INF_EDIT_UNHEARD SIZE_MAX

typedef enum {
    INF_EDIT_LOAD,              /* compare files with the loaded model       */
    INF_EDIT_REFRESH,           /* compare an ensemble with its changed
                                   composing models                          */
    INF_EDIT_REBUILD,           /* from the same files, after the exit of a
                                   version's process                         */
    INF_EDIT_UNLOAD,
    INF_EDIT_LISTED,            /* follow from a listing                     */
    INF_EDIT_ADOPT,             /* treat as loaded by a request              */
    INF_EDIT_LOAD_NAME,         /* with namespaces: all models of a name     */
    INF_EDIT_UNLOAD_NAME,
    INF_EDIT_NOTHING            /* none is left when its turn came           */
} inf_edit_kind_t;

typedef enum {
    INF_UNLOAD_REQUEST,
    INF_UNLOAD_ORPHAN,          /* loaded with an ensemble that has gone, and
                                   not needed                                */
    INF_UNLOAD_MISSING,         /* a poll found it in no repository, or in
                                   two                                       */
    INF_UNLOAD_MOVED,           /* with all models loaded: it is nowhere, in
                                   two, or elsewhere                         */
    INF_UNLOAD_REMOVED,         /* its repository was removed                */
    INF_UNLOAD_DROPPED,         /* no longer named                           */
    INF_UNLOAD_AMBIGUOUS        /* in two repositories: it failed            */
} inf_unload_cause_t;

/* Reasons to load a model: bits of inf_model_record_t.who and
   inf_edit_t.who. */
#define INF_WANTED_AT_START 0x1u    /* readiness depends on it               */
#define INF_WANTED_BY_REQUEST 0x2u  /* and not unloaded by one since         */
#define INF_WANTED_ITSELF 0x4u      /* not only by an ensemble               */

typedef struct inf_model_record_s inf_model_record_t;
typedef struct inf_load_s inf_load_t;

typedef struct {
    size_t                left;     /* edits not ended                       */
    bool                  inside;   /* a load waits for this caller, so this
                                       one does not wait for consequences    */
    size_t                order;    /* of err                                */
    inf_err_t            *err;
    void                (*done)(void *userp, inf_err_t *err);   /* takes err */
    void                 *userp;
} inf_caller_t;

typedef struct {
    inf_link_t             link;        /* in its record's edits             */
    inf_model_record_t    *record;
    inf_edit_kind_t        kind;
    inf_unload_cause_t     cause;       /* of UNLOAD                         */
    uint32_t               who;         /* of LOAD, LOAD_NAME                */
    bool                   at_start;    /* the start waits for it            */
    bool                   requested;   /* constant; of LOAD, LOAD_NAME: by a
                                           client, in a request new to all
                                           cores: ends a quarantine          */
    bool                   waited;      /* for a listing                     */
    bool                   dependents;  /* constant; of UNLOAD: also models
                                           loaded only with it               */
    int64_t                version;     /* of REBUILD                        */
    uint64_t               turn;        /* when queued: 1, 2, ...            */
    uint64_t               listings;    /* lifecycle's count when taken      */
    const char            *place;       /* of UNLOAD, for the log: where the
                                           model is now; NULL: not said      */
    char                  *why;         /* of REBUILD, for the log           */
    inf_override_t        *override;    /* of LOAD                           */
    inf_inventory_t       *inventory;   /* of LISTED; a reference            */
    inf_graph_plan_t      *plan;        /* of UNLOAD: the unloaded plan      */
    inf_load_t            *load;        /* as far as it got                  */
    inf_caller_t          *caller;      /* NULL: none                        */
    size_t                 order;       /* of its error                      */
} inf_edit_t;

/* Creates an edit without a caller, in no record. */
INF_CHECK inf_err_t *inf_edit_new(inf_edit_kind_t kind, inf_edit_t **out);

/* Frees an edit in no record, without a caller; edit may be NULL. */
void inf_edit_free(inf_edit_t *edit);

/* Whether edit takes models out of service, by id or by name. */
bool inf_edit_unloads(const inf_edit_t *edit);

/* Gives edit a caller, whose done is called once; nothing if done is NULL. */
INF_CHECK inf_err_t *inf_edit_call(inf_edit_t *edit,
    void (*done)(void *userp, inf_err_t *err), void *userp);

/* Makes the caller of edit, if there is one, wait for the edit more, too.
   order is that of an error of more. */
void inf_edit_share_caller(inf_edit_t *edit, inf_edit_t *more, size_t order);

/* Ends edit for its caller with err, which is taken.  Returns the caller, to be
   answered, if that was the caller's last edit; otherwise NULL. */
inf_caller_t *inf_edit_leave_caller(inf_edit_t *edit, inf_err_t *err);

/* Answers caller and frees it; caller may be NULL. */
void inf_caller_answer(inf_caller_t *caller);

#endif /* INF_REPOSITORY_MODEL_EDIT_H */
