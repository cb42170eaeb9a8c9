#include "core/abi/cache_plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/abi/cache_entry.h"
#include "core/abi/guard.h"
#include "core/abi/local_cache.h"
#include "core/abi/plugin_library.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cache/packed_response.h"

#define INITIALIZE "TRITONCACHE_CacheInitialize"
#define FINALIZE   "TRITONCACHE_CacheFinalize"
#define LOOKUP     "TRITONCACHE_CacheLookup"
#define INSERT     "TRITONCACHE_CacheInsert"

#define WHO(plugin, entry) ((inf_guard_who_t) { (plugin)->name, entry })

struct inf_cache_plugin_s {
    char                     *name;
    void                     *handle;   /* NULL: built-in cache              */
    inf_cache_entry_points_t  call;
    TRITONCACHE_Cache        *cache;
};

static inf_err_t *plugin_check(const inf_cache_spec_t *spec);
static inf_err_t *plugin_lookup(void *cache, const char *key,
    inf_factory_t *factory, inf_response_t **out, inf_cache_span_t *span);
static inf_err_t *plugin_insert(void *cache, const char *key,
    const inf_response_t *response, inf_cache_span_t *span);
static inf_err_t *call_lookup(const inf_cache_plugin_t *plugin,
    const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator, inf_cache_span_t *span, bool *hit);
static bool plugin_counts(void *cache, inf_cache_counts_t *out);
static inf_err_t *find_cache(const inf_cache_spec_t *spec, char *path,
    size_t cap);
static inf_err_t *check_name(const char *name);
static inf_err_t *find_library(const inf_cache_spec_t *spec, char *path,
    size_t cap);
static inf_err_t *load_library(inf_cache_plugin_t *plugin, const char *path);
static inf_err_t *initialize(inf_cache_plugin_t *plugin, const char *config);
static void plugin_free(inf_cache_plugin_t *plugin);

const inf_cache_ops_t inf_cache_plugin_ops = {
    .lookup = plugin_lookup,
    .insert = plugin_insert,
    .counts = plugin_counts
};

const inf_cache_opener_t inf_cache_plugin_opener = {
    .open       = inf_cache_plugin_open,
    .check      = plugin_check,
    .close      = inf_cache_plugin_close,
    .is_builtin = inf_cache_plugin_is_builtin,
    .ops        = &inf_cache_plugin_ops
};

/* Checks that the cache exists, without opening a library; the built-in cache
   checks its settings. */
static inf_err_t *
plugin_check(const inf_cache_spec_t *spec)
{
    char path[PATH_MAX];
    inf_cache_plugin_t *builtin = NULL;

    inf_err_t *err = find_cache(spec, path, sizeof(path));
    if (err != NULL) {
        return inf_err_add(err, "response cache \"%s\"", spec->name);
    }
    if (path[0] == '\0') {
        err = inf_cache_plugin_open(spec, &builtin);
        inf_cache_plugin_close(builtin);
    }
    return err;
}

inf_err_t *
inf_cache_plugin_open(const inf_cache_spec_t *spec, inf_cache_plugin_t **out)
{
    char path[PATH_MAX];

    inf_cache_plugin_t *plugin = calloc(1, sizeof(*plugin));
    if (plugin == NULL) {
        return inf_err_nomem();
    }
    plugin->name = strdup(spec->name);

    inf_err_t *err = plugin->name != NULL
        ? find_cache(spec, path, sizeof(path)) : inf_err_nomem();
    if (err == NULL && path[0] != '\0') {
        err = load_library(plugin, path);
    } else if (err == NULL) {
        plugin->call = inf_local_cache;
    }
    if (err == NULL) {
        err = initialize(plugin, spec->config);
    }
    if (err != NULL) {
        plugin_free(plugin);
        return inf_err_add(err, "response cache \"%s\"", spec->name);
    }

    inf_log(INF_LOG_NOTICE, "response cache \"%s\": %s", plugin->name,
        plugin->handle != NULL ? path : "the built-in one");
    *out = plugin;
    return NULL;
}

void
inf_cache_plugin_close(inf_cache_plugin_t *plugin)
{
    if (plugin == NULL) {
        return;
    }

    inf_err_t *err = inf_guard_cache_finalize(WHO(plugin, FINALIZE),
        plugin->call.finalize, plugin->cache);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "finalizing response cache \"%s\"",
            plugin->name));
    }
    plugin_free(plugin);
}

bool
inf_cache_plugin_is_builtin(const inf_cache_plugin_t *plugin)
{
    return plugin->handle == NULL;
}

static inf_err_t *
plugin_lookup(void *cache, const char *key, inf_factory_t *factory,
    inf_response_t **out, inf_cache_span_t *span)
{
    const inf_cache_plugin_t *plugin = cache;
    TRITONCACHE_CacheEntry entry;
    TRITONCACHE_Allocator allocator = { .factory = factory };
    bool hit;

    inf_cache_entry_init(&entry);
    inf_err_t *err = call_lookup(plugin, key, &entry, &allocator, span, &hit);
    inf_cache_entry_fini(&entry);

    if (err == NULL && hit && allocator.response == NULL) {
        err = inf_err_new(INF_ERR_INTERNAL, "cache \"%s\" found a key and did"
            " not copy its response", plugin->name);
    }
    if (err == NULL) {
        *out = allocator.response;
        return NULL;
    }

    inf_response_free(allocator.response);
    *out = NULL;
    if (inf_err_code(err) != INF_ERR_NOT_FOUND) {
        return err;
    }
    inf_err_free(err);
    return NULL;
}

