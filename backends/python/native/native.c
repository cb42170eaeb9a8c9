/*
 * native.c - the module _native: the interpreter's side of the channel.
 *
 * It is built once for the limited interface of CPython 3.11 and serves every
 * later one.  Values become Python's objects and back (value.h); tensors come
 * as objects with the buffer protocol.  A process has one channel, as a
 * module's functions have no other place to keep it.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "../channel.h"
#include "../heap.h"
#include "../value.h"
#include "buffer.h"
#include "device.h"
#include "messages.h"

#define ARENAS   256u
#define ORPHANED SIGRTMAX       /* the server has ended                      */
#define LOOK_S   5              /* between two looks whether it has          */

/* The server's memory that holds inputs, mapped read-only; freed when neither
   the table nor a buffer uses it. */
typedef struct {
    uint64_t  id;
    uint8_t  *base;
    uint64_t  size;
    uint64_t  used;             /* last use, to replace the oldest           */
    uint32_t  refs;
} arena_t;

typedef struct {
    uint32_t kind;              /* py_up_t                                   */
    uint64_t id;
} unsent_t;

/* The channel's state, used with the interpreter's lock held. */
static struct {
    py_header_t  *header;       /* NULL: no channel, as in a child made by
                                   fork                                      */
    int           event_fd;
    int           socket_fd;
    py_heap_t     heap;
    uint32_t      freed;        /* messages before it have been read         */
    uint64_t      messages[PY_RING_ENTRIES];   /* block + 1 of each         */
    unsent_t     *unsent;       /* memory to give back when the ring has
                                   room                                      */
    size_t        unsent_count;
    size_t        unsent_capacity;
    uint32_t      slots[PY_SLOTS];             /* free ones                 */
    uint32_t      slot_count;
    PyObject     *kept;         /* data of the last batch's responses        */
    arena_t      *arenas[ARENAS];
    uint64_t      clock;
} channel;

static PyObject *attach(PyObject *self, PyObject *args);
static PyObject *next_task(PyObject *self, PyObject *args);
static PyObject *push(PyObject *self, PyObject *args);
static PyObject *call(PyObject *self, PyObject *args);
static PyObject *free_memory(PyObject *self, PyObject *args);
static PyObject *check(PyObject *self, PyObject *args);
static bool send_value(uint32_t kind, uint32_t slot, uint64_t id,
    PyObject *value, PyObject *keep);
static bool send_entry(uint32_t kind, uint32_t slot, uint64_t id,
    const py_writer_t *w);
static bool entry_put(uint32_t kind, uint32_t slot, uint64_t id,
    uint64_t offset, uint64_t length, uint64_t block);
static void give_back_unsent(void);
static void messages_free(void);
static bool encode(py_writer_t *w, PyObject *o, PyObject *keep,
    unsigned depth);
static bool encode_text(py_writer_t *w, PyObject *o);
static bool encode_copy(py_writer_t *w, const Py_buffer *view,
    PyObject *keep);
static PyObject *decode(py_reader_t *r);
static PyObject *decode_list(py_reader_t *r);
static PyObject *decode_block(py_reader_t *r);
static PyObject *decode_arena(py_reader_t *r);
static arena_t *arena_find(uint64_t id);
static bool arena_receive(void);
static void arena_drop(uint64_t id);
static void arena_unref(arena_t *a);
static void give_back_down(void *owner, uint64_t id);
static void give_back_up(void *owner, uint64_t id);
static void give_back_arena(void *owner, uint64_t id);
static bool attached(void);
static void forget_channel(void);
static void end_with_server(void);
static void group_kill(int signo);

