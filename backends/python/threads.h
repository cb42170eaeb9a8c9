/*
 * threads.h - threads for calls that may wait in the server: for a client, a
 *             load, an ensemble.
 *
 * Owner    The library has one set; a job is its caller's memory until run.
 * Thread   any.
 * Units    s.
 * Errors   UNAVAILABLE: no thread can be started; the job has not run.
 * Route    calls -> [threads] -> server
 *
 * An idle thread takes the next job; without one, another thread is started.
 * The slots of channels limit the number of jobs.
 */

#ifndef PY_THREADS_H
#define PY_THREADS_H

#include "../common/error.h"

typedef struct py_job_s {
    struct py_job_s *next;
    void           (*run)(struct py_job_s *job);    /* frees it              */
} py_job_t;

/* Runs the job on one of the threads. */
BK_CHECK TRITONSERVER_Error *py_threads_run(py_job_t *job);

/* Ends all threads, busy ones after their jobs; waits at most that long. */
void py_threads_end(unsigned seconds);

#endif /* PY_THREADS_H */
