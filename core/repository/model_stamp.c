#include "core/repository/model_stamp.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/model/versions.h"

/* Deeper than this nothing is looked at: a link may lead back up. */
#define STAMP_DEPTH 8

static uint64_t mix(uint64_t seed, uint64_t value);
static uint64_t stamp_entry(const inf_storage_t *storage, const char *dir,
    const inf_entry_t *entry, unsigned depth);
static uint64_t stamp_below(const inf_storage_t *storage, const char *dir,
    unsigned depth);
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

    for (size_t i = 0; i < entries.count; i++) {
        const inf_entry_t *e = &entries.items[i];
        place(out, e, stamp_entry(storage, dir, e, 0));
    }
    if (out->version_count > 1) {
        qsort(out->versions, out->version_count, sizeof(*out->versions),
            by_version);
    }

    inf_entries_fini(&entries);
    return NULL;
}

void
inf_model_stamp_fini(inf_model_stamp_t *s)
{
    free(s->versions);
    *s = (inf_model_stamp_t) { .config = 0 };
}

bool
inf_model_stamp_equal(const inf_model_stamp_t *a, const inf_model_stamp_t *b)
{
    return a->config == b->config && a->rest == b->rest
        && a->version_count == b->version_count
        && (a->version_count == 0 || memcmp(a->versions, b->versions,
            a->version_count * sizeof(*a->versions)) == 0);
}

bool
inf_model_stamp_same_version(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b, int64_t version)
{
    const inf_version_stamp_t *x = find_version(a, version);
    const inf_version_stamp_t *y = find_version(b, version);
    return x != NULL && y != NULL && x->hash == y->hash;
}

static uint64_t
mix(uint64_t seed, uint64_t value)
{
    const uint64_t pair[2] = { seed, value };
    return inf_hash(pair, sizeof(pair));
}

static uint64_t
stamp_entry(const inf_storage_t *storage, const char *dir,
    const inf_entry_t *entry, unsigned depth)
{
    uint64_t h = inf_hash(entry->name, strlen(entry->name));

    h = mix(h, (uint64_t) entry->kind);
    h = mix(h, (uint64_t) entry->changed_ns);
    h = mix(h, entry->size);
    if (entry->kind != INF_ENTRY_DIR || depth == STAMP_DEPTH) {
        return h;
    }

    char *path = inf_path_join(dir, entry->name);
    if (path == NULL) {
        return h;
    }

    h = mix(h, stamp_below(storage, path, depth + 1));
    free(path);
    return h;
}

/* What can't be listed has a stamp as well: being listed changes it. */
static uint64_t
stamp_below(const inf_storage_t *storage, const char *dir, unsigned depth)
{
    inf_entries_t entries;
    uint64_t h = 1;

    inf_err_t *err = inf_storage_list(storage, dir, &entries);
    if (err != NULL) {
        inf_err_free(err);
        return 0;
    }

    for (size_t i = 0; i < entries.count; i++) {
        h = mix(h, stamp_entry(storage, dir, &entries.items[i], depth));
    }

    inf_entries_fini(&entries);
    return h;
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
    } else if (strcmp(entry->name, "config.pbtxt") == 0
        || strcmp(entry->name, "configs") == 0)
    {
        out->config = mix(out->config, hash);
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
