#include "core/repository/repository.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"
#include "core/base/path.h"
#include "core/base/refs.h"

#define REPOSITORY_RANK 63

static inf_err_t *listing_new(inf_listing_t **out);
static void move_locked(inf_repository_t *r, inf_repository_state_t to,
    char **reason) INF_NEEDS(r->lock);
static uint32_t may_become(inf_repository_state_t from);
static inf_lock_t *lock_of(const inf_repository_t *r);

inf_err_t *
inf_repository_open(const char *address, inf_storage_open_fn open,
    inf_repository_t **out)
{
    inf_repository_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&r->refs, 1);
    inf_lock_init(&r->lock, REPOSITORY_RANK);
    r->address = strndup(address, inf_path_len(address));
    r->shown = r->address == NULL ? NULL
        : strndup(r->address, inf_object_address_shown(r->address));
    if (r->shown != NULL) {
        r->shown[inf_path_len(r->shown)] = '\0';    /* before a query, too   */
    }
    inf_err_t *err = r->shown != NULL
        ? open(address, &r->storage, &r->root) : inf_err_nomem();
    if (err != NULL) {
        r->storage = NULL;
        r->root = NULL;
        inf_repository_unref(r);
        return err;
    }

    r->state = inf_repository_is_remote(r) ? INF_REPOSITORY_PENDING
        : INF_REPOSITORY_LISTED;
    *out = r;
    return NULL;
}

inf_repository_t *
inf_repository_ref(inf_repository_t *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void
inf_repository_unref(inf_repository_t *r)
{
    if (r == NULL || !inf_refs_drop(&r->refs)) {
        return;
    }

    for (size_t i = 0; i < r->alias_count; i++) {
        free((char *) (uintptr_t) r->aliases[i].dir);
        free((char *) (uintptr_t) r->aliases[i].name);
    }
    free(r->aliases);
    free(r->reason);
    inf_listing_unref(r->listing);
    inf_lock_fini(&r->lock);
    inf_storage_close(r->storage);
    free(r->root);
    free(r->shown);
    free(r->address);
    free(r);
}

inf_err_t *
inf_repository_set_aliases(inf_repository_t *r,
    const inf_scan_alias_t *aliases, size_t count)
{
    r->aliases = calloc(count + 1, sizeof(*r->aliases));
    if (r->aliases == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const char *dir = aliases[i].dir;
        const char *name = aliases[i].name;
        const char *why = inf_model_name_problem(dir, strlen(dir));
        if (why == NULL) {
            why = inf_model_name_problem(name, strlen(name));
        }
        if (why != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "failed to register '%s',"
                " mapping of '%s' to '%s': %s", r->shown, dir, name, why);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(aliases[k].name, name) == 0) {
                return inf_err_recode(inf_repository_mapping_conflict(r, name),
                    INF_ERR_INVALID_ARG);
            }
        }

        inf_scan_alias_t *a = &r->aliases[r->alias_count++];
        a->dir = strdup(dir);
        a->name = strdup(name);
        if (a->dir == NULL || a->name == NULL) {
            return inf_err_nomem();
        }
    }

    return NULL;
}

inf_err_t *
inf_repository_mapping_conflict(const inf_repository_t *r, const char *name)
{
    return inf_err_new(INF_ERR_ALREADY_EXISTS, "failed to register '%s', there"
        " is a conflicting mapping for '%s'", r->shown, name);
}

inf_err_t *
inf_repository_list_once(inf_repository_t *r, char *const *dirs, size_t count)
{
    const inf_entry_t dir = { .kind = INF_ENTRY_DIR };

    inf_err_t *err = listing_new(&r->listing);
    for (size_t i = 0; err == NULL && i < count; i++) {
        err = inf_entries_add(&r->listing->entries, &dir, dirs[i]) ? NULL
            : inf_err_nomem();
    }
    if (err == NULL) {
        inf_entries_sort(&r->listing->entries);
        r->listed_once = true;
    }
    return err;
}

bool
inf_repository_is_remote(const inf_repository_t *r)
{
    return inf_storage_is_remote(r->storage);
}

bool
inf_repository_is_at(const inf_repository_t *r, const char *address)
{
    size_t len = inf_path_len(address);
    return strncmp(r->address, address, len) == 0 && r->address[len] == '\0';
}

inf_repository_state_t
inf_repository_state(const inf_repository_t *r)
{
    inf_lock(lock_of(r));
    inf_repository_state_t state = r->state;
    inf_unlock(lock_of(r));
    return state;
}

