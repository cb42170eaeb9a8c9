#include "core/repository/model_stamp.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/path.h"
#include "core/model/versions.h"

/* Limits of depth and entries, because a link may lead anywhere. */
#define STAMP_DEPTH   8
#define STAMP_ENTRIES 100000u

/* The walk through one child of the model's directory.  A directory is read
   once, even if several links lead to it. */
typedef struct {
    const inf_storage_t *storage;
    uint32_t            *entries;   /* left for the whole model              */
    uint64_t            *ids;       /* visited; 0: free                      */
    size_t               count;
    size_t               room;      /* a power of two, or 0                  */
} walk_t;

static inf_err_t *stamp_children(const inf_storage_t *storage,
    const char *dir, const inf_entries_t *entries, inf_model_stamp_t *out);
static uint64_t id_of(const inf_storage_t *storage, const char *dir,
    const inf_entries_t *entries);
static uint64_t mix(uint64_t seed, uint64_t value);
static uint64_t stamp_entry(walk_t *w, const char *dir,
    const inf_entry_t *entry, unsigned depth);
static uint64_t stamp_below(walk_t *w, const char *dir, unsigned depth);
static bool walk_enters(walk_t *w, uint64_t id);
static bool walk_grow(walk_t *w);
static void place(inf_model_stamp_t *out, const inf_entry_t *entry,
    uint64_t hash);
static int by_version(const void *a, const void *b);
static const inf_version_stamp_t *find_version(const inf_model_stamp_t *s,
    int64_t version);

inf_err_t *
inf_model_stamp_take(const inf_storage_t *storage, const char *dir,
    inf_model_stamp_t *out)
{
    inf_entries_t entries;
    *out = (inf_model_stamp_t) { .config = 0 };

    inf_err_t *err = inf_storage_list(storage, dir, &entries);
    if (err != NULL) {
        return err;
    }

    out->versions = calloc(entries.count + 1, sizeof(*out->versions));
    if (out->versions == NULL) {
        inf_entries_fini(&entries);
        return inf_err_nomem();
    }

    err = stamp_children(storage, dir, &entries, out);
    inf_entries_fini(&entries);
    if (err != NULL) {
        inf_model_stamp_fini(out);
        return err;
    }

    if (out->version_count > 1) {
        qsort(out->versions, out->version_count, sizeof(*out->versions),
            by_version);
    }
    return NULL;
}

void
inf_model_stamp_fini(inf_model_stamp_t *s)
{
    free(s->versions);
    *s = (inf_model_stamp_t) { .config = 0 };
}

uint64_t
inf_model_stamp_digest(const inf_model_stamp_t *s)
{
    uint64_t hash = mix(mix(s->config, s->configs), s->rest);

    for (size_t i = 0; i < s->version_count; i++) {
        hash = mix(mix(hash, (uint64_t) s->versions[i].version),
            s->versions[i].hash);
    }
    return hash != 0 ? hash : 1;
}

bool
inf_model_stamp_equal(const inf_model_stamp_t *a, const inf_model_stamp_t *b)
{
    return a->config == b->config && a->configs == b->configs
        && a->rest == b->rest
        && a->version_count == b->version_count
        && (a->version_count == 0 || memcmp(a->versions, b->versions,
            a->version_count * sizeof(*a->versions)) == 0);
}

bool
inf_model_stamp_same_rest(const inf_model_stamp_t *a, bool a_named,
    const inf_model_stamp_t *b, bool b_named)
{
    return a->rest == b->rest
        && (!a_named || !b_named || a->config == b->config)
        && (a_named || b_named || a->configs == b->configs);
}

bool
inf_model_stamp_same_version(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b, int64_t version)
{
    const inf_version_stamp_t *x = find_version(a, version);
    const inf_version_stamp_t *y = find_version(b, version);
    return x != NULL && y != NULL && x->hash == y->hash;
}

/* Stamps each child separately: a shared link target changes both. */
static inf_err_t *
stamp_children(const inf_storage_t *storage, const char *dir,
    const inf_entries_t *entries, inf_model_stamp_t *out)
{
    uint64_t own = id_of(storage, dir, entries);
    uint32_t left = STAMP_ENTRIES;
    walk_t w = { .storage = storage, .entries = &left };
    bool memory = true;

    for (size_t i = 0; memory && i < entries->count; i++) {
        const inf_entry_t *e = &entries->items[i];

        if (e->kind == INF_ENTRY_DIR && w.count > 0) {
            memset(w.ids, 0, w.room * sizeof(*w.ids));
            w.count = 0;
        }
        memory = e->kind != INF_ENTRY_DIR || own == 0
            || walk_enters(&w, own);
        place(out, e, stamp_entry(&w, dir, e, 0));
    }

    free(w.ids);
    return memory ? NULL : inf_err_nomem();
}

