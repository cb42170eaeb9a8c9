#include "core/repository/repositories.h"

#include <stdlib.h>
#include <string.h>

#include "core/repository/storage.h"

/* What grows while the roots are listed. */
typedef struct {
    inf_arena_t            *arena;
    inf_repository_name_t  *names;
    size_t                  count;
    size_t                  room;
} names_t;

static bool is_repeat(const inf_repositories_t *r, size_t i);
static inf_err_t *names_of_root(const inf_repositories_t *r, size_t root,
    names_t *n);
static inf_err_t *names_add(names_t *n, size_t root, const char *name);
static int by_name(const void *a, const void *b);
static size_t merge(inf_repository_name_t *names, size_t count);

inf_err_t *
inf_repositories_open(char *const *addresses, size_t count,
    inf_repositories_t *out)
{
    *out = (inf_repositories_t) {
        .roots = calloc(count + 1, sizeof(*out->roots)),
        .storages = calloc(count + 1, sizeof(*out->storages))
    };
    if (out->roots == NULL || out->storages == NULL) {
        inf_repositories_close(out);
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        inf_storage_t *storage;
        char *root;

        inf_err_t *bad = inf_storage_open(addresses[i], &storage, &root);
        if (bad != NULL) {
            inf_err_log(inf_err_add(bad, "repository \"%s\" is left out",
                addresses[i]));
            continue;
        }

        out->storages[out->count] = storage;
        out->roots[out->count].storage = storage;
        out->roots[out->count].root = root;
        out->count++;
    }

    return NULL;
}

void
inf_repositories_close(inf_repositories_t *r)
{
    for (size_t i = 0; i < r->count; i++) {
        inf_storage_close(r->storages[i]);
        free((char *) r->roots[i].root);
    }

    free(r->roots);
    free(r->storages);
    *r = (inf_repositories_t) { .roots = NULL };
}

inf_err_t *
inf_repositories_names(const inf_repositories_t *r, inf_arena_t *arena,
    bool *failed, inf_repository_name_t **names, size_t *count)
{
    names_t n = { .arena = arena };

    for (size_t i = 0; i < r->count; i++) {
        inf_err_t *err = is_repeat(r, i) ? NULL : names_of_root(r, i, &n);
        if (err == NULL) {
            continue;
        }

        err = inf_err_add(err, "model repository '%s' can't be listed",
            r->roots[i].root);
        if (failed == NULL) {
            return err;
        }
        failed[i] = true;
        inf_err_log(err);
    }

    if (n.count > 1) {
        qsort(n.names, n.count, sizeof(*n.names), by_name);
    }
    *names = n.names;
    *count = merge(n.names, n.count);
    return NULL;
}

/* A root named twice is one root. */
static bool
is_repeat(const inf_repositories_t *r, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(r->roots[k].root, r->roots[i].root) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
names_of_root(const inf_repositories_t *r, size_t root, names_t *n)
{
    const inf_scan_root_t *at = &r->roots[root];
    inf_entries_t entries;

    inf_err_t *err = inf_storage_list(at->storage, at->root, &entries);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; err == NULL && i < entries.count; i++) {
        const inf_entry_t *e = &entries.items[i];
        if (e->kind == INF_ENTRY_DIR
            && inf_model_name_problem(e->name, strlen(e->name)) == NULL)
        {
            err = names_add(n, root, e->name);
        }
    }

    inf_entries_fini(&entries);
    return err;
}

static inf_err_t *
names_add(names_t *n, size_t root, const char *name)
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
    if (copy == NULL) {
        return inf_err_nomem();
    }

    n->names[n->count++] = (inf_repository_name_t) { .name = copy,
        .repository = root };
    return NULL;
}

static int
by_name(const void *a, const void *b)
{
    const inf_repository_name_t *x = a;
    const inf_repository_name_t *y = b;
    return strcmp(x->name, y->name);
}

/* Equal names become one that is marked. */
static size_t
merge(inf_repository_name_t *names, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (n > 0 && strcmp(names[n - 1].name, names[i].name) == 0) {
            names[n - 1].duplicate = true;
            continue;
        }
        names[n++] = names[i];
    }

    return n;
}
