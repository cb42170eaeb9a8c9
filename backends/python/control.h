/*
 * control.h - a model's calls that load and unload models, or ask whether one
 *             is ready: they may take long, or ask the instance that waits for
 *             them.
 *
 * Owner    A call has its own thread of threads.h.
 * Thread   start: the consumer role's.
 * Units    none.
 * Errors   start: an invalid message, or no thread.  Others are replied.
 * Route    calls -> [control] -> server -> reply
 */

#ifndef PY_CONTROL_H
#define PY_CONTROL_H

#include "link.h"

/* Reads the message of a call of that kind, and carries it out on another
 * thread, which replies to slot. */
BK_CHECK TRITONSERVER_Error *py_control_start(py_link_t *link,
    TRITONSERVER_Server *server, py_up_t kind, uint32_t slot,
    py_reader_t *r);

#endif /* PY_CONTROL_H */
