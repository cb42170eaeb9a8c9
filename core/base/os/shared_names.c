#include "core/base/os/shared_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/log.h"

#define SHM_PREFIX  "/dev/shm/"
#define NAMES_MAX   256u
#define LINE_MAX_   4500u       /* a path and the fields before it           */

typedef struct {
    dev_t       device;
    ino_t       inode;
    const char *path;           /* inside the line                           */
} mapping_t;


typedef enum {
    WALK_UNREADABLE,            /* read incompletely; errno is the cause     */
    WALK_ENOUGH,                /* ended by fn                               */
    WALK_ALL
} walk_t;

/* true: end the walk. */
typedef bool (*mapping_fn)(void *userp, const mapping_t *mapping);

static walk_t walk(const char *process, mapping_fn fn, void *userp);
static bool parse(char *line, mapping_t *mapping);
static bool collect(void *userp, const mapping_t *mapping);
static bool is_same(void *userp, const mapping_t *mapping);
static bool mapped_by(const char *process, const inf_shared_name_t *name);
static bool mapped(const inf_shared_name_t *name, bool ours);
static void keep_if_ours(inf_shared_names_t *names);
static void unlink_name(const inf_shared_name_t *name, bool ours);

void
inf_shared_names_read(inf_shared_names_t *names, pid_t pid)
{
    char process[24];
    snprintf(process, sizeof(process), "%d", (int) pid);

    *names = (inf_shared_names_t) { .items = NULL };
    walk(process, collect, names);
    keep_if_ours(names);
}

void
inf_shared_names_fini(inf_shared_names_t *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i].path);
    }
    free(names->items);
    *names = (inf_shared_names_t) { .items = NULL };
}

void
inf_shared_names_unlink(const inf_shared_names_t *names, bool ours)
{
    for (size_t i = 0; i < names->count; i++) {
        unlink_name(&names->items[i], ours);
    }
}

inf_err_t *
inf_shared_memory_is_mapped(dev_t device, ino_t inode, bool *mapped)
{
    inf_shared_name_t memory = { .device = device, .inode = inode };

    walk_t result = walk("self", is_same, &memory);
    if (result == WALK_UNREADABLE) {
        return errno == ENOMEM ? inf_err_nomem()
            : inf_err_os(errno, "cannot read /proc/self/maps");
    }

    *mapped = result == WALK_ENOUGH;
    return NULL;
}

/* Calls fn for each mapping of /dev/shm of process. */
static walk_t
walk(const char *process, mapping_fn fn, void *userp)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/maps", process);

    FILE *f = fopen(path, "re");
    char *line = f != NULL ? malloc(LINE_MAX_) : NULL;
    walk_t result = WALK_UNREADABLE;
    bool enough = false;

    while (line != NULL && !enough && fgets(line, LINE_MAX_, f) != NULL) {
        mapping_t mapping;
        enough = parse(line, &mapping) && fn(userp, &mapping);
    }

    int error = errno;
    if (enough) {
        result = WALK_ENOUGH;
    } else if (line != NULL && !ferror(f)) {
        result = WALK_ALL;
    }

    free(line);
    if (f != NULL) {
        fclose(f);
    }
    errno = error;
    return result;
}

/* Parses "start-end rights offset major:minor inode   path". */
static bool
parse(char *line, mapping_t *mapping)
{
    char *path = strstr(line, " " SHM_PREFIX);
    unsigned major, minor;
    unsigned long inode;

    if (path == NULL || sscanf(line, "%*x-%*x %*s %*x %x:%x %lu", &major,
            &minor, &inode) != 3)
    {
        return false;
    }

    path++;
    path[strcspn(path, "\n")] = '\0';
    mapping->device = makedev(major, minor);
    mapping->inode = inode;
    mapping->path = path;
    return true;
}

static bool
collect(void *userp, const mapping_t *mapping)
{
    inf_shared_names_t *names = userp;

    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].inode == mapping->inode
            && names->items[i].device == mapping->device)
        {
            return false;
        }
    }

    inf_shared_name_t *wider = realloc(names->items,
        (names->count + 1) * sizeof(*wider));
    if (wider == NULL) {
        return true;
    }
    names->items = wider;

    char *path = strdup(mapping->path);
    if (path == NULL) {
        return true;
    }
    names->items[names->count++] = (inf_shared_name_t) {
        .path = path, .device = mapping->device, .inode = mapping->inode
    };
    return names->count == NAMES_MAX;
}

static void
keep_if_ours(inf_shared_names_t *names)
{
    size_t kept = 0;

    for (size_t i = 0; i < names->count; i++) {
        if (mapped_by("self", &names->items[i])) {
            names->items[kept++] = names->items[i];
        } else {
            free(names->items[i].path);
        }
    }
    names->count = kept;
}

static bool
is_same(void *userp, const mapping_t *mapping)
{
    const inf_shared_name_t *name = userp;
    return mapping->inode == name->inode && mapping->device == name->device;
}

static bool
mapped_by(const char *process, const inf_shared_name_t *name)
{
    return walk(process, is_same, (void *) name) == WALK_ENOUGH;
}

static bool
mapped(const inf_shared_name_t *name, bool ours)
{
    DIR *dir = opendir("/proc");
    if (dir == NULL) {
        return true;                    /* unknown: keep the name            */
    }

    bool found = false;
    const struct dirent *entry;
    while (!found && (entry = readdir(dir)) != NULL) {
        bool process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
        bool self = process && atol(entry->d_name) == (long) getpid();

        found = process && !(ours && self)
            && mapped_by(entry->d_name, name);
    }

    closedir(dir);
    return found;
}

static void
unlink_name(const inf_shared_name_t *name, bool ours)
{
    struct stat st;

    if (stat(name->path, &st) != 0 || st.st_ino != name->inode
        || st.st_dev != name->device || mapped(name, ours))
    {
        return;
    }

    if (unlink(name->path) != 0) {
        inf_err_log(inf_err_os(errno, "cannot remove %s of a dead process",
            name->path));
        return;
    }
    inf_log(INF_LOG_INFO, "removed %s, left by a dead process", name->path);
}
