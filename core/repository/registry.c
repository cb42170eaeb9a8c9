#include "core/repository/registry.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/refs.h"

#define REGISTRY_RANK 40

struct inf_registry_snapshot_s {
    _Atomic uint32_t      refs;         /* up relaxed, down acq_rel          */
    inf_registry_entry_t *entries;
    uint32_t              entry_count;
    uint32_t              mask;         /* of slots                          */
    uint32_t             *slots;        /* 1 + index of entry; 0: empty      */
};

static void snapshot_unref(inf_registry_snapshot_t *s);
static inf_err_t *name_error(const inf_registry_t *r, inf_slice_t name,
    const inf_registry_entry_t *entry);
static uint32_t slot_of(const inf_registry_snapshot_t *s, inf_slice_t name,
    uint64_t hash);
static void put_entry(inf_registry_snapshot_t *s, uint32_t i);
static inf_err_t *not_ready(const inf_registry_entry_t *entry,
    int64_t version);
static inf_err_t *snapshot_new(inf_registry_entry_t *entries, uint32_t count,
    inf_registry_snapshot_t **out);
static const inf_registry_entry_t *snapshot_find(
    const inf_registry_snapshot_t *s, inf_slice_t name);
static inf_err_t *entry_find(const inf_registry_entry_t *entry,
    int64_t version, inf_model_t **out);

void
inf_registry_init(inf_registry_t *r)
{
    inf_lock_init(&r->lock, REGISTRY_RANK);
    r->namespacing = false;
    atomic_init(&r->incomplete, false);
    r->current = NULL;
    atomic_init(&r->generation, 0);
}

void
inf_registry_fini(inf_registry_t *r)
{
    snapshot_unref(r->current);
    r->current = NULL;
    inf_lock_fini(&r->lock);
}

inf_err_t *
inf_registry_publish(inf_registry_t *r, inf_registry_entry_t *entries,
    uint32_t count)
{
    inf_registry_snapshot_t *s = NULL;
    inf_err_t *err = snapshot_new(entries, count, &s);
    if (err != NULL) {
        inf_registry_entries_free(entries, count);
        return err;
    }

    inf_lock(&r->lock);
    inf_registry_snapshot_t *old = r->current;
    r->current = s;
    atomic_fetch_add_explicit(&r->generation, 1, memory_order_release);
    inf_unlock(&r->lock);

    snapshot_unref(old);
    return NULL;
}

void
inf_registry_reader_init(inf_registry_reader_t *reader,
    inf_registry_t *registry)
{
    *reader = (inf_registry_reader_t) { .registry = registry };
}

void
inf_registry_reader_fini(inf_registry_reader_t *reader)
{
    snapshot_unref(reader->snapshot);
    reader->snapshot = NULL;
}

bool
inf_registry_refresh(inf_registry_reader_t *reader)
{
    inf_registry_t *r = reader->registry;
    if (atomic_load_explicit(&r->generation, memory_order_acquire)
        == reader->generation)
    {
        return false;
    }

    inf_lock(&r->lock);
    inf_registry_snapshot_t *fresh = r->current;
    if (fresh != NULL) {
        atomic_fetch_add_explicit(&fresh->refs, 1, memory_order_relaxed);
    }
    reader->generation = atomic_load_explicit(&r->generation,
        memory_order_relaxed);
    inf_unlock(&r->lock);

    inf_registry_snapshot_t *old = reader->snapshot;
    reader->snapshot = fresh;
    snapshot_unref(old);
    return true;
}

inf_err_t *
inf_registry_find(inf_registry_reader_t *reader, inf_slice_t name,
    int64_t version, inf_model_t **out)
{
    inf_registry_refresh(reader);

    const inf_registry_entry_t *entry = snapshot_find(reader->snapshot, name);
    if (entry == NULL || (reader->registry->namespacing
        && entry->namesakes != 1))
    {
        return name_error(reader->registry, name, entry);
    }

    return entry_find(entry, version, out);
}

