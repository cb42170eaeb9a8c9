#include "core/storage/storage_object.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/path.h"
#include "core/storage/object_cache.h"
#include "core/storage/object_client.h"

#define LOCALIZE_TRIES 3u       /* objects may be replaced meanwhile         */

typedef struct {
    inf_storage_t        base;
    char                *root;
    inf_object_client_t *client;
    inf_object_cache_t  *cache;
} object_storage_t;

static void object_close(inf_storage_t *st);
static inf_err_t *object_list(const inf_storage_t *st, const char *dir,
    inf_entries_t *out);
static inf_err_t *object_add(inf_entries_t *out, const inf_object_t *o,
    size_t skip);
static inf_err_t *object_stat(const inf_storage_t *st, const char *path,
    inf_entry_t *out);
static inf_err_t *stat_object(const object_storage_t *s, const char *path,
    inf_entry_t *out, bool *found);
static inf_err_t *object_read(const inf_storage_t *st, const char *path,
    size_t limit, char **data, size_t *len);
static inf_err_t *object_contain(const inf_storage_t *st, const char *dir,
    const char *path);
static inf_err_t *object_localize(inf_storage_t *st, const char *dir,
    char **local);
static void object_release(inf_storage_t *st, char *local);
static void object_cancel(inf_storage_t *st);
static inf_err_t *key_of(const object_storage_t *s, const char *path,
    const char *tail, char **out);
static inf_err_t *first_with(const object_storage_t *s, const char *prefix,
    inf_object_listing_t *out);

static const inf_storage_ops_t object_ops = {
    .close    = object_close,
    .list     = object_list,
    .stat     = object_stat,
    .read     = object_read,
    .contain  = object_contain,
    .localize = object_localize,
    .release  = object_release,
    .remote   = true,
    .cancel   = object_cancel,
};

inf_err_t *
inf_storage_object_open(const char *address, inf_storage_t **out, char **root)
{
    object_storage_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return inf_err_nomem();
    }

    s->base.ops = &object_ops;
    s->root = inf_object_address_root(address);
    *root = s->root == NULL ? NULL : strdup(s->root);
    inf_err_t *err = *root == NULL ? inf_err_nomem()
        : inf_object_client_new(address, &s->client);
    if (err == NULL) {
        err = inf_object_cache_new(inf_object_service_of(address), &s->cache);
    }
    if (err != NULL) {
        free(*root);
        object_close(&s->base);
        return err;
    }

    *out = &s->base;
    return NULL;
}

static void
object_close(inf_storage_t *st)
{
    object_storage_t *s = (object_storage_t *) st;

    if (s->cache != NULL) {
        inf_object_cache_free(s->cache);
    }
    inf_object_client_free(s->client);
    free(s->root);
    free(s);
}

static inf_err_t *
object_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    const object_storage_t *s = (const object_storage_t *) st;
    inf_object_listing_t listing;
    char *prefix;

    inf_err_t *err = key_of(s, dir, "/", &prefix);
    if (err != NULL) {
        return err;
    }

    err = inf_object_client_list(s->client, prefix, false, 0, &listing);
    if (err == NULL) {
        for (size_t i = 0; err == NULL && i < listing.count; i++) {
            err = object_add(out, &listing.items[i], strlen(prefix));
        }
        if (err == NULL && listing.count == 0 && strcmp(dir, s->root) != 0) {
            err = inf_err_new(INF_ERR_NOT_FOUND, "failed to open directory "
                "'%s': no object's key begins with it", dir);
        }
        inf_object_listing_fini(&listing);
    }
    free(prefix);
    return err;
}

static inf_err_t *
object_add(inf_entries_t *out, const inf_object_t *o, size_t skip)
{
    char name[INF_OBJECT_KEY_MAX + 1];
    bool dir = inf_object_is_directory(o);
    size_t len = strlen(o->key) - dir;

    if (len <= skip || len - skip >= sizeof(name)) {
        return NULL;            /* mark of the directory itself              */
    }
    memcpy(name, o->key + skip, len - skip);
    name[len - skip] = '\0';

    const inf_entry_t entry = {
        .kind = dir ? INF_ENTRY_DIR : INF_ENTRY_FILE,
        .size = o->size,
        .changed_ns = o->modified_ns
    };
    return inf_entries_add(out, &entry, name) ? NULL : inf_err_nomem();
}

/* Describes an entry; the bucket exists even if it is empty.  Where a directory
   has an object of its name, too, it is the directory. */
static inf_err_t *
object_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    const object_storage_t *s = (const object_storage_t *) st;
    bool top = strcmp(path, s->root) == 0;
    inf_object_listing_t listing;
    char *key;

    *out = (inf_entry_t) { .kind = INF_ENTRY_DIR };
    if (top && inf_object_client_address(s->client)->prefix[0] == '\0') {
        return NULL;
    }

    inf_err_t *err = key_of(s, path, "/", &key);
    if (err == NULL) {
        err = first_with(s, key, &listing);
        free(key);
    }
    if (err != NULL) {
        return err;
    }
    bool found = listing.count > 0;
    inf_object_listing_fini(&listing);

    if (!found && !top) {
        err = stat_object(s, path, out, &found);
    }
    return err != NULL || found ? err : inf_err_new(INF_ERR_NOT_FOUND,
        "'%s' is not there", path);
}

