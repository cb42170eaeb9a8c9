/*
 * repositories.h - the set of repositories that a server has now.
 *
 * Owner    The server owns the set.  Lists and repositories are shared by
 *          reference: what was taken out of the set stays open as long as a
 *          list, a model or a load refers to it.
 * Thread   any.
 * Units    none.
 * Errors   A repository that can't be opened is logged and left out.
 * Route    settings -> [repositories] -> scan, model source, index
 *
 * Each change of the set, and each repository that has been listed for the
 * first time, puts a new list in the place of the one before.
 */

#ifndef INF_REPOSITORY_REPOSITORIES_H
#define INF_REPOSITORY_REPOSITORIES_H

#include "core/repository/model_id.h"
#include "core/repository/repository.h"

/* The repositories that there were at one time.  Constant but for refs. */
typedef struct {
    _Atomic uint32_t    refs;       /* up relaxed, down acq_rel              */
    bool                namespacing;    /* each address is the namespace of
                                           the models there                  */
    inf_repository_t  **items;
    size_t              total;
    size_t              count;      /* the first of them: those that had been
                                       listed                                */
    inf_scan_root_t    *roots;      /* of these, for inf_scan                */
} inf_repository_list_t;

typedef struct {
    inf_storage_open_fn    open;    /* constant                              */
    bool                   namespacing; /* constant, as in every list        */
    _Atomic bool           cancelled;   /* seq_cst                           */
    inf_lock_t             change;  /* rank 57: one change at a time         */
    inf_lock_t             lock;    /* rank 62; guards now                   */
    inf_repository_list_t *now;
} inf_repositories_t;

/* An address that is there twice is opened once.  With namespacing equal names
   in two of them are two models. */
INF_CHECK inf_err_t *inf_repositories_open(char *const *addresses,
    size_t count, bool namespacing, inf_storage_open_fn open,
    inf_repositories_t *out);
void inf_repositories_close(inf_repositories_t *r);

/*
 * Lists a repository, which may take minutes.  After its first listing it is
 * among those of the list that have been listed, unless it was taken out
 * meanwhile.  After cancel an error leaves the state as it is.
 */
INF_CHECK inf_err_t *inf_repositories_poll(inf_repositories_t *r,
    inf_repository_t *item);

/* Nothing waits for a remote storage any more: for the end. */
void inf_repositories_cancel(inf_repositories_t *r);

/*
 * Puts other repositories in the place of those that there are; one whose
 * address stays remains the same object.  *changed: any has come or gone.
 */
INF_CHECK inf_err_t *inf_repositories_replace(inf_repositories_t *r,
    char *const *addresses, size_t count, bool *changed);

/*
 * One more, in which some directories hold models of other names.
 * ALREADY_EXISTS: the address, or a name of an alias, is there.  INVALID_ARG:
 * it can't be listed, or an alias is no model's name.
 */
INF_CHECK inf_err_t *inf_repositories_add(inf_repositories_t *r,
    const char *address, const inf_scan_alias_t *aliases, size_t count);

/* INVALID_ARG: it isn't there. */
INF_CHECK inf_err_t *inf_repositories_remove(inf_repositories_t *r,
    const char *address);

/* The repositories that there are now; a reference. */
inf_repository_list_t *inf_repositories_take(const inf_repositories_t *r);

/* Whether list is still the current one. */
bool inf_repositories_are(const inf_repositories_t *r,
    const inf_repository_list_t *list);

/* Whether just these are open, in any order. */
bool inf_repositories_named(const inf_repositories_t *r,
    char *const *addresses, size_t count);

/* ref returns list; unref accepts NULL. */
inf_repository_list_t *inf_repository_list_ref(inf_repository_list_t *list);
void inf_repository_list_unref(inf_repository_list_t *list);

/* Whether just this object is among them, listed or not. */
bool inf_repository_list_has(const inf_repository_list_t *list,
    const inf_repository_t *repository);

/* Whether any repository that may hold models of that namespace ("": of any)
   is in one of states now. */
bool inf_repository_list_any(const inf_repository_list_t *list,
    uint32_t states, const char *space);

/* Why one has FAILED; NULL: none has, for that namespace. */
INF_CHECK inf_err_t *inf_repository_list_failure(
    const inf_repository_list_t *list, const char *space);

/* One model, as inf_scan_one.  With namespacing it is looked for where it
   belongs; one of no namespace lies nowhere, but the scan says what is wrong.
   A model that is found locally, or where the last listings had it, is found
   without asking the other remote repositories. */
INF_CHECK inf_err_t *inf_repository_list_scan(
    const inf_repository_list_t *list, const inf_model_id_t *id,
    inf_scan_t *out);

#endif /* INF_REPOSITORY_REPOSITORIES_H */
