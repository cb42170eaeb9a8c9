#include "core/tensor/shm_region.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/refs.h"
#include "core/base/search.h"
#include "core/tensor/memory.h"

#define SHM_RANK 82u            /* no call is made under the lock            */

struct inf_shm_regions_s {
    inf_lock_t        lock;     /* rank 82; guards all below                 */
    bool              on;
    bool              restoring;
    uint32_t          count;
    inf_shm_region_t *sorted[INF_SHM_REGIONS_MAX];  /* by name; references   */

    inf_budget_t      pages;    /* bytes of system regions                   */
    inf_budget_t      copies;   /* bytes of copied inputs                    */
};

/* Result of checking a name to register. */
typedef enum {
    SHM_FITS,
    SHM_OFF,
    SHM_TAKEN,
    SHM_FULL
} shm_verdict_t;

static inf_err_t *register_system(inf_shm_regions_t *set, const char *name,
    const char *key, uint64_t offset, uint64_t byte_size,
    const inf_shm_identity_t *known);
static inf_err_t *check_range(const inf_shm_region_t *region, uint64_t offset,
    uint64_t size);
static inf_err_t *not_found(inf_slice_t name, bool restoring);
static inf_err_t *check_new(inf_shm_regions_t *set, const char *name);
static shm_verdict_t judge_locked(const inf_shm_regions_t *set,
    const char *name, uint32_t *at) INF_NEEDS(set->lock);
static inf_err_t *rejection(shm_verdict_t verdict, const char *name);
static inf_err_t *new_region(inf_shm_kind_t kind, const char *name,
    uint64_t byte_size, inf_shm_region_t **out);
static inf_err_t *count_pages(inf_shm_regions_t *set,
    inf_shm_region_t *region);
static inf_err_t *open_cuda(inf_shm_region_t *region);
static inf_err_t *check_cuda(const inf_shm_region_t *region,
    inf_cuda_t *cuda);
static inf_err_t *publish(inf_shm_regions_t *set, inf_shm_region_t *region);
static uint32_t take_out(inf_shm_regions_t *set, inf_shm_kind_t kind,
    const char *name, inf_shm_region_t **out, uint32_t most);
static bool search_locked(const inf_shm_regions_t *set, inf_slice_t name,
    uint32_t *at) INF_NEEDS(set->lock);
static int by_name(const void *key, const void *item);
static inf_err_t *not_listed(inf_shm_kind_t kind, const char *name,
    bool other_kind);

inf_err_t *
inf_shm_regions_new(inf_shm_regions_t **out)
{
    inf_shm_regions_t *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&set->lock, SHM_RANK);
    inf_shm_regions_bound(set, UINT64_MAX, UINT64_MAX);
    *out = set;
    return NULL;
}

void
inf_shm_regions_free(inf_shm_regions_t *set)
{
    if (set == NULL) {
        return;
    }

    inf_shm_regions_switch(set, false);
    inf_lock_fini(&set->lock);
    free(set);
}

void
inf_shm_regions_set_restoring(inf_shm_regions_t *set, bool restoring)
{
    inf_lock(&set->lock);
    set->restoring = restoring;
    inf_unlock(&set->lock);
}

void
inf_shm_regions_switch(inf_shm_regions_t *set, bool on)
{
    inf_lock(&set->lock);
    set->on = on;
    inf_unlock(&set->lock);

    if (!on) {
        inf_shm_unregister(set, INF_SHM_SYSTEM, "");
        inf_shm_unregister(set, INF_SHM_CUDA, "");
    }
}

bool
inf_shm_regions_are_on(inf_shm_regions_t *set)
{
    inf_lock(&set->lock);
    bool on = set->on;
    inf_unlock(&set->lock);
    return on;
}

void
inf_shm_regions_bound(inf_shm_regions_t *set, uint64_t region_bytes,
    uint64_t copy_bytes)
{
    inf_budget_set(&set->pages, region_bytes);
    inf_budget_set(&set->copies, copy_bytes);
}

uint64_t
inf_shm_regions_bytes(const inf_shm_regions_t *set)
{
    return inf_budget_used(&set->pages);
}

inf_budget_t *
inf_shm_regions_copies(inf_shm_regions_t *set)
{
    return &set->copies;
}

inf_err_t *
inf_shm_register_system(inf_shm_regions_t *set, const char *name,
    const char *key, uint64_t offset, uint64_t byte_size)
{
    return register_system(set, name, key, offset, byte_size, NULL);
}

