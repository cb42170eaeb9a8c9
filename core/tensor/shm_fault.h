/*
 * shm_fault.h - mappings of objects that somebody else may make shorter: what
 *               becomes of an access behind the end.
 *
 * Owner    The one that maps memory enters it before its first access and
 *          removes it before the memory is unmapped.
 * Thread   any; the handler runs on the thread that has the fault.
 * Units    bytes; whole pages.
 * Errors   enter: UNAVAILABLE, there are INF_SHM_MAPPINGS_MAX already; the
 *          handler can't be installed.
 * Route    shm_region -> [shm fault] <- SIGBUS
 *
 * The kernel sends SIGBUS for a page that the object no longer has, or that
 * its file system has no room for.  In a mapping that was entered here the
 * whole mapping becomes private memory of zeros then, and is marked: the
 * access goes on, and a call says that the bytes mean nothing.  Every
 * other SIGBUS goes to the action that was there before.  The table is global
 * because a signal handler has nothing else.
 */

#ifndef INF_TENSOR_SHM_FAULT_H
#define INF_TENSOR_SHM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"

#define INF_SHM_MAPPINGS_MAX 4096u

/* The first call installs the handler.  device, inode: the object's.  place:
   for the calls below. */
INF_CHECK inf_err_t *inf_shm_fault_enter(void *base, size_t size,
    dev_t device, ino_t inode, uint32_t *place);

/* The memory must be mapped still. */
void inf_shm_fault_remove(uint32_t place);

/* Whether there was a fault in it. */
bool inf_shm_fault_seen(uint32_t place);

/* Whether a mapping of that object was entered. */
bool inf_shm_fault_knows(dev_t device, ino_t inode);

#endif /* INF_TENSOR_SHM_FAULT_H */
