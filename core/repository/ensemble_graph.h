/*
 * ensemble_graph.h - the graph of ensembles and composing models, and its
 *                    consequences when a model is loaded or unloaded.
 *
 * Owner    The caller owns the graph and its models.  A model owns the plans
 *          that it has until they are returned.  The texts of an id outlive the
 *          model.
 * Thread   all functions with the caller's lock held.  The graph waits for
 *          nothing, and calls serves alone.
 * Units    A turn is the number of an operation in the order of queueing, from
 *          1.
 * Errors   plan_new: out of memory.
 * Route    lifecycle's events -> [ensemble graph] -> lifecycle's decisions
 *
 * Edges are names: a model that an ensemble names need not exist.  With
 * namespaces, a name means the model of that name in the ensemble's own
 * repository; if there is none, the only model of that name elsewhere.
 *
 * Plans: a load reads a configuration and calls ask; settle makes the asked
 * plan the made one, or drop removes the asked plan.
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
#include "model_config.pb-c.h"

#define INF_GRAPH_BUCKETS 256u

typedef struct inf_graph_model_s inf_graph_model_t;

/* A step of an ensemble. */
typedef struct {
    inf_link_t         link;    /* in the list of steps that name a model    */
    inf_graph_model_t *of;      /* the ensemble; NULL: not in the graph      */
    const char        *name;    /* in the plan's text                        */
    int64_t            version; /* -1: the latest                            */
    const void        *held;    /* object the ensemble was made with; only
                                   compared.  NULL: not made                 */
} inf_graph_step_t;

typedef struct {
    size_t           count;
    char            *text;      /* names, concatenated                       */
    size_t           text_len;
    inf_graph_step_t steps[];
} inf_graph_plan_t;

struct inf_graph_model_s {
    inf_link_t         link;    /* in the list of models with this hash      */
    inf_model_id_t     id;
    inf_graph_plan_t  *asked;   /* of the running load                       */
    inf_graph_plan_t  *made;    /* the models that it is made of or waits for;
                                   NULL: no ensemble, or unwanted            */
    uint64_t           turn;    /* turn of the running or next operation; 0:
                                   none                                      */
    bool               unloads; /* and that one unloads                      */
    uint64_t           until;   /* waits for composing models' turns up to this
                                   one; 0: does not wait                     */
    const char        *awaits;  /* model that its load waits for; NULL: none */
    uint64_t           seen;    /* last search that reached it               */
    inf_graph_model_t *via;     /* predecessor in that search                */
    inf_graph_model_t *next;    /* in that search's queue                    */
};

/* The object that serves m's version (-1: the latest), or NULL. */
typedef const void *(*inf_graph_serves_fn)(const inf_graph_model_t *m,
    int64_t version);

typedef struct {
    inf_graph_serves_fn serves;
    inf_link_t          models[INF_GRAPH_BUCKETS];
    inf_link_t          steps[INF_GRAPH_BUCKETS];
    uint64_t            searches;
} inf_ensemble_graph_t;

typedef enum {
    INF_GRAPH_FINE,             /* made of present objects, or no ensemble   */
    INF_GRAPH_STALE,            /* could be rebuilt                          */
    INF_GRAPH_INCOMPLETE        /* a needed model does not serve             */
} inf_graph_verdict_t;

typedef enum {
    INF_GRAPH_SERVES,
    INF_GRAPH_UNKNOWN,          /* no such model                             */
    INF_GRAPH_AMBIGUOUS,        /* several, none in its repository           */
    INF_GRAPH_NONE,             /* no loaded version                         */
    INF_GRAPH_NO_VERSION        /* version not loaded                        */
} inf_graph_found_t;

/* Initializes an empty graph.  Nothing needs to be freed. */
void inf_ensemble_graph_init(inf_ensemble_graph_t *g,
    inf_graph_serves_fn serves);

/* Add and remove a model without plans. */
void inf_graph_add(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    const inf_model_id_t *id);
void inf_graph_remove(inf_graph_model_t *m);

/* new creates a plan for count steps, whose names have names_len bytes
   together; free() frees the plan.  add adds one step. */
