/* directory.c - see directory.h */

#include "directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX "XXXXXX"

static TRITONSERVER_Error *take_name(bk_directory_t *d, const char *parent,
    const char *prefix, const char *fresh);
static int lock_of(const char *path, long older_s);
static void tree_remove(const char *path);
static int entry_remove(const char *path, const struct stat *st, int kind,
    struct FTW *at);

/* It gets its name when it is locked: no sweep finds it without an owner. */
TRITONSERVER_Error *
bk_directory_make(bk_directory_t *d, const char *parent, const char *prefix)
{
    char *fresh = NULL;

    *d = (bk_directory_t) { .lock = -1 };
    if (asprintf(&fresh, "%s/new-%s" SUFFIX, parent, prefix) < 0) {
        return bk_err_nomem("the path of a directory");
    }

    TRITONSERVER_Error *err = NULL;
    if (mkdtemp(fresh) == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_INTERNAL, "cannot make a"
            " directory in \"%s\": %s", parent, strerror(errno));
    } else {
        err = take_name(d, parent, prefix, fresh);
        if (err != NULL) {
            (void) rmdir(fresh);
        }
    }

    free(fresh);
    return err;
}

void
bk_directory_remove(bk_directory_t *d)
{
    if (d->path == NULL) {
        return;
    }

    tree_remove(d->path);
    (void) close(d->lock);
    free(d->path);
    *d = (bk_directory_t) { 0 };
}

void
bk_directory_sweep(const char *parent, const char *prefix, long older_s)
{
    DIR *dir = opendir(parent);
    size_t len = strlen(prefix);
    const struct dirent *e;
    char *path;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (strncmp(e->d_name, prefix, len) != 0
            || strlen(e->d_name) != len + strlen(SUFFIX)
            || asprintf(&path, "%s/%s", parent, e->d_name) < 0)
        {
            continue;
        }

        int lock = lock_of(path, older_s);
        if (lock != -1) {
            bk_log(TRITONSERVER_LOG_INFO, "'%s' was left by a process that"
                " died: it is removed", path);
            tree_remove(path);
            (void) close(lock);
        }
        free(path);
    }

    if (dir != NULL) {
        (void) closedir(dir);
    }
}

static TRITONSERVER_Error *
take_name(bk_directory_t *d, const char *parent, const char *prefix,
    const char *fresh)
{
    const char *suffix = fresh + strlen(fresh) - strlen(SUFFIX);

    if (asprintf(&d->path, "%s/%s%s", parent, prefix, suffix) < 0) {
        d->path = NULL;
        return bk_err_nomem("the path of a directory");
    }

    d->lock = lock_of(fresh, 0);
    if (d->lock != -1 && rename(fresh, d->path) == 0) {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "cannot lock \"%s\" as \"%s\": %s", fresh, d->path, strerror(errno));
    if (d->lock != -1) {
        (void) close(d->lock);
    }
    free(d->path);
    d->path = NULL;
    return err;
}

/* Opens and locks a directory of our own that is at least older_s old, 0: of
   any age, as time() may be behind its time.  -1 with errno: it cannot be, or
   is locked. */
static int
lock_of(const char *path, long older_s)
{
    struct stat st;

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd == -1) {
        return -1;
    }

    bool wanted = fstat(fd, &st) == 0 && st.st_uid == geteuid()
        && (older_s == 0 || time(NULL) - st.st_ctime >= older_s);
    if (wanted && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd;
    }

    int error = wanted ? errno : EPERM;
    (void) close(fd);
    errno = error;
    return -1;
}

static void
tree_remove(const char *path)
{
    if (nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        bk_log(TRITONSERVER_LOG_WARN, "cannot remove all of '%s': %s", path,
            strerror(errno));
    }
}

static int
entry_remove(const char *path, const struct stat *st, int kind,
    struct FTW *at)
{
    (void) st;
    (void) kind;
    (void) at;

    return remove(path);
}
