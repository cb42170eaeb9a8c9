/*
 * shm_fault.h - handles accesses beyond the end of mapped objects that another
 *               process may truncate.
 *
 * Owner    The owner of mapped memory enters it before its first access and
 *          removes it before unmapping it.
 * Thread   any; the handler runs on the faulting thread.
 * Units    bytes; whole pages.
 * Errors   enter: UNAVAILABLE: INF_SHM_MAPPINGS_MAX are entered already, or
 *          the handler cannot be installed.
 * Route    shm_region -> [shm fault] <- SIGBUS
 *
 * The kernel sends SIGBUS for a page that the object no longer has, or that
 * its file system has no room for.  For an entered mapping the handler
 * replaces the whole mapping by private zeros and marks it: the access
 * continues, and inf_shm_fault_seen reports that the bytes are invalid.  Any
 * other SIGBUS is passed to the previous action.  The table is global because
 * a signal handler has no arguments.
 */

#ifndef INF_TENSOR_SHM_FAULT_H
#define INF_TENSOR_SHM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"

#define INF_SHM_MAPPINGS_MAX 4096u

/* Enters a mapping; the first call installs the handler.  device, inode: of the
   object.  *place is for the calls below. */
INF_CHECK inf_err_t *inf_shm_fault_enter(void *base, size_t size,
    dev_t device, ino_t inode, uint32_t *place);

/* Removes a mapping; the memory must still be mapped. */
void inf_shm_fault_remove(uint32_t place);

/* Whether the mapping had a fault. */
bool inf_shm_fault_seen(uint32_t place);

/* Whether a mapping of that object is entered. */
bool inf_shm_fault_knows(dev_t device, ino_t inode);

#endif /* INF_TENSOR_SHM_FAULT_H */
