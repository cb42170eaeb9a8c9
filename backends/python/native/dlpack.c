/*
 * dlpack.c - tensors to and from other libraries, by DLPack's structures: see
 *            buffer.h for the two functions.
 *
 * The structures are the interface of the same name (version 0), which every
 * library still gives and takes.  Memory is the CPU's, or a CUDA device's.
 */

#define PY_SSIZE_T_CLEAN
#include "buffer.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define NAME       "dltensor"
#define USED       "used_dltensor"
#define DIMS_MAX   64
#define DEVICE_CPU 1
#define DEVICE_GPU 2
#define CUDA_HOST  3                    /* pinned, treated as CPU memory     */

typedef struct {
    int32_t type;
    int32_t id;
} dl_device_t;

typedef struct {
    uint8_t  code;
    uint8_t  bits;
    uint16_t lanes;
} dl_type_t;

typedef struct {
    void        *data;
    dl_device_t  device;
    int32_t      dims_count;
    dl_type_t    type;
    int64_t     *dims;
    int64_t     *strides;               /* in elements; NULL: C order        */
    uint64_t     offset;
} dl_tensor_t;

typedef struct dl_managed_s {
    dl_tensor_t   tensor;
    void         *context;
    void        (*deleter)(struct dl_managed_s *self);
} dl_managed_t;

/* The contents of our capsules. */
typedef struct {
    dl_managed_t managed;
    PyObject    *tensor;
    Py_buffer    view;
    int64_t      dims[DIMS_MAX];
} export_t;

static bool data_get(PyObject *buffer, export_t *e);
static PyObject *memory_take(dl_managed_t *m, uint64_t length);
static bool shape_read(PyObject *shape, export_t *e);
static void export_delete(dl_managed_t *managed);
static void capsule_delete(PyObject *capsule);
static const char *reason_against(const dl_tensor_t *t, uint64_t *length);
static bool is_c_order(const dl_tensor_t *t);
static PyObject *shape_of(const dl_tensor_t *t);
static void take_back(void *owner, uint64_t id);

PyObject *
py_dlpack_export(PyObject *self, PyObject *args)
{
    PyObject *tensor, *buffer, *shape;
    int code, bits;

    (void) self;
    if (!PyArg_ParseTuple(args, "OOiiO", &tensor, &buffer, &code, &bits,
        &shape))
    {
        return NULL;
    }

    export_t *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return PyErr_NoMemory();
    }
    if (!shape_read(shape, e) || !data_get(buffer, e)) {
        free(e);
        return NULL;
    }

    Py_INCREF(tensor);
    e->tensor = tensor;
    e->managed.tensor.type = (dl_type_t) {
        .code = (uint8_t) code, .bits = (uint8_t) bits, .lanes = 1
    };
    e->managed.tensor.dims = e->dims;
    e->managed.context = e;
    e->managed.deleter = export_delete;

    PyObject *capsule = PyCapsule_New(&e->managed, NAME, capsule_delete);
    if (capsule == NULL) {
        export_delete(&e->managed);
    }
    return capsule;
}

PyObject *
py_dlpack_take(PyObject *self, PyObject *args)
{
    PyObject *capsule;
    uint64_t length;

    (void) self;
    if (!PyArg_ParseTuple(args, "O", &capsule)) {
        return NULL;
    }
    if (!PyCapsule_IsValid(capsule, NAME)) {
        PyErr_SetString(PyExc_ValueError,
            "a DLPack capsule must be named dltensor and can be used once");
        return NULL;
    }

    dl_managed_t *m = PyCapsule_GetPointer(capsule, NAME);
    const char *why = reason_against(&m->tensor, &length);
    if (why != NULL) {
        PyErr_SetString(PyExc_ValueError, why);
        return NULL;
    }

    PyObject *shape = shape_of(&m->tensor);
    if (shape == NULL || PyCapsule_SetName(capsule, USED) != 0) {
        Py_XDECREF(shape);
        return NULL;
    }

    PyObject *buffer = memory_take(m, length);
    if (buffer == NULL) {
        take_back(m, 0);
        Py_DECREF(shape);
        return NULL;
    }
    return Py_BuildValue("(NiiN)", buffer, m->tensor.type.code,
        m->tensor.type.bits, shape);
}

