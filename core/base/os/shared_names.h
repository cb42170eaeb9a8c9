/*
 * shared_names.h - names in /dev/shm of memory mapped both by another process
 *                  and by this one.
 *
 * Owner    The caller's memory: read, use, fini.
 * Thread   one at a time.
 * Units    none.
 * Errors   A process that cannot be read counts as not mapping the memory; a
 *          name that cannot be removed is logged.
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
    dev_t  device;          /* identifies the memory, with inode             */
    ino_t  inode;
} inf_shared_name_t;

typedef struct {
    inf_shared_name_t *items;
    size_t             count;
} inf_shared_names_t;

/* Reads the names that pid and this process map; none on failure. */
void inf_shared_names_read(inf_shared_names_t *names, pid_t pid);
void inf_shared_names_fini(inf_shared_names_t *names);

/* Removes each name that still refers to the same memory, if no process maps
   it; ours: this process is ignored. */
void inf_shared_names_unlink(const inf_shared_names_t *names, bool ours);

/* Whether this process maps that memory of /dev/shm, under any name; an error
   if its mappings cannot be read. */
INF_CHECK inf_err_t *inf_shared_memory_is_mapped(dev_t device, ino_t inode,
    bool *mapped);

#endif /* INF_BASE_OS_SHARED_NAMES_H */