/* attach(channel_fd, event_fd, socket_fd) */
static PyObject *
attach(PyObject *self, PyObject *args)
{
    int fd;
    struct stat st;

    (void) self;
    if (!PyArg_ParseTuple(args, "iii", &fd, &channel.event_fd,
        &channel.socket_fd))
    {
        return NULL;
    }

    /* the parent's thread lives as long as the process may */
    const struct sigaction orphaned = { .sa_handler = group_kill };
    (void) sigaction(ORPHANED, &orphaned, NULL);
    (void) prctl(PR_SET_PDEATHSIG, ORPHANED);
    end_with_server();

    if (fstat(fd, &st) != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if ((uint64_t) st.st_size != PY_CHANNEL_BYTES) {
        PyErr_SetString(PyExc_RuntimeError, "the channel has another size: "
            "backend and package are of different versions");
        return NULL;
    }

    void *p = mmap(NULL, PY_CHANNEL_BYTES, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }

    py_header_t *h = p;
    if (h->magic != PY_CHANNEL_MAGIC || h->version != PY_CHANNEL_VERSION) {
        PyErr_SetString(PyExc_RuntimeError, "the channel has another version "
            "than the package");
        return NULL;
    }

    errno = pthread_atfork(NULL, NULL, forget_channel);
    if (errno != 0) {
        return PyErr_SetFromErrno(PyExc_OSError);
    }

    channel.header = h;
    py_heap_init(&channel.heap, fd, h->up, PY_HEAP_BYTES);
    channel.slot_count = PY_SLOTS;
    for (uint32_t i = 0; i < PY_SLOTS; i++) {
        channel.slots[i] = PY_SLOTS - 1 - i;
    }
    channel.kept = PyList_New(0);
    return channel.kept == NULL ? NULL : Py_NewRef(Py_None);
}

/* next(side) -> (kind, id, value); waits */
static PyObject *
next_task(PyObject *self, PyObject *args)
{
    static const struct timespec look = { .tv_sec = LOOK_S };
    int side;

    (void) self;
    if (!PyArg_ParseTuple(args, "p", &side) || !attached()) {
        return NULL;
    }

    py_ring_t *ring = side ? &channel.header->side : &channel.header->work;
    for ( ;; ) {
        uint32_t head = atomic_load_explicit(&ring->head,
            memory_order_relaxed);

        if (atomic_load_explicit(&ring->tail, memory_order_acquire) == head) {
            uint32_t posted = atomic_load(&ring->posted);

            if (!side) {
                py_devices_give_back();
            }
            atomic_store(&ring->waiting, PY_WAIT_FUTEX);
            if (atomic_load(&ring->tail) == head) {
                Py_BEGIN_ALLOW_THREADS
                if (!py_futex_wait(&ring->posted, posted, &look)) {
                    end_with_server();
                }
                Py_END_ALLOW_THREADS
            }
            atomic_store(&ring->waiting, PY_WAIT_NONE);
            if (PyErr_CheckSignals() != 0) {
                return NULL;
            }
            continue;
        }

        py_entry_t e = ring->entries[head % PY_RING_ENTRIES];
        PyObject *value = Py_NewRef(Py_None);

        if (!side && PyList_SetSlice(channel.kept, 0, PY_SSIZE_T_MAX, NULL)
            != 0)
        {
            PyErr_Clear();
        }
        if (e.length > 0) {
            py_reader_t r;

            py_reader_init(&r, (uint8_t *) channel.header + e.offset,
                e.length);
            Py_DECREF(value);
            value = decode(&r);
        }
        atomic_store_explicit(&ring->head, head + 1, memory_order_release);

        if (value == NULL) {
            return NULL;
        }
        if (e.kind == PY_TASK_TAKEN) {
            Py_DECREF(value);
            continue;
        }
        return Py_BuildValue("IKN", e.kind, (unsigned long long) e.id, value);
    }
}

/* push(kind, id, value): sends without reply; data are kept until
   next(False) */
static PyObject *
push(PyObject *self, PyObject *args)
{
    unsigned kind;
    unsigned long long id;
    PyObject *value;

    (void) self;
    if (!PyArg_ParseTuple(args, "IKO", &kind, &id, &value) || !attached()
        || !send_value(kind, PY_NO_SLOT, id, value, channel.kept))
    {
        return NULL;
    }

    return Py_NewRef(Py_None);
}

/* call(kind, id, value) -> reply; waits for it */
static PyObject *
call(PyObject *self, PyObject *args)
{
    unsigned kind;
    unsigned long long id;
    PyObject *value;

    (void) self;
    return PyArg_ParseTuple(args, "IKO", &kind, &id, &value)
        ? py_call_server(kind, id, value) : NULL;
}

PyObject *
py_call_server(uint32_t kind, uint64_t id, PyObject *value)
{
    if (!attached()) {
        return NULL;
    }
    if (channel.slot_count == 0) {
        PyErr_Format(PyExc_RuntimeError, "%u calls of the server wait for "
            "their replies already", PY_SLOTS);
        return NULL;
    }

    PyObject *keep = PyList_New(0);
    if (keep == NULL) {
        return NULL;
    }

    uint32_t number = channel.slots[--channel.slot_count];
    py_slot_t *slot = &channel.header->slots[number];
    uint32_t before = atomic_load(&slot->replies);

    if (!send_value(kind, number, id, value, keep)) {
        channel.slots[channel.slot_count++] = number;
        Py_DECREF(keep);
        return NULL;
    }

    Py_BEGIN_ALLOW_THREADS
    while (atomic_load_explicit(&slot->replies, memory_order_acquire)
        == before)
    {
        py_futex_wait(&slot->replies, before, NULL);
    }
    Py_END_ALLOW_THREADS

    py_reader_t r;
    py_reader_init(&r, (uint8_t *) channel.header + slot->offset,
        slot->length);
    PyObject *reply = decode(&r);

    channel.slots[channel.slot_count++] = number;
    Py_DECREF(keep);
    return reply;
}

/* free_memory() -> unused bytes of the interpreter's heap */
static PyObject *
free_memory(PyObject *self, PyObject *args)
{
    (void) self;
    (void) args;
    if (!attached()) {
        return NULL;
    }

    messages_free();
    return PyLong_FromUnsignedLongLong(PY_HEAP_BYTES - channel.heap.in_use);
}

/* check(): raises an exception in a process without a channel */
static PyObject *
check(PyObject *self, PyObject *args)
{
    (void) self;
    (void) args;
    return attached() ? Py_NewRef(Py_None) : NULL;
}

static bool
send_value(uint32_t kind, uint32_t slot, uint64_t id, PyObject *value,
    PyObject *keep)
{
    py_writer_t w = { 0 };

    bool sent = value == Py_None || encode(&w, value, keep, 0);
    if (sent) {
        sent = send_entry(kind, slot, id, &w);
    }

    py_writer_fini(&w);
    return sent;
}

static bool
send_entry(uint32_t kind, uint32_t slot, uint64_t id, const py_writer_t *w)
{
    uint64_t offset = 0;
    uint32_t block = 0;

    messages_free();
    py_devices_give_back();
    if (w->len > 0) {
        if (w->len > PY_MESSAGE_MAX) {
            PyErr_Format(PyExc_RuntimeError, "a message of %zu bytes is too "
                "long", w->len);
            return false;
        }
        if (!py_heap_alloc(&channel.heap, w->len, &block, &offset)) {
            PyErr_NoMemory();
            return false;
        }
        memcpy((uint8_t *) channel.header + offset, w->data, w->len);
    }

    while (!entry_put(kind, slot, id, offset, w->len,
        w->len > 0 ? (uint64_t) block + 1 : 0))
    {
        py_ring_t *ring = &channel.header->back;
        uint32_t head;

        atomic_store(&ring->full, 1);
        head = atomic_load(&ring->head);
        if (atomic_load(&ring->tail) - head >= PY_RING_ENTRIES) {
            Py_BEGIN_ALLOW_THREADS
            py_futex_wait(&ring->head, head, NULL);
            Py_END_ALLOW_THREADS
        }
        messages_free();
    }

    give_back_unsent();
    return true;
}

/* Adds an entry; false: the ring is full. */
static bool
entry_put(uint32_t kind, uint32_t slot, uint64_t id, uint64_t offset,
    uint64_t length, uint64_t block)
{
    py_ring_t *ring = &channel.header->back;
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    if (tail - channel.freed >= PY_RING_ENTRIES) {
        messages_free();
        if (tail - channel.freed >= PY_RING_ENTRIES) {
            return false;
        }
    }

    channel.messages[tail % PY_RING_ENTRIES] = block;
    ring->entries[tail % PY_RING_ENTRIES] = (py_entry_t) {
        .kind = kind, .slot = slot, .id = id, .offset = offset,
        .length = length
    };
    atomic_store(&ring->tail, tail + 1);
    atomic_fetch_add(&ring->posted, 1);

    switch ((py_wait_t) atomic_load(&ring->waiting)) {
    case PY_WAIT_NONE:
        break;
    case PY_WAIT_FUTEX:
        py_futex_wake(&ring->posted);
        break;
    case PY_WAIT_EVENTFD:
        while (write(channel.event_fd, &(uint64_t) { 1 }, 8) == -1
            && errno == EINTR)
        {
            /* again */
        }
        break;
    }
    return true;
}

static void
give_back_unsent(void)
{
    size_t sent = 0;

    while (sent < channel.unsent_count && entry_put(channel.unsent[sent].kind,
        PY_NO_SLOT, channel.unsent[sent].id, 0, 0, 0))
    {
        sent++;
    }
    if (sent > 0) {
        channel.unsent_count -= sent;
        memmove(channel.unsent, channel.unsent + sent, channel.unsent_count
            * sizeof(*channel.unsent));
    }
}

/* Frees messages that the backend has copied. */
static void
messages_free(void)
{
    uint32_t head = atomic_load_explicit(&channel.header->back.head,
        memory_order_acquire);

    for ( ; channel.freed != head; channel.freed++) {
        uint64_t block = channel.messages[channel.freed % PY_RING_ENTRIES];
        if (block != 0) {
            (void) py_heap_free(&channel.heap, block - 1);
        }
    }
}

static bool
encode(py_writer_t *w, PyObject *o, PyObject *keep, unsigned depth)
{
    if (o == Py_None) {
        py_write_none(w);

    } else if (o == Py_True || o == Py_False) {
        py_write_bool(w, o == Py_True);

    } else if (PyUnicode_Check(o)) {
        return encode_text(w, o);

    } else if (PyLong_Check(o)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(o, &overflow);

        if (overflow > 0) {
            unsigned long long u = PyLong_AsUnsignedLongLong(o);
            if (PyErr_Occurred()) {
                return false;
            }
            py_write_uint(w, u);

        } else if (overflow < 0) {
            PyErr_SetString(PyExc_OverflowError, "an integer is too small");
            return false;

        } else {
            py_write_int(w, v);
        }

    } else if (PyFloat_Check(o)) {
        py_write_double(w, PyFloat_AsDouble(o));

    } else if (PyList_Check(o) || PyTuple_Check(o)) {
        bool list = PyList_Check(o);
        Py_ssize_t n = list ? PyList_Size(o) : PyTuple_Size(o);

        if (depth == PY_DEPTH_MAX || n > UINT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "a message is too deep");
            return false;
        }
        py_write_list(w, (uint32_t) n);
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *item = list ? PyList_GetItem(o, i)
                : PyTuple_GetItem(o, i);
            if (item == NULL || !encode(w, item, keep, depth + 1)) {
                return false;
            }
        }

    } else {
        return py_encode_data(w, o, keep);
    }

    if (w->failed) {
        PyErr_NoMemory();
        return false;
    }
    return true;
}

