/*
 * threads.h - threads for calls that may wait in the server: for a client, a
 *             load, an ensemble.
 *
 * Owner    The library has one set; a job is its caller's memory until run.
 * Thread   any.
 * Units    s.
 * Errors   UNAVAILABLE: no thread can be started; then the job has not run.
 * Route    calls -> [threads] -> server
 *
 * A thread that is idle takes the next job; where none is, one more is started.
 * Jobs are bounded by the slots of channels: a caller waits for each.
 */

#ifndef PY_THREADS_H
#define PY_THREADS_H

#include "../common/error.h"

typedef struct py_job_s {
    struct py_job_s *next;
    void           (*run)(struct py_job_s *job);    /* frees it              */
} py_job_t;

BK_CHECK TRITONSERVER_Error *py_threads_run(py_job_t *job);

/* Ends the idle ones, and the others with their jobs; waits so long for it. */
void py_threads_end(unsigned seconds);

#endif /* PY_THREADS_H */
