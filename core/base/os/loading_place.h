/*
 * loading_place.h - the cores on which models are loaded and destroyed, from
 *                   the host policy "loading".
 *
 * Owner    The caller's memory, from enter to leave.
 * Thread   moves the calling thread, a loader or a destroyer.  Several threads
 *          at once.
 * Units    none.
 * Errors   A thread that cannot be moved stays on its cores; the reason is
 *          logged.
 * Route    lifecycle -> [loading place] -> kernel
 *
 * Threads and processes that a backend starts during a load inherit its cores.
 * leave moves those that still have exactly these cores to the previous cores
 * of the loading thread, since they serve requests.  A process whose parent
 * has ended is not found.
 *
 * The priority is unchanged, because on Linux threads would permanently
 * inherit a lower one (docs/decisions/0020-loads-at-the-usual-priority.md).
 */

#ifndef INF_BASE_OS_LOADING_PLACE_H
#define INF_BASE_OS_LOADING_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/os/host_policy.h"

#define INF_LOADING_POLICY "loading"

typedef struct inf_loading_place_s {
    struct inf_loading_place_s *next;   /* of all entered                    */
    bool          entered;
    bool          shared;               /* another policy has the same cores */
    pid_t         thread;
    unsigned long previous[INF_HOST_CORE_WORDS];
    unsigned long cores[INF_HOST_CORE_WORDS];
} inf_loading_place_t;

/* Without the policy enter and leave do nothing. */
void inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies);

/* A second call does nothing. */
void inf_loading_place_leave(inf_loading_place_t *p);

#endif /* INF_BASE_OS_LOADING_PLACE_H */
