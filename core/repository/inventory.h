/*
 * inventory.h - what lay in the repositories at one time, and which models
 *               were wanted then without a request.
 *
 * Owner    Shared by reference; whoever makes it has the first.
 * Thread   any: constant but for refs.
 * Units    none.
 * Errors   new: out of memory, or a repository that can't be listed.
 * Route    repositories, configuration -> [inventory] -> reconcile
 */

#ifndef INF_REPOSITORY_INVENTORY_H
#define INF_REPOSITORY_INVENTORY_H

#include <stdatomic.h>

#include "core/base/arena.h"
#include "core/repository/lifecycle.h"
#include "core/repository/repository_names.h"

struct inf_inventory_s {
    _Atomic uint32_t       refs;
    inf_repository_list_t *list;        /* a reference                       */
    inf_follow_t           want;        /* its texts are in arena            */
    inf_arena_t            arena;
    inf_repository_name_t *names;       /* sorted                            */
    size_t                 count;
    bool                  *failed;      /* by repository of list: it couldn't
                                           be listed                         */
};

typedef struct inf_inventory_s inf_inventory_t;

INF_CHECK inf_err_t *inf_inventory_new(const inf_repositories_t *repositories,
    const inf_follow_t *want, inf_inventory_t **out);
inf_inventory_t *inf_inventory_ref(inf_inventory_t *l);

/* l may be NULL. */
void inf_inventory_unref(inf_inventory_t *l);

/* NULL: it lies nowhere, or can be no model. */
const inf_repository_name_t *inf_inventory_find(const inf_inventory_t *l,
    const inf_model_id_t *id);

/* Whether any model of that name lies there. */
bool inf_inventory_has(const inf_inventory_t *l, const char *name);

/* Whether a list names a model; "*" alone names all. */
bool inf_inventory_wants(const inf_inventory_t *l, const char *name);
bool inf_inventory_wanted_before(const inf_inventory_t *l, const char *name);

#endif /* INF_REPOSITORY_INVENTORY_H */
