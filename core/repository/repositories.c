#include "core/repository/repositories.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"
#include "core/base/refs.h"

#define CHANGE_RANK       57
#define REPOSITORIES_RANK 62

static inf_err_t *list_open(const inf_repositories_t *r,
    const inf_repository_list_t *old, char *const *addresses, size_t count,
    inf_repository_list_t **out);
static inf_err_t *list_without(const inf_repository_list_t *old,
    const inf_repository_t *item, inf_repository_list_t **out);
static inf_err_t *list_room(size_t total, bool namespacing,
    inf_repository_list_t **out);
static void list_add(inf_repository_list_t *list, inf_repository_t *item,
    bool listed);
static inf_repository_t *find(const inf_repository_list_t *list,
    const char *address);
static bool has_alias(const inf_repository_t *item, const char *name);
static bool is_for(const inf_repository_list_t *list,
    const inf_repository_t *item, const char *space);
static bool same_items(const inf_repository_list_t *a,
    const inf_repository_list_t *b);
static inf_err_t *check_new(const inf_repository_list_t *list,
    const inf_repository_t *item);
static void put_in_place(inf_repositories_t *r, inf_repository_list_t **list)
    INF_NEEDS(r->change);
static inf_err_t *take_out(inf_repositories_t *r, const inf_repository_t *item,
    inf_repository_list_t **list) INF_NEEDS(r->change);
static size_t choose(const inf_repository_list_t *list,
    const inf_model_id_t *id, bool others, uint32_t *at);
static bool is_expected(const inf_repository_list_t *list, size_t root,
    const inf_model_id_t *id);
static inf_err_t *scan_some(const inf_repository_list_t *list,
    const uint32_t *at, size_t count, const char *name, inf_scan_t *out);

inf_err_t *
inf_repositories_open(char *const *addresses, size_t count, bool namespacing,
    inf_storage_open_fn open, inf_repositories_t *out)
{
    const inf_repository_list_t none = { .namespacing = namespacing };

    *out = (inf_repositories_t) {
        .open = open, .namespacing = namespacing
    };
    inf_err_t *err = list_open(out, &none, addresses, count, &out->now);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < out->now->total; i++) {
        out->now->items[i]->at_start = true;
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

/* The new list is set before the state becomes LISTED. */
inf_err_t *
inf_repositories_poll(inf_repositories_t *r, inf_repository_t *item)
{
    inf_repository_list_t *list = NULL;
    inf_listing_t *listing;

    inf_err_t *err = inf_repository_fetch(item, &listing);
    if (err != NULL && atomic_load(&r->cancelled)) {
        return err;
    }

    inf_lock(&r->change);
    if (err == NULL && inf_repository_list_has(r->now, item)
        && inf_repository_is_in(item, INF_REPOSITORY_NEVER_LISTED))
    {
        err = list_without(r->now, item, &list);
    }
    if (err != NULL) {
        inf_listing_unref(listing);
        listing = NULL;
    } else if (list != NULL) {
        list_add(list, item, true);
        put_in_place(r, &list);
    }
    inf_repository_settle(item, listing, err);
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    return err;
}

void
inf_repositories_cancel(inf_repositories_t *r)
{
    if (r->now == NULL) {
        return;
    }

    atomic_store(&r->cancelled, true);
    inf_repository_list_t *list = inf_repositories_take(r);
    for (size_t i = 0; i < list->total; i++) {
        inf_storage_cancel(list->items[i]->storage);
    }
    inf_repository_list_unref(list);
}

/* The first listing of a removed repository is interrupted. */
inf_err_t *
inf_repositories_replace(inf_repositories_t *r, char *const *addresses,
    size_t count, bool *changed)
{
    inf_repository_list_t *list = NULL;

    inf_lock(&r->change);
    inf_err_t *err = list_open(r, r->now, addresses, count, &list);
    *changed = err == NULL && !same_items(r->now, list);
    if (*changed) {
        put_in_place(r, &list);
        for (size_t i = list->count; i < list->total; i++) {
            if (!inf_repository_list_has(r->now, list->items[i])) {
                inf_storage_cancel(list->items[i]->storage);
            }
        }
    }
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    return err;
}

inf_err_t *
inf_repositories_add(inf_repositories_t *r, const inf_registration_t *what,
    inf_repository_t **out)
{
    inf_repository_list_t *list = NULL;
    inf_repository_t *item = NULL;

    inf_err_t *err = inf_repository_open(what->address, r->open, &item);
    if (err == NULL && what->dirs != NULL) {
        err = inf_repository_list_once(item, what->dirs, what->dir_count);
    } else if (err == NULL) {
        inf_err_t *why = inf_repository_poll(item);
        err = why == NULL ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
            "failed to register '%s', repository not found: %s",
            item->shown, inf_err_msg(why));
        inf_err_free(why);
    }
    if (err == NULL) {
        err = inf_repository_set_aliases(item, what->aliases, what->count);
    }
    if (err == NULL) {
        item->registered = true;
        item->aliases_only = what->aliases_only;
        inf_lock(&r->change);
        err = check_new(r->now, item);
        if (err == NULL) {
            err = list_without(r->now, NULL, &list);
        }
        if (err == NULL) {
            list_add(list, item, true);
            put_in_place(r, &list);
        }
        inf_unlock(&r->change);
    }

    inf_repository_list_unref(list);
    if (err == NULL && out != NULL) {
        *out = item;
    } else {
        inf_repository_unref(item);
    }
    return err;
}

