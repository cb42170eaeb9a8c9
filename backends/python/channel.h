/*
 * channel.h - the layout of the memory that backend and interpreter share, and
 *             their wake-ups.
 *
 * Owner    The backend creates it (a memfd); both sides map it.  Down: written
 *          by the backend; up: by the interpreter.
 * Thread   a ring has one consumer; its producers exclude each other.
 * Units    bytes from the begin of the mapping.
 * Errors   The interpreter runs user code: the backend copies messages before
 *          it checks them, and keeps its own positions.
 * Route    execute -> [work ring] -> interpreter -> [up ring] -> backend
 *
 * A message is one value (value.h) in a block; a ring's entry has its place.
 * The consumer has finished with the block when it takes the next entry.  A
 * call from the interpreter waits in a slot for its reply.
 */

#ifndef PY_CHANNEL_H
#define PY_CHANNEL_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PY_CHANNEL_MAGIC   UINT64_C(0x6e61686379707962)
#define PY_CHANNEL_VERSION 2u

#define PY_RING_ENTRIES    256u
#define PY_SLOTS           1024u
#define PY_NO_SLOT         UINT32_MAX

/* Address space for the blocks of each direction; only used pages take
   memory. */
#define PY_HEAP_BYTES      (UINT64_C(1) << 36)

/* Tensors up to this size are in their message. */
#define PY_INLINE_MAX      2048u

/* Maximum size of a message from the interpreter, which is copied before it is
   parsed. */
#define PY_MESSAGE_MAX     (UINT64_C(256) << 20)

/* Backend to interpreter: entries of the work ring, and READY of the side ring.
   package/_host_channel.py has the same numbers, also those of py_up_t: append
   new ones to both. */
typedef enum {
    PY_TASK_INITIALIZE = 1,
    PY_TASK_COMPLETE,          /* auto_complete_config                      */
    PY_TASK_EXECUTE,
    PY_TASK_FINALIZE,
    PY_TASK_READY,
    PY_TASK_TAKEN              /* outputs of the last batch are copied      */
} py_task_t;

/* Limit of an input for another model, and of a file of one: the backend
   allocates the size that an interpreter declares. */
#define PY_COPY_MAX         (UINT64_C(1) << 32)

/* Interpreter to backend: entries of the up ring. */
typedef enum {
    PY_UP_HELLO = 1,
    PY_UP_DONE,                /* id: the task                              */
    PY_UP_FREE,                /* id: a block of the down heap              */
    PY_UP_LOG,
    PY_UP_SEND,                /* a response; id: the request               */
    PY_UP_CANCELLED,           /* id: the request                           */
    PY_UP_CLOSE,               /* id: a request whose sender has been freed */
    PY_UP_EXEC,                /* a request to another model                */
    PY_UP_NEXT,                /* asks for a response; id: the stream       */
    PY_UP_STREAM_CANCEL,
    PY_UP_STREAM_CLOSE,
    PY_UP_LOAD,
    PY_UP_UNLOAD,
    PY_UP_MODEL_READY,
    PY_UP_FAMILY_NEW,
    PY_UP_FAMILY_DELETE,
    PY_UP_METRIC_NEW,
    PY_UP_METRIC_DELETE,
    PY_UP_METRIC_SET,          /* one of PY_METRIC_*                       */
    PY_UP_METRIC_VALUE,
    PY_UP_GPU_NEW,             /* memory of a GPU for a tensor              */
    PY_UP_GPU_FREE,            /* id: such a piece                          */
    PY_UP_GPU_CLOSED,          /* id: a block of them                       */
    PY_UP_GPU_READY            /* whether inputs may lie there              */
} py_up_t;

typedef enum {
    PY_METRIC_INCREMENT,
    PY_METRIC_ASSIGN,
    PY_METRIC_OBSERVE
} py_metric_op_t;

/* How the consumer of a ring is told of an entry. */
typedef enum {
    PY_WAIT_NONE,              /* not at all: it polls                      */
    PY_WAIT_FUTEX,             /* sleeps on the ring's `posted`             */
    PY_WAIT_EVENTFD
} py_wait_t;

typedef struct {
    uint32_t kind;              /* py_task_t, py_up_t                      */
    uint32_t slot;              /* of the waiting call, or PY_NO_SLOT       */
    uint64_t id;
    uint64_t offset;            /* of the message; length 0: none            */
    uint64_t length;
} py_entry_t;

typedef struct {
    _Atomic uint32_t tail;      /* the producer's; release, acquire          */
    _Atomic uint32_t posted;    /* changes with each entry: the consumer's
                                   futex; seq_cst                            */
    uint32_t         unused[14];
    _Atomic uint32_t head;      /* the consumer's; release, acquire          */
    _Atomic uint32_t waiting;   /* py_wait_t of the consumer; seq_cst        */
    _Atomic uint32_t full;      /* a producer sleeps on head; seq_cst        */
    uint32_t         unused2[13];
    py_entry_t       entries[PY_RING_ENTRIES];
} py_ring_t;

typedef struct {
    _Atomic uint32_t replies;   /* number so far; release, acquire           */
    uint32_t         unused;
    uint64_t         offset;
    uint64_t         length;
    uint64_t         unused2;
} py_slot_t;

typedef struct {
    uint64_t   magic;
    uint32_t   version;
    _Atomic uint32_t copies;    /* 1: the backend cannot read the interpreter's
                                   memory, data come in blocks               */
    uint64_t   size;            /* of the whole mapping                      */
    uint64_t   down;            /* begin of the heaps                        */
    uint64_t   up;
    py_ring_t  work;
    py_ring_t  side;
    py_ring_t  back;            /* the up ring, of py_up_t                   */
    py_slot_t  slots[PY_SLOTS];
} py_header_t;

#define PY_HEAPS_AT ((sizeof(py_header_t) + 4095) & ~(uint64_t) 4095)
#define PY_CHANNEL_BYTES (PY_HEAPS_AT + 2 * PY_HEAP_BYTES)

/* false: the limit has passed; NULL: there is none */
static inline bool
py_futex_wait(_Atomic uint32_t *word, uint32_t seen,
    const struct timespec *limit)
{
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0) == 0
           || errno != ETIMEDOUT;
}

static inline void
py_futex_wake(_Atomic uint32_t *word)
{
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

#endif /* PY_CHANNEL_H */
