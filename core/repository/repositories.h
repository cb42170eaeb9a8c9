/*
 * repositories.h - the server's present set of repositories.
 *
 * Owner    The server owns the set.  Lists and repositories are shared by
 *          reference: a removed repository stays open while a list, a model or
 *          a load refers to it.
 * Thread   any.
 * Units    none.
 * Errors   A repository that cannot be opened is logged and skipped.
 * Route    settings -> [repositories] -> scan, model source, index
 *
 * Each change of the set, and each first listing of a repository, creates a new
 * list.
 */

#ifndef INF_REPOSITORY_REPOSITORIES_H
#define INF_REPOSITORY_REPOSITORIES_H

#include "core/repository/model_id.h"
#include "core/repository/repository.h"

/* The list of repositories at one time; constant except refs. */
typedef struct {
    _Atomic uint32_t    refs;       /* up relaxed, down acq_rel              */
    bool                namespacing;    /* each address is the namespace of its
                                           models                            */
    inf_repository_t  **items;
    size_t              total;
    size_t              count;      /* the first ones, which have been
                                       listed                                */
    inf_scan_root_t    *roots;      /* of those, for inf_scan                */
} inf_repository_list_t;

typedef struct {
    inf_storage_open_fn    open;    /* constant                              */
    bool                   namespacing; /* constant; equal in all lists      */
    _Atomic bool           cancelled;   /* seq_cst                           */
    inf_lock_t             change;  /* rank 57: one change at a time         */
    inf_lock_t             lock;    /* rank 62; guards now                   */
    inf_repository_list_t *now;
} inf_repositories_t;

/* Opens the repositories; a repeated address is opened once.  With namespacing,
   equal names in two repositories are two models. */
INF_CHECK inf_err_t *inf_repositories_open(char *const *addresses,
    size_t count, bool namespacing, inf_storage_open_fn open,
    inf_repositories_t *out);
void inf_repositories_close(inf_repositories_t *r);

/*
 * Lists a repository, which may take minutes.  After its first listing it
 * counts as listed, unless it was removed meanwhile.  After cancel an error
 * leaves the state.
 */
INF_CHECK inf_err_t *inf_repositories_poll(inf_repositories_t *r,
    inf_repository_t *item);

/* Interrupts all operations on remote storage, at the end. */
void inf_repositories_cancel(inf_repositories_t *r);

/*
 * Replaces the repositories, except registered ones at other addresses; one
 * whose address stays is the same object.  *changed: a repository was added or
 * removed.
 */
INF_CHECK inf_err_t *inf_repositories_replace(inf_repositories_t *r,
    char *const *addresses, size_t count, bool *changed);

/* A repository to register, in which some directories hold models of other
   names. */
typedef struct {
    const char             *address;
    const inf_scan_alias_t *aliases;
    size_t                  count;
    bool                    aliases_only;   /* ignores other directories      */
    char *const            *dirs;   /* those that are models, for good; NULL:
                                       its storage is asked, now and later   */
    size_t                  dir_count;
} inf_registration_t;

/*
 * Registers a repository; *out (unless NULL) is a reference to it.
 * ALREADY_EXISTS: the address, or the name of an alias, exists.  INVALID_ARG:
 * it cannot be listed, or an alias is not a valid model name, or is given
 * twice.
 */
INF_CHECK inf_err_t *inf_repositories_add(inf_repositories_t *r,
    const inf_registration_t *what, inf_repository_t **out);

/* Removes a repository.  INVALID_ARG: there is no such address. */
INF_CHECK inf_err_t *inf_repositories_remove(inf_repositories_t *r,
    const char *address);

/* Removes this repository; that it is not there any more is no error. */
INF_CHECK inf_err_t *inf_repositories_drop(inf_repositories_t *r,
    const inf_repository_t *item);

/* A reference to the registered repository with an alias of that name.
   NOT_FOUND: there is none. */
INF_CHECK inf_err_t *inf_repositories_find_alias(const inf_repositories_t *r,
    const char *name, inf_repository_t **out);

/* A reference to the current list. */
inf_repository_list_t *inf_repositories_take(const inf_repositories_t *r);

/* Whether list is the current one. */
bool inf_repositories_are(const inf_repositories_t *r,
    const inf_repository_list_t *list);

/* Whether exactly these are open, in any order, apart from registered ones. */
bool inf_repositories_named(const inf_repositories_t *r,
    char *const *addresses, size_t count);

/* list may be NULL. */
void inf_repository_list_unref(inf_repository_list_t *list);

/* Whether the list has this object, listed or not. */
bool inf_repository_list_has(const inf_repository_list_t *list,
    const inf_repository_t *repository);

/* The set of the states of the repositories with models of that namespace
   ("": any); any: whether one of states is in it. */
uint32_t inf_repository_list_states(const inf_repository_list_t *list,
    const char *space);

static inline bool
inf_repository_list_any(const inf_repository_list_t *list, uint32_t states,
    const char *space)
{
    return (inf_repository_list_states(list, space) & states) != 0;
}

/* The error of a repository for that namespace whose first listing has failed,
   and may be tried again now; NULL: none. */
INF_CHECK inf_err_t *inf_repository_list_failure(
    const inf_repository_list_t *list, const char *space);

/* Scans one model, as inf_scan_one.  With namespacing it is searched in its own
   repository; for an id without namespace the scan reports a problem.  Other
   remote repositories are not asked for a model found locally or in the last
   listings, and those listed once only for models of their listing. */
INF_CHECK inf_err_t *inf_repository_list_scan(
    const inf_repository_list_t *list, const inf_model_id_t *id,
    inf_scan_t *out);

#endif /* INF_REPOSITORY_REPOSITORIES_H */
