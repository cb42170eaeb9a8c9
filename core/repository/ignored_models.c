#include "core/repository/ignored_models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/path.h"
#include "core/repository/scan.h"
#include "core/storage/storage.h"

#define IGNORED_EVENTS (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)
#define IGNORED_READ   4096u

typedef struct {
    int   watch;                /* number of the watch                       */
    char *path;
} root_t;

struct inf_ignored_models_s {
    int     fd;
    root_t *roots;
    size_t  root_count;
    char   *named[INF_IGNORED_MODELS_MAX];
    size_t  named_count;
};

static void watch_root(inf_ignored_models_t *m, const char *path);
static const char *path_of(const root_t *roots, size_t count, int watch);
static void roots_free(root_t *roots, size_t count);
static void name_once(inf_ignored_models_t *m, const char *root,
    const char *name);

inf_err_t *
inf_ignored_models_new(inf_ignored_models_t **out)
{
    inf_ignored_models_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return inf_err_nomem();
    }

    m->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (m->fd < 0) {
        inf_err_t *err = inf_err_os(errno, "inotify");
        free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
inf_ignored_models_free(inf_ignored_models_t *m)
{
    if (m == NULL) {
        return;
    }

    for (size_t i = 0; i < m->named_count; i++) {
        free(m->named[i]);
    }
    roots_free(m->roots, m->root_count);
    close(m->fd);
    free(m);
}

int
inf_ignored_models_fd(const inf_ignored_models_t *m)
{
    return m->fd;
}

/* A repository that stays keeps its watch and its events. */
void
inf_ignored_models_watch(inf_ignored_models_t *m, char *const *addresses,
    size_t count)
{
    root_t *before = m->roots;
    size_t before_count = m->root_count;

    m->root_count = 0;
    m->roots = calloc(count + 1, sizeof(*m->roots));
    for (size_t i = 0; m->roots != NULL && i < count
        && m->named_count < INF_IGNORED_MODELS_MAX; i++)
    {
        if (!inf_storage_address_is_remote(addresses[i])) {
            watch_root(m, addresses[i]);
        }
    }

    for (size_t i = 0; i < before_count; i++) {
        if (path_of(m->roots, m->root_count, before[i].watch) == NULL) {
            inotify_rm_watch(m->fd, before[i].watch);
        }
    }
    roots_free(before, before_count);
}

/* Watches a directory; another path of a watched one has the same number. */
static void
watch_root(inf_ignored_models_t *m, const char *path)
{
    int watch = inotify_add_watch(m->fd, path, IGNORED_EVENTS);
    if (watch < 0) {
        inf_log(INF_LOG_INFO, "model repository '%s' is not watched for new"
            " directories: %s", path, strerror(errno));
        return;
    }

    char *copy = path_of(m->roots, m->root_count, watch) == NULL
        ? strdup(path) : NULL;
    if (copy != NULL) {
        m->roots[m->root_count++] = (root_t) { watch, copy };
    }
}

static const char *
path_of(const root_t *roots, size_t count, int watch)
{
    for (size_t i = 0; i < count; i++) {
        if (roots[i].watch == watch) {
            return roots[i].path;
        }
    }

    return NULL;
}

static void
roots_free(root_t *roots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(roots[i].path);
    }
    free(roots);
}

/* The kernel pads names with zeros. */
void
inf_ignored_models_take(inf_ignored_models_t *m)
{
    _Alignas(struct inotify_event) char buffer[IGNORED_READ];

    ssize_t n = read(m->fd, buffer, sizeof(buffer));
    for (ssize_t at = 0; at < n; ) {
        struct inotify_event e;
        memcpy(&e, buffer + at, sizeof(e));
        const char *root = path_of(m->roots, m->root_count, e.wd);
        if (root != NULL && (e.mask & IN_ISDIR) != 0 && e.len > 0) {
            name_once(m, root, buffer + at + sizeof(e));
        }
        at += (ssize_t) (sizeof(e) + e.len);
    }
}

static void
name_once(inf_ignored_models_t *m, const char *root, const char *name)
{
    char text[INF_SCAN_PRINTABLE];
    char *path = inf_path_join(root, name);

    for (size_t i = 0; path != NULL && i < m->named_count; i++) {
        if (strcmp(m->named[i], path) == 0) {
            free(path);
            path = NULL;
        }
    }
    if (path == NULL) {
        return;
    }

    m->named[m->named_count++] = path;
    inf_log(INF_LOG_NOTICE, "new directory '%s/%s' is ignored:"
        " inference_model_control is none; restart nginx to load it, or set"
        " inference_model_control to poll or explicit (inference-server:"
        " --model-control-mode)", root,
        inf_scan_printable(name, text));
    if (m->named_count == INF_IGNORED_MODELS_MAX) {
        inf_log(INF_LOG_NOTICE, "further new directories are not named");
        inf_ignored_models_watch(m, NULL, 0);
    }
}