/* Encodes a text.  A NUL, which would end a text in the server's interface,
   becomes a space. */
static bool
encode_text(py_writer_t *w, PyObject *o)
{
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(o, &len);
    PyObject *bytes = NULL;

    if (text == NULL) {                 /* lone surrogates                   */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(o, "utf-8", "backslashreplace");
        if (bytes == NULL || PyBytes_AsStringAndSize(bytes, (char **) &text,
            &len) != 0)
        {
            Py_XDECREF(bytes);
            return false;
        }
    }

    size_t begin = w->len;
    py_write_text(w, text, (size_t) len);
    Py_XDECREF(bytes);
    if (w->failed) {
        PyErr_NoMemory();
        return false;
    }

    uint8_t *at = w->data + begin + 1 + sizeof(uint32_t);
    while ((at = memchr(at, '\0', (size_t) (w->data + w->len - 1 - at)))
        != NULL)
    {
        *at = ' ';
    }
    return true;
}

bool
py_encode_data(py_writer_t *w, PyObject *o, PyObject *keep)
{
    Py_buffer view;

    if (py_is_device(o)) {
        return py_device_encode(w, o, keep);
    }
    if (PyObject_GetBuffer(o, &view, PyBUF_SIMPLE) != 0) {
        return false;
    }

    uint64_t offset = (uint64_t) ((uint8_t *) view.buf
        - (uint8_t *) channel.header);
    bool done;
    if (view.len <= (Py_ssize_t) PY_INLINE_MAX) {
        py_write_bytes(w, view.buf, (uint64_t) view.len);
        done = !w->failed;

    } else if (offset < PY_CHANNEL_BYTES) {     /* already shared            */
        py_write_block(w, 0, offset, (uint64_t) view.len);
        done = !w->failed && PyList_Append(keep, o) == 0;

    } else if (atomic_load_explicit(&channel.header->copies,
        memory_order_relaxed) != 0)
    {
        done = encode_copy(w, &view, keep);

    } else {
        py_write_address(w, (uint64_t) (uintptr_t) view.buf,
            (uint64_t) view.len);
        done = !w->failed && PyList_Append(keep, o) == 0;
    }

    PyBuffer_Release(&view);
    if (!done && !PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    return done;
}

static bool
encode_copy(py_writer_t *w, const Py_buffer *view, PyObject *keep)
{
    uint32_t id;
    uint64_t offset;

    if (!py_heap_alloc(&channel.heap, (uint64_t) view->len, &id, &offset)) {
        return false;
    }

    uint8_t *to = (uint8_t *) channel.header + offset;
    memcpy(to, view->buf, (size_t) view->len);
    PyObject *b = py_buffer_new(&(py_buffer_kind_t) {
        .base = to, .length = (uint64_t) view->len, .give_back = give_back_up,
        .id = id
    });
    if (b == NULL) {
        (void) py_heap_free(&channel.heap, id);
        return false;
    }

    py_write_block(w, id, offset, (uint64_t) view->len);
    bool kept = PyList_Append(keep, b) == 0;
    Py_DECREF(b);
    return kept && !w->failed;
}

static PyObject *
decode(py_reader_t *r)
{
    py_gpu_place_t place;
    py_data_t data;
    const char *text;
    uint32_t len;
    int64_t i;
    uint64_t u;
    double d;

    switch (py_read_tag(r)) {
    case PY_TAG_TEXT:
        if (py_read_text(r, &text, &len)) {
            PyObject *o = PyUnicode_DecodeUTF8(text, len, "surrogateescape");
            return o;
        }
        break;
    case PY_TAG_INT:
        if (py_read_int(r, &i)) {
            return PyLong_FromLongLong(i);
        }
        break;
    case PY_TAG_LIST:
        return decode_list(r);
    case PY_TAG_BYTES:
        if (py_read_data(r, &data)) {
            return PyByteArray_FromStringAndSize((const char *) data.bytes,
                (Py_ssize_t) data.length);
        }
        break;
    case PY_TAG_BLOCK:
        return decode_block(r);
    case PY_TAG_ARENA:
        return decode_arena(r);
    case PY_TAG_GPU:
        if (py_read_gpu(r, &place)) {
            return py_device_decode(&place);
        }
        break;
    case PY_TAG_NONE:
        r->at++;
        return Py_NewRef(Py_None);
    case PY_TAG_TRUE:
        r->at++;
        return Py_NewRef(Py_True);
    case PY_TAG_FALSE:
        r->at++;
        return Py_NewRef(Py_False);
    case PY_TAG_UINT:
        if (py_read_uint(r, &u)) {
            return PyLong_FromUnsignedLongLong(u);
        }
        break;
    case PY_TAG_DOUBLE:
        if (py_read_double(r, &d)) {
            return PyFloat_FromDouble(d);
        }
        break;
    default:
        break;
    }

    PyErr_SetString(PyExc_RuntimeError, "a message of the backend is damaged");
    return NULL;
}

static PyObject *
decode_list(py_reader_t *r)
{
    uint32_t count;

    if (!py_read_list(r, &count)) {
        PyErr_SetString(PyExc_RuntimeError, "a list of the backend's is "
            "damaged");
        return NULL;
    }

    PyObject *list = PyList_New((Py_ssize_t) count);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = decode(r);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t) i, item) != 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *
