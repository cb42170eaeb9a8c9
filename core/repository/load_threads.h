/*
 * load_threads.h - the threads in which a backend builds versions, and the
 *                  processes they have started.
 *
 * Owner    The lifecycle owns the list; an entry is memory of its thread, from
 *          enter to leave.
 * Thread   any.
 * Units    ns on the monotonic clock.
 * Errors   A process that is not in /proc is not found.
 * Route    model_instances, lifecycle_stuck -> [load threads] -> kernel
 *
 * A load has a unique number.
 */

#ifndef INF_REPOSITORY_LOAD_THREADS_H
#define INF_REPOSITORY_LOAD_THREADS_H

#include <stdint.h>

#include "core/base/lock.h"
#include "core/base/os/pid_list.h"
#include "core/base/queue.h"

typedef struct {
    inf_lock_t lock;            /* rank 15; guards the list and its entries.
                                   Held while processes are looked up and
                                   killed, so that threads stay with their
                                   load                                      */
    inf_link_t threads;         /* of inf_load_thread_t                      */
} inf_load_threads_t;

typedef struct {
    inf_link_t     link;
    uint64_t       load;
    pid_t          thread;
    inf_pid_list_t before;      /* children at enter                         */
    uint64_t       failed_ns;   /* a process was found dead; 0: none         */
} inf_load_thread_t;

/* The list is empty at fini. */
void inf_load_threads_init(inf_load_threads_t *t);
void inf_load_threads_fini(inf_load_threads_t *t);

/* The calling thread works for load until leave; t NULL: only sets before. */
void inf_load_threads_enter(inf_load_threads_t *t, inf_load_thread_t *me,
    uint64_t load);
void inf_load_threads_leave(inf_load_threads_t *t, inf_load_thread_t *me);

/*
 * Finds a load with a failed process (by a signal or status) that its backend
 * has not reaped for patience_ns; 0: none.  why: which process, and how it
 * ended.  Called about every second.
 */
uint64_t inf_load_threads_find_failed(inf_load_threads_t *t, uint64_t now_ns,
    uint64_t patience_ns, char *why, size_t cap);

/* Kills processes started by threads of load; returns their number. */
uint32_t inf_load_threads_kill(inf_load_threads_t *t, uint64_t load);

#endif /* INF_REPOSITORY_LOAD_THREADS_H */