bool
inf_registry_lacks(const inf_err_t *err)
{
    inf_err_code_t code = inf_err_code(err);
    return code == INF_ERR_NOT_FOUND || code == INF_ERR_UNAVAILABLE;
}

inf_err_t *
inf_registry_unique(inf_registry_reader_t *reader, inf_slice_t name)
{
    inf_registry_refresh(reader);

    const inf_registry_entry_t *entry = snapshot_find(reader->snapshot, name);
    return reader->registry->namespacing && entry != NULL
        && entry->namesakes > 1 ? name_error(reader->registry, name, entry)
        : NULL;
}

inf_err_t *
inf_registry_models(inf_registry_reader_t *reader, inf_model_t ***models,
    size_t *count)
{
    inf_registry_refresh(reader);

    const inf_registry_snapshot_t *s = reader->snapshot;
    size_t most = 0;
    for (uint32_t i = 0; s != NULL && i < s->entry_count; i++) {
        most += s->entries[i].version_count;
    }

    *count = 0;
    *models = calloc(most + 1, sizeof(inf_model_t *));
    if (*models == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; s != NULL && i < s->entry_count; i++) {
        for (uint32_t k = 0; k < s->entries[i].version_count; k++) {
            inf_model_t *model = s->entries[i].versions[k].model;
            if (model != NULL) {
                inf_model_ref(model);
                (*models)[(*count)++] = model;
            }
        }
    }

    return NULL;
}

inf_err_t *
inf_registry_versions(inf_registry_reader_t *reader, inf_slice_t name,
    inf_arena_t *arena, int64_t **versions, uint32_t *count)
{
    const inf_registry_entry_t *entry = snapshot_find(reader->snapshot, name);
    uint32_t n = entry != NULL ? entry->version_count : 0;

    *count = 0;
    *versions = inf_arena_alloc(arena, (n + 1) * sizeof(**versions));
    if (*versions == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < n; i++) {
        if (entry->versions[i].model != NULL) {
            (*versions)[(*count)++] = entry->versions[i].version;
        }
    }

    return NULL;
}

/* The error for a name; entry NULL: unknown. */
static inf_err_t *
name_error(const inf_registry_t *r, inf_slice_t name,
    const inf_registry_entry_t *entry)
{
    if (entry != NULL && entry->namesakes > 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "There are %u identifiers of"
            " model '%.*s' in global map, model namespace must be provided to"
            " resolve ambiguity.", entry->namesakes, (int) name.len,
            name.data);
    }

    if (atomic_load(&r->incomplete)) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Request for unknown model:"
            " '%.*s' is not at ready state: a model repository is still to be"
            " listed", (int) name.len, name.data);
    }

    return inf_err_new(r->namespacing ? INF_ERR_INVALID_ARG
        : INF_ERR_NOT_FOUND, "Request for unknown model: '%.*s' is not found",
        (int) name.len, name.data);
}

static inf_err_t *
entry_find(const inf_registry_entry_t *entry, int64_t version,
    inf_model_t **out)
{
    for (uint32_t i = entry->version_count; i-- > 0; ) {
        const inf_registry_version_t *v = &entry->versions[i];

        if (version == -1 ? v->model != NULL : v->version == version) {
            if (v->model == NULL) {
                return not_ready(entry, version);
            }

            inf_model_ref(v->model);
            *out = v->model;
            return NULL;
        }
    }

    if (version == -1 && entry->interrupted != NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Request for unknown model:"
            " '%s' is not at ready state: %s%s", entry->name,
            entry->rebuilt ? "it is loaded again, " : "",
            entry->interrupted->msg);
    }

    if (version == -1 && entry->loading) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Request for unknown model:"
            " '%s' is not at ready state: it is loading", entry->name);
    }

    if (version == -1) {
        return inf_err_new(INF_ERR_NOT_FOUND, "Request for unknown model: '%s'"
            " has no available versions", entry->name);
    }

    if (entry->loading && entry->version_count == 0) {
        return not_ready(entry, version);
    }

    return inf_err_new(INF_ERR_NOT_FOUND, "Request for unknown model: '%s'"
        " version %lld is not found", entry->name, (long long) version);
}

