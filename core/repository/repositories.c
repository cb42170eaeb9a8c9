#include "core/repository/repositories.h"

#include <stdlib.h>
#include <string.h>

#include "core/repository/storage.h"

#define REPOSITORIES_RANK 62
#define REPOSITORY_RANK   63
#define CHANGE_RANK       57

static inf_err_t *list_new(const inf_repositories_t *r,
    const inf_repository_list_t *old, char *const *addresses, size_t count,
    inf_repository_list_t **out);
static inf_err_t *list_with(const inf_repository_list_t *old,
    inf_repository_t *more, const inf_repository_t *less,
    inf_repository_list_t **out);
static inf_err_t *list_room(size_t count, bool namespacing,
    inf_repository_list_t **out);
static void list_push(inf_repository_list_t *list, inf_repository_t *item);
static void list_push_awaited(inf_repository_list_t *list,
    inf_repository_t *item);
static bool is_awaited(const inf_repository_list_t *list,
    const inf_repository_t *item);
static bool is_meant(const inf_repository_list_t *list,
    const inf_repository_t *item, const char *space);
static inf_repository_list_t *put_in_place(inf_repositories_t *r,
    inf_repository_list_t *list);
static inf_err_t *list_whole(const inf_repository_t *item,
    inf_entries_t *entries);
static inf_err_t *check_listing(inf_repository_t *item);
static inf_err_t *take_aliases(inf_repository_t *item,
    const inf_scan_alias_t *aliases, size_t count);
static inf_err_t *check_new(const inf_repository_list_t *list,
    const inf_repository_t *item);
static bool same_items(const inf_repository_list_t *a,
    const inf_repository_list_t *b);
static inf_err_t *repository_open(const inf_repositories_t *r,
    const char *address, inf_repository_t **out);
static inf_repository_t *find(const inf_repository_list_t *list,
    const char *address);
static inf_err_t *scan_expected(const inf_repository_list_t *list,
    const char *name, inf_scan_t *out, bool *settled);
static bool was_seen(const inf_repository_list_t *list, size_t root,
    const char *name);
static bool is_address(const inf_repository_t *item, const char *address);
static size_t address_len(const char *address);

inf_err_t *
inf_repositories_open(char *const *addresses, size_t count,
    inf_repositories_t *out)
{
    return inf_repositories_open_with(addresses, count, false,
        inf_storage_open, out);
}

inf_err_t *
inf_repositories_open_namespaced(char *const *addresses, size_t count,
    inf_repositories_t *out)
{
    return inf_repositories_open_with(addresses, count, true,
        inf_storage_open, out);
}

inf_err_t *
inf_repositories_open_with(char *const *addresses, size_t count,
    bool namespacing, inf_storage_open_fn open, inf_repositories_t *out)
{
    const inf_repository_list_t none = { .namespacing = namespacing };

    *out = (inf_repositories_t) {
        .open = open, .namespacing = namespacing
    };
    inf_err_t *err = list_new(out, &none, addresses, count, &out->now);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < out->now->awaited_count; i++) {
        out->now->awaited[i]->at_start = true;
    }
    inf_lock_init(&out->change, CHANGE_RANK);
    inf_lock_init(&out->lock, REPOSITORIES_RANK);
    return NULL;
}

void
inf_repositories_close(inf_repositories_t *r)
{
    if (r->now == NULL) {
        return;
    }

    inf_repository_list_unref(r->now);
    inf_lock_fini(&r->lock);
    inf_lock_fini(&r->change);
    r->now = NULL;
}

inf_err_t *
inf_repositories_replace(inf_repositories_t *r, char *const *addresses,
    size_t count, bool *changed)
{
    inf_repository_list_t *list = NULL;

    inf_lock(&r->change);
    inf_repository_list_t *old = inf_repositories_take(r);
    inf_err_t *err = list_new(r, old, addresses, count, &list);
    *changed = err == NULL && !same_items(old, list);
    if (*changed) {
        list = put_in_place(r, list);
    }
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    inf_repository_list_unref(old);
    return err;
}

