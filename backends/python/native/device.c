/* device.c - see device.h */

#define PY_SSIZE_T_CLEAN
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "../channel.h"
#include "buffer.h"
#include "driver.h"
#include "messages.h"

/* Blocks without tensors that stay open, in total. */
#define IDLE_MOST (UINT64_C(64) << 20)

/* A block of the backend's, opened here. */
typedef struct mapping_s {
    struct mapping_s *next;
    uint64_t          block;
    uint64_t          size;
    gpu_ptr_t         base;
    int               gpu;
    uint32_t          pieces;
} mapping_t;

typedef struct {
    PyObject_HEAD
    py_device_kind_t kind;
    bool             ours;      /* a piece of the backend's                  */
    bool             shown;     /* its address is known: work may use it     */
    py_gpu_place_t   place;     /* ours, as the next two                     */
    mapping_t       *mapping;   /* NULL: it could not be opened              */
    gpu_result_t     why;       /* then                                      */
    unsigned         forks;     /* as a buffer's                             */
} device_t;

/* A piece that was let go of. */
typedef struct {
    mapping_t *mapping;
    uint64_t   piece;
    int        gpu;             /* that may still work with it; -1: none     */
} gone_t;

static PyTypeObject *device_type;
static mapping_t *mappings;
static gone_t *gone;
static size_t gone_count;
static size_t gone_capacity;

static PyObject *device_new(const py_device_kind_t *kind);
static void device_dealloc(PyObject *self);
static void let_go(const device_t *d);
static mapping_t *mapping_open(const py_gpu_place_t *place, gpu_result_t *why);
static void close_idle(void);
static PyObject *copy_of(const device_t *d);
static PyObject *piece_for(const device_t *d);
static bool copied(gpu_result_t rc);

static PyType_Slot device_slots[] = {
    { Py_tp_dealloc, (void *) device_dealloc },
    { Py_tp_doc, (void *) "Bytes of a tensor in memory of a GPU." },
    { 0, NULL }
};

static PyType_Spec device_spec = {
    .name = "_native.Device", .basicsize = sizeof(device_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = device_slots
};

bool
py_device_init(PyObject *module)
{
    device_type = (PyTypeObject *) PyType_FromSpec(&device_spec);
    return device_type != NULL && PyModule_AddObjectRef(module, "Device",
        (PyObject *) device_type) == 0;
}

bool
py_is_device(PyObject *o)
{
    return Py_TYPE(o) == device_type;
}

PyObject *
py_device_decode(const py_gpu_place_t *place)
{
    PyObject *o = device_new(&(py_device_kind_t) {
        .length = place->length, .gpu = (int32_t) place->gpu
    });

    if (o == NULL) {
        py_give_back(PY_UP_GPU_FREE, place->piece);
        return NULL;
    }

    device_t *d = (device_t *) o;
    d->ours = true;
    d->place = *place;
    d->mapping = mapping_open(place, &d->why);
    if (d->mapping != NULL) {
        d->mapping->pieces++;
        d->kind.address = d->mapping->base + place->offset;
    }
    return o;
}

bool
py_device_encode(py_writer_t *w, PyObject *o, PyObject *keep)
{
    device_t *d = (device_t *) o;
    gpu_result_t rc = GPU_SUCCESS;

    Py_INCREF(o);                       /* the lock is released here          */
    if (d->ours) {
        if (d->shown) {
            Py_BEGIN_ALLOW_THREADS
            rc = py_driver_wait_all(d->kind.gpu);
            Py_END_ALLOW_THREADS
        }
        py_write_gpu(w, &d->place);
        bool done = copied(rc) && PyList_Append(keep, o) == 0;
        Py_DECREF(o);
        return done;
    }

    PyObject *copy = copy_of(d);
    Py_DECREF(o);
    bool done = copy != NULL && py_encode_data(w, copy, keep);
    Py_XDECREF(copy);
    return done;
}

PyObject *
py_device_take(const py_device_kind_t *kind)
{
    const char *why = py_driver_open(kind->gpu);
    gpu_result_t rc = GPU_SUCCESS;

    if (why != NULL) {
        PyErr_SetString(PyExc_ValueError, why);
        return NULL;
    }

    Py_BEGIN_ALLOW_THREADS
    rc = py_driver_wait(kind->gpu);
    Py_END_ALLOW_THREADS
    return copied(rc) ? device_new(kind) : NULL;
}

bool
py_device_address(PyObject *o, void **address, int32_t *gpu)
{
    device_t *d = (device_t *) o;

    if (d->ours && d->mapping == NULL) {
        PyErr_Format(PyExc_RuntimeError, "memory of GPU %d cannot be opened",
            (int) d->kind.gpu);
        return false;
    }

    d->shown = true;
    *address = (void *) (uintptr_t) d->kind.address;
    *gpu = d->kind.gpu;
    return true;
}

/* Work of this process may still read a piece after its tensor is gone: another
   process must not write there before that is done. */
void
py_devices_give_back(void)
{
    bool waits[PY_GPUS] = { false };
    size_t count = gone_count;
    gone_t *list = gone;

    if (count == 0) {
        return;
    }

    gone = NULL;
    gone_count = 0;
    gone_capacity = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].gpu >= 0) {
            waits[list[i].gpu] = true;
        }
    }

    Py_BEGIN_ALLOW_THREADS
    for (int i = 0; i < PY_GPUS; i++) {
        if (waits[i]) {
            (void) py_driver_wait_all(i);
        }
    }
    Py_END_ALLOW_THREADS

    for (size_t i = 0; i < count; i++) {
        if (list[i].mapping != NULL) {
            list[i].mapping->pieces--;
        }
        py_give_back(PY_UP_GPU_FREE, list[i].piece);
    }
    free(list);
    close_idle();
}

