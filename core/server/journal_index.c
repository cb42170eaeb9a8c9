#include "core/server/journal_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/search.h"

static size_t search(const inf_journal_index_t *x, const char *key,
    bool *found);
static int by_key(const void *key, const void *entry);
static size_t range(const inf_journal_index_t *x, const char *key,
    size_t *first);
static bool is_of_method(const char *key);
static int by_offset(const void *a, const void *b);

void
inf_journal_index_fini(inf_journal_index_t *x)
{
    for (size_t i = 0; i < x->count; i++) {
        free(x->sorted[i].key);
    }
    free(x->sorted);
    *x = (inf_journal_index_t) { .sorted = NULL };
}

inf_journal_entry_t *
inf_journal_index_find(const inf_journal_index_t *x, const char *key)
{
    bool found;
    size_t at = search(x, key, &found);

    return found ? &x->sorted[at] : NULL;
}

inf_err_t *
inf_journal_index_put(inf_journal_index_t *x, const inf_journal_entry_t *e)
{
    bool found;
    size_t at = search(x, e->key, &found);
    char *key;

    if (found) {
        key = x->sorted[at].key;
    } else {
        inf_journal_entry_t *wider = realloc(x->sorted,
            (x->count + 1) * sizeof(*wider));
        if (wider == NULL) {
            return inf_err_nomem();
        }
        x->sorted = wider;

        key = strdup(e->key);
        if (key == NULL) {
            return inf_err_nomem();
        }
        memmove(&wider[at + 1], &wider[at],
            (x->count - at) * sizeof(*wider));
        x->count++;
    }

    x->sorted[at] = *e;
    x->sorted[at].key = key;
    return NULL;
}

void
inf_journal_index_drop(inf_journal_index_t *x, const char *key)
{
    size_t first;
    size_t n = range(x, key, &first);

    if (n == 0) {
        return;
    }
    for (size_t i = first; i < first + n; i++) {
        free(x->sorted[i].key);
    }
    memmove(&x->sorted[first], &x->sorted[first + n],
        (x->count - first - n) * sizeof(*x->sorted));
    x->count -= n;
}

bool
inf_journal_index_has(const inf_journal_index_t *x, const char *key)
{
    size_t first;

    return range(x, key, &first) > 0;
}

inf_err_t *
inf_journal_index_in_order(const inf_journal_index_t *x,
    inf_journal_entry_t ***out)
{
    inf_journal_entry_t **list = calloc(x->count + 1, sizeof(*list));
    if (list == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < x->count; i++) {
        list[i] = &x->sorted[i];
    }
    qsort(list, x->count, sizeof(*list), by_offset);
    *out = list;
    return NULL;
}

char *
inf_journal_kept_key(uint16_t method, const char *name)
{
    char *key;

    return asprintf(&key, "\n%u%s%s", method, name != NULL ? "\n" : "",
        name != NULL ? name : "") < 0 ? NULL : key;
}

const char *
inf_journal_kept_name(const char *key)
{
    const char *name = key[0] == '\n' ? strchr(key + 1, '\n') : NULL;

    return name != NULL ? name + 1 : "";
}

/* The position of the key, or where to insert it. */
static size_t
search(const inf_journal_index_t *x, const char *key, bool *found)
{
    return inf_search(key, x->sorted, x->count, sizeof(*x->sorted), by_key,
        found);
}

static int
by_key(const void *key, const void *entry)
{
    return strcmp(key, ((const inf_journal_entry_t *) entry)->key);
}

/* The number of entries of a key, from *first on.  After the key of a method
   alone come the keys of its names: a line feed is less than any digit. */
static size_t
range(const inf_journal_index_t *x, const char *key, size_t *first)
{
    size_t len = strlen(key);
    bool found;
    size_t end = *first = search(x, key, &found);

    if (!is_of_method(key)) {
        return found;
    }
    while (end < x->count && strncmp(x->sorted[end].key, key, len) == 0
        && (x->sorted[end].key[len] == '\n' || x->sorted[end].key[len] == 0))
    {
        end++;
    }
    return end - *first;
}

static bool
is_of_method(const char *key)
{
    return key[0] == '\n' && strchr(key + 1, '\n') == NULL;
}

static int
by_offset(const void *a, const void *b)
{
    const inf_journal_entry_t *const *one = a;
    const inf_journal_entry_t *const *other = b;

    return ((*one)->offset > (*other)->offset)
        - ((*one)->offset < (*other)->offset);
}