inf_err_t *
inf_repositories_add(inf_repositories_t *r, const char *address,
    const inf_scan_alias_t *aliases, size_t count)
{
    inf_repository_list_t *list = NULL;
    inf_repository_t *item = NULL;

    inf_err_t *err = repository_open(r, address, &item);
    if (err == NULL) {
        err = check_listing(item);
    }
    if (err == NULL) {
        atomic_store(&item->state, INF_REPOSITORY_OPEN);
    }
    if (err == NULL) {
        err = take_aliases(item, aliases, count);
    }
    if (err != NULL) {
        inf_repository_unref(item);
        return inf_err_add(err, "failed to register '%s'", address);
    }

    inf_lock(&r->change);
    inf_repository_list_t *old = inf_repositories_take(r);
    err = check_new(old, item);
    if (err == NULL) {
        err = list_with(old, item, NULL, &list);
    }
    if (err == NULL) {
        list = put_in_place(r, list);
    }
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    inf_repository_list_unref(old);
    inf_repository_unref(item);
    return inf_err_add(err, "failed to register '%s'", address);
}

inf_err_t *
inf_repositories_remove(inf_repositories_t *r, const char *address)
{
    inf_repository_list_t *list = NULL;

    inf_lock(&r->change);
    inf_repository_list_t *old = inf_repositories_take(r);
    const inf_repository_t *item = find(old, address);
    inf_err_t *err = item != NULL ? list_with(old, NULL, item, &list)
        : inf_err_new(INF_ERR_INVALID_ARG,
            "failed to unregister '%s', repository not found", address);
    if (err == NULL) {
        list = put_in_place(r, list);
    }
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    inf_repository_list_unref(old);
    return err;
}

inf_err_t *
inf_repositories_admit(inf_repositories_t *r, inf_repository_t *item)
{
    inf_repository_list_t *list = NULL;
    inf_entries_t entries;

    inf_err_t *err = list_whole(item, &entries);
    if (err == NULL) {
        err = inf_repository_keep_seen(item, &entries);
    }
    if (err != NULL) {
        return err;
    }

    inf_lock(&r->change);
    inf_repository_list_t *old = inf_repositories_take(r);
    bool meant = is_awaited(old, item);
    if (meant) {
        err = list_with(old, item, NULL, &list);
    }
    if (meant && err == NULL) {         /* who sees it OPEN finds it in place */
        list = put_in_place(r, list);
        atomic_store(&item->state, INF_REPOSITORY_OPEN);
    }
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    inf_repository_list_unref(old);
    return err;
}

/* One that holds nothing has to be there; it may have come just now. */
static inf_err_t *
list_whole(const inf_repository_t *item, inf_entries_t *entries)
{
    inf_entry_t self;

    inf_err_t *err = inf_storage_list(item->storage, item->root, entries);
    if (err != NULL || entries->count > 0) {
        return err;
    }

    inf_entries_fini(entries);
    err = inf_storage_stat(item->storage, item->root, &self);
    return err != NULL ? err : inf_storage_list(item->storage, item->root,
        entries);
}

void
inf_repository_note_failure(inf_repository_t *repository,
    const inf_err_t *why)
{
    char *text = strdup(inf_err_msg(why));

    inf_lock(&repository->lock);
    char *old = repository->why;
    repository->why = text;
    inf_unlock(&repository->lock);
    free(old);
}

void
inf_repository_retry(inf_repository_t *repository)
{
    uint32_t failed = INF_REPOSITORY_FAILED;

    atomic_compare_exchange_strong(&repository->state, &failed,
        INF_REPOSITORY_AWAITED);
}

void
inf_repositories_cancel(inf_repositories_t *r)
{
    if (r->now == NULL) {
        return;
    }

    inf_repository_list_t *list = inf_repositories_take(r);
    for (size_t i = 0; i < list->count; i++) {
        inf_storage_cancel(list->items[i]->storage);
    }
    for (size_t i = 0; i < list->awaited_count; i++) {
        inf_storage_cancel(list->awaited[i]->storage);
    }
    inf_repository_list_unref(list);
}