static inf_err_t *
not_ready(const inf_registry_entry_t *entry, int64_t version)
{
    bool told = entry->interrupted != NULL && entry->interrupted->quarantined
        && entry->interrupted_version == version;

    return inf_err_new(INF_ERR_UNAVAILABLE, "Request for unknown model: '%s'"
        " version %lld is not at ready state%s%s", entry->name,
        (long long) version, told ? ": " : "",
        told ? entry->interrupted->msg : "");
}

static inf_err_t *
snapshot_new(inf_registry_entry_t *entries, uint32_t count,
    inf_registry_snapshot_t **out)
{
    uint32_t cap = 8;
    while (cap < count * 2) {
        cap *= 2;
    }

    inf_registry_snapshot_t *s = calloc(1, sizeof(*s));
    uint32_t *slots = calloc(cap, sizeof(*slots));
    if (s == NULL || slots == NULL) {
        free(s);
        free(slots);
        return inf_err_nomem();
    }

    atomic_init(&s->refs, 1);
    s->entries = entries;
    s->entry_count = count;
    s->mask = cap - 1;
    s->slots = slots;

    for (uint32_t i = 0; i < count; i++) {
        inf_registry_entry_t *e = &entries[i];
        e->name_len = strlen(e->name);
        e->hash = inf_hash(e->name, e->name_len);
        put_entry(s, i);
    }

    *out = s;
    return NULL;
}

/* Adds an entry to the hash table: a name leads to its first entry not gone, or
   to its first. */
static void
put_entry(inf_registry_snapshot_t *s, uint32_t i)
{
    inf_registry_entry_t *e = &s->entries[i];
    uint32_t at = slot_of(s, inf_slice(e->name, e->name_len), e->hash);

    e->namesakes = !e->gone;
    if (s->slots[at] == 0) {
        s->slots[at] = i + 1;
        return;
    }

    inf_registry_entry_t *first = &s->entries[s->slots[at] - 1];
    uint32_t sum = first->namesakes + e->namesakes;
    if (first->gone && !e->gone) {
        s->slots[at] = i + 1;
        first = e;
    }
    first->namesakes = sum;
}

static const inf_registry_entry_t *
snapshot_find(const inf_registry_snapshot_t *s, inf_slice_t name)
{
    uint32_t slot = s == NULL ? 0
        : s->slots[slot_of(s, name, inf_hash(name.data, name.len))];

    return slot == 0 ? NULL : &s->entries[slot - 1];
}

/* The slot of the name, or a free one. */
static uint32_t
slot_of(const inf_registry_snapshot_t *s, inf_slice_t name, uint64_t hash)
{
    uint32_t at = (uint32_t) hash & s->mask;

    while (s->slots[at] != 0) {
        const inf_registry_entry_t *e = &s->entries[s->slots[at] - 1];
        if (e->hash == hash && e->name_len == name.len
            && memcmp(e->name, name.data, name.len) == 0)
        {
            break;
        }
        at = (at + 1) & s->mask;
    }

    return at;
}

static void
snapshot_unref(inf_registry_snapshot_t *s)
{
    if (s == NULL || !inf_refs_drop(&s->refs)) {
        return;
    }

    inf_registry_entries_free(s->entries, s->entry_count);
    free(s->slots);
    free(s);
}

void
inf_registry_entries_free(inf_registry_entry_t *entries, uint32_t count)
{
    for (uint32_t i = 0; entries != NULL && i < count; i++) {
        for (uint32_t j = 0; j < entries[i].version_count; j++) {
            inf_model_unref(entries[i].versions[j].model);
        }
        free(entries[i].versions);
        inf_reason_unref(entries[i].interrupted);
        free(entries[i].space);
        free(entries[i].name);
    }

    free(entries);
}