inf_err_t *
inf_repositories_remove(inf_repositories_t *r, const char *address)
{
    inf_repository_list_t *list = NULL;

    inf_lock(&r->change);
    const inf_repository_t *item = find(r->now, address);
    inf_err_t *err = item != NULL ? take_out(r, item, &list)
        : inf_err_new(INF_ERR_INVALID_ARG,
            "failed to unregister '%.*s', repository not found",
            (int) inf_object_address_shown(address), address);
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    return err;
}

inf_err_t *
inf_repositories_drop(inf_repositories_t *r, const inf_repository_t *item)
{
    inf_repository_list_t *list = NULL;

    inf_lock(&r->change);
    inf_err_t *err = inf_repository_list_has(r->now, item)
        ? take_out(r, item, &list) : NULL;
    inf_unlock(&r->change);

    inf_repository_list_unref(list);
    return err;
}

inf_err_t *
inf_repositories_find_alias(const inf_repositories_t *r, const char *name,
    inf_repository_t **out)
{
    inf_repository_list_t *list = inf_repositories_take(r);
    inf_repository_t *found = NULL;

    for (size_t i = 0; i < list->count && found == NULL; i++) {
        inf_repository_t *item = list->items[i];
        if (item->registered && has_alias(item, name)) {
            found = inf_repository_ref(item);
        }
    }
    inf_repository_list_unref(list);

    *out = found;
    return found != NULL ? NULL
        : inf_err_new(INF_ERR_NOT_FOUND, "no model '%s' is loaded", name);
}

inf_repository_list_t *
inf_repositories_take(const inf_repositories_t *r)
{
    inf_lock_t *lock = (inf_lock_t *) (uintptr_t) &r->lock;

    inf_lock(lock);
    inf_repository_list_t *list = r->now;
    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
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
    for (size_t i = 0; same && i < list->total; i++) {
        size_t k = 0;
        while (k < count && !inf_repository_is_at(list->items[i],
                addresses[k]))
        {
            k++;
        }
        same = k < count || list->items[i]->registered;
    }

    inf_repository_list_unref(list);
    return same;
}

void
inf_repository_list_unref(inf_repository_list_t *list)
{
    if (list == NULL || !inf_refs_drop(&list->refs)) {
        return;
    }

    for (size_t i = 0; i < list->total; i++) {
        inf_repository_unref(list->items[i]);
    }
    free(list->items);
    free(list->roots);
    free(list);
}

bool
inf_repository_list_has(const inf_repository_list_t *list,
    const inf_repository_t *repository)
{
    for (size_t i = 0; i < list->total; i++) {
        if (list->items[i] == repository) {
            return true;
        }
    }

    return false;
}

uint32_t
inf_repository_list_states(const inf_repository_list_t *list,
    const char *space)
{
    uint32_t states = 0;

    for (size_t i = 0; i < list->total; i++) {
        if (is_for(list, list->items[i], space)) {
            states |= inf_repository_state(list->items[i]);
        }
    }
    return states;
}

