/*
 * model_record.h - what the lifecycle knows of one model: states, reasons,
 *                  and the operations that wait for it.
 *
 * Owner    The lifecycle's table owns records; one without any version goes
 *          when its last operation has ended, the others stay.
 * Thread   all fields under the lifecycle's lock, except where said.
 * Units    none.
 * Errors   out of memory.
 * Route    lifecycle -> [record] -> index, registry
 */

#ifndef INF_REPOSITORY_MODEL_RECORD_H
#define INF_REPOSITORY_MODEL_RECORD_H

#include "core/base/queue.h"
#include "core/repository/ensemble_graph.h"
#include "core/repository/lifecycle.h"
#include "core/repository/model_home.h"
#include "core/repository/model_id.h"

#define INF_REASON_UNLOADED "unloaded"

typedef enum {
    INF_OP_LOAD,
    INF_OP_RELOAD,              /* the same again: an instance is broken     */
    INF_OP_RENEW,               /* an ensemble whose models have changed     */
    INF_OP_UNLOAD,
    INF_OP_NAMED,               /* one of them for each model of a name      */
    INF_OP_FOLLOW               /* one of them, or nothing                   */
} inf_op_kind_t;

typedef struct {
    int64_t              version;
    inf_version_state_t  state;
    char                *reason;    /* NULL: none                            */
    inf_model_t         *model;     /* a reference while READY               */
    const void          *leaving;   /* what is being taken apart while
                                       UNLOADING; only compared              */
    char                *lost;      /* which process of it died; it is loaded
                                       again by itself.  NULL: none          */
    char                *missing;   /* an ensemble's: which model it waits
                                       for before it serves again by itself.
                                       NULL: it doesn't                      */
    uint32_t             deaths;    /* that came one soon after another      */
    uint64_t             died_ns;
} inf_record_version_t;

typedef struct {
    inf_link_t            link;     /* in the table, by id                   */
    inf_link_t            turn;     /* in a queue while an operation waits
                                       for a thread                          */
    inf_link_t            ops;      /* waiting, in the order they came       */
    bool                  busy;     /* an operation runs, or has its turn    */
    bool                  parked;   /* the first of ops has begun; it waits
                                       for other models' operations          */
    bool                  absent;   /* the first of ops waits for a
                                       repository                            */
    bool                  awaits;   /* has members loaded, and may have to
                                       wait until they can be                */
    inf_op_kind_t         last_kind;    /* of the last one that came         */
    inf_graph_model_t     graph;    /* what it is made of, who is made of it */
    uint64_t              renewed;  /* the last round that has seen to it    */

    char                 *space;    /* constant, like the next two: its
                                       namespace, "": none                   */
    char                 *name;
    char                 *title;    /* both, as the log names it             */
    bool                  wanted;   /* the server isn't ready without it     */
    bool                  asked;    /* a request loaded it, none unloaded it */
    bool                  rejected; /* no version could be tried             */
    bool                  unloaded; /* and not loaded since                  */
    char                 *reason;   /* why; NULL: out of memory              */
    int64_t              *found;    /* versions seen at the start            */
    size_t                found_count;
    inf_record_version_t *versions; /* ascending                             */
    size_t                version_count;
    inf_model_home_t     *home;     /* of the last good load; NULL: none.
                                       The running operation reads it
                                       without the lock: only it writes      */
    bool                  retry;    /* an ensemble that could not be made:
                                       it is loaded when its models change   */
    inf_override_t       *override; /* with this; NULL: as it lies there     */
} inf_model_record_t;

INF_CHECK inf_err_t *inf_model_record_new(const inf_model_id_t *id,
    inf_model_record_t **out);
void inf_model_record_free(inf_model_record_t *r);

inf_model_id_t inf_model_record_id(const inf_model_record_t *r);

/* NULL when there is no such version. */
inf_record_version_t *inf_model_record_find(const inf_model_record_t *r,
    int64_t version);

bool inf_model_record_any_ready(const inf_model_record_t *r);
bool inf_model_record_any_lost(const inf_model_record_t *r);

/* v needn't be loaded again any more. */
void inf_record_version_found(inf_record_version_t *v);

/* Whether it is, or will be again, what it was last loaded to be. */
bool inf_model_record_is_held(const inf_model_record_t *r);

/* Whether it is an ensemble that couldn't be made, and not one that the server
   isn't ready without: it counts for as little as one that is unloaded. */
bool inf_model_record_never_made(const inf_model_record_t *r);

/* Whether the server may call itself ready as far as this model goes. */
bool inf_model_record_content(const inf_model_record_t *r);

/* "Internal: text"; NULL: out of memory. */
char *inf_reason_text(const inf_err_t *err);

/* One or more rows; nothing for a record without anything to tell. */
void inf_model_record_rows(const inf_model_record_t *r, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp);

/* false: out of memory.  What e got so far is the caller's. */
bool inf_model_record_entry(const inf_model_record_t *r,
    inf_registry_entry_t *e);

#endif /* INF_REPOSITORY_MODEL_RECORD_H */
