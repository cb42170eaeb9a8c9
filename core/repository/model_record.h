/*
 * model_record.h - one model: what is desired of it, and what it is.
 *
 * Owner    The model set owns records; one without any version goes when its
 *          last edit has ended, the others stay.
 * Thread   all fields under the set's lock, except where said.
 * Units    ns on the monotonic clock.
 * Errors   out of memory.
 * Route    model set -> [record] -> index, registry
 *
 * Desired is who wants the model, and the edits that have still to be carried
 * out, one after another.  Actual is its versions and the state of its first
 * edit.
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
    INF_MODEL_QUEUED,           /* its first edit waits for a thread         */
    INF_MODEL_RUNNING,          /* a thread carries an edit out              */
    INF_MODEL_LISTING,          /* its first edit waits for the listing of a
                                   repository                                */
    INF_MODEL_COMPOSING         /* its first edit waits for edits of its
                                   composing models                          */
} inf_model_state_t;

/* No more loads of a model than these may be stuck: each has a thread. */
#define INF_MODEL_STUCK_MAX 3u

/* How far the load of an ensemble is. */
typedef enum {
    INF_LOAD_READS,             /* or there is none                          */
    INF_LOAD_GATHERS,           /* it has its composing models loaded, which
                                   may lie in a repository that is still to
                                   be listed                                 */
    INF_LOAD_TAKES              /* it takes those that serve when it goes on */
} inf_load_stage_t;

typedef struct {
    int64_t              version;
    inf_version_state_t  state;
    inf_reason_t        *reason;    /* a reference; NULL: none               */
    inf_model_t         *model;     /* a reference while READY               */
    const void          *leaving;   /* what is being finalized while
                                       UNLOADING; only compared              */
    inf_reason_t        *lost;      /* a reference: which process of it has
                                       exited; it is rebuilt.  NULL: none    */
    inf_edit_t          *rebuild;   /* that will be queued at due_ns; NULL:
                                       it was, or there is none              */
    uint64_t             due_ns;
    uint32_t             exits;     /* that came one soon after another      */
    uint64_t             exit_ns;   /* the last of them                      */
    bool                 missing;   /* an ensemble's: for the model that
                                       reason names it waits, then it serves
                                       again by itself                       */
} inf_record_version_t;

struct inf_model_record_s {
    inf_link_t            link;     /* in the set, by id                     */
    inf_link_t            turn;     /* in a queue while QUEUED               */
    inf_link_t            left;     /* in the set's lists of these names     */
    inf_link_t            lost;
    char                 *space;    /* constant, like the next two: its
                                       namespace, "": none                   */
    char                 *name;
    char                 *title;    /* both, as the log names it             */

    uint32_t              who;      /* wants it: INF_WANTED_*                */
    inf_link_t            edits;    /* waiting, in the order they came       */
    inf_override_t       *override; /* of an ensemble that is to be retried;
                                       NULL: as it lies there                */

    inf_model_state_t     state;
    inf_load_stage_t      stage;
    inf_edit_kind_t       last_kind;    /* of the last edit that came        */
    bool                  rejected; /* no version could be tried             */
    bool                  unloaded; /* and not loaded since                  */
    bool                  retry;    /* an ensemble that could not be made:
                                       it is loaded when its models change   */
    inf_reason_t         *reason;   /* why; a reference, or NULL             */
    inf_record_version_t *versions; /* ascending                             */
    size_t                version_count;
    inf_model_source_t   *source;   /* of the last good load; NULL: none.
                                       The running edit reads it without the
                                       lock: only it writes                  */
    inf_graph_model_t     graph;    /* what it is made of, who is made of it */
    uint64_t              refreshed;    /* the last round that saw to it     */
    uint32_t              stuck;    /* loads that were given up and have not
                                       returned                              */
};

/* id is copied.  free: it is in no set any more; its versions, source and plan
   are given up with it; r may be NULL. */
INF_CHECK inf_err_t *inf_model_record_new(const inf_model_id_t *id,
    inf_model_record_t **out);
void inf_model_record_free(inf_model_record_t *r);

/* The id of r; its texts belong to r. */
inf_model_id_t inf_model_record_id(const inf_model_record_t *r);

/* NULL when there is no such version. */
inf_record_version_t *inf_model_record_find(const inf_model_record_t *r,
    int64_t version);

/* The object that serves version (-1: the latest), or NULL. */
inf_model_t *inf_model_record_serves(const inf_model_record_t *r,
    int64_t version);

/* Whether any version serves. */
bool inf_model_record_any_ready(const inf_model_record_t *r);

#define INF_SERVING_MAX 80u         /* bytes of that text                    */

/* "; not reloaded, version 1 goes on serving": the end of a sentence about a
   load that failed; "": none is READY. */
void inf_model_record_serving(const inf_model_record_t *r,
    char text[INF_SERVING_MAX]);

/* Whether it is out of service on purpose, not because something failed. */
bool inf_record_version_is_unloaded(const inf_record_version_t *v);

/* v needn't be loaded again by itself any more. */
void inf_record_version_settle(inf_record_version_t *v);

/* v is as if it had been unloaded. */
void inf_record_version_forget(inf_record_version_t *v);

/* READY becomes UNLOADING; the reference is the caller's to give up, after
   publishing and without the lock.  NULL: it wasn't READY. */
inf_model_t *inf_record_version_withdraw(inf_record_version_t *v);

/* reason (NULL: none) is the model's and of each READY version now; they take
   references. */
void inf_model_record_explain(inf_model_record_t *r, inf_reason_t *reason);

/* Whether it is, or will be again, what it was last loaded to be. */
bool inf_model_record_is_held(const inf_model_record_t *r);

/* Whether nothing is to be kept of it: no edit, version, reason or plan. */
bool inf_model_record_is_empty(const inf_model_record_t *r);

/* Whether it is an ensemble that couldn't be made, and not one that the server
   isn't ready without: it counts for as little as one that is unloaded. */
bool inf_model_record_never_made(const inf_model_record_t *r);

/* Whether the server may call itself ready as far as this model goes.  While
   any version serves the others count only where their process has exited: a
   load leaves what serves as it is until it comes into effect. */
bool inf_model_record_content(const inf_model_record_t *r);

/* One or more rows; nothing for a record without anything to tell. */
void inf_model_record_rows(const inf_model_record_t *r, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp);

/* false: out of memory.  The parts of e set so far are the caller's. */
bool inf_model_record_entry(const inf_model_record_t *r,
    inf_registry_entry_t *e);

#endif /* INF_REPOSITORY_MODEL_RECORD_H */
