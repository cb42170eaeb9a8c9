#include "core/repository/repository_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Grows while the listings are read. */
typedef struct {
    inf_arena_t            *arena;
    const inf_repository_t *polled;
    inf_repository_name_t  *names;
    size_t                  count;
    size_t                  room;
} names_t;

static inf_err_t *poll_all(const inf_repository_list_t *list, bool remote,
    bool strict);
static inf_err_t *collect(const inf_repository_list_t *list,
    const inf_repository_t *polled, inf_arena_t *arena, bool *failed,
    inf_repository_name_t **names, size_t *count);
static inf_err_t *names_of_entries(const inf_repository_list_t *list,
    size_t root, const inf_entries_t *entries, names_t *n);
static inf_err_t *names_add(names_t *n, const inf_repository_list_t *list,
    size_t root, const char *name, const char *problem, bool unsure);
static int by_id(const void *a, const void *b);
static size_t merge(inf_repository_name_t *names, size_t count);

inf_err_t *
inf_repositories_names(const inf_repository_list_t *list,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count)
{
    inf_err_t *err = poll_all(list, true, failed == NULL);
    return err != NULL ? err
        : collect(list, NULL, arena, failed, names, count);
}

inf_err_t *
inf_repositories_names_seen(const inf_repository_list_t *list,
    const inf_repository_t *polled, inf_arena_t *arena, bool *failed,
    inf_repository_name_t **names, size_t *count)
{
    inf_err_t *err = poll_all(list, false, failed == NULL);
    return err != NULL ? err
        : collect(list, polled, arena, failed, names, count);
}

/* strict: the first that can't be listed is the error. */
static inf_err_t *
poll_all(const inf_repository_list_t *list, bool remote, bool strict)
{
    for (size_t i = 0; i < list->count; i++) {
        inf_repository_t *item = list->items[i];
        if (!remote && inf_repository_is_remote(item)) {
            continue;
        }

        inf_err_t *err = inf_err_add(inf_repository_poll(item),
            "model repository '%s' can't be listed", item->root);
        if (err != NULL && strict) {
            return err;
        }
        inf_err_log(err);
    }

    return NULL;
}

/* failed may be NULL. */
static inf_err_t *
collect(const inf_repository_list_t *list, const inf_repository_t *polled,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count)
{
    names_t n = { .arena = arena, .polled = polled };
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < list->count; i++) {
        inf_repository_state_t state;
        inf_listing_t *listing = inf_repository_listing(list->items[i],
            &state);

        if (failed != NULL) {
            failed[i] = state != INF_REPOSITORY_LISTED;
        }
        if (listing != NULL) {
            err = names_of_entries(list, i, &listing->entries, &n);
        }
        inf_listing_unref(listing);
    }
    if (n.count > 1) {
        qsort(n.names, n.count, sizeof(*n.names), by_id);
    }
    *names = n.names;
    *count = merge(n.names, n.count);
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
            err = names_add(n, list, root, inf_scan_printable(e->name, text),
                problem, e->errnum != 0 && e->errnum != ENOENT);
        } else {
            const char *name = inf_scan_name(at, e->name, 0);
            for (size_t k = 1; err == NULL && name != NULL; k++) {
                err = names_add(n, list, root, name, NULL, false);
                name = inf_scan_name(at, e->name, k);
            }
        }
        free(problem);
    }

    return err;
}

static inf_err_t *
names_add(names_t *n, const inf_repository_list_t *list, size_t root,
    const char *name, const char *problem, bool unsure)
{
    const char *space = list->roots[root].space;

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

    n->names[n->count++] = (inf_repository_name_t) {
        .id = { .space = space != NULL ? space : "", .name = copy },
        .repository = root, .problem = why, .unsure = unsure,
        .remote = inf_repository_is_remote(list->items[root]),
        .polled = list->items[root] == n->polled
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
            names[n - 1].remote |= names[i].remote;
            names[n - 1].polled |= names[i].polled;
            continue;
        }
        names[n++] = names[i];
    }

    return n;
}
