/* link.c - see link.h */

#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define MESSAGE_KEPT (UINT64_C(1) << 20)

static TRITONSERVER_Error *link_open(py_link_t *l);
static TRITONSERVER_Error *gpu_read(py_link_t *l, const py_data_t *data,
    void *dst);
static TRITONSERVER_Error *os_error(const char *what);
static void feed_free_read(py_link_t *l, py_feed_t *f);
static bool message_put(py_link_t *l, const py_writer_t *w, uint32_t *id,
    uint64_t *offset);
static bool message_copy(py_link_t *l, const py_entry_t *e);
static void head_move(py_link_t *l);

TRITONSERVER_Error *
py_link_new(py_link_t **out)
{
    py_link_t *l = calloc(1, sizeof(*l));

    if (l == NULL) {
        return bk_err_nomem("a channel");
    }

    atomic_init(&l->refs, 1);
    l->fd = -1;
    l->event_fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    py_gpu_blocks_init(&l->gpu);
    TRITONSERVER_Error *err = link_open(l);
    if (err != NULL) {
        py_link_unref(l);
        return err;
    }

    *out = l;
    return NULL;
}

py_link_t *
py_link_ref(py_link_t *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void
py_link_unref(py_link_t *l)
{
    if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1,
        memory_order_acq_rel) != 1)
    {
        return;
    }

    if (l->header != NULL) {
        (void) munmap(l->header, PY_CHANNEL_BYTES);
    }
    if (l->fd != -1) {
        (void) close(l->fd);
    }
    if (l->event_fd != -1) {
        (void) close(l->event_fd);
    }
    py_heap_fini(&l->heap);
    py_gpu_blocks_fini(&l->gpu);
    free(l->message.data);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void
py_link_die(py_link_t *l)
{
    atomic_store(&l->dead, true);
    atomic_fetch_add(&l->header->back.posted, 1);
    py_futex_wake(&l->header->back.posted);
}

bool
py_link_is_dead(const py_link_t *l)
{
    return atomic_load(&l->dead);
}

bool
py_link_push(py_link_t *l, py_feed_t *to, py_task_t task, uint64_t id,
    const py_writer_t *w)
{
    py_ring_t *ring = to->ring;
    py_entry_t e = { .kind = task, .slot = PY_NO_SLOT, .id = id };
    uint32_t block = 0;

    pthread_mutex_lock(&l->lock);
    feed_free_read(l, to);
    if (to->tail - to->freed >= PY_RING_ENTRIES
        || (w != NULL && !message_put(l, w, &block, &e.offset)))
    {
        pthread_mutex_unlock(&l->lock);
        return false;
    }

    e.length = w != NULL ? w->len : 0;
    to->blocks[to->tail % PY_RING_ENTRIES] = w != NULL
        ? (uint64_t) block + 1 : 0;
    ring->entries[to->tail % PY_RING_ENTRIES] = e;
    to->tail++;
    atomic_store(&ring->tail, to->tail);
    atomic_fetch_add(&ring->posted, 1);
    pthread_mutex_unlock(&l->lock);

    if (atomic_load(&ring->waiting) == PY_WAIT_FUTEX) {
        py_futex_wake(&ring->posted);
    }
    return true;
}

TRITONSERVER_Error *
py_link_claim(py_link_t *l, uint32_t slot)
{
    bool free = false;

    if (slot < PY_SLOTS) {
        pthread_mutex_lock(&l->lock);
        free = !l->claimed[slot];
        l->claimed[slot] = true;
        pthread_mutex_unlock(&l->lock);
    }
    return free ? NULL : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "the interpreter waits for no reply to its call");
}

void
py_link_unclaim(py_link_t *l, uint32_t slot)
{
    pthread_mutex_lock(&l->lock);
    l->claimed[slot] = false;
    pthread_mutex_unlock(&l->lock);
}

