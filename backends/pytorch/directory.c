/* directory.c - see directory.h */

#include "directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "torch-aoti-"
#define SUFFIX "XXXXXX"

/* It gets its name when it is locked: no sweep finds it without an owner. */
#define NEW    "torch-new-" SUFFIX

static const char *parent(void);
static TRITONSERVER_Error *take_name(pt_directory_t *d, const char *fresh);
static int lock_of(const char *path);
static void tree_remove(const char *path);
static int entry_remove(const char *path, const struct stat *st, int kind,
    struct FTW *at);

TRITONSERVER_Error *
pt_directory_make(pt_directory_t *d)
{
    char *fresh = NULL;

    *d = (pt_directory_t) { .lock = -1 };
    if (asprintf(&fresh, "%s/" NEW, parent()) < 0) {
        return bk_err_nomem("directory of a package");
    }

    TRITONSERVER_Error *err = NULL;
    if (mkdtemp(fresh) == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_INTERNAL, "cannot make a"
            " directory in \"%s\": %s", parent(), strerror(errno));
    } else {
        err = take_name(d, fresh);
        if (err != NULL) {
            (void) rmdir(fresh);
        }
    }

    free(fresh);
    return err;
}

void
pt_directory_remove(pt_directory_t *d)
{
    if (d->path == NULL) {
        return;
    }

    tree_remove(d->path);
    (void) close(d->lock);
    free(d->path);
    *d = (pt_directory_t) { 0 };
}

void
pt_directory_sweep(void)
{
    DIR *dir = opendir(parent());
    const struct dirent *e;
    char *path;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0
            || strlen(e->d_name) != strlen(PREFIX SUFFIX)
            || asprintf(&path, "%s/%s", parent(), e->d_name) < 0)
        {
            continue;
        }

        int lock = lock_of(path);
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

static const char *
parent(void)
{
    const char *dir = getenv("TMPDIR");

    return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}

static TRITONSERVER_Error *
take_name(pt_directory_t *d, const char *fresh)
{
    const char *suffix = fresh + strlen(fresh) - strlen(SUFFIX);

    if (asprintf(&d->path, "%s/" PREFIX "%s", parent(), suffix) < 0) {
        d->path = NULL;
        return bk_err_nomem("directory of a package");
    }

    d->lock = lock_of(fresh);
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

/* Only of a directory of our own that nobody else holds; -1 otherwise. */
static int
lock_of(const char *path)
{
    struct stat st;

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd != -1 && (fstat(fd, &st) != 0 || st.st_uid != geteuid()
        || flock(fd, LOCK_EX | LOCK_NB) != 0))
    {
        (void) close(fd);
        return -1;
    }

    return fd;
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
