/*
 * repositories.h - the repositories that a server has now, opened.
 *
 * Owner    The server owns the set.  Lists and repositories are shared by
 *          reference: what was taken out of the set stays open as long as a
 *          list, a model or a load refers to it.
 * Thread   any.
 * Units    none.
 * Errors   One that can't be opened is logged and left out.
 * Route    settings -> [repositories] -> scan, model home, index
 *
 * A repository on another machine is awaited until it has been listed once;
 * nobody but who lists it (arrivals.h) asks it for anything before.
 */

#ifndef INF_REPOSITORY_REPOSITORIES_H
#define INF_REPOSITORY_REPOSITORIES_H

#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/repository/model_id.h"
#include "core/repository/scan.h"

typedef enum {
    INF_REPOSITORY_OPEN,            /* may be looked into                    */
    INF_REPOSITORY_AWAITED,         /* its first listing is to come          */
    INF_REPOSITORY_FAILED           /* and has failed, but for another try   */
} inf_repository_state_t;

/* The listing of a remote repository; constant but for refs. */
typedef struct {
    _Atomic uint32_t refs;
    inf_entries_t    entries;
} inf_seen_t;

/* Constant but for refs, state and what was seen. */
typedef struct {
    _Atomic uint32_t  refs;
    _Atomic uint32_t  state;        /* an inf_repository_state_t             */
    bool              at_start;     /* it was there from the start           */
    _Atomic bool      unseen;       /* it couldn't be listed when it was
                                       asked last                            */
    inf_lock_t        lock;         /* rank 63; guards what was seen, why    */
    inf_seen_t       *seen;         /* a reference; NULL: it lies here, or
                                       was never listed                      */
    char             *why;          /* FAILED; NULL: out of memory           */
    inf_storage_t    *storage;
    char             *root;         /* in the storage's spelling             */
    char             *address;      /* without trailing slashes              */
    inf_scan_alias_t *aliases;
    size_t            alias_count;
} inf_repository_t;

/* Those that there were at one time.  Constant but for refs. */
typedef struct {
    _Atomic uint32_t    refs;
    inf_scan_root_t    *roots;      /* that may be looked into: for inf_scan */
    inf_repository_t  **items;      /* the same, to load from                */
    size_t              count;
    inf_repository_t  **awaited;    /* those that weren't listed by then     */
    size_t              awaited_count;
    bool                namespacing;    /* each address is the namespace of
                                           the models there                  */
} inf_repository_list_t;

/* inf_storage_open, or a test's own. */
typedef inf_err_t *(*inf_storage_open_fn)(const char *address,
    inf_storage_t **out, char **root);

typedef struct {
    inf_storage_open_fn    open;    /* constant                              */
    inf_lock_t             change;  /* rank 57: one change at a time         */
    inf_lock_t             lock;    /* rank 62; guards now                   */
    inf_repository_list_t *now;
    bool                   namespacing; /* constant, as in every list        */
} inf_repositories_t;

/* An address that is there twice is opened once. */
INF_CHECK inf_err_t *inf_repositories_open(char *const *addresses,
    size_t count, inf_repositories_t *out);

/* With namespacing: equal names in two of them are two models. */
INF_CHECK inf_err_t *inf_repositories_open_namespaced(char *const *addresses,
    size_t count, inf_repositories_t *out);
INF_CHECK inf_err_t *inf_repositories_open_with(char *const *addresses,
    size_t count, bool namespacing, inf_storage_open_fn open,
    inf_repositories_t *out);
void inf_repositories_close(inf_repositories_t *r);

/*
 * Lists an awaited repository, which may take minutes; then it may be looked
 * into, unless it was taken out meanwhile.  An error: it has failed (its
 * state is the caller's to set).
 */
INF_CHECK inf_err_t *inf_repositories_admit(inf_repositories_t *r,
    inf_repository_t *item);

/* Why its listing has failed (before it counts as FAILED); another try is to
   come. */
void inf_repository_note_failure(inf_repository_t *repository,
    const inf_err_t *why);
void inf_repository_retry(inf_repository_t *repository);

/* Whether a model of that namespace ("": any) may lie in a repository that is
   in that state. */
bool inf_repository_list_lacks(const inf_repository_list_t *list,
    inf_repository_state_t state, const char *space);

/* Whether any that may be looked into couldn't be listed when it was asked
   last. */
bool inf_repository_list_unseen(const inf_repository_list_t *list);

/* The error that a FAILED one is; NULL: there is none for that namespace. */
INF_CHECK inf_err_t *inf_repository_list_failure(
    const inf_repository_list_t *list, const char *space);

/* Nobody waits for another machine's answer any more: for the end. */
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

/* Those that there are now, and may be awaited; a reference. */
inf_repository_list_t *inf_repositories_take(const inf_repositories_t *r);

/* Whether list is still what there is. */
bool inf_repositories_are(const inf_repositories_t *r,
    const inf_repository_list_t *list);

/* Whether just these are open, in whatever order. */
bool inf_repositories_named(const inf_repositories_t *r,
    char *const *addresses, size_t count);

inf_repository_list_t *inf_repository_list_ref(inf_repository_list_t *list);
void inf_repository_list_unref(inf_repository_list_t *list);

bool inf_repository_list_has(const inf_repository_list_t *list,
    const inf_repository_t *repository);

inf_repository_t *inf_repository_ref(inf_repository_t *repository);

/* repository may be NULL. */
void inf_repository_unref(inf_repository_t *repository);

/*
 * One model, as inf_scan_one.  With namespacing it is looked for where it
 * belongs; one of no namespace lies nowhere, but the scan says what is wrong.
 * A model on this machine's disk, or where it was when other machines were
 * listed last, is found without asking the others.
 */
INF_CHECK inf_err_t *inf_repository_list_scan(
    const inf_repository_list_t *list, const inf_model_id_t *id,
    inf_scan_t *out);

/* The names of a listing of the repository, entries of which are taken, also
   on error; does nothing else with those of this machine's disk. */
INF_CHECK inf_err_t *inf_repository_keep_seen(inf_repository_t *repository,
    inf_entries_t *entries);

/* A reference, or NULL. */
inf_seen_t *inf_repository_take_seen(const inf_repository_t *repository);

/* seen may be NULL. */
void inf_seen_unref(inf_seen_t *seen);

#endif /* INF_REPOSITORY_REPOSITORIES_H */