void
py_link_reply(py_link_t *l, uint32_t slot, const py_writer_t *w)
{
    uint32_t block;
    uint64_t offset;

    if (slot >= PY_SLOTS) {
        return;
    }

    py_slot_t *s = &l->header->slots[slot];
    pthread_mutex_lock(&l->lock);
    if (l->replies[slot] != 0) {
        (void) py_heap_free(&l->heap, l->replies[slot] - 1);
        l->replies[slot] = 0;
    }
    s->length = 0;              /* without room the caller gets an exception */
    if (message_put(l, w, &block, &offset)) {
        l->replies[slot] = (uint64_t) block + 1;
        s->offset = offset;
        s->length = w->len;
    }
    pthread_mutex_unlock(&l->lock);

    atomic_fetch_add(&s->replies, 1);
    py_futex_wake(&s->replies);
}

void *
py_link_alloc(py_link_t *l, uint64_t len, uint32_t *id, uint64_t *offset)
{
    pthread_mutex_lock(&l->lock);
    bool done = py_heap_alloc(&l->heap, len, id, offset);
    pthread_mutex_unlock(&l->lock);

    return done ? (uint8_t *) l->header + *offset : NULL;
}

void
py_link_free(py_link_t *l, uint64_t id)
{
    pthread_mutex_lock(&l->lock);
    (void) py_heap_free(&l->heap, id);
    pthread_mutex_unlock(&l->lock);
}

py_pop_t
py_link_pop(py_link_t *l, py_entry_t *e)
{
    py_ring_t *ring = &l->header->back;
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

    if (tail == l->head) {
        return PY_POP_EMPTY;
    }
    if (tail - l->head > PY_RING_ENTRIES) {
        return PY_POP_BROKEN;
    }

    memcpy(e, &ring->entries[l->head % PY_RING_ENTRIES], sizeof(*e));
    l->message.len = 0;
    if (e->length > 0 && !message_copy(l, e)) {
        return PY_POP_BROKEN;
    }

    head_move(l);
    return PY_POP_ENTRY;
}

/* The interpreter may change the futex back, or have its sleepers wait for
   another one: a wake-up may be lost. */
void
py_link_wait(py_link_t *l)
{
    static const struct timespec look_again = { .tv_sec = 1 };
    py_ring_t *ring = &l->header->back;
    uint32_t posted = atomic_load(&ring->posted);

    atomic_store(&ring->waiting, PY_WAIT_FUTEX);
    if (atomic_load(&ring->tail) == l->head && !py_link_is_dead(l)) {
        (void) py_futex_wait(&ring->posted, posted, &look_again);
    }
    atomic_store(&ring->waiting, PY_WAIT_NONE);
}

bool
py_link_sleep(py_link_t *l)
{
    py_ring_t *ring = &l->header->back;

    atomic_store(&ring->waiting, PY_WAIT_EVENTFD);
    return atomic_load(&ring->tail) != l->head;
}

/* The interpreter has the same open file, and may make it blocking. */
void
py_link_hear(const py_link_t *l)
{
    eventfd_t value;
    struct iovec to = { &value, sizeof(value) };

    if (preadv2(l->event_fd, &to, 1, -1, RWF_NOWAIT) == -1
        && errno == EOPNOTSUPP)
    {
        (void) eventfd_read(l->event_fd, &value);
    }
}

bool
py_link_has_entries(const py_link_t *l)
{
    const py_ring_t *ring = &l->header->back;

    return atomic_load(&ring->tail) != atomic_load(&ring->head);
}

TRITONSERVER_Error *
py_link_read(py_link_t *l, const py_data_t *data, void *dst)
{
    uint64_t done = 0;

    if (data->tag == PY_TAG_BYTES) {
        if (data->length > 0) {
            memcpy(dst, data->bytes, data->length);
        }
        return NULL;
    }

    if (data->tag == PY_TAG_BLOCK) {
        if (data->place > PY_CHANNEL_BYTES
            || data->length > PY_CHANNEL_BYTES - data->place)
        {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "a block of the "
                "interpreter's lies outside of the channel");
        }
        memcpy(dst, (uint8_t *) l->header + data->place, data->length);
        return NULL;
    }

    if (data->tag == PY_TAG_GPU) {
        return gpu_read(l, data, dst);
    }

    while (done < data->length) {
        struct iovec to = { (char *) dst + done, data->length - done };
        struct iovec from = {
            (void *) (uintptr_t) (data->place + done), data->length - done
        };

        ssize_t n = process_vm_readv(l->pid, &to, 1, &from, 1, 0);
        if (n <= 0) {
            return n == 0 ? bk_err_new(TRITONSERVER_ERROR_INTERNAL, "the "
                "interpreter's memory ends before its tensor")
                : os_error("cannot read a tensor of the interpreter's");
        }
        done += (uint64_t) n;
        l->read += (uint64_t) n;
    }
    return NULL;
}

