/*
 * reconcile.h - what has to be done so that a model becomes what is desired
 *               of it.
 *
 * Owner    The caller owns everything; nothing is changed but the graph's marks
 *          of a search.
 * Thread   the model set's lock; passive: values and `now` in, a decision out.
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
    INF_STEP_WAIT,              /* reason, until                             */
    INF_STEP_BUILD,             /* load, refresh or rebuild; swap if whole   */
    INF_STEP_DRAIN,             /* an ensemble can't go on without a model   */
    INF_STEP_UNLOAD,            /* cause, place                              */
    INF_STEP_ADOPT,             /* it stays, as if by request                */
    INF_STEP_RESOLVE            /* the models of a name are to be found      */
} inf_step_kind_t;

typedef enum {
    INF_WAIT_THREAD,            /* one carries an edit out                   */
    INF_WAIT_LISTING,
    INF_WAIT_COMPOSING,
    INF_WAIT_DELAY              /* after a process exit, until a time        */
} inf_wait_t;

typedef struct {
    inf_step_kind_t    kind;
    inf_wait_t         reason;
    uint64_t           until_ns;    /* UINT64_MAX: until an event            */
    inf_unload_cause_t cause;
    const char        *place;       /* where it is now; NULL: unsaid         */
} inf_step_t;

/* The next step of r's first edit, or of a version that waits to be
   rebuilt. */
inf_step_t inf_reconcile(inf_ensemble_graph_t *g, inf_model_record_t *r,
    uint64_t now_ns);

/*
 * The consequence of an inventory for a model.  r NULL: nothing is known of
 * it; n NULL: it lies nowhere.  current: no other repositories have taken the
 * place of the inventory's; if they have, a later one decides what was
 * removed.  barred: the start left the model to somebody else.  BUILD of a
 * poll: if its files differ.
 */
inf_step_t inf_reconcile_listed(const inf_inventory_t *l,
    const inf_model_record_t *r, const inf_repository_name_t *n,
    bool current, bool barred);

/* Whether the model is desired from now on, so that the server isn't ready
   without it; step is what inf_reconcile_listed said. */
bool inf_reconcile_wants(const inf_inventory_t *l, const inf_model_record_t *r,
    const inf_repository_name_t *n, const inf_step_t *step, const char *name);

/* Whether an ensemble has to be compared once more with the models that it is
   made of.  caller: somebody waits for that. */
bool inf_reconcile_is_stale(inf_ensemble_graph_t *g,
    const inf_model_record_t *e, bool caller);

/* Whether a model that came only with an ensemble may go now. */
bool inf_reconcile_is_orphan(const inf_ensemble_graph_t *g,
    const inf_model_record_t *r);

/* Delay before a model is rebuilt after that many process exits in a row. */
uint64_t inf_reconcile_delay_ns(uint32_t exits);

/* How many in a row this one is. */
uint32_t inf_reconcile_exits(const inf_record_version_t *v, uint64_t now_ns);

#endif /* INF_REPOSITORY_RECONCILE_H */
