/*
 * full_disk.c - a disk that fills up, for users that may mount none.
 *
 * FULL_DISK names a directory.  The file FULL_DISK.room, if there is one, says
 * how many bytes may still be written below it; after those every call that
 * needs a place there fails with ENOSPC.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(type, name) ((type) dlsym(RTLD_NEXT, name))

static _Atomic size_t used;

/* Bytes that may be written; SIZE_MAX: the disk has no bound now. */
static size_t
room(void)
{
    const char *folder = getenv("FULL_DISK");
    char path[4096];
    char text[32] = "";

    snprintf(path, sizeof(path), "%s.room", folder != NULL ? folder : "");
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        used = 0;
        return SIZE_MAX;
    }

    long n = syscall(SYS_read, fd, text, sizeof(text) - 1);
    syscall(SYS_close, fd);
    size_t bound = n > 0 ? strtoull(text, NULL, 10) : 0;
    return bound > used ? bound - used : 0;
}

static bool
below(const char *path)
{
    const char *folder = getenv("FULL_DISK");
    size_t len = folder != NULL ? strlen(folder) : 0;

    return len > 0 && strncmp(path, folder, len) == 0 && path[len] == '/';
}

static bool
is_full(const char *path)
{
    if (below(path) && room() == 0) {
        errno = ENOSPC;
        return true;
    }
    return false;
}

/* How much of len the disk of fd takes; errno is set where it is nothing. */
static size_t
takes(int fd, size_t len)
{
    char name[64];
    char path[4096];
    int error = errno;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, sizeof(path) - 1);
    errno = error;
    if (n <= 0) {
        return len;
    }
    path[n] = '\0';
    if (!below(path)) {
        return len;
    }

    size_t left = room();
    len = len < left ? len : left;
    used += left == SIZE_MAX ? 0 : len;
    return len;
}

ssize_t
write(int fd, const void *data, size_t len)
{
    size_t n = takes(fd, len);
    if (n == 0 && len > 0) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(ssize_t (*)(int, const void *, size_t), "write")(fd, data, n);
}

ssize_t
pwrite(int fd, const void *data, size_t len, off_t at)
{
    size_t n = takes(fd, len);
    if (n == 0 && len > 0) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(ssize_t (*)(int, const void *, size_t, off_t), "pwrite")(fd,
        data, n, at);
}

int
open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return (flags & O_CREAT) != 0 && is_full(path) ? -1
        : NEXT(int (*)(const char *, int, ...), "open")(path, flags, mode);
}

int
mkdir(const char *path, mode_t mode)
{
    return is_full(path) ? -1
        : NEXT(int (*)(const char *, mode_t), "mkdir")(path, mode);
}

char *
mkdtemp(char *path)
{
    return is_full(path) ? NULL : NEXT(char *(*)(char *), "mkdtemp")(path);
}

int
mkostemp(char *path, int flags)
{
    return is_full(path) ? -1
        : NEXT(int (*)(char *, int), "mkostemp")(path, flags);
}

int
link(const char *from, const char *to)
{
    return is_full(to) ? -1
        : NEXT(int (*)(const char *, const char *), "link")(from, to);
}
