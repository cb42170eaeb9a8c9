/*
 * execution.h - one batch of requests: sent to the interpreter, awaited,
 *               answered.
 *
 * Owner    The requests are the core's, and all are returned to it.
 * Thread   the instance's; run with the consumer role, answer without it.
 * Units    ns on the monotonic clock.
 * Errors   Each request gets its own error.
 * Route    interpreter -> [execution] -> link -> results -> responses
 */

#ifndef PY_EXECUTION_H
#define PY_EXECUTION_H

#include "interpreter.h"

/* A request's response, and the request, to be released then; NULL: none. */
typedef struct {
    uint64_t               id;          /* known to the interpreter          */
    TRITONBACKEND_Request *request;
    py_outgoing_t          response;
} py_answer_t;

typedef struct {
    py_answer_t *answers;       /* of the requests that were sent            */
    uint32_t     count;
    uint64_t     rows;
    uint64_t     read;          /* of the link, before the answers           */
    uint64_t     begin_ns;
    uint64_t     compute_ns;
    uint64_t     end_ns;
} py_batch_t;

/* Runs the batch.  false: the process ended before it took the requests;
   nothing has happened to them, and they can be run again. */
bool py_execution_run(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request **requests, uint32_t count);

/* Sends the remaining answers and ends the batch. */
void py_execution_answer(const py_interpreter_t *in, py_batch_t *b);

/* Answers the requests with an error: there is no process. */
void py_execution_reject(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* PY_EXECUTION_H */
