/*
 * calls.h - carries out what an interpreter sends: results, log lines,
 *           responses of senders, requests for other models, metrics, control
 *           of models.
 *
 * Owner    none.
 * Thread   the one that has the consumer role.
 * Units    none.
 * Errors   An error goes back to the call that waits; one without a slot is
 *          logged.
 * Route    link -> [calls] -> requests, streams, metrics, control
 */

#ifndef PY_CALLS_H
#define PY_CALLS_H

#include "interpreter.h"

void py_call(py_interpreter_t *in, const py_entry_t *e);

#endif /* PY_CALLS_H */
