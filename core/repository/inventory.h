/*
 * inventory.h - what lay in the repositories at one time, and which models
 *               were desired then without a request.
 *
 * Owner    Shared by reference; its maker has the first one.
 * Thread   any: constant but for refs.
 * Units    none.
 * Errors   new: out of memory, or for the index a repository that can't be
 *          listed.  Else such a one is FAILED or STALE, its models are those of
 *          its last listing.
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
    bool           duplicate;       /* in two or more of them                */
    size_t         other;           /* then: another one's index             */
    const char    *problem;         /* why it can be no model now; NULL: it
                                       is one                                */
    bool           unsure;          /* a problem that may pass               */
    bool           remote;          /* in a remote repository, too           */
    bool           polled;          /* in the one that was polled            */
} inf_repository_name_t;

/* The models that are desired without a request. */
typedef struct {
    bool         all;           /* all models of the repositories            */
    char *const *names;         /* else these; "*" alone: as above           */
    size_t       count;
} inf_desired_t;

typedef enum {
    INF_INVENTORY_START,        /* models that nobody knows yet are loaded   */
    INF_INVENTORY_CHANGE,       /* of repositories, desired models or load
                                   options, or a listing that it has begun   */
    INF_INVENTORY_FIRST,        /* the first listing of a repository has come
                                   or failed                                 */
    INF_INVENTORY_POLL,         /* what differs is loaded, what is missing
                                   unloaded                                  */
    INF_INVENTORY_INDEX,        /* a request: nothing is loaded              */
    INF_INVENTORY_STATUS        /* likewise, and no remote one is listed     */
} inf_occasion_t;

typedef struct {
    inf_occasion_t          occasion;
    inf_desired_t           desired;
    inf_desired_t           before;     /* CHANGE: if it was all, and isn't
                                           now, what is loaded stays as if it
                                           had been asked for                */
    bool                    at_start;   /* FIRST: the start has waited for it */
    const inf_repository_t *polled;     /* POLL: the remote repository that
                                           has just been listed; NULL: the
                                           local ones                        */
} inf_inventory_query_t;

struct inf_inventory_s {
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    inf_repository_list_t *list;        /* a reference                       */
    inf_inventory_query_t  q;           /* its texts are in arena            */
    inf_arena_t            arena;
    inf_repository_name_t *names;       /* sorted; among them, as they can be
                                           printed, entries that can be no
                                           model                             */
    size_t                 count;
    bool                  *failed;      /* by repository of list: it couldn't
                                           be listed                         */
};

typedef struct inf_inventory_s inf_inventory_t;

/* Lists local repositories, and for the index remote ones, too; else these are
   as they were listed last. */
INF_CHECK inf_err_t *inf_inventory_new(const inf_repositories_t *repositories,
    const inf_inventory_query_t *q, inf_inventory_t **out);
inf_inventory_t *inf_inventory_ref(inf_inventory_t *l);

/* l may be NULL. */
void inf_inventory_unref(inf_inventory_t *l);

/* Also what can be no model; NULL: it lies nowhere. */
const inf_repository_name_t *inf_inventory_find(const inf_inventory_t *l,
    const inf_model_id_t *id);

/* Whether any model of that name lies there. */
bool inf_inventory_has(const inf_inventory_t *l, const char *name);

/* Whether a model of that name, if it lies there, is desired; names: by the
   list of names; is_all: any name. */
bool inf_desired_has(const inf_desired_t *d, const char *name);
bool inf_desired_names(const inf_desired_t *d, const char *name);
bool inf_desired_is_all(const inf_desired_t *d);

#endif /* INF_REPOSITORY_INVENTORY_H */