/* The identity of dir; needed only if links may lead back to it. */
static uint64_t
id_of(const inf_storage_t *storage, const char *dir,
    const inf_entries_t *entries)
{
    inf_entry_t self = { .id = 0 };

    for (size_t i = 0; i < entries->count; i++) {
        if (entries->items[i].kind == INF_ENTRY_DIR
            && entries->items[i].id != 0)
        {
            inf_err_free(inf_storage_stat(storage, dir, &self));
            break;
        }
    }
    return self.id;
}

static uint64_t
mix(uint64_t seed, uint64_t value)
{
    const uint64_t pair[2] = { seed, value };
    return inf_hash(pair, sizeof(pair));
}

static uint64_t
stamp_entry(walk_t *w, const char *dir, const inf_entry_t *entry,
    unsigned depth)
{
    uint64_t h = inf_hash(entry->name, strlen(entry->name));

    h = mix(h, (uint64_t) entry->kind);
    h = mix(h, (uint64_t) entry->changed_ns);
    h = mix(h, entry->size);
    if (entry->kind != INF_ENTRY_DIR || depth == STAMP_DEPTH
        || !walk_enters(w, entry->id))
    {
        return h;
    }

    char *path = inf_path_join(dir, entry->name);
    if (path == NULL) {
        return h;
    }

    h = mix(h, stamp_below(w, path, depth + 1));
    free(path);
    return h;
}

/* Stamps dir.  A directory that cannot be listed has a stamp, too, which
   changes when it can. */
static uint64_t
stamp_below(walk_t *w, const char *dir, unsigned depth)
{
    inf_entries_t entries;
    uint64_t h = 1;

    inf_err_t *err = inf_storage_list(w->storage, dir, &entries);
    if (err != NULL) {
        inf_err_free(err);
        return 0;
    }

    for (size_t i = 0; i < entries.count && *w->entries > 0; i++) {
        (*w->entries)--;
        h = mix(h, stamp_entry(w, dir, &entries.items[i], depth));
    }

    inf_entries_fini(&entries);
    return h;
}

/* Records a directory; false: visited before, or out of memory. */
static bool
walk_enters(walk_t *w, uint64_t id)
{
    if (id == 0) {
        return true;
    }
    if (w->count * 2 >= w->room && !walk_grow(w)) {
        return false;
    }

    size_t at = id & (w->room - 1);
    while (w->ids[at] != 0 && w->ids[at] != id) {
        at = (at + 1) & (w->room - 1);
    }
    if (w->ids[at] == id) {
        return false;
    }

    w->ids[at] = id;
    w->count++;
    return true;
}

static bool
walk_grow(walk_t *w)
{
    walk_t wider = *w;

    wider.room = w->room == 0 ? 16 : w->room * 2;
    wider.count = 0;
    wider.ids = calloc(wider.room, sizeof(*wider.ids));
    if (wider.ids == NULL) {
        return false;
    }

    for (size_t i = 0; i < w->room; i++) {
        if (w->ids[i] != 0) {
            walk_enters(&wider, w->ids[i]);
        }
    }
    free(w->ids);
    *w = wider;
    return true;
}

static void
place(inf_model_stamp_t *out, const inf_entry_t *entry, uint64_t hash)
{
    int64_t version;

    if (entry->kind == INF_ENTRY_DIR && inf_version_parse(
            inf_slice_str(entry->name), &version) == INF_VERSION_OK)
    {
        out->versions[out->version_count++] = (inf_version_stamp_t) {
            version, hash
        };
    } else if (strcmp(entry->name, "config.pbtxt") == 0) {
        out->config = hash;
    } else if (strcmp(entry->name, "configs") == 0) {
        out->configs = hash;
    } else {
        out->rest = mix(out->rest, hash);
    }
}

static int
by_version(const void *a, const void *b)
{
    const inf_version_stamp_t *x = a;
    const inf_version_stamp_t *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

static const inf_version_stamp_t *
find_version(const inf_model_stamp_t *s, int64_t version)
{
    for (size_t i = 0; i < s->version_count; i++) {
        if (s->versions[i].version == version) {
            return &s->versions[i];
        }
    }

    return NULL;
}
