#include "core/repository/repository_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What grows while the roots are listed. */
typedef struct {
    inf_arena_t            *arena;
    const inf_repository_t *asked;
    inf_repository_name_t  *names;
    size_t                  count;
    size_t                  room;
} names_t;

static inf_err_t *collect(const inf_repository_list_t *list, bool all,
    const inf_repository_t *asked, inf_arena_t *arena, bool *failed,
    inf_repository_name_t **names, size_t *count);
static inf_err_t *names_of_root(const inf_repository_list_t *list,
    size_t root, names_t *n);
static inf_err_t *names_of_seen(const inf_repository_list_t *list,
    size_t root, names_t *n);
static inf_err_t *names_of_entries(const inf_repository_list_t *list,
    size_t root, const inf_entries_t *entries, names_t *n);
static inf_err_t *names_add(names_t *n, const inf_scan_root_t *at,
    size_t root, const char *name, const char *problem, bool unsure);
static int by_id(const void *a, const void *b);
static size_t merge(inf_repository_name_t *names, size_t count);

inf_err_t *
inf_repositories_names(const inf_repository_list_t *list,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count)
{
    return collect(list, true, NULL, arena, failed, names, count);
}

inf_err_t *
inf_repositories_names_seen(const inf_repository_list_t *list,
    const inf_repository_t *asked, inf_arena_t *arena, bool *failed,
    inf_repository_name_t **names, size_t *count)
{
    return collect(list, false, asked, arena, failed, names, count);
}

/* all: all are asked; else but for asked those that lie here. */
static inf_err_t *
collect(const inf_repository_list_t *list, bool all,
    const inf_repository_t *asked, inf_arena_t *arena, bool *failed,
    inf_repository_name_t **names, size_t *count)
{
    names_t n = { .arena = arena, .asked = asked };

    for (size_t i = 0; i < list->count; i++) {
        const inf_repository_t *item = list->items[i];
        bool ask = all || item == asked
            || !inf_storage_is_remote(item->storage);
        inf_err_t *err = ask ? names_of_root(list, i, &n)
            : names_of_seen(list, i, &n);
        if (!ask && err == NULL && failed != NULL) {
            failed[i] = atomic_load(&item->unseen);
        }
        if (err == NULL) {
            continue;
        }

        err = inf_err_add(err, "model repository '%s' can't be listed",
            list->roots[i].root);
        if (failed == NULL) {
            return err;
        }
        failed[i] = true;
        inf_err_log(err);
    }

    if (n.count > 1) {
        qsort(n.names, n.count, sizeof(*n.names), by_id);
    }
    *names = n.names;
    *count = merge(n.names, n.count);
    return NULL;
}

static inf_err_t *
names_of_root(const inf_repository_list_t *list, size_t root, names_t *n)
{
    const inf_scan_root_t *at = &list->roots[root];
    inf_entries_t entries;

    inf_err_t *err = inf_storage_list(at->storage, at->root, &entries);
    atomic_store(&list->items[root]->unseen, err != NULL);
    if (err != NULL) {
        return err;
    }

    err = names_of_entries(list, root, &entries, n);
    if (err != NULL) {
        inf_entries_fini(&entries);
        return err;
    }
    return inf_repository_keep_seen(list->items[root], &entries);
}

static inf_err_t *
names_of_seen(const inf_repository_list_t *list, size_t root, names_t *n)
{
    inf_seen_t *seen = inf_repository_take_seen(list->items[root]);
    inf_err_t *err = seen == NULL ? NULL
        : names_of_entries(list, root, &seen->entries, n);

    inf_seen_unref(seen);
    return err;
}

static inf_err_t *
names_of_entries(const inf_repository_list_t *list, size_t root,
    const inf_entries_t *entries, names_t *n)
{
    const inf_scan_root_t *at = &list->roots[root];
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
            err = names_add(n, at, root, inf_scan_printable(e->name, text),
                problem, e->errnum != 0 && e->errnum != ENOENT);
        } else if (err == NULL && !inf_scan_is_hidden(at, e->name)) {
            err = names_add(n, at, root, inf_scan_name(at, e->name), NULL,
                false);
        }
        free(problem);
    }

    return err;
}

static inf_err_t *
names_add(names_t *n, const inf_scan_root_t *at, size_t root,
    const char *name, const char *problem, bool unsure)
{
    if (n->count == n->room) {
        size_t room = n->room == 0 ? 64 : n->room * 2;
        inf_repository_name_t *wider = inf_arena_alloc(n->arena,
            room * sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        if (n->count > 0) {
            memcpy(wider, n->names, n->count * sizeof(*wider));
        }
        n->names = wider;
        n->room = room;
    }

    const char *copy = inf_arena_strdup(n->arena, name, strlen(name));
    const char *why = problem == NULL ? NULL
        : inf_arena_strdup(n->arena, problem, strlen(problem));
    if (copy == NULL || (problem != NULL && why == NULL)) {
        return inf_err_nomem();
    }

    const char *space = at->space != NULL ? at->space : "";
    n->names[n->count++] = (inf_repository_name_t) {
        .id = { .space = space, .name = copy },
        .repository = root, .problem = why, .unsure = unsure,
        .far = inf_storage_is_remote(at->storage),
        .asked = n->asked != NULL && at->storage == n->asked->storage
    };
    return NULL;
}

static int
by_id(const void *a, const void *b)
{
    const inf_repository_name_t *x = a;
    const inf_repository_name_t *y = b;
    int order = inf_model_id_compare(&x->id, &y->id);
    return order != 0 ? order : (x->problem != NULL) - (y->problem != NULL);
}

/* Equal ids become one that is marked; what is no model counts for none. */
static size_t
merge(inf_repository_name_t *names, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (n > 0 && inf_model_id_equal(&names[n - 1].id, &names[i].id)) {
            names[n - 1].duplicate |= names[i].problem == NULL;
            names[n - 1].far |= names[i].far;
            names[n - 1].asked |= names[i].asked;
            continue;
        }
        names[n++] = names[i];
    }

    return n;
}
