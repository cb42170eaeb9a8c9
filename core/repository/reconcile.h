/*
 * reconcile.h - decides the next step from a model's actual to its desired
 *               state.
 *
 * Owner    The caller owns everything; only the graph's search marks change.
 * Thread   the model set's lock; pure: values and `now` in, a decision out.
 * Units    ns on the monotonic clock.
 * Errors   none.
 * Route    model set's events -> [reconcile] -> loader threads
 */

#ifndef INF_REPOSITORY_RECONCILE_H
#define INF_REPOSITORY_RECONCILE_H

#include "core/repository/inventory.h"
#include "core/repository/model_record.h"

typedef enum {
    INF_STEP_NONE,              /* actual equals desired                     */
    INF_STEP_BUILD,             /* load, then swap                           */
    INF_STEP_UNLOAD,            /* for cause, with place                     */
    INF_STEP_ADOPT              /* keep as if requested                      */
} inf_step_kind_t;

typedef struct {
    inf_step_kind_t    kind;
    inf_unload_cause_t cause;
    const char        *place;       /* present place; NULL: not said         */
} inf_step_t;

/* The present facts that a decision depends on, beside the inventory. */
typedef struct {
    bool     current;   /* the inventory's repositories are the current ones;
                           otherwise a later inventory decides on removed
                           ones                                              */
    bool     barred;    /* the start left out the model                      */
    uint32_t states;    /* of the inventory's repositories for the model's
                           namespace: a set of INF_REPOSITORY_*              */
} inf_reconcile_facts_t;

/*
 * The consequence of an inventory for a model.  r NULL: unknown; n NULL: in no
 * repository.  BUILD of a poll: only if files differ.
 */
inf_step_t inf_reconcile_listed(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    const inf_reconcile_facts_t *now);

/* Whether the model is desired without a request.  All models are those that
   do not lie in registered repositories alone.  r and n as above. */
bool inf_reconcile_desires(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    const char *name);

/* Whether the model becomes desired, so that readiness depends on it; step is
   the result of inf_reconcile_listed. */
bool inf_reconcile_wants(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_step_t *step, const char *name);

/* Whether an ensemble must be compared again with its composing models. caller:
   a caller waits for that. */
bool inf_reconcile_is_stale(inf_ensemble_graph_t *g,
    const inf_model_record_t *e, bool caller);

/* Whether a model that was loaded only with an ensemble may be unloaded. */
bool inf_reconcile_is_orphan(const inf_ensemble_graph_t *g,
    const inf_model_record_t *r);

/* Delay before a model is rebuilt after that many process exits in a row. */
uint64_t inf_reconcile_delay_ns(uint32_t exits);

/* The number of exits soon after each other, including this one. */
uint32_t inf_reconcile_exits(const inf_record_version_t *v, uint64_t now_ns);

#endif /* INF_REPOSITORY_RECONCILE_H */
