#include "core/model/config_storage.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"

static int entry_compare(const void *a, const void *b);

inf_err_t *
inf_storage_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    *out = (inf_entries_t) { NULL, 0 };

    inf_err_t *err = st->ops->list(st, dir, out);
    if (err != NULL) {
        inf_entries_fini(out);
        return err;
    }

    inf_entries_sort(out);
    return NULL;
}

inf_err_t *
inf_storage_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    return st->ops->stat(st, path, out);
}

inf_err_t *
inf_storage_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    return st->ops->read(st, path, limit, data, len);
}

inf_err_t *
inf_storage_contain(const inf_storage_t *st, const char *dir,
    const char *path)
{
    return st->ops->contain(st, dir, path);
}

inf_err_t *
inf_storage_read_in(const inf_storage_t *st, const char *model_dir,
    const char *directory, const char *file, size_t limit, char **data,
    size_t *len)
{
    char *dir = inf_path_join(model_dir, directory);
    char *path = dir != NULL ? inf_path_join(dir, file) : NULL;

    inf_err_t *err = path == NULL ? inf_err_nomem()
        : inf_storage_contain(st, model_dir, path);
    if (err == NULL) {
        err = inf_storage_read(st, path, limit, data, len);
    }

    free(dir);
    free(path);
    return err;
}

inf_err_t *
inf_storage_localize(inf_storage_t *st, const char *dir, char **local)
{
    return st->ops->localize(st, dir, local);
}

void
inf_storage_release(inf_storage_t *st, char *local)
{
    if (local != NULL) {
        st->ops->release(st, local);
    }
}

void
inf_storage_close(inf_storage_t *st)
{
    if (st != NULL) {
        st->ops->close(st);
    }
}

bool
inf_storage_is_remote(const inf_storage_t *st)
{
    return st->ops->remote;
}

void
inf_storage_cancel(inf_storage_t *st)
{
    if (st->ops->cancel != NULL) {
        st->ops->cancel(st);
    }
}

bool
inf_entries_add(inf_entries_t *e, const inf_entry_t *entry, const char *name)
{
    /* capacity is the next power of two, so no field is needed */
    if ((e->count & (e->count - 1)) == 0) {
        size_t capacity = e->count == 0 ? 1 : 2 * e->count;
        inf_entry_t *items = realloc(e->items, capacity * sizeof(*items));
        if (items == NULL) {
            return false;
        }

        e->items = items;
    }

    char *copy = strdup(name);
    if (copy == NULL) {
        return false;
    }

    e->items[e->count] = *entry;
    e->items[e->count].name = copy;
    e->count++;
    return true;
}

void
inf_entries_sort(inf_entries_t *e)
{
    if (e->count > 1) {
        qsort(e->items, e->count, sizeof(*e->items), entry_compare);
    }
}

const inf_entry_t *
inf_entries_find(const inf_entries_t *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->items[i].name, name) == 0) {
            return &e->items[i];
        }
    }

    return NULL;
}

void
inf_entries_fini(inf_entries_t *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free(e->items[i].name);
    }

    free(e->items);
    *e = (inf_entries_t) { NULL, 0 };
}

static int
entry_compare(const void *a, const void *b)
{
    const inf_entry_t *x = a;
    const inf_entry_t *y = b;
    return strcmp(x->name, y->name);
}