inf_err_t *
inf_repository_list_failure(const inf_repository_list_t *list,
    const char *space)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < list->total; i++) {
        const inf_repository_t *item = list->items[i];
        if (is_for(list, item, space)
            && inf_repository_is_in(item, INF_REPOSITORY_NEVER_LISTED))
        {
            err = inf_repository_failure(item);
        }
    }
    return err;
}

/* Whether it may have models of that namespace ("": any). */
static bool
is_for(const inf_repository_list_t *list, const inf_repository_t *item,
    const char *space)
{
    return !list->namespacing || space[0] == '\0'
        || strcmp(item->shown, space) == 0;
}

inf_err_t *
inf_repository_list_scan(const inf_repository_list_t *list,
    const inf_model_id_t *id, inf_scan_t *out)
{
    uint32_t *at = calloc(list->count + 1, sizeof(*at));
    if (at == NULL) {
        return inf_err_nomem();
    }

    size_t count = choose(list, id, false, at);
    inf_err_t *err = scan_some(list, at, count, id->name, out);
    if (err == NULL && !list->namespacing && out->model_count == 0) {
        size_t all = choose(list, id, true, at);
        if (all > count) {
            inf_scan_fini(out);
            err = scan_some(list, at, all, id->name, out);
        }
    }
    free(at);
    if (err == NULL && list->namespacing && id->space[0] == '\0') {
        out->model_count = 0;
    }
    return err;
}

/* Chooses the repositories in which the model may be.  others: also those that
   are not expected to have it, but of those listed once. */
static size_t
choose(const inf_repository_list_t *list, const inf_model_id_t *id,
    bool others, uint32_t *at)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        if (is_expected(list, i, id)
            || (others && !list->items[i]->listed_once))
        {
            at[count++] = (uint32_t) i;
        }
    }

    return count;
}

/* Whether the model may be in that repository, as far as known without asking a
   remote one, or one that is listed once. */
static bool
is_expected(const inf_repository_list_t *list, size_t root,
    const inf_model_id_t *id)
{
    if (list->namespacing) {
        return id->space[0] == '\0'
            || strcmp(list->roots[root].space, id->space) == 0;
    }
    if (inf_scan_is_hidden(list->roots, list->count, root, id->name)) {
        return false;
    }
    if (!inf_repository_is_remote(list->items[root])
        && !list->items[root]->listed_once)
    {
        return true;
    }

    inf_listing_t *listing = inf_repository_listing(list->items[root], NULL);
    const char *dir = inf_scan_dir(&list->roots[root], id->name);
    bool found = listing != NULL && dir != NULL
        && inf_entries_find(&listing->entries, dir) != NULL;

    inf_listing_unref(listing);
    return found;
}

/* Scans the repositories of these indexes; indexes in the result are the
   list's. */
static inf_err_t *
scan_some(const inf_repository_list_t *list, const uint32_t *at, size_t count,
    const char *name, inf_scan_t *out)
{
    inf_scan_root_t *roots = calloc(count + 1, sizeof(*roots));
    if (roots == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        roots[i] = list->roots[at[i]];
    }
    inf_err_t *err = inf_scan_one(roots, count, name, out);
    for (size_t i = 0; err == NULL && i < out->model_count; i++) {
        out->models[i].repository = at[out->models[i].repository];
    }
    for (size_t i = 0; err == NULL && i < out->problem_count; i++) {
        out->problems[i].repository = at[out->problems[i].repository];
    }

    free(roots);
    return err;
}

/* Opens a list; repositories with an address in old are taken from there, and
   so are registered ones at other addresses. */
static inf_err_t *
list_open(const inf_repositories_t *r, const inf_repository_list_t *old,
    char *const *addresses, size_t count, inf_repository_list_t **out)
{
    inf_repository_list_t *list;

    inf_err_t *err = list_room(count + old->total, old->namespacing, &list);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < count; i++) {
        if (find(list, addresses[i]) != NULL) {
            continue;
        }

        inf_repository_t *known = find(old, addresses[i]);
        known = known != NULL && known->registered ? NULL : known;
        inf_repository_t *item = known;
        err = known != NULL ? NULL
            : inf_repository_open(addresses[i], r->open, &item);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "repository \"%.*s\" is left out",
                (int) inf_object_address_shown(addresses[i]), addresses[i]));
            continue;
        }

        list_add(list, item, inf_repository_is_in(item,
            INF_REPOSITORY_WAS_LISTED));
        if (known == NULL) {
            inf_repository_unref(item);
        }
    }

    for (size_t i = 0; i < old->total; i++) {
        if (old->items[i]->registered
            && find(list, old->items[i]->address) == NULL)
        {
            list_add(list, old->items[i], i < old->count);
        }
    }

    *out = list;
    return NULL;
}