decode_block(py_reader_t *r)
{
    uint64_t v[3];

    memcpy(v, r->at + 1, sizeof(v));
    r->at += 1 + sizeof(v);
    return py_buffer_new(&(py_buffer_kind_t) {
        .base = (uint8_t *) channel.header + v[1], .length = v[2],
        .give_back = give_back_down, .id = v[0]
    });
}

static PyObject *
decode_arena(py_reader_t *r)
{
    uint64_t v[3];

    memcpy(v, r->at + 1, sizeof(v));
    r->at += 1 + sizeof(v);
    arena_t *a = arena_find(v[0]);
    while (a == NULL) {
        if (!arena_receive()) {
            return NULL;
        }
        a = arena_find(v[0]);
    }

    if (v[1] > a->size || v[2] > a->size - v[1]) {
        PyErr_SetString(PyExc_RuntimeError, "an input lies outside of its "
            "arena");
        return NULL;
    }

    PyObject *b = py_buffer_new(&(py_buffer_kind_t) {
        .base = a->base + v[1], .length = v[2], .read_only = true,
        .give_back = give_back_arena, .owner = a
    });
    if (b != NULL) {
        a->refs++;
    }
    return b;
}

static arena_t *
arena_find(uint64_t id)
{
    for (size_t i = 0; i < ARENAS; i++) {
        if (channel.arenas[i] != NULL && channel.arenas[i]->id == id) {
            channel.arenas[i]->used = ++channel.clock;
            return channel.arenas[i];
        }
    }

    return NULL;
}

