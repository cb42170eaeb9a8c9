#include "core/storage/storage_local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/path.h"

static void local_close(inf_storage_t *st);
static inf_err_t *local_list(const inf_storage_t *st, const char *dir,
    inf_entries_t *out);
static inf_err_t *local_list_open(DIR *d, const char *dir,
    inf_entries_t *out);
static void local_entry_at(int dir_fd, const char *name, inf_entry_t *out);
static void local_entry_of(const struct stat *sb, inf_entry_t *out);
static uint64_t local_id(const struct stat *sb);
static int64_t local_time_ns(struct timespec ts);
static inf_err_t *local_stat(const inf_storage_t *st, const char *path,
    inf_entry_t *out);
static inf_err_t *local_read(const inf_storage_t *st, const char *path,
    size_t limit, char **data, size_t *len);
static inf_err_t *local_read_fd(int fd, const char *path, size_t limit,
    char **data, size_t *len);
static inf_err_t *local_read_all(int fd, const char *path, size_t limit,
    size_t room, char **data, size_t *len);
static inf_err_t *local_not_regular(const char *path);
static inf_err_t *local_too_large(const char *path, size_t limit);
static inf_err_t *local_os(int errnum, const char *what, const char *path);
static inf_err_t *local_denied(inf_err_t *err);
static inf_err_t *local_contain(const inf_storage_t *st, const char *dir,
    const char *path);
static char *local_existing(const char *path, const char **rest, int *errnum);
static bool local_is_below(const char *dir, const char *path);
static inf_err_t *local_localize(inf_storage_t *st, const char *dir,
    char **local);
static void local_release(inf_storage_t *st, char *local);

static const inf_storage_ops_t local_ops = {
    .close    = local_close,
    .list     = local_list,
    .stat     = local_stat,
    .read     = local_read,
    .contain  = local_contain,
    .localize = local_localize,
    .release  = local_release,
};

inf_err_t *
inf_storage_local_open(inf_storage_t **out)
{
    inf_storage_t *st = malloc(sizeof(*st));
    if (st == NULL) {
        return inf_err_nomem();
    }

    st->ops = &local_ops;
    *out = st;
    return NULL;
}

inf_err_t *
inf_local_contain(const char *dir, const char *path)
{
    char *parent = realpath(dir, NULL);
    if (parent == NULL) {
        return local_os(errno, "failed to resolve directory", dir);
    }

    const char *rest;
    int errnum = 0;
    char *child = local_existing(path, &rest, &errnum);
    bool inside = child != NULL && local_is_below(parent, child)
        && (rest[0] == '\0' || inf_path_is_inner(rest));

    free(child);
    free(parent);

    if (inside) {
        return NULL;
    }

    if (errnum != 0 && errnum != ENOENT) {
        return local_os(errnum, "failed to resolve path", path);
    }

    return inf_err_new(INF_ERR_UNSUPPORTED,
        "path '%s' is outside directory '%s'", path, dir);
}

static void
local_close(inf_storage_t *st)
{
    free(st);
}

static inf_err_t *
local_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    (void) st;

    /* does not block on a fifo: O_DIRECTORY rejects it */
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return local_os(errno, "failed to open directory", dir);
    }

    DIR *d = fdopendir(fd);
    if (d == NULL) {
        int errnum = errno;
        close(fd);
        return local_os(errnum, "failed to open directory", dir);
    }

    inf_err_t *err = local_list_open(d, dir, out);
    closedir(d);
    return err;
}

static inf_err_t *
local_list_open(DIR *d, const char *dir, inf_entries_t *out)
{
    for (;;) {
        errno = 0;
        const struct dirent *ent = readdir(d);
        if (ent == NULL) {
            return errno == 0 ? NULL
                              : local_os(errno, "failed to list directory",
                                    dir);
        }

        if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0) {
            continue;
        }

        inf_entry_t entry;
        local_entry_at(dirfd(d), ent->d_name, &entry);
        if (entry.kind == INF_ENTRY_BROKEN && entry.errnum == 0) {
            continue;                       /* removed since it was listed */
        }

        if (!inf_entries_add(out, &entry, ent->d_name)) {
            return inf_err_nomem();
        }
    }
}

/* Describes an entry; BROKEN with errnum 0: it no longer exists. */
static void
local_entry_at(int dir_fd, const char *name, inf_entry_t *out)
{
    struct stat sb;

    *out = (inf_entry_t) { .kind = INF_ENTRY_BROKEN };
    if (fstatat(dir_fd, name, &sb, 0) == 0) {
        local_entry_of(&sb, out);
        return;
    }

    out->errnum = errno;
    if (fstatat(dir_fd, name, &sb, AT_SYMLINK_NOFOLLOW) == 0) {
        out->changed_ns = local_time_ns(sb.st_ctim);

    } else if (errno == ENOENT) {
        out->errnum = 0;
    }
}

static void
local_entry_of(const struct stat *sb, inf_entry_t *out)
{
    int64_t modified = local_time_ns(sb->st_mtim);
    int64_t changed = local_time_ns(sb->st_ctim);

    *out = (inf_entry_t) { .kind = INF_ENTRY_OTHER };
    out->changed_ns = modified > changed ? modified : changed;
    out->id = local_id(sb);

    if (S_ISDIR(sb->st_mode)) {
        out->kind = INF_ENTRY_DIR;

    } else if (S_ISREG(sb->st_mode)) {
        out->kind = INF_ENTRY_FILE;
        out->size = (uint64_t) sb->st_size;
    }
}