bool
inf_repository_list_lacks(const inf_repository_list_t *list,
    inf_repository_state_t state, const char *space)
{
    for (size_t i = 0; i < list->awaited_count; i++) {
        if (atomic_load(&list->awaited[i]->state) == state
            && is_meant(list, list->awaited[i], space))
        {
            return true;
        }
    }

    return false;
}

bool
inf_repository_list_unseen(const inf_repository_list_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (atomic_load(&list->items[i]->unseen)) {
            return true;
        }
    }

    return false;
}

inf_err_t *
inf_repository_list_failure(const inf_repository_list_t *list,
    const char *space)
{
    for (size_t i = 0; i < list->awaited_count; i++) {
        inf_repository_t *item = list->awaited[i];
        if (atomic_load(&item->state) != INF_REPOSITORY_FAILED
            || !is_meant(list, item, space))
        {
            continue;
        }

        inf_lock(&item->lock);
        char *why = item->why != NULL ? strdup(item->why) : NULL;
        inf_unlock(&item->lock);
        inf_err_t *err = why == NULL ? inf_err_nomem() : inf_err_new(
            INF_ERR_INTERNAL, "model repository '%s' can't be listed: %s",
            item->root, why);
        free(why);
        return err;
    }

    return NULL;
}

static bool
is_awaited(const inf_repository_list_t *list, const inf_repository_t *item)
{
    for (size_t i = 0; i < list->awaited_count; i++) {
        if (list->awaited[i] == item) {
            return true;
        }
    }

    return false;
}

static bool
is_meant(const inf_repository_list_t *list, const inf_repository_t *item,
    const char *space)
{
    return !list->namespacing || space[0] == '\0'
        || strcmp(item->address, space) == 0;
}

inf_repository_list_t *
inf_repositories_take(const inf_repositories_t *r)
{
    inf_lock_t *lock = (inf_lock_t *) (uintptr_t) &r->lock;

    inf_lock(lock);
    inf_repository_list_t *list = inf_repository_list_ref(r->now);
    inf_unlock(lock);
    return list;
}

bool
inf_repositories_are(const inf_repositories_t *r,
    const inf_repository_list_t *list)
{
    inf_lock_t *lock = (inf_lock_t *) (uintptr_t) &r->lock;

    inf_lock(lock);
    bool same = r->now == list;
    inf_unlock(lock);
    return same;
}

bool
inf_repositories_named(const inf_repositories_t *r, char *const *addresses,
    size_t count)
{
    inf_repository_list_t *list = inf_repositories_take(r);
    bool same = true;

    for (size_t i = 0; same && i < count; i++) {
        same = find(list, addresses[i]) != NULL;
    }
    for (size_t i = 0; same && i < list->count; i++) {
        size_t k = 0;
        while (k < count && !is_address(list->items[i], addresses[k])) {
            k++;
        }
        same = k < count;
    }
    for (size_t i = 0; same && i < list->awaited_count; i++) {
        size_t k = 0;
        while (k < count && !is_address(list->awaited[i], addresses[k])) {
            k++;
        }
        same = k < count;
    }

    inf_repository_list_unref(list);
    return same;
}

inf_repository_list_t *
inf_repository_list_ref(inf_repository_list_t *list)
{
    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    return list;
}

void
inf_repository_list_unref(inf_repository_list_t *list)
{
    if (list == NULL || atomic_fetch_sub_explicit(&list->refs, 1,
            memory_order_acq_rel) != 1)
    {
        return;
    }

    for (size_t i = 0; i < list->count; i++) {
        inf_repository_unref(list->items[i]);
    }
    for (size_t i = 0; i < list->awaited_count; i++) {
        inf_repository_unref(list->awaited[i]);
    }
    free(list->awaited);
    free(list->items);
    free(list->roots);
    free(list);
}

bool
inf_repository_list_has(const inf_repository_list_t *list,
    const inf_repository_t *repository)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == repository) {
            return true;
        }
    }

    return false;
}

inf_repository_t *
inf_repository_ref(inf_repository_t *repository)
{
    atomic_fetch_add_explicit(&repository->refs, 1, memory_order_relaxed);
    return repository;
}