/* Finds an object: it is the first of the keys that begin with its key. */
static inf_err_t *
stat_object(const object_storage_t *s, const char *path, inf_entry_t *out,
    bool *found)
{
    inf_object_listing_t listing;
    char *key;

    inf_err_t *err = key_of(s, path, "", &key);
    if (err != NULL) {
        return err;
    }

    err = first_with(s, key, &listing);
    if (err == NULL) {
        *found = listing.count > 0
            && strcmp(listing.items[0].key, key) == 0;
        if (*found) {
            out->kind = INF_ENTRY_FILE;
            out->size = listing.items[0].size;
            out->changed_ns = listing.items[0].modified_ns;
        }
        inf_object_listing_fini(&listing);
    }
    free(key);
    return err;
}

static inf_err_t *
object_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    const object_storage_t *s = (const object_storage_t *) st;
    char *key;

    inf_err_t *err = key_of(s, path, "", &key);
    if (err == NULL) {
        err = inf_object_client_read(s->client, key, limit, data, len);
        free(key);
    }
    return err;
}

/* Compares texts, since there are no links. */
static inf_err_t *
object_contain(const inf_storage_t *st, const char *dir, const char *path)
{
    size_t len = strlen(dir);
    (void) st;

    if (strncmp(path, dir, len) == 0 && (path[len] == '\0'
        || (path[len] == '/' && inf_path_is_inner(path + len + 1))))
    {
        return NULL;
    }
    return inf_err_new(INF_ERR_UNSUPPORTED, "path '%s' is outside directory "
        "'%s'", path, dir);
}

static inf_err_t *
object_localize(inf_storage_t *st, const char *dir, char **local)
{
    object_storage_t *s = (object_storage_t *) st;
    inf_object_listing_t listing;
    inf_err_t *err = NULL;
    char *prefix;

    err = key_of(s, dir, "/", &prefix);
    for (unsigned i = 0; err == NULL && i < LOCALIZE_TRIES; i++) {
        err = inf_object_client_list(s->client, prefix, true, 0, &listing);
        if (err != NULL) {
            break;
        }

        err = listing.count == 0 ? inf_err_new(INF_ERR_NOT_FOUND,
                "'%s': no object's key begins with it", dir)
            : inf_object_cache_directory(s->cache, s->client, &listing,
                strlen(prefix), local);
        inf_object_listing_fini(&listing);
        if (err == NULL) {
            break;
        }
        if (inf_err_code(err) == INF_ERR_INVALID_ARG
            && i + 1 < LOCALIZE_TRIES)
        {
            inf_err_free(err);          /* replaced while it was fetched     */
            err = NULL;
            continue;
        }
    }
    free(prefix);
    return err == NULL ? NULL : inf_err_add(err, "cannot fetch '%s'", dir);
}

static void
object_release(inf_storage_t *st, char *local)
{
    object_storage_t *s = (object_storage_t *) st;
    inf_object_cache_release(s->cache, local);
}

static void
object_cancel(inf_storage_t *st)
{
    const object_storage_t *s = (const object_storage_t *) st;
    inf_object_client_cancel(s->client);
}

/* The key of a path, followed by tail unless it is "/" alone. */
static inf_err_t *
key_of(const object_storage_t *s, const char *path, const char *tail,
    char **out)
{
    const char *prefix = inf_object_client_address(s->client)->prefix;
    size_t len = strlen(s->root);
    inf_buf_t key;

    *out = NULL;
    if (strncmp(path, s->root, len) != 0
        || (path[len] != '\0' && path[len] != '/'))
    {
        return inf_err_new(INF_ERR_INTERNAL, "'%s' is not in '%s'", path,
            s->root);
    }
    path += len;
    while (*path == '/') {
        path++;
    }

    inf_buf_init(&key);
    inf_buf_puts(&key, prefix);
    if (prefix[0] != '\0' && path[0] != '\0') {
        inf_buf_putc(&key, '/');
    }
    inf_buf_puts(&key, path);
    if (inf_buf_slice(&key).len > 0) {
        inf_buf_puts(&key, tail);
    }
    inf_buf_putc(&key, '\0');

    inf_err_t *err = inf_buf_status(&key);
    if (err != NULL) {
        inf_buf_fini(&key);
        return err;
    }
    *out = inf_buf_give(&key, NULL);
    return *out == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
first_with(const object_storage_t *s, const char *prefix,
    inf_object_listing_t *out)
{
    return inf_object_client_list(s->client, prefix, true, 1, out);
}
