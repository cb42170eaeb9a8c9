/*
 * repository.h - one model repository: its address, its state and its last
 *                listing.
 *
 * Owner    Shared by reference: open while a list, a model or a load refers to
 *          it.
 * Thread   any; a poll of a remote repository may take minutes.
 * Units    none.
 * Errors   A failed listing is returned, and kept as the state's reason.
 * Route    repositories -> [repository] -> scan, model source, index
 */

#ifndef INF_REPOSITORY_REPOSITORY_H
#define INF_REPOSITORY_REPOSITORY_H

#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/repository/scan.h"

/* A local repository is LISTED until a listing fails; a remote one is used only
   after it has been LISTED. */
typedef enum {
    INF_REPOSITORY_PENDING = 1,     /* first listing not ended               */
    INF_REPOSITORY_LISTED  = 2,     /* last listing succeeded                */
    INF_REPOSITORY_STALE   = 4,     /* listed before; last listing failed    */
    INF_REPOSITORY_FAILED  = 8      /* never listed; last listing failed     */
} inf_repository_state_t;

/* Sets of states. */
#define INF_REPOSITORY_WAS_LISTED                                             \
    ((uint32_t) INF_REPOSITORY_LISTED | INF_REPOSITORY_STALE)
#define INF_REPOSITORY_NEVER_LISTED                                           \
    ((uint32_t) INF_REPOSITORY_PENDING | INF_REPOSITORY_FAILED)

/* The result of a listing; constant except refs. */
typedef struct {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    inf_entries_t    entries;
} inf_listing_t;

typedef struct {
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    inf_lock_t             lock;        /* rank 63; guards state to listing  */
    inf_repository_state_t state;
    char                  *reason;      /* of STALE and FAILED, and of PENDING
                                           after FAILED; NULL: out of memory */
    inf_listing_t         *listing;     /* the last one; NULL: none          */

    /* constant once in a list */
    inf_storage_t         *storage;
    char                  *root;        /* in the storage's notation         */
    char                  *address;     /* without trailing slashes          */
    char                  *shown;       /* likewise, without a query, which may
                                           be a secret: for logs, and the
                                           namespace of its models           */
    inf_scan_alias_t      *aliases;
    size_t                 alias_count;
    bool                   aliases_only;    /* ignores other directories     */
    bool                   listed_once;     /* its first listing stays: only
                                               loads of its models access it */
    bool                   at_start;    /* present at the start              */
    bool                   registered;  /* by a call, not by configuration   */
} inf_repository_t;

/* inf_storage_open, or a test's function. */
typedef inf_err_t *(*inf_storage_open_fn)(const char *address,
    inf_storage_t **out, char **root);

/* Opens a repository; *out is a reference; a remote storage is not accessed
   yet. ref returns repository. */
INF_CHECK inf_err_t *inf_repository_open(const char *address,
    inf_storage_open_fn open, inf_repository_t **out);
inf_repository_t *inf_repository_ref(inf_repository_t *repository);

/* repository may be NULL. */
void inf_repository_unref(inf_repository_t *repository);

/* Sets aliases (copied): directories whose models have other names, one or more
   each.  INVALID_ARG: a repeated name, or not a valid model name. */
INF_CHECK inf_err_t *inf_repository_set_aliases(inf_repository_t *repository,
    const inf_scan_alias_t *aliases, size_t count);

/* The error that another alias has the name. */
INF_CHECK inf_err_t *inf_repository_mapping_conflict(
    const inf_repository_t *repository, const char *name);

/* Sets its permanent listing: these directories (copied). */
INF_CHECK inf_err_t *inf_repository_list_once(inf_repository_t *repository,
    char *const *dirs, size_t count);

/* Whether its storage is remote; constant. */
bool inf_repository_is_remote(const inf_repository_t *repository);

/* Whether it has that address; trailing slashes are ignored. */
bool inf_repository_is_at(const inf_repository_t *repository,
    const char *address);

/* Its state; is_in: whether that is one of states. */
inf_repository_state_t inf_repository_state(
    const inf_repository_t *repository);

static inline bool
inf_repository_is_in(const inf_repository_t *repository, uint32_t states)
{
    return (inf_repository_state(repository) & states) != 0;
}

/* The error of the last listing that has ended, if it failed. */
INF_CHECK inf_err_t *inf_repository_failure(
    const inf_repository_t *repository);

/* Makes a FAILED repository PENDING, for another first listing. */
void inf_repository_retry(inf_repository_t *repository);

/* Lists it, keeps the result and sets the state. */
INF_CHECK inf_err_t *inf_repository_poll(inf_repository_t *repository);

/* The two halves of inf_repository_poll: only fetch accesses the storage.
   settle takes listing, which is NULL on error. */
INF_CHECK inf_err_t *inf_repository_fetch(const inf_repository_t *repository,
    inf_listing_t **listing);
void inf_repository_settle(inf_repository_t *repository,
    inf_listing_t *listing, const inf_err_t *err);

/* A reference to the last listing, or NULL; *state (unless NULL): its state. */
inf_listing_t *inf_repository_listing(const inf_repository_t *repository,
    inf_repository_state_t *state);

/* listing may be NULL. */
void inf_listing_unref(inf_listing_t *listing);

#endif /* INF_REPOSITORY_REPOSITORY_H */
