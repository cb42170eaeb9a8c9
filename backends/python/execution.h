/*
 * execution.h - one batch of requests: sent to the interpreter, awaited,
 *               answered.
 *
 * Owner    The requests come from the core and all go back to it.
 * Thread   the instance's; run with the consumer role, answer without it.
 * Units    ns on the monotonic clock.
 * Errors   Each request is answered with its own.
 * Route    interpreter -> [execution] -> link -> results -> responses
 */

#ifndef PY_EXECUTION_H
#define PY_EXECUTION_H

#include "interpreter.h"

/* The response that a request gets, and the request, to be released then;
   NULL: there is none. */
typedef struct {
    uint64_t               id;          /* of the interpreter                */
    TRITONBACKEND_Request *request;
    py_outgoing_t          response;
} py_answer_t;

typedef struct {
    py_answer_t *answers;       /* of the requests that were sent            */
    uint32_t     count;
    uint64_t     rows;
    uint64_t     read;          /* the link's, before the answers            */
    uint64_t     begin_ns;
    uint64_t     compute_ns;
    uint64_t     end_ns;
} py_batch_t;

/* false: the process had ended before it took them.  Then nothing has happened
   to them, and the next one may. */
bool py_execution_run(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request **requests, uint32_t count);

/* Sends the answers that run has left, and ends the batch. */
void py_execution_answer(const py_interpreter_t *in, py_batch_t *b);

/* There is no process to run them. */
void py_execution_reject(py_interpreter_t *in,
    TRITONBACKEND_Request **requests, uint32_t count);

#endif /* PY_EXECUTION_H */
