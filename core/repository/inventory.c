#include "core/repository/inventory.h"

#include <stdlib.h>
#include <string.h>

static inf_err_t *copy_names(inf_inventory_t *l, const inf_desired_t *d,
    char *const **out);
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
    inf_err_t *err = l->failed != NULL
        ? copy_names(l, &q->desired, &l->q.desired.names) : inf_err_nomem();
    if (err == NULL) {
        err = copy_names(l, &q->before, &l->q.before.names);
    }
    if (err == NULL) {
        err = inf_repositories_names_seen(l->list, q->polled, &l->arena,
            l->failed, &l->names, &l->count);
    }
    if (err != NULL) {
        inf_inventory_unref(l);
        return err;
    }

    *out = l;
    return NULL;
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
    if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1,
            memory_order_acq_rel) != 1)
    {
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

static inf_err_t *
copy_names(inf_inventory_t *l, const inf_desired_t *d, char *const **out)
{
    char **copy = inf_arena_alloc(&l->arena, (d->count + 1) * sizeof(*copy));

    *out = copy;
    for (size_t i = 0; copy != NULL && i < d->count; i++) {
        copy[i] = inf_arena_strdup(&l->arena, d->names[i],
            strlen(d->names[i]));
        if (copy[i] == NULL) {
            return inf_err_nomem();
        }
    }
    return copy != NULL ? NULL : inf_err_nomem();
}

static int
by_id(const void *key, const void *name)
{
    return inf_model_id_compare(key,
        &((const inf_repository_name_t *) name)->id);
}
