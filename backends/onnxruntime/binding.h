/*
 * binding.h - a run on a GPU, with the session's I/O binding.
 *
 * Owner    A session's binding holds no tensor between two runs; outputs that
 *          the run makes are the caller's.
 * Thread   the instance's.
 * Units    none.
 * Errors   the library's messages, with the tensor's name.
 * Route    run -> [binding] -> the library
 */

#ifndef ORT_BINDING_H
#define ORT_BINDING_H

#include "run.h"

/* Runs once.  The run allocates outputs that are NULL, in host memory. */
BK_CHECK TRITONSERVER_Error *ort_binding_run(const ort_session_t *s,
    const ort_run_t *run);

#endif /* ORT_BINDING_H */
