#include "core/repository/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/refs.h"

static inf_err_t *poll_all(const inf_repository_list_t *list,
    inf_occasion_t occasion);
static inf_err_t *collect(inf_inventory_t *l);
static inf_err_t *add_entries(inf_inventory_t *l, size_t root,
    const inf_entries_t *entries, size_t *room);
static inf_err_t *add_name(inf_inventory_t *l, size_t root, const char *name,
    const char *problem, bool unsure, size_t *room);
static int by_id_then_place(const void *a, const void *b);
static size_t merge(inf_repository_name_t *names, size_t count);
static int by_id(const void *key, const void *name);

inf_err_t *
inf_inventory_new(const inf_repositories_t *repositories,
    const inf_inventory_query_t *q, inf_inventory_t **out)
{
    inf_inventory_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&l->refs, 1);
    inf_arena_init(&l->arena);
    l->list = inf_repositories_take(repositories);
    l->q = *q;
    l->failed = calloc(l->list->count + 1, sizeof(*l->failed));
    l->q.desired.names = inf_arena_strdup_all(&l->arena, q->desired.names,
        q->desired.count);
    l->q.before.names = inf_arena_strdup_all(&l->arena, q->before.names,
        q->before.count);

    inf_err_t *err = l->failed != NULL && l->q.desired.names != NULL
        && l->q.before.names != NULL ? NULL : inf_err_nomem();
    if (err == NULL) {
        err = poll_all(l->list, q->occasion);
    }
    if (err == NULL) {
        err = collect(l);
    }
    if (err != NULL) {
        inf_inventory_unref(l);
        return err;
    }

    *out = l;
    return NULL;
}

/* Lists local repositories, and for the index remote ones, too, but none that
   is listed once.  For index and status the first failure is returned, except
   that of a registered one, which may be gone before its models are
   unloaded. */
static inf_err_t *
poll_all(const inf_repository_list_t *list, inf_occasion_t occasion)
{
    bool asked = occasion == INF_INVENTORY_INDEX
        || occasion == INF_INVENTORY_STATUS;

    for (size_t i = 0; i < list->count; i++) {
        inf_repository_t *item = list->items[i];
        if (item->listed_once || (occasion != INF_INVENTORY_INDEX
                && inf_repository_is_remote(item)))
        {
            continue;
        }

        inf_err_t *err = inf_err_add(inf_repository_poll(item),
            "model repository '%s' can't be listed", item->root);
        if (err != NULL && asked && !item->registered) {
            return err;
        }
        if (asked) {
            inf_err_free(err);
        } else {
            inf_err_log(err);
        }
    }

    return NULL;
}

static inf_err_t *
collect(inf_inventory_t *l)
{
    inf_err_t *err = NULL;
    size_t room = 0;

    for (size_t i = 0; err == NULL && i < l->list->count; i++) {
        inf_repository_state_t state;
        inf_listing_t *listing = inf_repository_listing(l->list->items[i],
            &state);

        l->failed[i] = state != INF_REPOSITORY_LISTED;
        if (listing != NULL) {
            err = add_entries(l, i, &listing->entries, &room);
        }
        inf_listing_unref(listing);
    }
    if (l->count > 1) {
        qsort(l->names, l->count, sizeof(*l->names), by_id_then_place);
    }
    l->count = merge(l->names, l->count);
    return err;
}

static inf_err_t *
add_entries(inf_inventory_t *l, size_t root, const inf_entries_t *entries,
    size_t *room)
{
    const inf_scan_root_t *at = &l->list->roots[root];
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < entries->count; i++) {
        const inf_entry_t *e = &entries->items[i];
        char *problem = NULL;

        if (e->kind == INF_ENTRY_FILE || e->kind == INF_ENTRY_OTHER) {
            continue;
        }
        err = inf_scan_entry_problem(at->root, e, &problem);
        if (err == NULL && problem != NULL) {
            char text[INF_SCAN_PRINTABLE];
            err = add_name(l, root, inf_scan_printable(e->name, text),
                problem, e->errnum != 0 && e->errnum != ENOENT, room);
        } else {
            const char *name = inf_scan_name(at, e->name, 0);
            for (size_t k = 1; err == NULL && name != NULL; k++) {
                if (!inf_scan_is_hidden(l->list->roots, l->list->count, root,
                        name))
                {
                    err = add_name(l, root, name, NULL, false, room);
                }
                name = inf_scan_name(at, e->name, k);
            }
        }
        free(problem);
    }

    return err;
}