static inf_err_t *
call_lookup(const inf_cache_plugin_t *plugin, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator,
    inf_cache_span_t *span, bool *hit)
{
    if (plugin->handle == NULL) {
        return inf_local_cache_lookup(plugin->cache, key, entry, allocator,
            span, hit);
    }

    inf_err_t *err = inf_guard_cache(WHO(plugin, LOOKUP), plugin->call.lookup,
        plugin->cache, key, entry, allocator);
    span->end_ns = inf_clock_ns();
    *hit = true;
    return err;
}

static inf_err_t *
plugin_insert(void *cache, const char *key, const inf_response_t *response,
    inf_cache_span_t *span)
{
    const inf_cache_plugin_t *plugin = cache;
    TRITONCACHE_CacheEntry entry;
    TRITONCACHE_Allocator allocator = { .from = response };
    uint64_t size;

    inf_err_t *err = inf_packed_response_size(response, &size);
    span->end_ns = span->start_ns;
    if (err != NULL) {
        return err;
    }

    inf_cache_entry_init(&entry);
    err = inf_cache_entry_add(&entry, &(inf_cache_buffer_t) { .size = size });
    if (err == NULL && plugin->handle == NULL) {
        err = inf_local_cache_insert(plugin->cache, key, &entry, &allocator,
            span);
    } else if (err == NULL) {
        err = inf_guard_cache(WHO(plugin, INSERT), plugin->call.insert,
            plugin->cache, key, &entry, &allocator);
        span->end_ns = inf_clock_ns();
    }
    inf_cache_entry_fini(&entry);

    return err != NULL || allocator.copied ? err
        : inf_err_new(INF_ERR_INTERNAL, "cache \"%s\" stored a key without"
            " copying its response", plugin->name);
}

static bool
plugin_counts(void *cache, inf_cache_counts_t *out)
{
    const inf_cache_plugin_t *plugin = cache;
    if (plugin->handle != NULL) {
        return false;
    }

    inf_local_cache_counts(plugin->cache, out);
    return true;
}

/* Finds the path of the cache's library; empty: the built-in cache.  The name
   is checked first: it becomes part of the path. */
static inf_err_t *
find_cache(const inf_cache_spec_t *spec, char *path, size_t cap)
{
    inf_err_t *err = check_name(spec->name);
    return err != NULL ? err : find_library(spec, path, cap);
}

static inf_err_t *
check_name(const char *name)
{
    bool valid = name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
    return valid ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "this is no name for a cache");
}

/* Searches the directories; an empty path: the built-in cache. */
static inf_err_t *
find_library(const inf_cache_spec_t *spec, char *path, size_t cap)
{
    for (size_t i = 0; i < spec->dir_count; i++) {
        int n = snprintf(path, cap, "%s/%s/libtritoncache_%s.so",
            spec->dirs[i], spec->name, spec->name);
        if (n < 0 || (size_t) n >= cap) {
            return inf_err_new(INF_ERR_INVALID_ARG, "the path below \"%s\" is"
                " too long", spec->dirs[i]);
        }
        if (access(path, F_OK) == 0) {
            return NULL;
        }
    }

    if (strcmp(spec->name, "local") == 0) {
        path[0] = '\0';
        return NULL;
    }
    return inf_err_new(INF_ERR_INVALID_ARG, "there is no"
        " %s/libtritoncache_%s.so in %s%s", spec->name, spec->name,
        spec->dir_count > 0 ? spec->dirs[0]
            : "any directory: none is configured",
        spec->dir_count > 1 ? ", nor in the others" : "");
}

static inf_err_t *
load_library(inf_cache_plugin_t *plugin, const char *path)
{
    static const struct {
        const char *name;
        size_t      offset;
    } points[] = {
        { INITIALIZE,
            offsetof(inf_cache_entry_points_t, initialize) },
        { FINALIZE,
            offsetof(inf_cache_entry_points_t, finalize) },
        { LOOKUP,
            offsetof(inf_cache_entry_points_t, lookup) },
        { INSERT,
            offsetof(inf_cache_entry_points_t, insert) }
    };

    inf_err_t *err = inf_plugin_library_open(path, &plugin->handle);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        void *symbol;
        err = inf_plugin_library_require(plugin->handle, path,
            points[i].name, &symbol);
        if (err != NULL) {
            return err;
        }
        memcpy((char *) &plugin->call + points[i].offset, &symbol,
            sizeof(symbol));
    }
    return NULL;
}

static inf_err_t *
initialize(inf_cache_plugin_t *plugin, const char *config)
{
    inf_err_t *err = inf_guard_cache_initialize(WHO(plugin, INITIALIZE),
        plugin->call.initialize, &plugin->cache, config);
    if (err == NULL && plugin->cache == NULL) {
        err = inf_err_new(INF_ERR_INTERNAL,
            "its initialize returned success and no cache");
    }
    return err;
}

static void
plugin_free(inf_cache_plugin_t *plugin)
{
    if (plugin->handle != NULL) {
        dlclose(plugin->handle);
    }
    free(plugin->name);
    free(plugin);
}
