/*
 * device.h - tensors in memory of a GPU, as Python objects (Device).
 *
 * Owner    A Device keeps a piece of the backend's memory, or the tensor of
 *          another library.  Pieces are given back together, when the work that
 *          may still read them is done.
 * Thread   with the interpreter's lock, which is released while a GPU works.
 * Units    bytes; GPUs by their numbers in the driver.
 * Errors   NULL, false: an exception is set.
 * Route    message -> [device] -> DLPack, driver
 *
 * The driver is opened for the first of them.  All work is in the stream that
 * DLPack calls 1: the one that waits for others, and they for it.
 */

#ifndef PY_NATIVE_DEVICE_H
#define PY_NATIVE_DEVICE_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "../value.h"

/* Another library's tensor. */
typedef struct {
    uint64_t  address;
    uint64_t  length;
    int32_t   gpu;
    void    (*give_back)(void *owner, uint64_t id);
    void     *owner;
} py_device_kind_t;

/* Creates the type and adds it to the module; false: an exception is set. */
bool py_device_init(PyObject *module);

/* Whether o is a Device. */
bool py_is_device(PyObject *o);

/* The memory of that place; if it cannot be opened, its address fails. */
PyObject *py_device_decode(const py_gpu_place_t *place);

/* Writes where it is; memory of a library is copied to the backend's, or, where
   there is none, to the CPU. */
bool py_device_encode(py_writer_t *w, PyObject *o, PyObject *keep);

/* Takes a tensor, and waits for its data; on failure it stays the caller's. */
PyObject *py_device_take(const py_device_kind_t *kind);

/* false: it cannot be opened. */
bool py_device_address(PyObject *o, void **address, int32_t *gpu);

/* Gives back the pieces that were let go of. */
void py_devices_give_back(void);

/* Functions of the module: gpu(number) -> why it cannot be used, or None; and
   memory(Device) -> (number of its GPU, why it cannot be opened, or None). */
PyObject *py_device_gpu(PyObject *self, PyObject *args);
PyObject *py_device_memory(PyObject *self, PyObject *args);

#endif /* PY_NATIVE_DEVICE_H */