inf_err_t *
inf_shm_restore_system(inf_shm_regions_t *set, const char *name,
    const char *key, uint64_t offset, uint64_t byte_size,
    const inf_shm_identity_t *identity)
{
    return register_system(set, name, key, offset, byte_size, identity);
}

static inf_err_t *
register_system(inf_shm_regions_t *set, const char *name, const char *key,
    uint64_t offset, uint64_t byte_size, const inf_shm_identity_t *known)
{
    inf_shm_region_t *region = NULL;

    inf_err_t *err = check_new(set, name);
    if (err == NULL) {
        err = new_region(INF_SHM_SYSTEM, name, byte_size, &region);
    }
    if (err == NULL) {
        region->offset = offset;
        region->key = strdup(key);
        err = region->key == NULL ? inf_err_nomem() : inf_shm_object_open(name,
            key, offset, byte_size, known, &region->object);
    }
    if (err == NULL) {
        region->base = region->object.base;
        err = count_pages(set, region);
    }
    if (err == NULL) {
        err = publish(set, region);
    }

    inf_shm_region_unref(region);
    return err;
}

inf_err_t *
inf_shm_register_cuda(inf_shm_regions_t *set, const char *name,
    inf_slice_t handle, int64_t device, uint64_t byte_size)
{
    inf_shm_region_t *region = NULL;

    inf_err_t *err = check_new(set, name);
    if (err == NULL && inf_memory_driver(inf_memory_shared()) == NULL) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "failed to register CUDA shared"
            " memory region: '%s', GPUs not supported", name);
    }
    if (err == NULL && (handle.len != INF_CUDA_IPC_SIZE || byte_size == 0)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "failed to register shared"
            " memory region '%s': invalid args", name);
    }
    if (err == NULL) {
        err = new_region(INF_SHM_CUDA, name, byte_size, &region);
    }
    if (err == NULL) {
        region->device = device;
        memcpy(region->handle, handle.data, sizeof(region->handle));
        err = open_cuda(region);
    }
    if (err == NULL) {
        err = publish(set, region);
    }

    inf_shm_region_unref(region);
    return err;
}

void
inf_shm_unregister(inf_shm_regions_t *set, inf_shm_kind_t kind,
    const char *name)
{
    inf_shm_region_t *gone[64];
    uint32_t n;

    do {
        n = take_out(set, kind, name, gone, sizeof(gone) / sizeof(gone[0]));
        for (uint32_t i = 0; i < n; i++) {
            inf_shm_region_unref(gone[i]);
        }
    } while (n > 0);
}

inf_err_t *
inf_shm_region_find(inf_shm_regions_t *set, inf_slice_t name, uint64_t offset,
    uint64_t size, inf_shm_region_t **out)
{
    inf_shm_region_t *region = NULL;
    uint32_t at;
    *out = NULL;

    inf_lock(&set->lock);
    if (search_locked(set, name, &at)) {
        region = set->sorted[at];
        atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    }
    bool restoring = set->restoring;
    inf_unlock(&set->lock);

    if (region == NULL) {
        return not_found(name, restoring);
    }

    inf_err_t *err = check_range(region, offset, size);
    if (err == NULL) {
        err = inf_shm_region_check(region);
    }
    if (err != NULL) {
        inf_shm_region_unref(region);
        return inf_err_because(err, INF_CAUSE_UNNAMED);
    }

    *out = region;
    return NULL;
}

static inf_err_t *
check_range(const inf_shm_region_t *region, uint64_t offset, uint64_t size)
{
    if (offset >= region->byte_size) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Invalid offset for shared"
            " memory region: '%s'", region->name);
    }

    if (size > UINT64_MAX - offset) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Integer overflow detected:"
            " byte_size (%llu) + offset (%llu) exceeds maximum value (%llu) for"
            " region '%s'", (unsigned long long) size,
            (unsigned long long) offset, (unsigned long long) UINT64_MAX,
            region->name);
    }

    return size <= region->byte_size - offset ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "Invalid offset + byte size for"
            " shared memory region: '%s'", region->name);
}

static inf_err_t *
not_found(inf_slice_t name, bool restoring)
{
    int len = (int) (name.len < INF_SHM_NAME_MAX ? name.len
        : INF_SHM_NAME_MAX);

    return restoring ? inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE,
            "shared memory region '%.*s' may still have to be registered again"
            " after the end of the last core", len, name.data),
            INF_CAUSE_STARTING)
        : inf_err_because(inf_err_new(INF_ERR_NOT_FOUND,
            "Unable to find shared memory region: '%.*s'", len, name.data),
            INF_CAUSE_UNNAMED);
}