/* A copy of old without item, which may be NULL, and with room for one more. */
static inf_err_t *
list_without(const inf_repository_list_t *old, const inf_repository_t *item,
    inf_repository_list_t **out)
{
    inf_err_t *err = list_room(old->total + 1, old->namespacing, out);

    for (size_t i = 0; err == NULL && i < old->total; i++) {
        if (old->items[i] != item) {
            list_add(*out, old->items[i], i < old->count);
        }
    }
    return err;
}

static inf_err_t *
list_room(size_t total, bool namespacing, inf_repository_list_t **out)
{
    inf_repository_list_t *list = calloc(1, sizeof(*list));
    if (list == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&list->refs, 1);
    list->namespacing = namespacing;
    list->roots = calloc(total + 1, sizeof(*list->roots));
    list->items = calloc(total + 1, sizeof(*list->items));
    if (list->roots == NULL || list->items == NULL) {
        inf_repository_list_unref(list);
        return inf_err_nomem();
    }

    *out = list;
    return NULL;
}

/* Adds a repository; listed ones come first. */
static void
list_add(inf_repository_list_t *list, inf_repository_t *item, bool listed)
{
    size_t at = listed ? list->count : list->total;

    memmove(&list->items[at + 1], &list->items[at],
        (list->total - at) * sizeof(*list->items));
    list->items[at] = inf_repository_ref(item);
    list->total++;
    if (listed) {
        list->roots[list->count++] = (inf_scan_root_t) {
            .storage = item->storage,
            .root = item->root,
            .aliases = item->aliases,
            .alias_count = item->alias_count,
            .aliases_only = item->aliases_only,
            .space = list->namespacing ? item->shown : NULL
        };
    }
}

static inf_repository_t *
find(const inf_repository_list_t *list, const char *address)
{
    for (size_t i = 0; i < list->total; i++) {
        if (inf_repository_is_at(list->items[i], address)) {
            return list->items[i];
        }
    }

    return NULL;
}

static bool
has_alias(const inf_repository_t *item, const char *name)
{
    for (size_t i = 0; i < item->alias_count; i++) {
        if (strcmp(item->aliases[i].name, name) == 0) {
            return true;
        }
    }

    return false;
}

/* Whether both lists have the same repositories, in any order. */
static bool
same_items(const inf_repository_list_t *a, const inf_repository_list_t *b)
{
    bool same = a->total == b->total;

    for (size_t i = 0; same && i < a->total; i++) {
        same = inf_repository_list_has(b, a->items[i]);
    }
    return same;
}

/* Fails if the address, or a name of an alias, exists. */
static inf_err_t *
check_new(const inf_repository_list_t *list, const inf_repository_t *item)
{
    if (find(list, item->address) != NULL) {
        return inf_err_new(INF_ERR_ALREADY_EXISTS,
            "model repository '%s' has already been registered",
            item->shown);
    }

    for (size_t i = 0; i < list->count; i++) {
        const inf_repository_t *other = list->items[i];
        for (size_t k = 0; k < other->alias_count * item->alias_count; k++) {
            const char *name = item->aliases[k / other->alias_count].name;
            const char *has = other->aliases[k % other->alias_count].name;
            if (strcmp(name, has) == 0) {
                return inf_repository_mapping_conflict(item, name);
            }
        }
    }

    return NULL;
}

/* Exchanges *list and the current list, with its reference.  The change lock
   suffices to read r->now. */
static void
put_in_place(inf_repositories_t *r, inf_repository_list_t **list)
{
    inf_lock(&r->lock);
    inf_repository_list_t *old = r->now;
    r->now = *list;
    *list = old;
    inf_unlock(&r->lock);
}

/* Removes item; *list: the list with it. */
static inf_err_t *
take_out(inf_repositories_t *r, const inf_repository_t *item,
    inf_repository_list_t **list)
{
    inf_err_t *err = list_without(r->now, item, list);
    if (err == NULL) {
        put_in_place(r, list);
    }
    return err;
}