static TRITONSERVER_Error *
gpu_read(py_link_t *l, const py_data_t *data, void *dst)
{
    bk_buffer_t from;

    TRITONSERVER_Error *err = py_gpu_ref(&l->gpu, data->id, data->length,
        &from);
    if (err == NULL) {
        err = py_gpus_copy(l->gpu.gpus, &(bk_buffer_t) {
            .base = dst, .len_bytes = data->length,
            .type = TRITONSERVER_MEMORY_CPU }, &from);
        py_gpu_unref(&l->gpu, data->id);
    }
    return err;
}

static TRITONSERVER_Error *
link_open(py_link_t *l)
{
    l->fd = memfd_create("inference-python", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (l->fd == -1
        || ftruncate(l->fd, (off_t) PY_CHANNEL_BYTES) != 0
        || fcntl(l->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW
            | F_SEAL_SEAL) != 0)
    {
        return os_error("cannot make the memory of a channel");
    }

    l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->event_fd == -1) {
        return os_error("cannot make an eventfd");
    }

    void *p = mmap(NULL, PY_CHANNEL_BYTES, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, l->fd, 0);
    if (p == MAP_FAILED) {
        return os_error("cannot map the memory of a channel");
    }

    l->header = p;
    l->header->version = PY_CHANNEL_VERSION;
    l->header->size = PY_CHANNEL_BYTES;
    l->header->down = PY_HEAPS_AT;
    l->header->up = PY_HEAPS_AT + PY_HEAP_BYTES;
    l->header->magic = PY_CHANNEL_MAGIC;
    atomic_store(&l->header->back.waiting, PY_WAIT_EVENTFD);
    l->work.ring = &l->header->work;
    l->side.ring = &l->header->side;
    py_heap_init(&l->heap, l->fd, PY_HEAPS_AT, PY_HEAP_BYTES);
    return NULL;
}

static TRITONSERVER_Error *
os_error(const char *what)
{
    char text[128];

    return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %s", what,
        strerror_r(errno, text, sizeof(text)));
}

/* Frees blocks of messages that the interpreter has read; its head is
   clamped. */
static void
feed_free_read(py_link_t *l, py_feed_t *f)
{
    uint32_t head = atomic_load_explicit(&f->ring->head,
        memory_order_acquire);

    if (head - f->freed > f->tail - f->freed) {
        return;
    }

    for ( ; f->freed != head; f->freed++) {
        uint64_t block = f->blocks[f->freed % PY_RING_ENTRIES];
        if (block != 0) {
            (void) py_heap_free(&l->heap, block - 1);
        }
    }
}

static bool
message_put(py_link_t *l, const py_writer_t *w, uint32_t *id,
    uint64_t *offset)
{
    if (w->failed || !py_heap_alloc(&l->heap, w->len, id, offset)) {
        return false;
    }

    memcpy((uint8_t *) l->header + *offset, w->data, w->len);
    return true;
}

static bool
message_copy(py_link_t *l, const py_entry_t *e)
{
    py_message_t *m = &l->message;

    if (e->length > PY_MESSAGE_MAX || e->offset > PY_CHANNEL_BYTES
        || e->length > PY_CHANNEL_BYTES - e->offset)
    {
        return false;
    }

    if (e->length > m->capacity || m->capacity > MESSAGE_KEPT) {
        size_t capacity = e->length < 4096 ? 4096 : e->length;
        free(m->data);
        m->data = malloc(capacity);
        m->capacity = m->data != NULL ? capacity : 0;
        if (m->data == NULL) {
            return false;
        }
    }

    memcpy(m->data, (uint8_t *) l->header + e->offset, e->length);
    m->len = e->length;
    return true;
}

static void
head_move(py_link_t *l)
{
    py_ring_t *ring = &l->header->back;

    l->head++;
    atomic_store(&ring->head, l->head);
    if (atomic_load(&ring->full) != 0) {
        atomic_store(&ring->full, 0);
        py_futex_wake(&ring->head);
    }
}
