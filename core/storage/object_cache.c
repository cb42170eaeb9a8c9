#include "core/storage/object_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/lock.h"
#include "core/base/os/environment.h"
#include "core/base/os/private_dir.h"
#include "core/storage/object_name.h"

#define CACHE_RANK      59
#define CACHE_MAX_BYTES (UINT64_C(8) << 30)     /* limit of unused objects   */

struct inf_object_cache_s {
    const inf_object_service_t *service;    /* set in new()                  */
    inf_lock_t                  lock;       /* rank 59; guards all below     */
    char                       *objects;    /* directory; NULL: not opened
                                               yet                           */
    inf_private_dir_t          *run;        /* contains this process's
                                               directories                   */
};

/* An object being fetched to the model's directory. */
typedef struct {
    const inf_object_t *object;
    const char         *relative;
    char               *cached;         /* path in the cache                 */
    char               *partial;        /* file being fetched into; NULL:
                                           cached                            */
} item_t;

typedef struct {
    char     *path;
    uint64_t  size;
    time_t    used;
} unused_t;

static inf_err_t *open_cache_locked(inf_object_cache_t *cache)
    INF_NEEDS(cache->lock);
static inf_err_t *private_directory(const char *path);
static inf_err_t *check_keys(const inf_object_listing_t *listing, size_t skip);
static bool relative_is_good(const char *relative);
static inf_err_t *prepare_items(inf_object_cache_t *cache,
    inf_object_client_t *client, item_t *items, size_t count);
static inf_err_t *prepare_item(inf_object_cache_t *cache,
    inf_object_client_t *client, item_t *item);
static inf_err_t *cached_path(const inf_object_cache_t *cache,
    const inf_object_client_t *client, const inf_object_t *object,
    char **out);
static inf_err_t *fetch_items(inf_object_client_t *client, item_t *items,
    size_t count);
static inf_err_t *finish_item(item_t *item);
static void items_fini(item_t *items, size_t count);
static inf_err_t *make_directory(inf_object_cache_t *cache, const item_t *items,
    size_t count, char **directory);
static inf_err_t *link_item(const char *directory, const item_t *item);
static inf_err_t *make_parents(char *path, size_t from);
static void trim_cache(const char *objects);
static int by_use(const void *a, const void *b);
static char *text_of(const char *fmt, ...) INF_PRINTF(1, 2);

inf_err_t *
inf_object_cache_new(const inf_object_service_t *service,
    inf_object_cache_t **out)
{
    inf_object_cache_t *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return inf_err_nomem();
    }

    cache->service = service;
    inf_lock_init(&cache->lock, CACHE_RANK);
    *out = cache;
    return NULL;
}

void
inf_object_cache_free(inf_object_cache_t *cache)
{
    inf_private_dir_free(cache->run);
    inf_lock_fini(&cache->lock);
    free(cache->objects);
    free(cache);
}

inf_err_t *
inf_object_cache_directory(inf_object_cache_t *cache,
    inf_object_client_t *client, const inf_object_listing_t *listing,
    size_t skip, char **directory)
{
    size_t count = 0;
    item_t *items = calloc(listing->count + 1, sizeof(*items));
    if (items == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < listing->count; i++) {
        const inf_object_t *o = &listing->items[i];
        if (strlen(o->key) <= skip || inf_object_is_directory(o)) {
            continue;           /* a directory mark without content          */
        }
        items[count++] = (item_t) { o, o->key + skip, NULL, NULL };
    }

    inf_lock(&cache->lock);
    inf_err_t *err = open_cache_locked(cache);
    inf_unlock(&cache->lock);

    if (err == NULL) {
        err = check_keys(listing, skip);
    }
    if (err == NULL) {
        err = prepare_items(cache, client, items, count);
    }
    if (err == NULL) {
        err = fetch_items(client, items, count);
    }
    if (err == NULL) {
        err = make_directory(cache, items, count, directory);
    }
    items_fini(items, count);
    return err;
}

void
inf_object_cache_release(inf_object_cache_t *cache, char *directory)
{
    inf_private_dir_remove_tree(directory);
    free(directory);
    trim_cache(cache->objects);
}

