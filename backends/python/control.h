/*
 * control.h - a model's calls that load and unload models and ask whether one
 *             is ready: they may take long, or ask the very instance that
 *             waits here.
 *
 * Owner    A call has a thread of threads.h for itself.
 * Thread   start: the consumer role's.
 * Units    none.
 * Errors   start: a message that is none, or no thread.  The rest is replied.
 * Route    calls -> [control] -> server -> reply
 */

#ifndef PY_CONTROL_H
#define PY_CONTROL_H

#include "link.h"

BK_CHECK TRITONSERVER_Error *py_control_start(py_link_t *link,
    TRITONSERVER_Server *server, py_up_t kind, uint32_t slot,
    py_reader_t *r);

#endif /* PY_CONTROL_H */