void
inf_repository_unref(inf_repository_t *repository)
{
    if (repository == NULL || atomic_fetch_sub_explicit(&repository->refs, 1,
            memory_order_acq_rel) != 1)
    {
        return;
    }

    for (size_t i = 0; i < repository->alias_count; i++) {
        free((char *) (uintptr_t) repository->aliases[i].dir);
        free((char *) (uintptr_t) repository->aliases[i].name);
    }
    free(repository->aliases);
    free(repository->why);
    inf_seen_unref(repository->seen);
    inf_lock_fini(&repository->lock);
    inf_storage_close(repository->storage);
    free(repository->root);
    free(repository->address);
    free(repository);
}

inf_err_t *
inf_repository_keep_seen(inf_repository_t *item, inf_entries_t *entries)
{
    if (!inf_storage_is_remote(item->storage)) {
        inf_entries_fini(entries);
        return NULL;
    }

    inf_seen_t *seen = calloc(1, sizeof(*seen));
    if (seen == NULL) {
        inf_entries_fini(entries);
        return inf_err_nomem();
    }

    atomic_init(&seen->refs, 1);
    seen->entries = *entries;
    inf_lock(&item->lock);
    inf_seen_t *old = item->seen;
    item->seen = seen;
    inf_unlock(&item->lock);
    inf_seen_unref(old);
    return NULL;
}

inf_seen_t *
inf_repository_take_seen(const inf_repository_t *item)
{
    inf_lock_t *lock = (inf_lock_t *) (uintptr_t) &item->lock;

    inf_lock(lock);
    inf_seen_t *seen = item->seen;
    if (seen != NULL) {
        atomic_fetch_add(&seen->refs, 1);
    }
    inf_unlock(lock);
    return seen;
}

void
inf_seen_unref(inf_seen_t *seen)
{
    if (seen != NULL && atomic_fetch_sub(&seen->refs, 1) == 1) {
        inf_entries_fini(&seen->entries);
        free(seen);
    }
}

inf_err_t *
inf_repository_list_scan(const inf_repository_list_t *list,
    const inf_model_id_t *id, inf_scan_t *out)
{
    if (!list->namespacing || id->space[0] == '\0') {
        bool settled = false;
        inf_err_t *err = list->namespacing ? NULL
            : scan_expected(list, id->name, out, &settled);
        if (err == NULL && !settled) {
            err = inf_scan_one(list->roots, list->count, id->name, out);
        }
        if (err == NULL && list->namespacing) {
            out->model_count = 0;
        }
        return err;
    }

    size_t at = 0;
    while (at < list->count && strcmp(list->roots[at].space, id->space) != 0) {
        at++;
    }

    inf_err_t *err = inf_scan_one(list->roots + at, at < list->count,
        id->name, out);
    for (size_t i = 0; err == NULL && i < out->model_count; i++) {
        out->models[i].repository += (uint32_t) at;
    }
    for (size_t i = 0; err == NULL && i < out->problem_count; i++) {
        out->problems[i].repository += (uint32_t) at;
    }
    return err;
}

/* Where it may be expected: here, and where it was seen.  settled: it is
   there.  Else out isn't to be read. */
static inf_err_t *
scan_expected(const inf_repository_list_t *list, const char *name,
    inf_scan_t *out, bool *settled)
{
    inf_scan_root_t *roots = calloc(list->count + 1, sizeof(*roots));
    uint32_t *at = calloc(list->count + 1, sizeof(*at));
    inf_err_t *err = roots == NULL || at == NULL ? inf_err_nomem() : NULL;
    size_t count = 0;

    for (size_t i = 0; err == NULL && i < list->count; i++) {
        if (!inf_storage_is_remote(list->roots[i].storage)
            || was_seen(list, i, name))
        {
            at[count] = (uint32_t) i;
            roots[count++] = list->roots[i];
        }
    }

    bool ask = err == NULL && count > 0 && count < list->count;
    if (ask) {
        err = inf_scan_one(roots, count, name, out);
        *settled = err == NULL && out->model_count > 0;
    }
    for (size_t i = 0; *settled && i < out->model_count; i++) {
        out->models[i].repository = at[out->models[i].repository];
    }
    for (size_t i = 0; *settled && i < out->problem_count; i++) {
        out->problems[i].repository = at[out->problems[i].repository];
    }
    if (ask && err == NULL && !*settled) {
        inf_scan_fini(out);
    }

    free(at);
    free(roots);
    return err;
}

