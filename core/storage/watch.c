#include "core/storage/watch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/path.h"

/* Depth of a model's stamp, plus the repository above it. */
#define WATCH_DEPTH 9u

/* A written file is reported when it is closed. */
#define WATCH_CHANGES (IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE    \
    | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* Events after which the set of directories may have changed; a new name may be
   a link to one. */
#define WATCH_DIRECTORIES (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF           \
    | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)

#define WATCH_READ 65536u

/* Directories still to watch, nearest to the root first. */
typedef struct {
    char    *path;
    unsigned depth;
} directory_t;

typedef struct {
    directory_t *items;
    size_t       count;
    size_t       capacity;
    size_t       next;
} directories_t;

struct inf_watch_s {
    size_t   max;
    int      fd;            /* -1: nothing is watched                        */
    size_t   count;
    int      last;          /* highest number from the kernel                */
    char   **roots;         /* paths of the watched roots                    */
    size_t   root_count;
    bool     stale;         /* directories came or went                      */
    bool     told;          /* incomplete watching was logged                */
};

static void drain(inf_watch_t *w);
static bool watches(const inf_watch_t *w, const inf_watch_root_t *roots,
    size_t count);
static bool keep_roots(inf_watch_t *w, const inf_watch_root_t *roots,
    size_t count);
static void forget_roots(inf_watch_t *w);
static void watch_all(inf_watch_t *w);
static bool watch_directory(inf_watch_t *w, const char *path, bool *fresh);
static void add_inner(directories_t *f, const directory_t *outer);
static bool is_directory(const char *path, const struct dirent *entry);
static bool push(directories_t *f, char *path, unsigned depth);
static void tell(inf_watch_t *w, int error, const char *path);

inf_err_t *
inf_watch_new(size_t max, inf_watch_t **out)
{
    inf_watch_t *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return inf_err_nomem();
    }

    w->max = max;
    w->fd = -1;
    *out = w;
    return NULL;
}

void
inf_watch_free(inf_watch_t *w)
{
    if (w == NULL) {
        return;
    }

    inf_watch_stop(w);
    free(w);
}

int
inf_watch_fd(const inf_watch_t *w)
{
    return w->fd;
}

size_t
inf_watch_count(const inf_watch_t *w)
{
    return w->count;
}

void
inf_watch_renew(inf_watch_t *w, const inf_watch_root_t *roots, size_t count)
{
    drain(w);
    if (w->fd >= 0 && !w->stale && watches(w, roots, count)) {
        return;
    }

    if (!keep_roots(w, roots, count)) {
        inf_watch_stop(w);
        tell(w, ENOMEM, NULL);
        return;
    }
    watch_all(w);
}

void
inf_watch_stop(inf_watch_t *w)
{
    if (w->fd >= 0) {
        close(w->fd);
    }
    forget_roots(w);
    w->fd = -1;
    w->count = 0;
    w->told = false;
}

static void
drain(inf_watch_t *w)
{
    _Alignas(struct inotify_event) char buffer[WATCH_READ];
    ssize_t n;

    while (w->fd >= 0 && (n = read(w->fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t at = 0; at < n; ) {
            struct inotify_event e;
            memcpy(&e, buffer + at, sizeof(e));
            w->stale |= (e.mask & WATCH_DIRECTORIES) != 0
                || ((e.mask & IN_MOVED_FROM) != 0 && (e.mask & IN_ISDIR) != 0);
            at += (ssize_t) (sizeof(e) + e.len);
        }
    }
}

static bool
watches(const inf_watch_t *w, const inf_watch_root_t *roots, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (inf_storage_is_remote(roots[i].storage)) {
            continue;
        }
        if (at == w->root_count || strcmp(w->roots[at], roots[i].path) != 0) {
            return false;
        }
        at++;
    }
    return at == w->root_count;
}

/* Copies the paths of local roots; the kernel does not watch remote ones.
   false: out of memory, and the old paths may be gone. */
