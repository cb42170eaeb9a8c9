/*
 * cache_executions.h - identical requests that missed the response cache share
 *                      one execution: the first executes, the others wait for
 *                      its response.
 *
 * Owner    The cached model owns the table.  An execution is the caller's
 *          memory, listed from join to leave or pass.  Waiting requests belong
 *          to the table.
 * Thread   any, holding the cached model's lock.
 * Units    none.
 * Errors   none: nothing is allocated.
 * Route    lookup that missed -> [executions] -> runner; response ->
 *          [executions] -> the requests that waited
 */

#ifndef INF_CACHE_CACHE_EXECUTIONS_H
#define INF_CACHE_CACHE_EXECUTIONS_H

#include "core/cache/cache_key.h"

#define INF_CACHE_EXECUTION_BUCKETS 1024u

typedef struct inf_cache_execution_s {
    struct inf_cache_execution_s *next;     /* of the same bucket            */
    inf_cache_key_t               key;
    uint64_t                      priority; /* of its requests               */
    inf_link_t                    followers;    /* requests, in order        */
    bool                          listed;
} inf_cache_execution_t;

typedef struct {
    inf_cache_execution_t *buckets[INF_CACHE_EXECUTION_BUCKETS];
    uint32_t               count;           /* of executions                 */
} inf_cache_executions_t;

/* Initializes the caller's memory as an empty table. */
void inf_cache_executions_init(inf_cache_executions_t *f);

/* true: req is the first of its key and priority, for which e is listed.
   false: req waits (state PARKED) for the first one, and e is unchanged. */
bool inf_cache_executions_join(inf_cache_executions_t *f,
    inf_cache_execution_t *e, inf_cache_key_t key, inf_request_t *req);

/* Ends an execution: unlists e and moves the waiting requests, now in state
   EXECUTING, to the end of list.  An execution that is not listed has none. */
void inf_cache_executions_leave(inf_cache_executions_t *f,
    inf_cache_execution_t *e, inf_link_t *list);

/* Replaces a first request that gives up: the next one becomes the first, in
   state EXECUTING, with heir as its execution, and the others keep waiting.
   NULL: none waited, the execution is ended. */
inf_request_t *inf_cache_executions_pass(inf_cache_executions_t *f,
    inf_cache_execution_t *e, inf_cache_execution_t *heir);

#endif /* INF_CACHE_CACHE_EXECUTIONS_H */