/* Opens the cache once. */
static inf_err_t *
open_cache_locked(inf_object_cache_t *cache)
{
    if (cache->objects != NULL) {
        return NULL;
    }

    const char *mount = inf_environment(cache->service->mount);
    char *base = text_of("%s/inference-%s-%u", mount == NULL ? "/tmp" : mount,
        cache->service->name, (unsigned) geteuid());
    char *objects = base == NULL ? NULL : text_of("%s/objects", base);
    inf_err_t *err = objects == NULL ? inf_err_nomem()
        : private_directory(base);

    if (err == NULL) {
        err = private_directory(objects);
    }
    if (err == NULL) {
        inf_private_dir_sweep(base);
        err = inf_private_dir_new(base, &cache->run);
    }
    if (err == NULL) {
        cache->objects = objects;
        objects = NULL;
    }
    free(objects);
    free(base);
    return err;
}

/* Creates the directory if missing; another user's is rejected. */
static inf_err_t *
private_directory(const char *path)
{
    struct stat st;

    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return inf_err_os(errno, "Failed to create local temp folder: %s",
            path);
    }
    if (lstat(path, &st) != 0) {
        return inf_err_os(errno, "%s", path);
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()
        || (st.st_mode & 077) != 0)
    {
        return inf_err_new(INF_ERR_INTERNAL, "%s is not a directory that"
            " belongs to this user alone", path);
    }
    return NULL;
}

/* Rejects keys that lead out of the directory. */
static inf_err_t *
check_keys(const inf_object_listing_t *listing, size_t skip)
{
    for (size_t i = 0; i < listing->count; i++) {
        const inf_object_t *o = &listing->items[i];
        const char *key = o->key;

        if (strlen(key) > skip && !inf_object_is_directory(o)
            && !relative_is_good(key + skip))
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "the key '%s' makes no "
                "file name: a part of it is empty, \".\", \"..\", longer than"
                " 255 bytes or holds a control character", key);
        }
    }
    return NULL;
}

static bool
relative_is_good(const char *relative)
{
    for (const char *p = relative; ; p++) {
        size_t len = strcspn(p, "/");

        if (len == 0 || len > 255 || (len == 1 && p[0] == '.')
            || (len == 2 && p[0] == '.' && p[1] == '.'))
        {
            return false;
        }
        for (size_t i = 0; i < len; i++) {
            if ((unsigned char) p[i] < ' ' || p[i] == 0x7f) {
                return false;
            }
        }
        p += len;
        if (*p == '\0') {
            return true;
        }
    }
}

static inf_err_t *
prepare_items(inf_object_cache_t *cache, inf_object_client_t *client,
    item_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        inf_err_t *err = prepare_item(cache, client, &items[i]);
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

/* Sets the object's path in the cache; if it is missing, creates a file to
   fetch into. */
static inf_err_t *
prepare_item(inf_object_cache_t *cache, inf_object_client_t *client,
    item_t *item)
{
    struct stat st;

    inf_err_t *err = cached_path(cache, client, item->object, &item->cached);
    if (err != NULL) {
        return err;
    }
    if (lstat(item->cached, &st) == 0 && S_ISREG(st.st_mode)
        && (uint64_t) st.st_size == item->object->size)
    {
        return NULL;
    }

    item->partial = text_of("%s/fetch-XXXXXX", cache->run->path);
    if (item->partial == NULL) {
        return inf_err_nomem();
    }
    int fd = mkostemp(item->partial, O_CLOEXEC);
    if (fd < 0) {
        err = inf_err_os(errno, "cannot make %s", item->partial);
        free(item->partial);
        item->partial = NULL;
        return err;
    }
    close(fd);                      /* there may be more files than a process
                                       may have open                         */
    return NULL;
}

static inf_err_t *
cached_path(const inf_object_cache_t *cache,
    const inf_object_client_t *client, const inf_object_t *object, char **out)
{
    inf_buf_t path;

    inf_buf_init(&path);
    inf_buf_printf(&path, "%s/", cache->objects);
    inf_err_t *err = inf_object_name_put(&path,
        inf_object_client_address(client), object);
    if (err == NULL) {
        *out = inf_buf_give(&path, NULL);
        err = *out == NULL ? inf_err_nomem() : NULL;
    }
    inf_buf_fini(&path);
    return err;
}

static inf_err_t *
fetch_items(inf_object_client_t *client, item_t *items, size_t count)
{
    size_t n = 0;
    inf_object_fetch_t *files = calloc(count + 1, sizeof(*files));
    if (files == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        if (items[i].partial != NULL) {
            files[n++] = (inf_object_fetch_t) { items[i].object,
                items[i].partial };
        }
    }

    inf_err_t *err = inf_object_client_fetch(client, files, n);
    free(files);
    for (size_t i = 0; err == NULL && i < count; i++) {
        if (items[i].partial != NULL) {
            err = finish_item(&items[i]);
        }
    }
    return err;
}

/* Renames a fetched file to its name in the cache. */
static inf_err_t *
finish_item(item_t *item)
{
    if (chmod(item->partial, 0444) != 0
        || rename(item->partial, item->cached) != 0)
    {
        return inf_err_os(errno, "cannot keep %s", item->cached);
    }
    free(item->partial);
    item->partial = NULL;
    return NULL;
}

static void
items_fini(item_t *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].partial != NULL) {
            unlink(items[i].partial);
        }
        free(items[i].partial);
        free(items[i].cached);
    }
    free(items);
}