INF_CHECK inf_err_t *inf_graph_plan_new(size_t count, size_t names_len,
    inf_graph_plan_t **out);
void inf_graph_plan_add(inf_graph_plan_t *plan, const char *name,
    int64_t version);

/* Creates the plan of an ensemble's configuration. */
INF_CHECK inf_err_t *inf_graph_plan_of(const Inference__ModelEnsembling *e,
    inf_graph_plan_t **out);

/* Sets the asked plan of m, which takes plan.  An earlier asked plan was
   settled or dropped. */
void inf_graph_ask(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    inf_graph_plan_t *plan);

/*
 * Makes the asked plan the made one.  held: the object of each step; NULL: the
 * ensemble is wanted, and cannot be made now.  Returns the previous made plan,
 * which the caller frees.
 */
inf_graph_plan_t *inf_graph_settle(inf_graph_model_t *m,
    const void *const *held);

/* Marks m, a valid ensemble, as not built: m serves nothing. */
void inf_graph_unmake(inf_graph_model_t *m);

/* Removes the asked or the made plan of a model from the graph; the caller
   frees that plan.  *plan may be NULL. */
inf_graph_plan_t *inf_graph_drop(inf_graph_plan_t **plan);

/* Finds the model that a step of m means; *target is NULL unless there is
   exactly one. */
inf_graph_found_t inf_graph_find(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_step_t *step,
    inf_graph_model_t **target);

/*
 * Why plan, which is a plan of m, cannot be made now.  SERVES: nothing is
 * missing.  Otherwise *at is the first step without its model, and for UNKNOWN
 * (with all such models) and NO_VERSION text says what is missing.
 */
inf_graph_found_t inf_graph_lack(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_plan_t *plan, inf_buf_t *text,
    size_t *at);

/* Compares the made plan of m with the objects that serve now. */
inf_graph_verdict_t inf_graph_verdict(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);

/* The same for a plan, and the objects that were found for it.  INCOMPLETE: one
   of the objects is gone. */
inf_graph_verdict_t inf_graph_compare(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_plan_t *plan,
    const void *const *held);

/* Whether a load of m must wait for an operation of a composing model, whose
   turn is not after m->until; a circular one waits for none. */
bool inf_graph_waits(inf_ensemble_graph_t *g, inf_graph_model_t *m);

/* Whether step is one of m's asked plan. */
bool inf_graph_asks(const inf_graph_model_t *m, const inf_graph_step_t *step);

/* Whether m's step of target's name refers to target: the model in m's own
   repository if it is alive, otherwise any other. */
bool inf_graph_means(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_model_t *target);

/* Whether a load of m, which waits, goes on without the unloads from turn on:
   all that it waits for, also through loads that wait, came before. */
bool inf_graph_goes_on(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    uint64_t turn);

/*
 * circular: whether m depends on itself, or waits for itself.  Then m->via
 * leads back from m along a shortest path.  leads: the same for a path between
 * two models.
 */
bool inf_graph_circular(inf_ensemble_graph_t *g, inf_graph_model_t *m);
bool inf_graph_leads(inf_ensemble_graph_t *g, inf_graph_model_t *from,
    const inf_graph_model_t *to);

/* Whether m would contain itself if its asked plan were made.  All other models
   count with their made plans, because their asked plans may fail. */
bool inf_graph_closes(inf_ensemble_graph_t *g, inf_graph_model_t *m);

/* After a search that found m circular, appends "...: m -> n -> m". */
void inf_graph_circle_text(inf_graph_model_t *m, inf_buf_t *text);

/*
 * Iterates over the ensembles with steps that name m; *at begins as NULL.  An
 * ensemble with two such steps, or two plans, is returned twice.  NULL: end.
 */
inf_graph_model_t *inf_graph_next_ensemble(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_step_t **at);

/* Whether an ensemble that is loaded or wanted has m as a composing model. */
bool inf_graph_needed(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);

/* Iterates over the models of a name; at begins as NULL. */
inf_graph_model_t *inf_graph_next_named(const inf_ensemble_graph_t *g,
    const char *name, const inf_graph_model_t *at);

#endif /* INF_REPOSITORY_ENSEMBLE_GRAPH_H */
