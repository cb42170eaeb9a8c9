/*
 * loading_place.h - the cores on which models are loaded and destroyed: those
 *                   of the host policy "loading", if there is one.
 *
 * Owner    The caller's memory, from enter to leave.
 * Thread   The calling thread is moved: a loader or a destroyer.  Several
 *          threads at once.
 * Units    none.
 * Errors   A thread that cannot be moved works where it is; the reason is
 *          logged.
 * Route    lifecycle -> [loading place] -> kernel
 *
 * Threads and processes that a backend starts during a load inherit its cores.
 * leave moves those that still have exactly these cores to where the loading
 * thread was before: they serve requests.  A process whose parent has ended is
 * not found.
 *
 * The priority is the usual one, because Linux lets a thread inherit a lower
 * one for good (docs/decisions/0020-loads-at-the-usual-priority.md).
 */

#ifndef INF_BASE_OS_LOADING_PLACE_H
#define INF_BASE_OS_LOADING_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/os/host_policy.h"

#define INF_LOADING_POLICY "loading"

typedef struct inf_loading_place_s {
    struct inf_loading_place_s *next;   /* of those entered                  */
    bool          entered;
    bool          shared;               /* another policy has the same cores */
    pid_t         thread;
    unsigned long home[INF_HOST_CORE_WORDS];
    unsigned long cores[INF_HOST_CORE_WORDS];
} inf_loading_place_t;

/* Without the policy this and leave do nothing. */
void inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies);

/* A second call does nothing. */
void inf_loading_place_leave(inf_loading_place_t *p);

#endif /* INF_BASE_OS_LOADING_PLACE_H */