static inf_err_t *
make_directory(inf_object_cache_t *cache, const item_t *items, size_t count,
    char **directory)
{
    char *path = text_of("%s/folderXXXXXX", cache->run->path);
    if (path == NULL) {
        return inf_err_nomem();
    }
    if (mkdtemp(path) == NULL) {
        inf_err_t *err = inf_err_os(errno, "Failed to create local temp "
            "folder: %s", path);
        free(path);
        return err;
    }

    /* in reverse: directories come before objects of their names */
    for (size_t i = count; i > 0; i--) {
        inf_err_t *err = link_item(path, &items[i - 1]);
        if (err != NULL) {
            inf_private_dir_remove_tree(path);
            free(path);
            return err;
        }
    }
    *directory = path;
    return NULL;
}

static inf_err_t *
link_item(const char *directory, const item_t *item)
{
    char *path = text_of("%s/%s", directory, item->relative);
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = make_parents(path, strlen(directory) + 1);
    if (err == NULL && link(item->cached, path) != 0 && errno != EEXIST) {
        int errnum = errno;
        err = inf_err_os(errnum, "cannot make %s", path);
        if (errnum == ENOENT) {         /* trimmed since it was found        */
            err = inf_err_recode(err, INF_ERR_INVALID_ARG);
        }
    }
    free(path);
    return err;
}

/* Creates the parent directories of path after its first from bytes. */
static inf_err_t *
make_parents(char *path, size_t from)
{
    for (char *p = path + from; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        int rc = mkdir(path, 0755);
        int errnum = errno;
        *p = '/';
        if (rc != 0 && errnum != EEXIST) {
            return inf_err_os(errnum, "cannot make the directories of"
                " %s", path);
        }
    }
    return NULL;
}

/* Removes files that no model uses: these have a single link. */
static void
trim_cache(const char *objects)
{
    unused_t *files = NULL;
    size_t count = 0;
    uint64_t total = 0;
    const struct dirent *entry;
    struct stat st;

    DIR *d = opendir(objects);
    if (d == NULL) {
        return;
    }
    while ((entry = readdir(d)) != NULL) {
        if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0
            || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        {
            continue;
        }
        unused_t *more = realloc(files, (count + 1) * sizeof(*files));
        char *path = more == NULL ? NULL
            : text_of("%s/%s", objects, entry->d_name);
        files = more != NULL ? more : files;
        if (path == NULL) {
            break;
        }
        files[count++] = (unused_t) { path, (uint64_t) st.st_size,
            st.st_ctime };
        total += (uint64_t) st.st_size;
    }
    closedir(d);

    if (count > 1) {
        qsort(files, count, sizeof(*files), by_use);
    }
    for (size_t i = 0; i < count; i++) {
        if (total > CACHE_MAX_BYTES && unlink(files[i].path) == 0) {
            total -= files[i].size;
        }
        free(files[i].path);
    }
    free(files);
}

/* By ctime, which changes when links are created and removed. */
static int
by_use(const void *a, const void *b)
{
    const unused_t *x = a;
    const unused_t *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

static char *
text_of(const char *fmt, ...)
{
    char *text;
    va_list args;

    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    return len < 0 ? NULL : text;
}
