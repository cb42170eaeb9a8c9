/*
 * loading_place.h - where models are loaded and destroyed: behind requests
 *                   (idle_priority.h), and on the cores of the host policy
 *                   "loading", if there is one.
 *
 * Owner    The caller's memory, from enter to leave.
 * Thread   enter and leave are about the calling thread, a loader or one that
 *          destroys; several threads at once.  look: any.
 * Units    ns of inf_clock_ns().
 * Errors   What can't be done is logged: the work goes on where it is.
 * Route    lifecycle -> [loading place] -> kernel
 *
 * A load reads and copies for long; on cores of its own it takes none from
 * requests, and elsewhere only what they leave.  Threads and processes that a
 * backend starts meanwhile inherit both: leave gives them what the loading
 * thread had.  Processes don't work behind requests even that long: a load
 * waits for them, and that it does nothing meanwhile looks like patience.
 *
 * A process is found by its parents: one whose parent has ended is not.
 */

#ifndef INF_REPOSITORY_LOADING_PLACE_H
#define INF_REPOSITORY_LOADING_PLACE_H

#include <sys/types.h>

#include "core/model/host_policy.h"
#include "core/repository/idle_priority.h"

#define INF_LOADING_POLICY "loading"

typedef struct inf_loading_place_s {
    struct inf_loading_place_s *next;   /* of those entered                  */
    bool          entered;
    bool          apart;                /* there are cores to leave          */
    bool          shared;               /* another policy has the same       */
    pid_t         thread;
    uint64_t      began;                /* ticks (thread_stat.h)             */
    uint64_t      looked_ns;            /* at processes                      */
    inf_idle_priority_t priority;
    unsigned long home[INF_HOST_CORE_WORDS];
    unsigned long cores[INF_HOST_CORE_WORDS];
} inf_loading_place_t;

void inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies);

/* The thread goes back where it was.  Once more does nothing. */
void inf_loading_place_leave(inf_loading_place_t *p);

/* The thread ends, and stays for that. */
void inf_loading_place_end(inf_loading_place_t *p);

/* To be called every INF_IDLE_LOOK_NS while somebody may be here: who gets
   next to no processor no longer works behind requests, nor does a process
   that was started here. */
void inf_loading_place_look(uint64_t now_ns);

#endif /* INF_REPOSITORY_LOADING_PLACE_H */