static bool
keep_roots(inf_watch_t *w, const inf_watch_root_t *roots, size_t count)
{
    forget_roots(w);
    w->roots = calloc(count + 1, sizeof(*w->roots));
    if (w->roots == NULL) {
        return false;
    }

    for (size_t i = 0; i < count; i++) {
        if (inf_storage_is_remote(roots[i].storage)) {
            continue;
        }
        char *path = strdup(roots[i].path);
        if (path == NULL) {
            return false;
        }
        w->roots[w->root_count++] = path;
    }
    return true;
}

static void
forget_roots(inf_watch_t *w)
{
    for (size_t i = 0; i < w->root_count; i++) {
        free(w->roots[i]);
    }
    free(w->roots);
    w->roots = NULL;
    w->root_count = 0;
}

/*
 * Watches all directories from scratch, which drops watches of removed ones.
 * A directory is watched before it is listed, so that no new entry is missed;
 * the listing has the earlier ones.
 */
static void
watch_all(inf_watch_t *w)
{
    directories_t f = { .count = 0 };
    bool whole = true;

    if (w->fd >= 0) {
        close(w->fd);
    }
    w->count = 0;
    w->last = 0;
    w->stale = false;
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0) {
        tell(w, errno, NULL);
        return;
    }

    for (size_t i = 0; whole && i < w->root_count; i++) {
        whole = push(&f, strdup(w->roots[i]), 0);
    }
    while (whole && f.next < f.count) {
        const directory_t at = f.items[f.next++];
        bool fresh = false;
        whole = watch_directory(w, at.path, &fresh);
        if (fresh && at.depth < WATCH_DEPTH) {
            add_inner(&f, &at);
        }
    }

    for (size_t i = 0; i < f.count; i++) {
        free(f.items[i].path);
    }
    free(f.items);
}

/* false: further calls are useless.  *fresh: it was not watched yet; a link may
   lead to a directory already reached by another path, also one above. */
static bool
watch_directory(inf_watch_t *w, const char *path, bool *fresh)
{
    if (w->count >= w->max) {
        tell(w, ENOSPC, path);
        return false;
    }
    int number = inotify_add_watch(w->fd, path, WATCH_CHANGES | IN_ONLYDIR
        | IN_EXCL_UNLINK);
    if (number >= 0) {                      /* numbers only increase         */
        *fresh = number > w->last;
        w->last = *fresh ? number : w->last;
        w->count += *fresh;
        return true;
    }

    int error = errno;
    if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
        return true;                        /* it was removed meanwhile      */
    }
    tell(w, error, path);
    return error != ENOSPC && error != ENOMEM;
}

static void
add_inner(directories_t *f, const directory_t *outer)
{
    DIR *dir = opendir(outer->path);
    const struct dirent *entry;
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0
            || strcmp(entry->d_name, "..") == 0)
        {
            continue;
        }

        char *path = inf_path_join(outer->path, entry->d_name);
        if (path == NULL || !is_directory(path, entry)) {
            free(path);
            continue;
        }
        if (!push(f, path, outer->depth + 1)) {
            break;
        }
    }
    closedir(dir);
}

static bool
is_directory(const char *path, const struct dirent *entry)
{
    struct stat st;

    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR;
    }
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Takes path, which may be NULL.  false: out of memory. */
static bool
push(directories_t *f, char *path, unsigned depth)
{
    if (f->count == f->capacity) {
        size_t capacity = f->capacity == 0 ? 64 : f->capacity * 2;
        directory_t *wider = realloc(f->items, capacity * sizeof(*wider));
        if (wider == NULL) {
            free(path);
            return false;
        }
        f->items = wider;
        f->capacity = capacity;
    }
    if (path == NULL) {
        return false;
    }

    f->items[f->count++] = (directory_t) { path, depth };
    return true;
}

static void
tell(inf_watch_t *w, int error, const char *path)
{
    if (w->told) {
        return;
    }

    w->told = true;
    inf_log(INF_LOG_INFO, "%s%s can't be watched (%s): changes are found by"
        " the next poll", path != NULL ? "directory " : "repositories",
        path != NULL ? path : "", strerror(error));
}