/* Receives an arena, whose descriptor the backend sends before the message that
   needs it. */
static bool
arena_receive(void)
{
    uint64_t words[2];
    union {
        struct cmsghdr header;
        char           space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { words, sizeof(words) };
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
        .msg_controllen = sizeof(control)
    };

    ssize_t n;
    do {
        n = recvmsg(channel.socket_fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n == -1 && errno == EINTR);

    struct cmsghdr *c = n == -1 ? NULL : CMSG_FIRSTHDR(&m);
    if (n == (ssize_t) sizeof(words) && words[1] == 0) {
        arena_drop(words[0]);
        return true;
    }
    if (n != (ssize_t) sizeof(words) || c == NULL
        || c->cmsg_type != SCM_RIGHTS)
    {
        PyErr_SetString(PyExc_RuntimeError, "the descriptor of an arena did "
            "not come");
        return false;
    }

    int fd;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    arena_t *a = calloc(1, sizeof(*a));
    void *p = a == NULL ? MAP_FAILED : mmap(NULL, words[1], PROT_READ,
        MAP_SHARED | MAP_NORESERVE, fd, 0);
    (void) close(fd);
    if (p == MAP_FAILED) {
        free(a);
        PyErr_SetFromErrno(PyExc_OSError);
        return false;
    }

    *a = (arena_t) {
        .id = words[0], .base = p, .size = words[1], .refs = 1,
        .used = ++channel.clock
    };

    size_t place = 0;
    for (size_t i = 0; i < ARENAS; i++) {
        if (channel.arenas[i] == NULL) {
            place = i;
            break;
        }
        if (channel.arenas[i]->used < channel.arenas[place]->used) {
            place = i;
        }
    }
    if (channel.arenas[place] != NULL) {
        arena_unref(channel.arenas[place]);
    }
    channel.arenas[place] = a;
    return true;
}

/* Unmaps an arena that the server has unmapped. */
static void
arena_drop(uint64_t id)
{
    for (size_t i = 0; i < ARENAS; i++) {
        if (channel.arenas[i] != NULL && channel.arenas[i]->id == id) {
            arena_unref(channel.arenas[i]);
            channel.arenas[i] = NULL;
        }
    }
}

static void
arena_unref(arena_t *a)
{
    if (--a->refs == 0) {
        (void) munmap(a->base, a->size);
        free(a);
    }
}

/* Gives back a block of the backend. */
static void
give_back_down(void *owner, uint64_t id)
{
    (void) owner;
    py_give_back(PY_UP_FREE, id);
}

void
py_give_back(uint32_t kind, uint64_t id)
{
    if (channel.header == NULL) {
        return;                         /* the parent still has it           */
    }

    if (channel.unsent_count == channel.unsent_capacity) {
        size_t capacity = channel.unsent_capacity * 2 + 64;
        unsent_t *wider = realloc(channel.unsent, capacity * sizeof(*wider));
        if (wider == NULL) {
            return;                     /* the memory is lost                */
        }
        channel.unsent = wider;
        channel.unsent_capacity = capacity;
    }

    channel.unsent[channel.unsent_count++] = (unsent_t) { kind, id };
    give_back_unsent();
}

static void
give_back_up(void *owner, uint64_t id)
{
    (void) owner;
    if (channel.header != NULL) {
        (void) py_heap_free(&channel.heap, id);
    }
}

static void
give_back_arena(void *owner, uint64_t id)
{
    (void) id;
    arena_unref(owner);
}

static bool
attached(void)
{
    if (channel.header == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this process has no channel to "
            "the server: a child that a model has made cannot call it");
        return false;
    }

    return true;
}

