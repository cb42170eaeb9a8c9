#include "core/repository/backend_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/hash.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/tensor/memory.h"

#define BATCH_KEY     "default-max-batch-size"
#define BACKENDS_RANK 4     /* held during Initialize                        */

struct inf_backend_table_s {
    const inf_plugin_ops_t *plugins;    /* set in new()                      */
    inf_lock_t              lock;       /* rank 4; guards backends           */
    inf_link_t              backends;
};

static inf_backend_t *find_locked(inf_backend_table_t *t, const char *name,
    const char *library) INF_NEEDS(t->lock);
static uint64_t file_of(const char *library);
static bool differs_locked(inf_backend_t *b, uint64_t file);
static inf_err_t *directory_of(const NginxInference__CoreConfig *config,
    const char *library, char **out);
static inf_err_t *settings_of(const NginxInference__CoreConfig *config,
    const char *name, const char *directory, inf_plugin_setting_t **out,
    size_t *count);
static uint64_t hash_of(const inf_plugin_setting_t *settings, size_t count);
static bool stays_locked(const inf_backend_t *b,
    const NginxInference__CoreConfig *config);
static void add_setting(inf_plugin_setting_t *list, size_t *count,
    const char *key, const char *value);
static void put_setting(inf_plugin_setting_t *list, size_t *count,
    const char *key, const char *value);
static int by_key(const void *a, const void *b);

inf_err_t *
inf_backend_table_new(const inf_plugin_ops_t *plugins,
    inf_backend_table_t **out)
{
    inf_backend_table_t *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return inf_err_nomem();
    }

    t->plugins = plugins;
    inf_lock_init(&t->lock, BACKENDS_RANK);
    inf_link_init(&t->backends);
    *out = t;
    return NULL;
}

void
inf_backend_table_free(inf_backend_table_t *t)
{
    if (t == NULL) {
        return;
    }

    inf_link_t *link;
    while ((link = inf_list_pop_front(&t->backends)) != NULL) {
        t->plugins->close(inf_link_entry(link, inf_backend_t, repository.link));
    }

    inf_lock_fini(&t->lock);
    free(t);
}

inf_err_t *
inf_backend_table_get(inf_backend_table_t *t,
    const NginxInference__CoreConfig *config, const char *name,
    const inf_backend_location_t *where, inf_backend_t **out)
{
    inf_plugin_setting_t *settings = NULL;
    size_t count = 0;
    char *directory = NULL;
    inf_err_t *err = NULL;
    uint64_t file = file_of(where->library);
    bool differs = false;

    inf_lock(&t->lock);

    *out = find_locked(t, name, where->library);
    if (*out != NULL) {
        differs = differs_locked(*out, file);
    } else {
        err = directory_of(config, where->library, &directory);
        if (err == NULL) {
            err = settings_of(config, where->python_based ? "python" : name,
                directory, &settings, &count);
        }
        if (err == NULL) {
            err = t->plugins->open(name, where->library, where->dir,
                settings, count, out);
        }
        if (err == NULL) {
            (*out)->repository.opened_with = hash_of(settings, count);
            (*out)->repository.opened_as_python = where->python_based;
            (*out)->repository.file = file;
            inf_list_push_back(&t->backends, &(*out)->repository.link);
        }
    }

    inf_unlock(&t->lock);
    free(settings);
    free(directory);
    if (differs) {
        inf_log(INF_LOG_WARN, "backend \"%s\": %s has changed since it was"
            " opened: models go on with the one that is open; the next"
            " core opens the new one", name, where->library);
    }
    return err;
}

void
inf_backend_table_compare(inf_backend_table_t *t,
    const NginxInference__CoreConfig *config)
{
    inf_buf_t names;

    inf_buf_init(&names);
    inf_lock(&t->lock);
    for (inf_link_t *l = t->backends.next; l != &t->backends; l = l->next) {
        const inf_backend_t *b = inf_link_entry(l, inf_backend_t,
            repository.link);
        if (!stays_locked(b, config)) {
            inf_buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", b->name);
        }
    }
    inf_unlock(&t->lock);

    if (names.len > 0) {
        inf_log(INF_LOG_WARN, "backends that are in use keep the settings they"
            " were opened with; changed ones wait for the next core: %.*s",
            (int) names.len, names.data);
    }
    inf_buf_fini(&names);
}

static inf_backend_t *
find_locked(inf_backend_table_t *t, const char *name, const char *library)
{
    for (inf_link_t *l = t->backends.next; l != &t->backends; l = l->next) {
        inf_backend_t *b = inf_link_entry(l, inf_backend_t, repository.link);
        if (strcmp(b->library, library) == 0 && strcmp(b->name, name) == 0) {
            return b;
        }
    }

    return NULL;
}