static inf_err_t *
add_name(inf_inventory_t *l, size_t root, const char *name,
    const char *problem, bool unsure, size_t *room)
{
    const inf_repository_t *item = l->list->items[root];
    const char *space = l->list->roots[root].space;

    if (l->count == *room) {
        *room = *room == 0 ? 64 : *room * 2;
        inf_repository_name_t *wider = inf_arena_alloc(&l->arena,
            *room * sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        if (l->count > 0) {
            memcpy(wider, l->names, l->count * sizeof(*wider));
        }
        l->names = wider;
    }

    const char *copy = inf_arena_strdup(&l->arena, name, strlen(name));
    const char *why = problem == NULL ? NULL
        : inf_arena_strdup(&l->arena, problem, strlen(problem));
    if (copy == NULL || (problem != NULL && why == NULL)) {
        return inf_err_nomem();
    }

    l->names[l->count++] = (inf_repository_name_t) {
        .id = { .space = space != NULL ? space : "", .name = copy },
        .repository = root, .registered = item->registered,
        .problem = why, .unsure = unsure,
        .remote = inf_repository_is_remote(item),
        .polled = item == l->q.polled
    };
    return NULL;
}

/* Models come before what is none, and configured repositories first. */
static int
by_id_then_place(const void *a, const void *b)
{
    const inf_repository_name_t *x = a;
    const inf_repository_name_t *y = b;
    int order = inf_model_id_compare(&x->id, &y->id);

    if (order == 0) {
        order = (x->problem != NULL) - (y->problem != NULL);
    }
    if (order == 0) {
        order = x->registered - y->registered;
    }
    return order != 0 ? order
        : (x->repository > y->repository) - (x->repository < y->repository);
}

/* Merges equal ids into one, marked as duplicate; entries that are no models
   are ignored for that. */
static size_t
merge(inf_repository_name_t *names, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (n > 0 && inf_model_id_equal(&names[n - 1].id, &names[i].id)) {
            if (names[i].problem == NULL) {
                names[n - 1].duplicate = true;
                names[n - 1].other = names[i].repository;
            }
            names[n - 1].remote |= names[i].remote;
            names[n - 1].polled |= names[i].polled;
            continue;
        }
        names[n++] = names[i];
    }

    return n;
}

inf_inventory_t *
inf_inventory_ref(inf_inventory_t *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void
inf_inventory_unref(inf_inventory_t *l)
{
    if (l == NULL || !inf_refs_drop(&l->refs)) {
        return;
    }

    inf_arena_fini(&l->arena);
    inf_repository_list_unref(l->list);
    free(l->failed);
    free(l);
}

const inf_repository_name_t *
inf_inventory_find(const inf_inventory_t *l, const inf_model_id_t *id)
{
    return l->count == 0 ? NULL
        : bsearch(id, l->names, l->count, sizeof(*l->names), by_id);
}

bool
inf_inventory_has(const inf_inventory_t *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (strcmp(l->names[i].id.name, name) == 0) {
            return true;
        }
    }

    return false;
}

bool
inf_desired_has(const inf_desired_t *d, const char *name)
{
    return d->all || inf_desired_names(d, name);
}

bool
inf_desired_names(const inf_desired_t *d, const char *name)
{
    bool named = d->count == 1 && strcmp(d->names[0], "*") == 0;

    for (size_t i = 0; !named && i < d->count; i++) {
        named = strcmp(d->names[i], name) == 0;
    }
    return named;
}

bool
inf_desired_is_all(const inf_desired_t *d)
{
    return d->all || (d->count == 1 && strcmp(d->names[0], "*") == 0);
}

static int
by_id(const void *key, const void *name)
{
    return inf_model_id_compare(key,
        &((const inf_repository_name_t *) name)->id);
}
