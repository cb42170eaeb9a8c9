/*
 * execution.h - one batch of requests: sent to the interpreter, awaited,
 *               answered.
 *
 * Owner    The requests come from the core and all go back to it.
 * Thread   run: the one that has the consumer role.
 * Units    ns on the monotonic clock.
 * Errors   Each request is answered with its own.
 * Route    interpreter -> [execution] -> link -> results -> responses
 */

#ifndef PY_EXECUTION_H
#define PY_EXECUTION_H

#include "interpreter.h"

/* false: the process had ended before it took them.  Then nothing has happened
   to them, and the next one may. */
bool py_execution_run(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

/* There is no process to run them. */
void py_execution_reject(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* PY_EXECUTION_H */
