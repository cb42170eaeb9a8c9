/*
 * loading_place.h - on which cores models are loaded and destroyed: those of
 *                   the host policy "loading", if there is one.
 *
 * Owner    The caller's memory, from enter to leave.
 * Thread   enter and leave are about the calling thread, a loader or one that
 *          destroys; several threads at once.
 * Units    none.
 * Errors   Cores that can't be used are logged: the work goes on elsewhere.
 * Route    lifecycle -> [loading place] -> kernel
 *
 * A load reads and copies for long; on cores of its own it takes none from
 * requests.  Threads that a backend starts meanwhile inherit these cores:
 * leave gives them those that the loading thread came from.
 */

#ifndef INF_REPOSITORY_LOADING_PLACE_H
#define INF_REPOSITORY_LOADING_PLACE_H

#include <sys/types.h>

#include "core/model/host_policy.h"

#define INF_LOADING_POLICY "loading"

typedef struct inf_loading_place_s {
    struct inf_loading_place_s *next;   /* of those entered                  */
    bool          apart;                /* there are cores to leave          */
    bool          shared;               /* another policy has the same       */
    pid_t         thread;
    unsigned long home[INF_HOST_CORE_WORDS];
    unsigned long cores[INF_HOST_CORE_WORDS];
} inf_loading_place_t;

void inf_loading_place_enter(inf_loading_place_t *p,
    const inf_host_policies_t *policies);
void inf_loading_place_leave(inf_loading_place_t *p);

#endif /* INF_REPOSITORY_LOADING_PLACE_H */
