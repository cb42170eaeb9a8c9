/*
 * load_threads.h - the threads that have a backend build versions, and the
 *                  processes that they have started.
 *
 * Owner    The lifecycle owns the list; an entry is the memory of its thread
 *          from enter to leave.
 * Thread   any.
 * Units    ns on the monotonic clock.
 * Errors   A process that /proc doesn't list is not found.
 * Route    model_instances, lifecycle_stuck -> [load threads] -> kernel
 *
 * A load is named by a number that no other load has.
 */

#ifndef INF_REPOSITORY_LOAD_THREADS_H
#define INF_REPOSITORY_LOAD_THREADS_H

#include <stdint.h>

#include "core/base/lock.h"
#include "core/base/os/pid_list.h"
#include "core/base/queue.h"

typedef struct {
    inf_lock_t lock;            /* rank 15; guards the list and its entries.
                                   Processes are looked up and killed with it
                                   held, so that no thread goes on to another
                                   load meanwhile                            */
    inf_link_t threads;         /* of inf_load_thread_t                      */
} inf_load_threads_t;

typedef struct {
    inf_link_t     link;
    uint64_t       load;
    pid_t          thread;
    inf_pid_list_t before;      /* children of the thread when it entered    */
    uint64_t       failed_ns;   /* a process was first found dead; 0: none   */
} inf_load_thread_t;

/* The list is empty when it ends. */
void inf_load_threads_init(inf_load_threads_t *t);
void inf_load_threads_fini(inf_load_threads_t *t);

/* The calling thread works for load until leave; t NULL: only before is
   read. */
void inf_load_threads_enter(inf_load_threads_t *t, inf_load_thread_t *me,
    uint64_t load);
void inf_load_threads_leave(inf_load_threads_t *t, inf_load_thread_t *me);

/*
 * A load of which a process has failed (a signal, a status that is not 0) and
 * has been left unreaped by its backend for patience_ns; 0: none.  why says
 * which process, and how it ended.  To be called again every second or so.
 */
uint64_t inf_load_threads_find_failed(inf_load_threads_t *t, uint64_t now_ns,
    uint64_t patience_ns, char *why, size_t cap);

/* Kills the processes that threads of load have started; how many. */
uint32_t inf_load_threads_kill(inf_load_threads_t *t, uint64_t load);

#endif /* INF_REPOSITORY_LOAD_THREADS_H */