static bool
was_seen(const inf_repository_list_t *list, size_t root, const char *name)
{
    inf_seen_t *seen = inf_repository_take_seen(list->items[root]);
    const char *dir = inf_scan_dir(&list->roots[root], name);
    bool found = seen != NULL && dir != NULL
        && inf_entries_find(&seen->entries, dir) != NULL;

    inf_seen_unref(seen);
    return found;
}

/* Repositories that have the same address in old are taken from there. */
static inf_err_t *
list_new(const inf_repositories_t *r, const inf_repository_list_t *old,
    char *const *addresses, size_t count, inf_repository_list_t **out)
{
    inf_repository_list_t *list;

    inf_err_t *err = list_room(count, old->namespacing, &list);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < count; i++) {
        if (find(list, addresses[i]) != NULL) {
            continue;
        }

        inf_repository_t *item = find(old, addresses[i]);
        inf_err_t *bad = NULL;
        if (item != NULL) {
            inf_repository_ref(item);
        } else {
            bad = repository_open(r, addresses[i], &item);
        }
        if (bad != NULL) {
            inf_err_log(inf_err_add(bad, "repository \"%s\" is left out",
                addresses[i]));
            continue;
        }

        if (atomic_load(&item->state) == INF_REPOSITORY_OPEN) {
            list_push(list, item);
        } else {
            list_push_awaited(list, item);
        }
    }

    *out = list;
    return NULL;
}

/* All of old, and more, but without less; either may be NULL. */
static inf_err_t *
list_with(const inf_repository_list_t *old, inf_repository_t *more,
    const inf_repository_t *less, inf_repository_list_t **out)
{
    inf_repository_list_t *list;

    inf_err_t *err = list_room(old->count + old->awaited_count + 1,
        old->namespacing, &list);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < old->count; i++) {
        if (old->items[i] != less) {
            list_push(list, inf_repository_ref(old->items[i]));
        }
    }
    if (more != NULL) {
        list_push(list, inf_repository_ref(more));
    }
    for (size_t i = 0; i < old->awaited_count; i++) {
        if (old->awaited[i] != less && old->awaited[i] != more) {
            list_push_awaited(list, inf_repository_ref(old->awaited[i]));
        }
    }

    *out = list;
    return NULL;
}

static inf_err_t *
list_room(size_t count, bool namespacing, inf_repository_list_t **out)
{
    inf_repository_list_t *list = calloc(1, sizeof(*list));
    if (list == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&list->refs, 1);
    list->namespacing = namespacing;
    list->roots = calloc(count + 1, sizeof(*list->roots));
    list->items = calloc(count + 1, sizeof(*list->items));
    list->awaited = calloc(count + 1, sizeof(*list->awaited));
    if (list->roots == NULL || list->items == NULL || list->awaited == NULL) {
        inf_repository_list_unref(list);
        return inf_err_nomem();
    }

    *out = list;
    return NULL;
}

/* Takes the reference. */
static void
list_push(inf_repository_list_t *list, inf_repository_t *item)
{
    list->roots[list->count] = (inf_scan_root_t) {
        .storage = item->storage,
        .root = item->root,
        .aliases = item->aliases,
        .alias_count = item->alias_count,
        .space = list->namespacing ? item->address : NULL
    };
    list->items[list->count++] = item;
}

/* Likewise. */
static void
list_push_awaited(inf_repository_list_t *list, inf_repository_t *item)
{
    list->awaited[list->awaited_count++] = item;
}

/* Returns the one that was there; both references change hands. */
static inf_repository_list_t *
put_in_place(inf_repositories_t *r, inf_repository_list_t *list)
{
    inf_lock(&r->lock);
    inf_repository_list_t *old = r->now;
    r->now = list;
    inf_unlock(&r->lock);
    return old;
}

