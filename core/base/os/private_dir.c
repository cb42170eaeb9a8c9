#include "core/base/os/private_dir.h"

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

#include "core/base/log.h"
#include "core/base/path.h"

#define PRIVATE_PREFIX "inference-model-"
#define PRIVATE_SUFFIX 6u       /* length of mkdtemp's suffix                */

/* The directory is renamed after it is locked, so that others never find it
   without a lock. */
#define PRIVATE_NEW    "inference-new-XXXXXX"

static const char *parent_dir(const char *parent);
static inf_err_t *take_name(const char *parent, const char *fresh,
    inf_private_dir_t *d);
static int lock_dir(const char *path);
static bool is_orphan(const char *path, int *fd);
static int remove_one(const char *path, const struct stat *sb, int type,
    struct FTW *ftw);

inf_err_t *
inf_private_dir_new(const char *parent, inf_private_dir_t **out)
{
    parent = parent_dir(parent);
    inf_private_dir_t *d = calloc(1, sizeof(*d));
    char *fresh = inf_path_join(parent, PRIVATE_NEW);
    if (d == NULL || fresh == NULL) {
        free(d);
        free(fresh);
        return inf_err_nomem();
    }

    d->lock_fd = -1;
    if (mkdtemp(fresh) == NULL) {
        int error = errno;
        free(d);
        free(fresh);
        return inf_err_os(error, "cannot create a directory in %s",
            parent);
    }

    inf_err_t *err = take_name(parent, fresh, d);
    if (err != NULL) {
        (void) rmdir(fresh);
        if (d->lock_fd >= 0) {
            close(d->lock_fd);
        }
        free(d->path);
        free(d);
        free(fresh);
        return err;
    }

    free(fresh);
    *out = d;
    return NULL;
}

void
inf_private_dir_free(inf_private_dir_t *d)
{
    if (d == NULL) {
        return;
    }

    inf_private_dir_remove_tree(d->path);
    close(d->lock_fd);
    free(d->path);
    free(d);
}

void
inf_private_dir_sweep(const char *parent)
{
    parent = parent_dir(parent);
    DIR *dir = opendir(parent);
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL) {
        int fd = -1;

        if (strncmp(e->d_name, PRIVATE_PREFIX, sizeof(PRIVATE_PREFIX) - 1)
            != 0 || strlen(e->d_name) != sizeof(PRIVATE_PREFIX) - 1
                + PRIVATE_SUFFIX)
        {
            continue;
        }

        char *path = inf_path_join(parent, e->d_name);
        if (path != NULL && is_orphan(path, &fd)) {
            inf_log(INF_LOG_INFO, "'%s' was left by a core that died: it is"
                " removed", path);
            inf_private_dir_remove_tree(path);
        }
        if (fd >= 0) {
            close(fd);
        }
        free(path);
    }

    if (dir != NULL) {
        closedir(dir);
    }
}

void
inf_private_dir_remove_tree(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        inf_log(INF_LOG_WARN, "cannot remove all of '%s': %s", path,
            strerror(errno));
    }
}

static const char *
parent_dir(const char *parent)
{
    const char *dir = getenv("TMPDIR");

    if (parent != NULL) {
        return parent;
    }
    return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}

static inf_err_t *
take_name(const char *parent, const char *fresh, inf_private_dir_t *d)
{
    const char *suffix = fresh + strlen(fresh) - PRIVATE_SUFFIX;

    d->lock_fd = lock_dir(fresh);
    if (d->lock_fd < 0) {
        return inf_err_os(errno, "cannot lock '%s'", fresh);
    }
    char name[sizeof(PRIVATE_PREFIX) + PRIVATE_SUFFIX];
    snprintf(name, sizeof(name), PRIVATE_PREFIX "%s", suffix);
    d->path = inf_path_join(parent, name);
    if (d->path == NULL) {
        return inf_err_nomem();
    }

    return rename(fresh, d->path) == 0 ? NULL
        : inf_err_os(errno, "cannot rename '%s' to '%s'", fresh, d->path);
}

/* Opens and locks; -1 with errno: cannot be opened, or is locked. */
static int
lock_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }

    return fd;
}

/* Whether the directory has no owner; *fd then holds its lock. */
static bool
is_orphan(const char *path, int *fd)
{
    struct stat st;

    *fd = lock_dir(path);
    return *fd >= 0 && fstat(*fd, &st) == 0 && st.st_uid == geteuid();
}

static int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void) sb;
    (void) type;
    (void) ftw;
    return remove(path);
}
