#include "core/repository/inventory.h"

#include <stdlib.h>
#include <string.h>

static inf_err_t *copy_names(inf_inventory_t *l, char *const *names,
    size_t count, char *const **out);
static size_t lower_bound(const inf_inventory_t *l, const inf_model_id_t *id);
static bool is_named(char *const *names, size_t count, const char *name);

inf_err_t *
inf_inventory_new(const inf_repositories_t *repositories,
    const inf_follow_t *want, inf_inventory_t **out)
{
    inf_inventory_t *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&l->refs, 1);
    inf_arena_init(&l->arena);
    l->list = inf_repositories_take(repositories);
    l->want = *want;
    l->failed = calloc(l->list->count + 1, sizeof(*l->failed));
    inf_err_t *err = l->failed != NULL
        ? copy_names(l, want->names, want->count, &l->want.names)
        : inf_err_nomem();
    if (err == NULL) {
        err = copy_names(l, want->before, want->before_count,
            &l->want.before);
    }
    if (err == NULL) {
        err = want->near ? inf_repositories_names_seen(l->list, NULL,
                &l->arena, l->failed, &l->names, &l->count)
            : inf_repositories_names(l->list, &l->arena, l->failed, &l->names,
                &l->count);
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
    size_t at = lower_bound(l, id);

    return at < l->count && inf_model_id_equal(&l->names[at].id, id)
        && l->names[at].problem == NULL ? &l->names[at] : NULL;
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
inf_inventory_wants(const inf_inventory_t *l, const char *name)
{
    return is_named(l->want.names, l->want.count, name);
}

bool
inf_inventory_wanted_before(const inf_inventory_t *l, const char *name)
{
    return is_named(l->want.before, l->want.before_count, name);
}

static inf_err_t *
copy_names(inf_inventory_t *l, char *const *names, size_t count,
    char *const **out)
{
    char **copy = inf_arena_alloc(&l->arena, (count + 1) * sizeof(*copy));

    *out = copy;
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = inf_arena_strdup(&l->arena, names[i], strlen(names[i]));
        if (copy[i] == NULL) {
            return inf_err_nomem();
        }
    }
    return copy != NULL ? NULL : inf_err_nomem();
}

static size_t
lower_bound(const inf_inventory_t *l, const inf_model_id_t *id)
{
    size_t low = 0;
    size_t high = l->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (inf_model_id_compare(&l->names[mid].id, id) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

static bool
is_named(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0
            || (count == 1 && strcmp(names[i], "*") == 0))
        {
            return true;
        }
    }

    return false;
}
