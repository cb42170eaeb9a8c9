/*
 * inventory.h - the contents of the repositories at one time, and the models
 *               desired then without a request.
 *
 * Owner    Shared by reference; the creator has the first one.
 * Thread   any: constant except refs.
 * Units    none.
 * Errors   new: out of memory, or for the index a repository that cannot be
 *          listed.  Otherwise that repository is FAILED or STALE, with the
 *          models of its last listing.
 * Route    repositories, configuration -> [inventory] -> reconcile, index
 */

#ifndef INF_REPOSITORY_INVENTORY_H
#define INF_REPOSITORY_INVENTORY_H

#include <stdatomic.h>

#include "core/base/arena.h"
#include "core/repository/repositories.h"

typedef struct {
    inf_model_id_t id;              /* these are constant                    */
    size_t         repository;      /* index into the list                   */
    bool           registered;      /* in no configured repository           */
    bool           duplicate;       /* in two or more repositories           */
    size_t         other;           /* index of another one then             */
    const char    *problem;         /* why it cannot be a model; NULL: none  */
    bool           unsure;          /* a problem that may be temporary       */
    bool           remote;          /* also in a remote repository           */
    bool           polled;          /* in the polled repository              */
} inf_repository_name_t;

/* The models that are desired without a request. */
typedef struct {
    bool         all;           /* all models, except those of registered
                                   repositories                              */
    char *const *names;         /* or these; "*" alone: all as above         */
    size_t       count;
} inf_desired_t;

typedef enum {
    INF_INVENTORY_START,        /* loads models not known yet                */
    INF_INVENTORY_CHANGE,       /* of repositories, desired models or options,
                                   or by a listing for that                  */
    INF_INVENTORY_FIRST,        /* the first listing of a repository has come
                                   or failed                                 */
    INF_INVENTORY_POLL,         /* loads models that differ, unloads missing
                                   ones                                      */
    INF_INVENTORY_INDEX,        /* a request: loads nothing                  */
    INF_INVENTORY_STATUS        /* the same; lists no remote one             */
} inf_occasion_t;

typedef struct {
    inf_occasion_t          occasion;
    inf_desired_t           desired;
    inf_desired_t           before;     /* CHANGE: if it was all and is not
                                           now, loaded models stay as if
                                           requested                         */
    bool                    at_start;   /* FIRST: the start waited for it     */
    const inf_repository_t *polled;     /* POLL: the remote repository just
                                           listed; NULL: local ones          */
} inf_inventory_query_t;

struct inf_inventory_s {
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    inf_repository_list_t *list;        /* a reference                       */
    inf_inventory_query_t  q;           /* its texts are in arena            */
    inf_arena_t            arena;
    inf_repository_name_t *names;       /* sorted; includes printable names of
                                           entries that cannot be models     */
    size_t                 count;
    bool                  *failed;      /* by repository of list: listing
                                           failed                            */
};

typedef struct inf_inventory_s inf_inventory_t;

/* Lists local repositories, and for the index remote ones, too; otherwise
   remote ones are as listed last, and those that are listed once always. */
INF_CHECK inf_err_t *inf_inventory_new(const inf_repositories_t *repositories,
    const inf_inventory_query_t *q, inf_inventory_t **out);
inf_inventory_t *inf_inventory_ref(inf_inventory_t *l);

/* l may be NULL. */
void inf_inventory_unref(inf_inventory_t *l);

/* Finds an entry, even one that cannot be a model; NULL: none. */
const inf_repository_name_t *inf_inventory_find(const inf_inventory_t *l,
    const inf_model_id_t *id);

/* Whether a model of that name is in any repository. */
bool inf_inventory_has(const inf_inventory_t *l, const char *name);

/* has: whether a model of that name, if present, is desired.  names: by the
   list of names.  is_all: all names are. */
bool inf_desired_has(const inf_desired_t *d, const char *name);
bool inf_desired_names(const inf_desired_t *d, const char *name);
bool inf_desired_is_all(const inf_desired_t *d);

#endif /* INF_REPOSITORY_INVENTORY_H */
