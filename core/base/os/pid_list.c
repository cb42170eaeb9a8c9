#include "core/base/os/pid_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static void add(inf_pid_list_t *list, pid_t pid);

void
inf_pid_list_fini(inf_pid_list_t *list)
{
    free(list->pids);
    *list = (inf_pid_list_t) { .pids = NULL };
}

void
inf_pid_list_add_threads(inf_pid_list_t *list, pid_t process)
{
    const struct dirent *entry;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/task", (int) process);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        pid_t thread = (pid_t) strtol(entry->d_name, NULL, 10);
        if (thread > 0) {
            add(list, thread);
        }
    }
    closedir(dir);
}

void
inf_pid_list_add_children(inf_pid_list_t *list, pid_t thread)
{
    char path[64];
    int pid;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) thread,
        (int) thread);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return;
    }

    while (fscanf(f, "%d", &pid) == 1) {
        add(list, pid);
    }
    fclose(f);
}

bool
inf_pid_list_has(const inf_pid_list_t *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->pids[i] == pid) {
            return true;
        }
    }

    return false;
}

/* Does nothing without memory. */
static void
add(inf_pid_list_t *list, pid_t pid)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        pid_t *wider = realloc(list->pids, capacity * sizeof(*wider));
        if (wider == NULL) {
            return;
        }
        list->pids = wider;
        list->capacity = capacity;
    }

    list->pids[list->count++] = pid;
}