static uint64_t
local_id(const struct stat *sb)
{
    const uint64_t pair[2] = { sb->st_dev, sb->st_ino };
    uint64_t id = inf_hash(pair, sizeof(pair));

    return id != 0 ? id : 1;
}

static int64_t
local_time_ns(struct timespec ts)
{
    return (int64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inf_err_t *
local_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    struct stat sb;

    (void) st;
    if (stat(path, &sb) != 0) {
        int errnum = errno;
        if (errnum == ENOENT && lstat(path, &sb) == 0) {
            return inf_err_os(errnum, "failed to follow link %s", path);
        }

        return local_os(errnum, "failed to stat file", path);
    }

    local_entry_of(&sb, out);
    return NULL;
}

static inf_err_t *
local_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    struct stat sb;
    (void) st;

    /* opening a device may have side effects */
    if (stat(path, &sb) == 0 && !S_ISREG(sb.st_mode)) {
        return local_not_regular(path);
    }

    /* O_NONBLOCK: a fifo must not block a load */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return local_os(errno, "failed to open text file for read", path);
    }

    inf_err_t *err = local_read_fd(fd, path, limit, data, len);
    close(fd);
    return err;
}

static inf_err_t *
local_read_fd(int fd, const char *path, size_t limit, char **data,
    size_t *len)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0) {
        return local_os(errno, "failed to stat file", path);
    }

    if (!S_ISREG(sb.st_mode)) {
        return local_not_regular(path);
    }

    if ((uint64_t) sb.st_size > limit) {
        return local_too_large(path, limit);
    }

    return local_read_all(fd, path, limit, (size_t) sb.st_size + 1, data,
        len);
}

/*
 * Reads a file.  room is its reported size and one byte more to detect its
 * end.  The file may grow meanwhile, and some (in /proc) report no size.
 */
static inf_err_t *
local_read_all(int fd, const char *path, size_t limit, size_t room,
    char **data, size_t *len)
{
    char *bytes = NULL;
    size_t used = 0;
    size_t cap = 0;
    inf_err_t *err = NULL;

    for (;;) {
        if (used == cap) {
            cap = cap == 0 ? room : cap * 2;
            char *grown = realloc(bytes, cap + 1);
            if (grown == NULL) {
                err = inf_err_nomem();
                goto fail;
            }

            bytes = grown;
        }

        ssize_t n = read(fd, bytes + used, cap - used);
        if (n == 0) {
            break;
        }

        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }

            err = local_os(errno, "failed to read file", path);
            goto fail;
        }

        used += (size_t) n;
        if (used > limit) {
            err = local_too_large(path, limit);
            goto fail;
        }
    }

    bytes[used] = '\0';
    *data = bytes;
    *len = used;
    return NULL;

fail:

    free(bytes);
    return err;
}

static inf_err_t *
local_not_regular(const char *path)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "'%s' is not a regular file",
        path);
}

static inf_err_t *
local_too_large(const char *path, size_t limit)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
        "file '%s' is larger than the limit of %zu bytes", path, limit);
}

static inf_err_t *
local_os(int errnum, const char *what, const char *path)
{
    if (errnum == ENOMEM) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_err_os(errnum, "%s %s", what, path);
    if (errnum == ENOENT || errnum == ENOTDIR) {
        return inf_err_recode(err, INF_ERR_NOT_FOUND);
    }

    return errnum == EACCES ? local_denied(err) : err;
}

/* Adds the user who lacks access, by name or number. */
static inf_err_t *
local_denied(inf_err_t *err)
{
    char text[1024];
    struct passwd user;
    struct passwd *found = NULL;

    (void) getpwuid_r(geteuid(), &user, text, sizeof(text), &found);
    return found != NULL
        ? inf_err_note(err, "the core runs as user %s (%u)", found->pw_name,
            geteuid())
        : inf_err_note(err, "the core runs as user %u", geteuid());
}

static inf_err_t *
local_contain(const inf_storage_t *st, const char *dir, const char *path)
{
    (void) st;
    return inf_local_contain(dir, path);
}

/*
 * The longest existing prefix of path, with links resolved; *rest (inside
 * path) is the remainder.  NULL: *errnum is the cause.  A dangling link is an
 * error.
 */
static char *
local_existing(const char *path, const char **rest, int *errnum)
{
    char *head = strdup(path);
    if (head == NULL) {
        *errnum = ENOMEM;
        return NULL;
    }

    size_t len = strlen(head);
    char *resolved = NULL;
    *rest = path + len;

    for (;;) {
        struct stat sb;

        resolved = realpath(len == 0 ? "." : head, NULL);
        if (resolved != NULL || errno != ENOENT || len == 0) {
            break;
        }

        if (lstat(head, &sb) == 0) {
            errno = ENOENT;                 /* a dangling link */
            break;
        }

        while (len > 0 && head[len - 1] != '/') {
            len--;
        }

        *rest = path + len;
        while (len > 1 && head[len - 1] == '/') {
            len--;
        }

        head[len] = '\0';
    }

    *errnum = resolved == NULL ? errno : 0;
    free(head);
    return resolved;
}

/* Whether path is dir or below it; both are canonical. */
static bool
local_is_below(const char *dir, const char *path)
{
    size_t len = strlen(dir);
    if (strncmp(dir, path, len) != 0) {
        return false;
    }

    return path[len] == '\0' || path[len] == '/' || strcmp(dir, "/") == 0;
}

static inf_err_t *
local_localize(inf_storage_t *st, const char *dir, char **local)
{
    (void) st;
    char *copy = strdup(dir);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    *local = copy;
    return NULL;
}

static void
local_release(inf_storage_t *st, char *local)
{
    (void) st;
    free(local);
}