PyObject *
py_device_gpu(PyObject *self, PyObject *args)
{
    long long gpu;

    (void) self;
    if (!PyArg_ParseTuple(args, "L", &gpu)) {
        return NULL;
    }

    const char *why = py_driver_open(gpu);
    return why == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(why);
}

PyObject *
py_device_memory(PyObject *self, PyObject *args)
{
    PyObject *o;

    (void) self;
    if (!PyArg_ParseTuple(args, "O!", device_type, &o)) {
        return NULL;
    }

    const device_t *d = (const device_t *) o;
    const char *why = NULL;
    if (d->ours && d->mapping == NULL) {
        why = py_driver_open(d->kind.gpu);
        why = why != NULL ? why : py_driver_error(d->why);
    }
    return Py_BuildValue("(iz)", (int) d->kind.gpu, why);
}

static PyObject *
device_new(const py_device_kind_t *kind)
{
    device_t *d = PyObject_New(device_t, device_type);

    if (d != NULL) {
        d->kind = *kind;
        d->ours = false;
        d->shown = false;
        d->mapping = NULL;
        d->why = GPU_SUCCESS;
        d->forks = py_forks();
    }
    return (PyObject *) d;
}

static void
device_dealloc(PyObject *self)
{
    device_t *d = (device_t *) self;
    PyTypeObject *type = Py_TYPE(self);

    if (d->forks == py_forks()) {
        if (d->ours) {
            let_go(d);
        } else {
            d->kind.give_back(d->kind.owner, 0);
        }
    }
    PyObject_Free(self);
    Py_DECREF((PyObject *) type);
}

static void
let_go(const device_t *d)
{
    if (gone_count == gone_capacity) {
        size_t capacity = gone_capacity * 2 + 16;
        gone_t *wider = realloc(gone, capacity * sizeof(*wider));
        if (wider == NULL) {
            return;                     /* the memory is lost                */
        }
        gone = wider;
        gone_capacity = capacity;
    }

    gone[gone_count++] = (gone_t) {
        .mapping = d->mapping, .piece = d->place.piece,
        .gpu = d->shown ? d->kind.gpu : -1
    };
}

static mapping_t *
mapping_open(const py_gpu_place_t *place, gpu_result_t *why)
{
    for (mapping_t *m = mappings; m != NULL; m = m->next) {
        if (m->block == place->block) {
            return m;
        }
    }

    if (py_driver_open((int64_t) place->gpu) != NULL) {
        return NULL;
    }

    mapping_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        *why = GPU_OUT_OF_MEMORY;
        return NULL;
    }

    m->block = place->block;
    m->size = place->size;
    m->gpu = (int) place->gpu;
    *why = py_driver_map(m->gpu, place->handle, &m->base);
    if (*why != GPU_SUCCESS) {
        free(m);
        return NULL;
    }

    m->next = mappings;
    mappings = m;
    return m;
}

/* Closes blocks without tensors beyond what may stay open; the backend frees
   them. */
static void
close_idle(void)
{
    uint64_t idle = 0;

    for (mapping_t **at = &mappings; *at != NULL; ) {
        mapping_t *m = *at;

        if (m->pieces == 0 && idle + m->size > IDLE_MOST) {
            *at = m->next;
            py_driver_unmap(m->gpu, m->base);
            py_give_back(PY_UP_GPU_CLOSED, m->block);
            free(m);
            continue;
        }
        idle += m->pieces == 0 ? m->size : 0;
        at = &m->next;
    }
}

/* The tensor in memory of the backend's, or its bytes. */
static PyObject *
copy_of(const device_t *d)
{
    gpu_result_t rc = GPU_SUCCESS;
    gpu_ptr_t from = d->kind.address;
    uint64_t length = d->kind.length;
    int gpu = d->kind.gpu;

    PyObject *to = length == 0 ? NULL : piece_for(d);
    if (to != NULL) {
        gpu_ptr_t address = ((device_t *) to)->kind.address;

        Py_BEGIN_ALLOW_THREADS
        rc = py_driver_copy(gpu, address, from, length);
        Py_END_ALLOW_THREADS

    } else if (!PyErr_Occurred()) {
        to = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t) length);
        char *bytes = to == NULL || length == 0 ? NULL
            : PyByteArray_AsString(to);

        Py_BEGIN_ALLOW_THREADS
        if (bytes != NULL) {
            rc = py_driver_read(gpu, bytes, from, length);
        }
        Py_END_ALLOW_THREADS
    }

    if (to != NULL && !copied(rc)) {
        Py_DECREF(to);
        return NULL;
    }
    return to;
}

/* Memory of the backend's for a copy; NULL without an exception: it has none,
   or it cannot be opened. */
static PyObject *
piece_for(const device_t *d)
{
    PyObject *size = Py_BuildValue("[iK]", (int) d->kind.gpu,
        (unsigned long long) d->kind.length);
    PyObject *reply = size == NULL ? NULL
        : py_call_server(PY_UP_GPU_NEW, 0, size);

    Py_XDECREF(size);
    if (reply == NULL) {
        return NULL;
    }

    PyObject *to = PyList_GetItem(reply, 1);
    if (to != NULL && py_is_device(to) && ((device_t *) to)->mapping != NULL) {
        Py_INCREF(to);
    } else {
        to = NULL;
    }
    Py_DECREF(reply);
    return to;
}

static bool
copied(gpu_result_t rc)
{
    if (rc == GPU_SUCCESS) {
        return true;
    }

    PyErr_Format(PyExc_RuntimeError, "a tensor on a GPU: %s (%d)",
        py_driver_error(rc), rc);
    return false;
}