void
inf_shm_region_unref(inf_shm_region_t *region)
{
    if (region == NULL || !inf_refs_drop(&region->refs)) {
        return;
    }

    if (region->object.base != NULL) {
        uint64_t bytes = region->object.size;
        inf_shm_object_close(&region->object);
        if (region->budget != NULL) {
            inf_budget_give(region->budget, bytes);
        }
    } else if (region->base != NULL) {
        inf_err_log(inf_cuda_ipc_close(inf_memory_driver(inf_memory_shared()),
            region->device, region->base));
    }

    free(region->name);
    free(region->key);
    free(region);
}

inf_err_t *
inf_shm_region_check(const inf_shm_region_t *region)
{
    return region->object.base == NULL
        || !inf_shm_object_is_broken(&region->object) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "shared memory region '%s' is"
            " broken: its object '%s' was made shorter, or could not get the"
            " memory that it says it has; unregister it", region->name,
            region->key);
}

inf_err_t *
inf_shm_regions_list(inf_shm_regions_t *set, inf_shm_kind_t kind,
    const char *name, inf_shm_region_t ***list, size_t *count)
{
    inf_shm_region_t **rows = calloc(INF_SHM_REGIONS_MAX, sizeof(*rows));
    size_t n = 0;
    bool other_kind = false;
    if (rows == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&set->lock);
    for (uint32_t i = 0; i < set->count; i++) {
        inf_shm_region_t *r = set->sorted[i];
        if (name[0] != '\0' && strcmp(r->name, name) != 0) {
            continue;
        }
        if (r->kind != kind) {
            other_kind = true;
            continue;
        }
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
        rows[n++] = r;
    }
    inf_unlock(&set->lock);

    if (name[0] != '\0' && n == 0) {
        free(rows);
        return not_listed(kind, name, other_kind);
    }

    *list = rows;
    *count = n;
    return NULL;
}

void
inf_shm_regions_list_free(inf_shm_region_t **list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        inf_shm_region_unref(list[i]);
    }
    free(list);
}

/* Checks a name before the object is opened; publish checks again. */
static inf_err_t *
check_new(inf_shm_regions_t *set, const char *name)
{
    if (name[0] == '\0' || strlen(name) > INF_SHM_NAME_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a shared memory region's name"
            " has 1 to %u bytes", INF_SHM_NAME_MAX);
    }

    uint32_t at;
    inf_lock(&set->lock);
    shm_verdict_t verdict = judge_locked(set, name, &at);
    inf_unlock(&set->lock);
    return rejection(verdict, name);
}

/* Checks a name; at: where to insert it. */
static shm_verdict_t
judge_locked(const inf_shm_regions_t *set, const char *name, uint32_t *at)
{
    return !set->on ? SHM_OFF
        : search_locked(set, inf_slice_str(name), at) ? SHM_TAKEN
        : set->count == INF_SHM_REGIONS_MAX ? SHM_FULL : SHM_FITS;
}

static inf_err_t *
rejection(shm_verdict_t verdict, const char *name)
{
    switch (verdict) {
    case SHM_FITS:
        break;
    case SHM_OFF:
        return inf_err_new(INF_ERR_UNSUPPORTED, "Client shared memory is"
            " disabled. A location lists 'shared_memory' in its 'inference' to"
            " enable it.");
    case SHM_TAKEN:
        return inf_err_new(INF_ERR_ALREADY_EXISTS, "shared memory region '%s'"
            " already in manager", name);
    case SHM_FULL:
        return inf_err_new(INF_ERR_UNAVAILABLE, "failed to register shared"
            " memory region '%s': there are %u already", name,
            INF_SHM_REGIONS_MAX);
    }

    return NULL;
}

static inf_err_t *
new_region(inf_shm_kind_t kind, const char *name, uint64_t byte_size,
    inf_shm_region_t **out)
{
    inf_shm_region_t *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&region->refs, 1);
    region->kind = kind;
    region->byte_size = byte_size;
    region->name = strdup(name);
    *out = region;
    return region->name != NULL ? NULL : inf_err_nomem();
}

/* Counts the pages before they are accessed: each page of a hole becomes memory
   at its first access. */