/* Called in a forked child, whose copies of the state are unusable: the channel
   is the parent's. */
static void
forget_channel(void)
{
    channel.header = NULL;
}

/* A server that ends gives no signal to a child that begins to ask for it when
   the parent's thread has ended already, and closes the socket only then. */
static void
end_with_server(void)
{
    char byte;

    if (recv(channel.socket_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        group_kill(ORPHANED);
    }
}

/* The server has ended: this process ends, with those that it has started. */
static void
group_kill(int signo)
{
    (void) signo;
    (void) kill(0, SIGKILL);
}

static PyMethodDef methods[] = {
    { "attach", attach, METH_VARARGS, "Opens the channel." },
    { "next", next_task, METH_VARARGS, "Waits for a task." },
    { "push", push, METH_VARARGS, "Sends a message." },
    { "call", call, METH_VARARGS, "Sends one and waits for its reply." },
    { "export", py_dlpack_export, METH_VARARGS, "A DLPack capsule." },
    { "take", py_dlpack_take, METH_VARARGS, "The tensor in a DLPack capsule." },
    { "gpu", py_device_gpu, METH_VARARGS, "Whether a GPU can be used." },
    { "memory", py_device_memory, METH_VARARGS, "Where a Device lies." },
    { "free_memory", free_memory, METH_NOARGS, "Bytes not in use." },
    { "check", check, METH_NOARGS, "Raises where there is no channel." },
    { NULL, NULL, 0, NULL }
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1,
    .m_methods = methods
};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC
PyInit__native(void)
{
    PyObject *m = PyModule_Create(&module);

    if (m == NULL) {
        return NULL;
    }

    if (!py_buffer_init(m) || !py_device_init(m)
        || PyModule_AddIntConstant(m, "INLINE_MAX", PY_INLINE_MAX) != 0)
    {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}
