/*
 * messages.h - what native.c does with messages for the other files.
 *
 * Owner    as native.c.
 * Thread   with the interpreter's lock; a call gives it back while it waits.
 * Units    none.
 * Errors   NULL, false: an exception is set.
 * Route    device -> [messages] -> channel
 */

#ifndef PY_NATIVE_MESSAGES_H
#define PY_NATIVE_MESSAGES_H

#include <Python.h>

#include "../value.h"

/* Sends a call and waits for its reply. */
PyObject *py_call_server(uint32_t kind, uint64_t id, PyObject *value);

/* Sends an entry without a message as soon as the ring has room. */
void py_give_back(uint32_t kind, uint64_t id);

/* Writes the bytes of o; keep gets what holds them until they are copied. */
bool py_encode_data(py_writer_t *w, PyObject *o, PyObject *keep);

#endif /* PY_NATIVE_MESSAGES_H */
