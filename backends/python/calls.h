/*
 * calls.h - handles messages of an interpreter: results, log lines, responses
 *           of senders, requests to other models, metrics, control of models.
 *
 * Owner    none.
 * Thread   the thread with the consumer role.
 * Units    none.
 * Errors   An error is replied to the waiting call; without a slot it is
 *          logged.
 * Route    link -> [calls] -> requests, streams, metrics, control
 */

#ifndef PY_CALLS_H
#define PY_CALLS_H

#include "interpreter.h"

/* Handles the entry e of the up ring, whose message is the link's. */
void py_call(py_interpreter_t *in, const py_entry_t *e);

#endif /* PY_CALLS_H */
