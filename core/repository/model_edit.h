/*
 * model_edit.h - one change of what is wanted of a model, and the caller who
 *                is told when it has been carried out.
 *
 * Owner    A record owns the edits that wait in it; a thread owns the one it
 *          carries out.  A caller belongs to its edits together and goes to
 *          the thread that ends the last of them.
 * Thread   one thread, or the model set's lock.
 * Units    order: errors of lower order win.
 * Errors   new: out of memory.
 * Route    lifecycle -> [edit] -> model set -> loader thread
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

/* The error of such an edit has no receiver. */
#define INF_EDIT_UNHEARD SIZE_MAX

typedef enum {
    INF_EDIT_LOAD,              /* compare the files with what is loaded     */
    INF_EDIT_REFRESH,           /* compare an ensemble with its composing
                                   models, which have changed                */
    INF_EDIT_REBUILD,           /* from the same files: the process of a
                                   version has exited                        */
    INF_EDIT_UNLOAD,
    INF_EDIT_LISTED,            /* what is desired follows from a listing    */
    INF_EDIT_ADOPT,             /* from now on as if a request had loaded it */
    INF_EDIT_LOAD_NAME,         /* with namespaces: every model of that name */
    INF_EDIT_UNLOAD_NAME,
    INF_EDIT_NOTHING            /* decided when its turn came                */
} inf_edit_kind_t;

typedef enum {
    INF_UNLOAD_REQUEST,
    INF_UNLOAD_ORPHAN,          /* it came with an ensemble that has gone,
                                   and no other needs it                     */
    INF_UNLOAD_MISSING,         /* a poll found it in no repository, or two  */
    INF_UNLOAD_MOVED,           /* all models are loaded, this lies nowhere,
                                   in two or elsewhere now                   */
    INF_UNLOAD_REMOVED,         /* its repository was taken out              */
    INF_UNLOAD_DROPPED,         /* it is not named any more                  */
    INF_UNLOAD_AMBIGUOUS        /* two repositories have it: it failed       */
} inf_unload_cause_t;

/* Reasons to load a model: bits of inf_model_record_t.who and
   inf_edit_t.who. */
#define INF_WANTED_AT_START 0x1u    /* the server isn't ready without it     */
#define INF_WANTED_BY_REQUEST 0x2u  /* none has unloaded it since            */
#define INF_WANTED_ITSELF 0x4u      /* not only by an ensemble               */

typedef struct inf_model_record_s inf_model_record_t;
typedef struct inf_load_s inf_load_t;

typedef struct {
    size_t                left;     /* edits that haven't ended              */
    bool                  inside;   /* a load waits for it: it doesn't wait
                                       for what follows from its edits       */
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
    bool                   at_start;    /* the start is over after it        */
    bool                   requested;   /* constant; of LOAD, LOAD_NAME: by a
                                           client, and no earlier core had
                                           the request: it ends a quarantine */
    bool                   waited;      /* for a listing                     */
    bool                   dependents;  /* constant; of UNLOAD: and what came
                                           only with it                      */
    int64_t                version;     /* of REBUILD                        */
    uint64_t               turn;        /* when it was queued: 1, 2, ...     */
    uint64_t               listings;    /* the lifecycle's count, when it was
                                           taken                             */
    const char            *place;       /* of UNLOAD, for the log: where the
                                           model is now; NULL: unsaid        */
    char                  *why;         /* of REBUILD, for the log           */
    inf_override_t        *override;    /* of LOAD                           */
    inf_inventory_t       *inventory;   /* of LISTED; a reference            */
    inf_graph_plan_t      *plan;        /* of UNLOAD: what it was made of    */
    inf_load_t            *load;        /* as far as it got                  */
    inf_caller_t          *caller;      /* NULL: nobody                      */
    size_t                 order;       /* of its error                      */
} inf_edit_t;

/* An edit without caller, in no record; freed with inf_edit_free. */
INF_CHECK inf_err_t *inf_edit_new(inf_edit_kind_t kind, inf_edit_t **out);

/* For an edit that is in no record and has no caller; edit may be NULL. */
void inf_edit_free(inf_edit_t *edit);

/* Whether it takes models out of service, by id or by name. */
bool inf_edit_unloads(const inf_edit_t *edit);

/* edit gets a caller of its own; nothing without done. */
INF_CHECK inf_err_t *inf_edit_call(inf_edit_t *edit,
    void (*done)(void *userp, inf_err_t *err), void *userp);

/* The caller of edit, if any, waits for more, too. */
void inf_edit_share_caller(inf_edit_t *edit, inf_edit_t *more, size_t order);

/* edit has ended; takes err.  The caller, to be answered, if it was the last
   of his; else NULL. */
inf_caller_t *inf_edit_leave_caller(inf_edit_t *edit, inf_err_t *err);

/* Takes caller, which may be NULL. */
void inf_caller_answer(inf_caller_t *caller);

#endif /* INF_REPOSITORY_MODEL_EDIT_H */
