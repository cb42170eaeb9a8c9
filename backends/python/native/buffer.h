/*
 * buffer.h - bytes of a tensor as a Python object with the buffer protocol.
 *
 * Owner    The object owns its bytes and frees them at its end; views keep it
 *          alive.
 * Thread   with the interpreter's lock.
 * Units    bytes.
 * Errors   NULL with an exception set.
 * Route    message -> [buffer] -> numpy, DLPack
 */

#ifndef PY_NATIVE_BUFFER_H
#define PY_NATIVE_BUFFER_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t  *base;
    uint64_t  length;
    bool      read_only;
    void    (*give_back)(void *owner, uint64_t id);
    void     *owner;
    uint64_t  id;
} py_buffer_kind_t;

/* Creates the type and adds it to the module; false: an exception is set. */
bool py_buffer_init(PyObject *module);

/* Creates a buffer object; on failure the bytes stay the caller's. */
PyObject *py_buffer_new(const py_buffer_kind_t *kind);

/* The number of forks before this process: a child does not free objects of its
   parent. */
unsigned py_forks(void);

/* Functions of the module: export(tensor, buffer, code, bits, shape) ->
   capsule, which holds the tensor, as Triton's does; and take(capsule) ->
   (buffer, code, bits, shape). */
PyObject *py_dlpack_export(PyObject *self, PyObject *args);
PyObject *py_dlpack_take(PyObject *self, PyObject *args);

#endif /* PY_NATIVE_BUFFER_H */
