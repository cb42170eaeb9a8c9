/* Any bytes as an environment's archive: nothing is made outside of its
   directory, and every link that is left there leads to it or below; the rules
   of names and links agree with a walk along the path. */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/common/error.c"
#include "backends/python/env_archive.c"
#include "check.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char world[] = "/tmp/inf-fuzz-archive-XXXXXX";
static char directory[sizeof(world) + 3];

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void) st;
    (void) kind;
    return ftw->level > 0 ? remove(path) : 0;
}

/* Also a link to nothing leads somewhere: its target's directory. */
static int
check_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    char real[PATH_MAX];
    size_t len = strlen(directory);

    if (ftw->level == 1) {
        check(strcmp(path, directory) == 0);
    }
    if (kind == FTW_SL && realpath(path, real) != NULL) {
        check(strncmp(real, directory, len) == 0
            && (real[len] == '/' || real[len] == '\0'));
    }
    check(ftw->level == 0 || S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)
        || S_ISLNK(st->st_mode));
    check((st->st_mode & (S_ISUID | S_ISGID)) == 0 || ftw->level < 2);
    return 0;
}

/* How far above or below its start a path without links ends; *lowest: on its
   way. */
static int
walk(const char *path, int depth, int *lowest)
{
    for (const char *p = path; *p != '\0';) {
        size_t len = strcspn(p, "/");
        if (len == 2 && memcmp(p, "..", 2) == 0) {
            depth--;
        } else if (len > 0 && !(len == 1 && p[0] == '.')) {
            depth++;
        }
        *lowest = depth < *lowest ? depth : *lowest;
        p += len + (p[len] == '/');
    }
    return depth;
}

static void
check_rules(const uint8_t *data, size_t size)
{
    char *name = calloc(1, size + 2);
    check(name != NULL);
    if (size > 0) {
        memcpy(name, data, size);
    }
    const char *target = name + strlen(name) + 1;
    int lowest = 0;
    int depth = walk(name, 0, &lowest);

    if (py_archive_name_stays(name)) {
        check(lowest == 0 && name[0] != '/' && strstr(name, "/../") == NULL);
        lowest = 0;
        if (py_archive_link_stays(name, target)) {
            check(target[0] != '/' && target[0] != '\0');
            walk(target, depth > 0 ? depth - 1 : 0, &lowest);
            check(lowest == 0);
        }
    }
    free(name);
}

static void
begin(void)
{
    check(mkdtemp(world) != NULL);
    snprintf(directory, sizeof(directory), "%s/in", world);
    umask(022);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char file[MEMORY_FILE_PATH];

    if (directory[0] == '\0') {
        begin();
    }
    check_rules(data, size);

    int fd = memory_file(data, size, file);
    check(mkdir(directory, 0700) == 0);
    TRITONSERVER_Error *err = py_archive_extract(file, directory,
        UINT64_C(1) << 30);
    if (err != NULL) {
        check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
        TRITONSERVER_ErrorDelete(err);
    }
    check(nftw(world, check_one, 16, FTW_PHYS) == 0);
    check(nftw(world, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
    close(fd);
    return 0;
}
