/*
 * hung_directory.c - a directory on a file system that does not answer, for
 * users that may mount none.
 *
 * HUNG_DIRECTORY names it.  While the file HUNG_DIRECTORY.hold exists, no path
 * in it is resolved, opened or looked at; the file HUNG_DIRECTORY.held says
 * that one waits.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(type, name) ((type) dlsym(RTLD_NEXT, name))

static void
wait_below(const char *at)
{
    const char *folder = getenv("HUNG_DIRECTORY");
    size_t len = folder != NULL ? strlen(folder) : 0;
    char path[4096];

    if (len == 0 || strncmp(at, folder, len) != 0
        || (at[len] != '/' && at[len] != '\0'))
    {
        return;
    }

    snprintf(path, sizeof(path), "%s.hold", folder);
    if (access(path, F_OK) != 0) {
        return;
    }

    snprintf(path, sizeof(path), "%s.held", folder);
    close((int) syscall(SYS_openat, AT_FDCWD, path,
        O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    snprintf(path, sizeof(path), "%s.hold", folder);
    while (access(path, F_OK) == 0) {
        usleep(5000);
    }
}

char *
realpath(const char *path, char *resolved)
{
    wait_below(path);
    return NEXT(char *(*)(const char *, char *), "realpath")(path, resolved);
}

int
open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = va_arg(args, unsigned);
    va_end(args);

    wait_below(path);
    return NEXT(int (*)(const char *, int, ...), "open")(path, flags, mode);
}

DIR *
opendir(const char *path)
{
    wait_below(path);
    return NEXT(DIR *(*)(const char *), "opendir")(path);
}

int
stat(const char *path, struct stat *sb)
{
    wait_below(path);
    return NEXT(int (*)(const char *, struct stat *), "stat")(path, sb);
}

int
lstat(const char *path, struct stat *sb)
{
    wait_below(path);
    return NEXT(int (*)(const char *, struct stat *), "lstat")(path, sb);
}
