/* buffer.c - see buffer.h */

#define PY_SSIZE_T_CLEAN
#include "buffer.h"

#include <errno.h>
#include <pthread.h>

typedef struct {
    PyObject_HEAD
    py_buffer_kind_t kind;
    unsigned         forks;     /* of the process; a forked child frees
                                   nothing                                   */
} buffer_t;

static PyTypeObject *buffer_type;
static unsigned forks;          /* number of forks before this process       */

static void
count_fork(void)
{
    forks++;
}

unsigned
py_forks(void)
{
    return forks;
}

static void
buffer_dealloc(PyObject *self)
{
    buffer_t *b = (buffer_t *) self;
    PyTypeObject *type = Py_TYPE(self);

    if (b->forks == forks) {
        b->kind.give_back(b->kind.owner, b->kind.id);
    }
    PyObject_Free(self);
    Py_DECREF((PyObject *) type);
}

static int
buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    buffer_t *b = (buffer_t *) self;

    return PyBuffer_FillInfo(view, self, b->kind.base,
        (Py_ssize_t) b->kind.length, b->kind.read_only, flags);
}

static PyType_Slot buffer_slots[] = {
    { Py_tp_dealloc, (void *) buffer_dealloc },
    { Py_bf_getbuffer, (void *) buffer_get },
    { Py_tp_doc, (void *) "Bytes of a tensor in memory of another owner." },
    { 0, NULL }
};

static PyType_Spec buffer_spec = {
    .name = "_native.Buffer", .basicsize = sizeof(buffer_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots
};

bool
py_buffer_init(PyObject *module)
{
    errno = pthread_atfork(NULL, NULL, count_fork);
    if (errno != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return false;
    }

    buffer_type = (PyTypeObject *) PyType_FromSpec(&buffer_spec);
    return buffer_type != NULL && PyModule_AddObjectRef(module, "Buffer",
        (PyObject *) buffer_type) == 0;
}

PyObject *
py_buffer_new(const py_buffer_kind_t *kind)
{
    buffer_t *b = PyObject_New(buffer_t, buffer_type);

    if (b != NULL) {
        b->kind = *kind;
        b->forks = forks;
    }
    return (PyObject *) b;
}