static inf_err_t *
count_pages(inf_shm_regions_t *set, inf_shm_region_t *region)
{
    unsigned long long bytes = region->object.size;
    unsigned long long bound = inf_budget_bound(&set->pages);

    switch (inf_budget_take(&set->pages, bytes)) {
    case INF_BUDGET_TAKEN:
        region->budget = &set->pages;
        break;
    case INF_BUDGET_IN_USE:
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "failed to"
            " register shared memory region '%s' of %llu bytes: registered"
            " regions have %llu of at most %llu bytes (inference_shared_memory"
            " regions=)", region->name, bytes, (unsigned long long)
            inf_budget_used(&set->pages), bound), INF_CAUSE_FULL);
    case INF_BUDGET_TOO_MUCH:
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register shared"
            " memory region '%s' of %llu bytes: regions may have %llu bytes in"
            " all (inference_shared_memory regions=)", region->name, bytes,
            bound);
    }

    return NULL;
}

/* Opens GPU memory; the driver's text is logged only. */
static inf_err_t *
open_cuda(inf_shm_region_t *region)
{
    inf_cuda_t *cuda = inf_memory_driver(inf_memory_shared());
    void *base;

    inf_err_t *err = inf_cuda_ipc_open(cuda, region->device, region->handle,
        &base);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "CUDA shared memory region '%s'",
            region->name));
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register shared"
            " memory region: invalid args");
    }

    region->base = base;
    return check_cuda(region, cuda);
}

static inf_err_t *
check_cuda(const inf_shm_region_t *region, inf_cuda_t *cuda)
{
    uint64_t size;

    inf_err_t *err = inf_cuda_range(cuda, region->device, region->base, &size);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "CUDA shared memory region '%s'",
            region->name));
        size = 0;
    }

    return region->byte_size <= size ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "failed to register shared memory region '%s': invalid args",
        region->name);
}

static inf_err_t *
publish(inf_shm_regions_t *set, inf_shm_region_t *region)
{
    uint32_t at;

    inf_lock(&set->lock);
    shm_verdict_t verdict = judge_locked(set, region->name, &at);
    if (verdict == SHM_FITS) {
        memmove(&set->sorted[at + 1], &set->sorted[at],
            (set->count - at) * sizeof(set->sorted[0]));
        set->sorted[at] = region;
        set->count++;
        atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    }
    inf_unlock(&set->lock);
    return rejection(verdict, region->name);
}

/* Removes at most `most` regions and passes their references to the caller,
   which drops them without the lock, since that may call the system or a
   driver. */
static uint32_t
take_out(inf_shm_regions_t *set, inf_shm_kind_t kind, const char *name,
    inf_shm_region_t **out, uint32_t most)
{
    uint32_t n = 0;
    uint32_t kept = 0;

    inf_lock(&set->lock);
    for (uint32_t i = 0; i < set->count; i++) {
        inf_shm_region_t *r = set->sorted[i];
        if (n < most && r->kind == kind
            && (name[0] == '\0' || strcmp(r->name, name) == 0))
        {
            out[n++] = r;
        } else {
            set->sorted[kept++] = r;
        }
    }
    set->count = kept;
    inf_unlock(&set->lock);
    return n;
}

/* at: the index of the region, or where to insert it. */
static bool
search_locked(const inf_shm_regions_t *set, inf_slice_t name, uint32_t *at)
{
    bool found;

    *at = (uint32_t) inf_search(&name, set->sorted, set->count,
        sizeof(*set->sorted), by_name, &found);
    return found;
}

static int
by_name(const void *key, const void *item)
{
    const inf_slice_t *name = key;
    const char *other = (*(inf_shm_region_t *const *) item)->name;
    size_t len = strlen(other);
    int order = memcmp(name->data, other, name->len < len ? name->len : len);

    return order != 0 ? order : (name->len > len) - (name->len < len);
}

static inf_err_t *
not_listed(inf_shm_kind_t kind, const char *name, bool other_kind)
{
    if (!other_kind) {
        return inf_err_new(INF_ERR_NOT_FOUND, "Unable to find %s shared memory"
            " region: '%.*s'", kind == INF_SHM_CUDA ? "cuda" : "system",
            (int) INF_SHM_NAME_MAX, name);
    }

    return inf_err_new(INF_ERR_NOT_FOUND, "The region named '%s' is registered"
        " as %s shared memory, not %s shared memory", name,
        kind == INF_SHM_CUDA ? "system" : "CUDA",
        kind == INF_SHM_CUDA ? "CUDA" : "system");
}
