/*
 * hung_directory.c - a directory on a file system that does not answer, for
 * users that may mount none.
 *
 * HUNG_DIRECTORY names it.  While the file HUNG_DIRECTORY.hold exists, a path
 * in it is not resolved; the file HUNG_DIRECTORY.held says that one waits.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
wait_below(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s.hold", folder);
    if (access(path, F_OK) != 0) {
        return;
    }

    snprintf(path, sizeof(path), "%s.held", folder);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    snprintf(path, sizeof(path), "%s.hold", folder);
    while (access(path, F_OK) == 0) {
        usleep(5000);
    }
}

char *
realpath(const char *path, char *resolved)
{
    char *(*next)(const char *, char *) = (char *(*)(const char *, char *))
        dlsym(RTLD_NEXT, "realpath");
    const char *folder = getenv("HUNG_DIRECTORY");

    if (folder != NULL && strncmp(path, folder, strlen(folder)) == 0) {
        wait_below(folder);
    }
    return next(path, resolved);
}
