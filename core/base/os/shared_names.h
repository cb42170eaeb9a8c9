/*
 * shared_names.h - names in /dev/shm of memory that another process and this
 *                  one have mapped.
 *
 * Owner    the caller's memory: read, use, fini.
 * Thread   one at a time.
 * Units    none.
 * Errors   Another process that can't be read counts as not mapping it; a name
 *          that can't be removed is logged.
 * Route    children, shm_object -> [shared names]
 */

#ifndef INF_BASE_OS_SHARED_NAMES_H
#define INF_BASE_OS_SHARED_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/error.h"

typedef struct {
    char  *path;
    dev_t  device;          /* with inode: which memory the name meant       */
    ino_t  inode;
} inf_shared_name_t;

typedef struct {
    inf_shared_name_t *items;
    size_t             count;
} inf_shared_names_t;

/* Those that pid and this process map now; none if they can't be read. */
void inf_shared_names_read(inf_shared_names_t *names, pid_t pid);
void inf_shared_names_fini(inf_shared_names_t *names);

/* Removes each name that still means the same memory, if no process has that
   mapped; ours: this process doesn't count. */
void inf_shared_names_unlink(const inf_shared_names_t *names, bool ours);

/* Whether this process maps that memory of /dev/shm, by whichever name; an
   error where its mappings can't be read. */
INF_CHECK inf_err_t *inf_shared_memory_is_mapped(dev_t device, ino_t inode,
    bool *mapped);

#endif /* INF_BASE_OS_SHARED_NAMES_H */