inf_err_t *
inf_repository_failure(const inf_repository_t *r)
{
    inf_lock(lock_of(r));
    bool failed = r->reason != NULL || r->state == INF_REPOSITORY_STALE
        || r->state == INF_REPOSITORY_FAILED;
    char *reason = r->reason != NULL ? strdup(r->reason) : NULL;
    inf_unlock(lock_of(r));

    inf_err_t *err = !failed ? NULL : reason == NULL ? inf_err_nomem()
        : inf_err_new(INF_ERR_INTERNAL,
            "model repository '%s' can't be listed: %s", r->root, reason);
    free(reason);
    return err;
}

void
inf_repository_retry(inf_repository_t *r)
{
    inf_lock(&r->lock);
    if (r->state == INF_REPOSITORY_FAILED) {
        char *same = r->reason;
        move_locked(r, INF_REPOSITORY_PENDING, &same);
    }
    inf_unlock(&r->lock);
}

inf_err_t *
inf_repository_poll(inf_repository_t *r)
{
    inf_listing_t *listing;

    inf_err_t *err = inf_repository_fetch(r, &listing);
    inf_repository_settle(r, listing, err);
    return err;
}

/* Object storage has no directories: an empty listing means an empty repository
   only if the repository itself exists. */
inf_err_t *
inf_repository_fetch(const inf_repository_t *r, inf_listing_t **out)
{
    bool first = inf_repository_is_in(r, INF_REPOSITORY_NEVER_LISTED);
    inf_listing_t *listing;
    inf_entry_t self;

    *out = NULL;
    inf_err_t *err = listing_new(&listing);
    if (err != NULL) {
        return err;
    }

    err = inf_storage_list(r->storage, r->root,
        &listing->entries);
    if (err == NULL && first && listing->entries.count == 0) {
        inf_entries_fini(&listing->entries);
        err = inf_storage_stat(r->storage, r->root, &self);
        if (err == NULL) {              /* it may have got entries just now  */
            err = inf_storage_list(r->storage, r->root, &listing->entries);
        }
    }
    if (err != NULL) {
        free(listing);
        return err;
    }

    *out = listing;
    return NULL;
}

static inf_err_t *
listing_new(inf_listing_t **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&(*out)->refs, 1);
    return NULL;
}

void
inf_repository_settle(inf_repository_t *r, inf_listing_t *listing,
    const inf_err_t *err)
{
    char *reason = err != NULL ? strdup(inf_err_msg(err)) : NULL;

    inf_lock(&r->lock);
    if (err == NULL) {
        inf_listing_t *old = r->listing;
        r->listing = listing;
        listing = old;
        move_locked(r, INF_REPOSITORY_LISTED, &reason);
    } else if ((r->state & INF_REPOSITORY_WAS_LISTED) != 0) {
        move_locked(r, INF_REPOSITORY_STALE, &reason);
    } else {
        move_locked(r, INF_REPOSITORY_FAILED, &reason);
    }
    inf_unlock(&r->lock);

    inf_listing_unref(listing);
    free(reason);
}

/* The only function that writes state and reason; *reason becomes the old
   one. */
static void
move_locked(inf_repository_t *r, inf_repository_state_t to, char **reason)
{
    char *old = r->reason;

    assert(may_become(r->state) & to);
    r->state = to;
    r->reason = *reason;
    *reason = old;
}

static uint32_t
may_become(inf_repository_state_t from)
{
    switch (from) {
    case INF_REPOSITORY_PENDING:
        return (uint32_t) INF_REPOSITORY_LISTED | INF_REPOSITORY_FAILED;
    case INF_REPOSITORY_LISTED:
    case INF_REPOSITORY_STALE:
        return INF_REPOSITORY_WAS_LISTED;
    case INF_REPOSITORY_FAILED:
        return INF_REPOSITORY_PENDING;
    }

    return 0;
}

inf_listing_t *
inf_repository_listing(const inf_repository_t *r,
    inf_repository_state_t *state)
{
    inf_lock(lock_of(r));
    inf_listing_t *listing = r->listing;
    if (listing != NULL) {
        atomic_fetch_add_explicit(&listing->refs, 1, memory_order_relaxed);
    }
    if (state != NULL) {
        *state = r->state;
    }
    inf_unlock(lock_of(r));
    return listing;
}

void
inf_listing_unref(inf_listing_t *listing)
{
    if (listing != NULL && inf_refs_drop(&listing->refs)) {
        inf_entries_fini(&listing->entries);
        free(listing);
    }
}

static inf_lock_t *
lock_of(const inf_repository_t *r)
{
    return (inf_lock_t *) (uintptr_t) &r->lock;
}
