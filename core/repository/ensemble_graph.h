/*
 * ensemble_graph.h - which ensembles are made of which models, and what
 *                    follows for them when a model comes, goes or is loaded.
 *
 * Owner    The caller owns graph and models; a model owns the plans that it
 *          was given, until they are given back.  Texts of an id outlive it.
 * Thread   the caller's lock; a passive object: nothing here waits or calls
 *          out, but for ops->serves.
 * Units    Turns count operations in the order they were queued, from 1.
 * Errors   plan_new: out of memory.
 * Route    lifecycle's events -> [ensemble graph] -> lifecycle's decisions
 *
 * Edges are names: a model that an ensemble names needn't be there yet.  With
 * namespaces a name means the ensemble's own repository first, then the only
 * other model of that name.
 */

#ifndef INF_REPOSITORY_ENSEMBLE_GRAPH_H
#define INF_REPOSITORY_ENSEMBLE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/queue.h"
#include "core/repository/model_id.h"

#define INF_GRAPH_BUCKETS 256u

typedef struct inf_graph_model_s inf_graph_model_t;

/* One step of an ensemble. */
typedef struct {
    inf_link_t         link;    /* among those that name a model             */
    inf_graph_model_t *of;      /* the ensemble; NULL: not in the graph      */
    const char        *name;    /* the plan's                                */
    int64_t            version; /* -1: the latest                            */
    const void        *held;    /* what the ensemble was made with; only
                                   compared.  NULL: it isn't made            */
} inf_graph_step_t;

typedef struct {
    size_t           count;
    char            *text;      /* names, one after the other                */
    size_t           text_len;
    inf_graph_step_t steps[];
} inf_graph_plan_t;

struct inf_graph_model_s {
    inf_link_t         link;    /* among models whose names hash alike       */
    inf_model_id_t     id;
    inf_graph_plan_t  *asked;   /* of the load that is under way             */
    inf_graph_plan_t  *made;    /* what it was made from, or waits for;
                                   NULL: it is no ensemble, or not wanted    */
    uint64_t           turn;    /* when the operation was queued that runs,
                                   or is the next to; 0: there is none       */
    uint64_t           until;   /* it waits for turns of composing models up to
                                   this; 0: it doesn't wait                  */
    const char        *awaits;  /* a model whose operation its own load waits
                                   for; NULL: none                           */
    uint64_t           seen;    /* the last search that met it               */
    inf_graph_model_t *via;     /* from where                                */
    inf_graph_model_t *next;    /* in that search's queue                    */
};

typedef struct {
    /* The object that serves m's version (-1: the latest), or NULL. */
    const void *(*serves)(const inf_graph_model_t *m, int64_t version);
} inf_graph_ops_t;

typedef struct {
    const inf_graph_ops_t *ops;
    inf_link_t             models[INF_GRAPH_BUCKETS];
    inf_link_t             steps[INF_GRAPH_BUCKETS];
    uint64_t               searches;
} inf_ensemble_graph_t;

typedef enum {
    INF_GRAPH_FINE,             /* made of what serves now, or no ensemble   */
    INF_GRAPH_STALE,            /* it could be, but isn't                    */
    INF_GRAPH_LOST              /* something that it needs doesn't serve     */
} inf_graph_verdict_t;

typedef enum {
    INF_GRAPH_SERVES,
    INF_GRAPH_UNKNOWN,          /* there is no such model                    */
    INF_GRAPH_AMBIGUOUS,        /* there are several, none in its repository */
    INF_GRAPH_NONE,             /* it has no loaded version                  */
    INF_GRAPH_NO_VERSION        /* that version isn't loaded                 */
} inf_graph_found_t;

/* An empty graph; ops outlives it.  There is nothing to be freed. */
void inf_ensemble_graph_init(inf_ensemble_graph_t *g,
    const inf_graph_ops_t *ops);

/* Models come with no plan, and go with none. */
void inf_graph_add(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    const inf_model_id_t *id);
void inf_graph_remove(inf_graph_model_t *m);

/* For count steps, which inf_graph_plan_add adds; names_len is that of their
   names together.  It is freed with free(). */
INF_CHECK inf_err_t *inf_graph_plan_new(size_t count, size_t names_len,
    inf_graph_plan_t **out);
void inf_graph_plan_add(inf_graph_plan_t *plan, const char *name,
    int64_t version);

/*
 * The plan of an ensemble whose configuration was read.  The plan asked before
 * must be settled or dropped.  m takes plan.
 */
void inf_graph_ask(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    inf_graph_plan_t *plan);

/*
 * The plan asked becomes the plan made.  held: the object of each step; NULL:
 * it can't be made now, but would be.  Returns the plan made before, to be
 * freed.
 */
inf_graph_plan_t *inf_graph_settle(inf_graph_model_t *m,
    const void *const *held);

/* Marks m as not built, although its ensemble is valid: m serves nothing. */
void inf_graph_unmake(inf_graph_model_t *m);

/* The plan that was asked, or made, leaves the graph; to be freed. */
inf_graph_plan_t *inf_graph_drop_asked(inf_graph_model_t *m);
inf_graph_plan_t *inf_graph_drop_made(inf_graph_model_t *m);

/* Finds the model of a step; *target is NULL unless it is one model. */
inf_graph_found_t inf_graph_find(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_step_t *step,
    inf_graph_model_t **target);

/*
 * Why plan, which is m's, can't be made now: SERVES, nothing is missing; else
 * *at is the first step that lacks its model.  UNKNOWN and NO_VERSION are told
 * in text, UNKNOWN with all such steps' models.
 */
inf_graph_found_t inf_graph_lack(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_plan_t *plan, inf_buf_t *text,
    size_t *at);

/* Of what it is made of, or waits for. */
inf_graph_verdict_t inf_graph_verdict(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);

/* The same for objects that were found earlier: LOST: one is gone. */
inf_graph_verdict_t inf_graph_compare(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_plan_t *plan,
    const void *const *held);

/* Whether a load of m, parked with until, has to wait for the turn of a
   composing model. */
bool inf_graph_waits(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);

/*
 * Whether m depends on itself, or waits for itself; then m->via leads back
 * from m along the shortest such way.  The same for one that leads to another.
 */
bool inf_graph_circular(inf_ensemble_graph_t *g, inf_graph_model_t *m);
bool inf_graph_leads(inf_ensemble_graph_t *g, inf_graph_model_t *from,
    const inf_graph_model_t *to);

/*
 * Whether m, made of what was asked for it, would be made of itself, given
 * what all others are made of now: what they are about to become may fail.
 */
bool inf_graph_closes(inf_ensemble_graph_t *g, inf_graph_model_t *m);

/* After a search that has found m circular: "...: m -> n -> m". */
void inf_graph_circle_text(inf_graph_model_t *m, inf_buf_t *text);

/*
 * The ensembles whose steps name m, one after another; *at begins as NULL.
 * One with two such steps, or two plans, comes twice.  NULL: no other.
 */
inf_graph_model_t *inf_graph_next_ensemble(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_step_t **at);

/* Whether an ensemble, loaded or wanted, is made of m. */
bool inf_graph_needed(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);

/* The models of a name, likewise. */
inf_graph_model_t *inf_graph_next_named(const inf_ensemble_graph_t *g,
    const char *name, const inf_graph_model_t *at);

#endif /* INF_REPOSITORY_ENSEMBLE_GRAPH_H */