static inf_err_t *
check_listing(inf_repository_t *item)
{
    inf_entries_t entries;

    inf_err_t *err = inf_storage_list(item->storage, item->root, &entries);
    if (err != NULL) {
        inf_err_t *told = inf_err_new(INF_ERR_INVALID_ARG,
            "repository not found: %s", inf_err_msg(err));
        inf_err_free(err);
        return told;
    }

    return inf_repository_keep_seen(item, &entries);
}

static inf_err_t *
take_aliases(inf_repository_t *item, const inf_scan_alias_t *aliases,
    size_t count)
{
    item->aliases = calloc(count + 1, sizeof(*item->aliases));
    if (item->aliases == NULL) {
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
            return inf_err_new(INF_ERR_INVALID_ARG,
                "mapping of '%s' to '%s': %s", dir, name, why);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(aliases[k].dir, dir) == 0
                || strcmp(aliases[k].name, name) == 0)
            {
                return inf_err_new(INF_ERR_ALREADY_EXISTS,
                    "'%s' or '%s' is mapped twice", dir, name);
            }
        }

        inf_scan_alias_t *a = &item->aliases[item->alias_count++];
        a->dir = strdup(dir);
        a->name = strdup(name);
        if (a->dir == NULL || a->name == NULL) {
            return inf_err_nomem();
        }
    }

    return NULL;
}

/* Neither its address nor a name that it maps to may be there. */
static inf_err_t *
check_new(const inf_repository_list_t *list, const inf_repository_t *item)
{
    if (find(list, item->address) != NULL) {
        return inf_err_new(INF_ERR_ALREADY_EXISTS,
            "it is registered already");
    }

    for (size_t i = 0; i < list->count; i++) {
        const inf_repository_t *other = list->items[i];
        for (size_t k = 0; k < other->alias_count * item->alias_count; k++) {
            const char *name = item->aliases[k / other->alias_count].name;
            const char *has = other->aliases[k % other->alias_count].name;
            if (strcmp(name, has) == 0) {
                return inf_err_new(INF_ERR_ALREADY_EXISTS, "'%s' is mapped"
                    " already, in '%s'", name, other->address);
            }
        }
    }

    return NULL;
}

/* Their order means nothing. */
static bool
same_items(const inf_repository_list_t *a, const inf_repository_list_t *b)
{
    bool same = a->count == b->count && a->awaited_count == b->awaited_count;

    for (size_t i = 0; same && i < a->count; i++) {
        same = inf_repository_list_has(b, a->items[i]);
    }
    for (size_t i = 0; same && i < a->awaited_count; i++) {
        same = is_awaited(b, a->awaited[i]);
    }
    return same;
}

static inf_err_t *
repository_open(const inf_repositories_t *r, const char *address,
    inf_repository_t **out)
{
    inf_repository_t *item = calloc(1, sizeof(*item));
    size_t len = address_len(address);

    if (item == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&item->refs, 1);
    inf_lock_init(&item->lock, REPOSITORY_RANK);
    item->address = strndup(address, len);
    inf_err_t *err = item->address != NULL
        ? r->open(address, &item->storage, &item->root)
        : inf_err_nomem();
    if (err != NULL) {
        item->storage = NULL;
        item->root = NULL;
        inf_repository_unref(item);
        return err;
    }

    atomic_init(&item->state, inf_storage_is_remote(item->storage)
        ? INF_REPOSITORY_AWAITED : INF_REPOSITORY_OPEN);
    *out = item;
    return NULL;
}

static inf_repository_t *
find(const inf_repository_list_t *list, const char *address)
{
    for (size_t i = 0; i < list->count; i++) {
        if (is_address(list->items[i], address)) {
            return list->items[i];
        }
    }
    for (size_t i = 0; i < list->awaited_count; i++) {
        if (is_address(list->awaited[i], address)) {
            return list->awaited[i];
        }
    }

    return NULL;
}

static bool
is_address(const inf_repository_t *item, const char *address)
{
    size_t len = address_len(address);
    return strncmp(item->address, address, len) == 0
        && item->address[len] == '\0';
}

/* Without trailing slashes. */
static size_t
address_len(const char *address)
{
    size_t len = strlen(address);
    while (len > 1 && address[len - 1] == '/') {
        len--;
    }

    return len;
}