/* A hash of the file's identity; 0: no file. */
static uint64_t
file_of(const char *library)
{
    struct stat st;
    if (stat(library, &st) != 0) {
        return 0;
    }

    const uint64_t parts[5] = {
        (uint64_t) st.st_dev, (uint64_t) st.st_ino, (uint64_t) st.st_size,
        (uint64_t) st.st_mtim.tv_sec, (uint64_t) st.st_mtim.tv_nsec
    };
    return inf_hash(parts, sizeof(parts));
}

/* Whether the library's file was replaced; true once for each new file. */
static bool
differs_locked(inf_backend_t *b, uint64_t file)
{
    bool differs = file != 0 && file != b->repository.file;

    if (differs) {
        b->repository.file = file;
    }
    return differs;
}

/*
 * The directory of backends that holds the library, or the first one.  Backends
 * compare "<directory>/<name>" with their own path as bytes, so the result has
 * no trailing slash.
 */
static inf_err_t *
directory_of(const NginxInference__CoreConfig *config, const char *library,
    char **out)
{
    char *const *dirs = config->backend_directories;
    const char *found = config->n_backend_directories > 0 ? dirs[0] : "";
    size_t longest = 0;

    for (size_t i = 0; i < config->n_backend_directories; i++) {
        size_t len = strlen(dirs[i]);
        if (len > 0 && dirs[i][len - 1] == '/') {
            len--;
        }

        if (len > longest && strncmp(library, dirs[i], len) == 0
            && library[len] == '/')
        {
            found = dirs[i];
            longest = len;
        }
    }

    size_t len = strlen(found);
    *out = strndup(found, len > 0 && found[len - 1] == '/' ? len - 1 : len);
    return *out != NULL ? NULL : inf_err_nomem();
}

/*
 * Merges global settings and this backend's own, which take precedence, sorted
 * by key; then the batch size unless it is set.  Four settings have defaults.
 */
static inf_err_t *
settings_of(const NginxInference__CoreConfig *config, const char *name,
    const char *directory, inf_plugin_setting_t **out, size_t *count)
{
    inf_plugin_setting_t *list = calloc(config->n_backend_settings + 4,
        sizeof(*list));
    if (list == NULL) {
        return inf_err_nomem();
    }

    size_t n = 0;
    put_setting(list, &n, "auto-complete-config",
        config->auto_complete ? "true" : "false");
    put_setting(list, &n, "backend-directory", directory);
    put_setting(list, &n, INF_MIN_CAPABILITY_KEY,
        INF_MEMORY_CAPABILITY_TEXT);

    for (size_t own = 0; own < 2; own++) {
        for (size_t i = 0; i < config->n_backend_settings; i++) {
            const NginxInference__BackendSetting *s =
                config->backend_settings[i];
            if (strcmp(s->backend, own ? name : "") == 0) {
                put_setting(list, &n, s->key, s->value);
            }
        }
    }

    qsort(list, n, sizeof(*list), by_key);
    add_setting(list, &n, BATCH_KEY, "4");
    *out = list;
    *count = n;
    return NULL;
}

static uint64_t
hash_of(const inf_plugin_setting_t *settings, size_t count)
{
    uint64_t all = count;

    for (size_t i = 0; i < count; i++) {
        const uint64_t parts[3] = {
            all,
            inf_hash(settings[i].key, strlen(settings[i].key)),
            inf_hash(settings[i].value, strlen(settings[i].value))
        };
        all = inf_hash(parts, sizeof(parts));
    }

    return all;
}

/* Whether b has the settings of config; true if out of memory. */
static bool
stays_locked(const inf_backend_t *b, const NginxInference__CoreConfig *config)
{
    inf_plugin_setting_t *settings = NULL;
    char *directory = NULL;
    size_t count = 0;

    inf_err_t *err = directory_of(config, b->library, &directory);
    if (err == NULL) {
        err = settings_of(config, b->repository.opened_as_python ? "python"
            : b->name, directory, &settings, &count);
    }
    bool stays = err != NULL
        || hash_of(settings, count) == b->repository.opened_with;
    inf_err_free(err);
    free(settings);
    free(directory);
    return stays;
}

/* Adds a setting unless the key exists. */
static void
add_setting(inf_plugin_setting_t *list, size_t *count, const char *key,
    const char *value)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(list[i].key, key) == 0) {
            return;
        }
    }

    list[(*count)++] = (inf_plugin_setting_t) { key, value };
}

static void
put_setting(inf_plugin_setting_t *list, size_t *count, const char *key,
    const char *value)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(list[i].key, key) == 0) {
            list[i].value = value;
            return;
        }
    }

    list[(*count)++] = (inf_plugin_setting_t) { key, value };
}

static int
by_key(const void *a, const void *b)
{
    const inf_plugin_setting_t *x = a;
    const inf_plugin_setting_t *y = b;
    return strcmp(x->key, y->key);
}
