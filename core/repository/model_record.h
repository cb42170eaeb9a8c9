/*
 * model_record.h - one model: its desired and its actual state.
 *
 * Owner    The model set owns its records.  A record without versions is freed
 *          after its last edit; a record with versions stays.
 * Thread   all fields with the set's lock held, except where noted.
 * Units    ns on the monotonic clock.
 * Errors   out of memory.
 * Route    model set -> [record] -> index, registry
 *
 * The desired state is who wants the model, and the edits that wait to be
 * carried out, one after another.  The actual state is the versions, and what
 * the first edit waits for.  reconcile.h compares the two.
 */

#ifndef INF_REPOSITORY_MODEL_RECORD_H
#define INF_REPOSITORY_MODEL_RECORD_H

#include "core/base/queue.h"
#include "core/repository/ensemble_graph.h"
#include "core/repository/lifecycle.h"
#include "core/repository/model_edit.h"
#include "core/repository/model_id.h"
#include "core/repository/model_source.h"
#include "core/repository/reason.h"

typedef enum {
    INF_MODEL_IDLE,             /* no edit waits                             */
    INF_MODEL_QUEUED,           /* first edit waits for a thread             */
    INF_MODEL_RUNNING,          /* a thread carries out an edit              */
    INF_MODEL_LISTING,          /* first edit waits for a repository's
                                   listing                                   */
    INF_MODEL_COMPOSING         /* first edit waits for edits of composing
                                   models                                    */
} inf_model_state_t;

/* Maximum of stuck loads of a model: each holds a thread. */
#define INF_MODEL_STUCK_MAX 3u

/* Progress of an ensemble's load. */
typedef enum {
    INF_LOAD_READS,             /* or no load                                */
    INF_LOAD_GATHERS,           /* looks for composing models, perhaps in a
                                   repository not listed yet                 */
    INF_LOAD_TAKES              /* takes the serving ones next               */
} inf_load_stage_t;

/* Why no version of a model could be tried. */
typedef enum {
    INF_REJECTED_NOT,
    INF_REJECTED_UNREAD,        /* it is not known what the model is         */
    INF_REJECTED_VERSIONLESS    /* its policy selects no version             */
} inf_rejection_t;

typedef struct {
    int64_t              version;
    inf_version_state_t  state;     /* written by inf_record_version_move    */
    inf_reason_t        *reason;    /* a reference; NULL: none               */
    inf_model_t         *model;     /* a reference while READY               */
    const void          *leaving;   /* being finalized while UNLOADING; only
                                       compared                              */
    inf_reason_t        *exited;    /* a reference: the exited process; the
                                       version is rebuilt.  NULL: none       */
    inf_edit_t          *rebuild;   /* to be queued at due_ns; NULL: queued, or
                                       none                                  */
    uint64_t             due_ns;
    uint32_t             exits;     /* soon after each other                 */
    uint64_t             exit_ns;   /* time of the last                      */
    bool                 missing;   /* of an ensemble: waits for the model in
                                       reason, then serves again             */
} inf_record_version_t;

struct inf_model_record_s {
    inf_link_t            link;     /* in the set, by id                     */
    inf_link_t            turn;     /* in a queue while QUEUED               */
    inf_link_t            left;     /* in the set's lists of these names     */
    inf_link_t            to_leave;
    char                 *space;    /* constant, as the next two: its
                                       namespace, "": none                   */
    char                 *name;
    char                 *title;    /* both, as logged                       */

    uint32_t              who;      /* wants it: INF_WANTED_*                */
    inf_link_t            edits;    /* waiting, in order of arrival          */
    inf_override_t       *override; /* for the next try of an ensemble; NULL:
                                       files as they are                     */

    inf_model_state_t     state;
    inf_load_stage_t      stage;
    inf_edit_kind_t       last_kind;    /* of the last submitted edit        */
    inf_rejection_t       rejected; /* no version could be tried             */
    bool                  unloaded; /* and not loaded since                  */
    bool                  retry;    /* an ensemble that could not be made:
                                       loaded when its models change         */
    inf_reason_t         *reason;   /* why; a reference, or NULL             */
    inf_record_version_t *versions; /* ascending                             */
    size_t                version_count;
    inf_model_source_t   *source;   /* of the last good load; NULL: none.  The
                                       running edit, its only writer, reads it
                                       without the lock                      */
    inf_graph_model_t     graph;    /* its id, models and ensembles          */
    uint64_t              refreshed;    /* the last round that included it   */
    uint32_t              stuck;    /* loads given up that have not returned */
};

/* new copies id.  free releases versions, source and plan of a record that is
   in no set; r may be NULL. */
INF_CHECK inf_err_t *inf_model_record_new(const inf_model_id_t *id,
    inf_model_record_t **out);
void inf_model_record_free(inf_model_record_t *r);

/* The record of a model of the graph. */
static inline inf_model_record_t *
inf_model_record_of(const inf_graph_model_t *m)
{
    return inf_link_entry((inf_graph_model_t *) (uintptr_t) m,
        inf_model_record_t, graph);
}

/* The version, or NULL. */
inf_record_version_t *inf_model_record_find(const inf_model_record_t *r,
    int64_t version);

/* The object that serves version (-1: the latest), or NULL. */
inf_model_t *inf_model_record_serves(const inf_model_record_t *r,
    int64_t version);

/* Whether any version serves. */
bool inf_model_record_any_ready(const inf_model_record_t *r);

#define INF_SERVING_MAX 80u         /* bytes of that text                    */

/* The end of a message on a failed load: "; not reloaded, version 1 goes on
   serving", or "" if none is READY. */
void inf_model_record_serving(const inf_model_record_t *r,
    char text[INF_SERVING_MAX]);

/* Moves v to a state that its present one permits. */
void inf_record_version_move(inf_record_version_t *v, inf_version_state_t to);

/* Whether the version was unloaded on purpose. */
bool inf_record_version_is_unloaded(const inf_record_version_t *v);

/* Cancels the rebuild of v. */
void inf_record_version_settle(inf_record_version_t *v);

/* Sets v to the state after an unload. */
void inf_record_version_forget(inf_record_version_t *v);

/* Makes a READY version UNLOADING.  The caller publishes, releases the lock,
   and then drops the reference that is returned.  NULL: v was not READY. */
inf_model_t *inf_record_version_withdraw(inf_record_version_t *v);

/* Sets the reason (NULL: none) of the model and of each READY version, with a
   reference for each. */
void inf_model_record_explain(inf_model_record_t *r, inf_reason_t *reason);

/* Whether a version serves, an ensemble has a plan, or a model without versions
   was rejected or is wanted by the start. */
bool inf_model_record_is_held(const inf_model_record_t *r);

/* Whether the record can be freed: no edit, version, reason or plan. */
bool inf_model_record_is_empty(const inf_model_record_t *r);

/* Whether r is an ensemble that could not be made and that readiness does not
   depend on.  Such an ensemble counts as unloaded. */
bool inf_model_record_never_made(const inf_model_record_t *r);

/* Whether readiness permits the state of this model.  While a version serves,
   other versions count only if their process has exited, because a load leaves
   the serving versions alone until the new ones serve. */
bool inf_model_record_content(const inf_model_record_t *r);

/* Calls fn for each row of the index; a record may have none. */
void inf_model_record_rows(const inf_model_record_t *r, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp);

/* Fills e.  false: out of memory; the caller frees what e has so far. */
bool inf_model_record_entry(const inf_model_record_t *r,
    inf_registry_entry_t *e);

#endif /* INF_REPOSITORY_MODEL_RECORD_H */