/* Finds the data of what is exported. */
static bool
data_get(PyObject *buffer, export_t *e)
{
    dl_tensor_t *t = &e->managed.tensor;

    if (py_is_device(buffer)) {
        t->device.type = DEVICE_GPU;
        return py_device_address(buffer, &t->data, &t->device.id);
    }

    t->device.type = DEVICE_CPU;
    if (PyObject_GetBuffer(buffer, &e->view, PyBUF_WRITABLE) != 0) {
        return false;
    }
    t->data = e->view.buf;
    return true;
}

/* An object that holds m from now on. */
static PyObject *
memory_take(dl_managed_t *m, uint64_t length)
{
    uint8_t *base = (uint8_t *) m->tensor.data + m->tensor.offset;

    if (m->tensor.device.type == DEVICE_GPU) {
        return py_device_take(&(py_device_kind_t) {
            .address = (uint64_t) (uintptr_t) base, .length = length,
            .gpu = m->tensor.device.id, .give_back = take_back, .owner = m
        });
    }
    return py_buffer_new(&(py_buffer_kind_t) {
        .base = base, .length = length, .give_back = take_back, .owner = m
    });
}

static bool
shape_read(PyObject *shape, export_t *e)
{
    Py_ssize_t n = PySequence_Size(shape);

    if (n < 0 || n > DIMS_MAX) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "too many dimensions");
        }
        return false;
    }

    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(shape, i);
        e->dims[i] = item == NULL ? -1 : PyLong_AsLongLong(item);
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            return false;
        }
    }

    e->managed.tensor.dims_count = (int32_t) n;
    return true;
}

/* Called on any thread by the library that has taken the capsule. */
static void
export_delete(dl_managed_t *managed)
{
    export_t *e = managed->context;
    PyGILState_STATE state = PyGILState_Ensure();

    PyBuffer_Release(&e->view);
    Py_DECREF(e->tensor);
    PyGILState_Release(state);
    free(e);
}

/* Called when no library has taken the capsule. */
static void
capsule_delete(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, NAME)) {
        export_delete(PyCapsule_GetPointer(capsule, NAME));
    }
}

/* Why the tensor cannot be used; NULL: it can. */
static const char *
reason_against(const dl_tensor_t *t, uint64_t *length)
{
    if (t->device.type != DEVICE_CPU && t->device.type != CUDA_HOST
        && t->device.type != DEVICE_GPU)
    {
        return "DLPack tensors of this device are not supported";
    }
    if (t->type.lanes != 1 || t->type.bits % 8 != 0) {
        return "DLPack tensors of this datatype are not supported";
    }
    if (t->dims_count < 0 || t->dims_count > DIMS_MAX) {
        return "the DLPack tensor has too many dimensions";
    }

    *length = t->type.bits / 8;
    for (int32_t i = 0; i < t->dims_count; i++) {
        if (t->dims[i] < 0 || __builtin_mul_overflow(*length,
            (uint64_t) t->dims[i], length))
        {
            return "the DLPack tensor has a shape of no size";
        }
    }
    if (*length > PY_SSIZE_T_MAX) {
        return "the DLPack tensor is too large";
    }

    return is_c_order(t) ? NULL
        : "DLPack tensor is not contiguous. Only contiguous DLPack tensors "
          "that are stored in C-Order are supported.";
}

static bool
is_c_order(const dl_tensor_t *t)
{
    int64_t expected = 1;

    if (t->strides == NULL) {
        return true;
    }

    for (int32_t i = 0; i < t->dims_count; i++) {
        if (t->dims[i] == 0) {
            return true;
        }
    }
    for (int32_t i = t->dims_count - 1; i >= 0; i--) {
        if (t->dims[i] != 1 && t->strides[i] != expected) {
            return false;
        }
        expected *= t->dims[i];
    }
    return true;
}

static PyObject *
shape_of(const dl_tensor_t *t)
{
    PyObject *list = PyList_New(t->dims_count);

    for (int32_t i = 0; list != NULL && i < t->dims_count; i++) {
        PyObject *item = PyLong_FromLongLong(t->dims[i]);
        if (item == NULL || PyList_SetItem(list, i, item) != 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static void
take_back(void *owner, uint64_t id)
{
    dl_managed_t *m = owner;

    (void) id;
    if (m->deleter != NULL) {
        m->deleter(m);
    }
}
