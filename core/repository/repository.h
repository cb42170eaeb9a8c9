/*
 * repository.h - one model repository: where it is, whether it could be
 *                listed, and what its last listing has found.
 *
 * Owner    Shared by reference: it stays open as long as a list, a model or a
 *          load refers to it.
 * Thread   any; a poll may take minutes where the repository is remote.
 * Units    none.
 * Errors   A listing that fails is returned, and kept as the reason of the
 *          state.
 * Route    repositories -> [repository] -> scan, model source, index
 */

#ifndef INF_REPOSITORY_REPOSITORY_H
#define INF_REPOSITORY_REPOSITORY_H

#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/repository/scan.h"

/* A local repository counts as LISTED until a listing fails; nothing asks a
   remote one for anything before it has been LISTED. */
typedef enum {
    INF_REPOSITORY_PENDING = 1,     /* its first listing has not ended       */
    INF_REPOSITORY_LISTED  = 2,     /* the last listing succeeded            */
    INF_REPOSITORY_STALE   = 4,     /* listed before; the last one failed    */
    INF_REPOSITORY_FAILED  = 8      /* never listed; the last one failed     */
} inf_repository_state_t;

/* Sets of states. */
#define INF_REPOSITORY_WAS_LISTED                                             \
    ((uint32_t) INF_REPOSITORY_LISTED | INF_REPOSITORY_STALE)
#define INF_REPOSITORY_NEVER_LISTED                                           \
    ((uint32_t) INF_REPOSITORY_PENDING | INF_REPOSITORY_FAILED)

/* The result of a listing; constant but for refs. */
typedef struct {
    _Atomic uint32_t refs;      /* seq_cst                                   */
    inf_entries_t    entries;
} inf_listing_t;

typedef struct {
    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    inf_lock_t             lock;        /* rank 63; guards state to listing  */
    inf_repository_state_t state;
    char                  *reason;      /* of STALE and FAILED; NULL: out of
                                           memory                            */
    inf_listing_t         *listing;     /* the last one; NULL: none yet      */

    /* constant once it is in a list */
    inf_storage_t         *storage;
    char                  *root;        /* in the storage's spelling         */
    char                  *address;     /* without trailing slashes          */
    inf_scan_alias_t      *aliases;
    size_t                 alias_count;
    bool                   at_start;    /* the server has started with it    */
} inf_repository_t;

/* inf_storage_open, or a test's own. */
typedef inf_err_t *(*inf_storage_open_fn)(const char *address,
    inf_storage_t **out, char **root);

/* *out is a reference; nothing was asked of a remote storage yet.  ref returns
   repository. */
INF_CHECK inf_err_t *inf_repository_open(const char *address,
    inf_storage_open_fn open, inf_repository_t **out);
inf_repository_t *inf_repository_ref(inf_repository_t *repository);

/* repository may be NULL. */
void inf_repository_unref(inf_repository_t *repository);

/* Some directories hold models of other names (copied), one or more of each.
   ALREADY_EXISTS: two have one name.  INVALID_ARG: an alias is no model's
   name. */
INF_CHECK inf_err_t *inf_repository_set_aliases(inf_repository_t *repository,
    const inf_scan_alias_t *aliases, size_t count);

/* The error that another alias has the name. */
INF_CHECK inf_err_t *inf_repository_mapping_conflict(
    const inf_repository_t *repository, const char *name);

/* Whether its storage is remote; constant. */
bool inf_repository_is_remote(const inf_repository_t *repository);

/* Trailing slashes don't matter. */
bool inf_repository_is_at(const inf_repository_t *repository,
    const char *address);

/* Whether its state is one of states. */
bool inf_repository_is_in(const inf_repository_t *repository,
    uint32_t states);

/* Why it is STALE or FAILED. */
INF_CHECK inf_err_t *inf_repository_failure(
    const inf_repository_t *repository);

/* FAILED becomes PENDING: another first listing is to come. */
void inf_repository_retry(inf_repository_t *repository);

/* Lists it once, keeps the result and moves the state. */
INF_CHECK inf_err_t *inf_repository_poll(inf_repository_t *repository);

/* The two halves of that: only fetch asks the storage.  settle takes listing,
   NULL on error. */
INF_CHECK inf_err_t *inf_repository_fetch(const inf_repository_t *repository,
    inf_listing_t **listing);
void inf_repository_settle(inf_repository_t *repository,
    inf_listing_t *listing, const inf_err_t *err);

/* A reference, or NULL; *state (unless NULL): the state that goes with it. */
inf_listing_t *inf_repository_listing(const inf_repository_t *repository,
    inf_repository_state_t *state);

/* listing may be NULL. */
void inf_listing_unref(inf_listing_t *listing);

#endif /* INF_REPOSITORY_REPOSITORY_H */
