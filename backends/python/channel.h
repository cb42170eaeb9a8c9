/*
 * channel.h - the memory that backend and interpreter share: its layout, and
 *             the words by which they wake each other.
 *
 * Owner    The backend makes it (a memfd without a name in any file system);
 *          both sides map it.  Down: written by the backend; up: by the
 *          interpreter.
 * Thread   a ring has one consumer; its producers exclude each other.
 * Units    bytes from the begin of the mapping.
 * Errors   The interpreter runs a user's code: the backend copies what it
 *          reads here before it checks it, and keeps its own positions.
 * Route    execute -> [work ring] -> interpreter -> [up ring] -> backend
 *
 * A message is one value (value.h) in a block; an entry of a ring says where.
 * The consumer is done with the block when it has moved on to the next entry.
 * A call from the interpreter waits in a slot, into which its reply comes.
 */

#ifndef PY_CHANNEL_H
#define PY_CHANNEL_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PY_CHANNEL_MAGIC   UINT64_C(0x6e61686379707962)
#define PY_CHANNEL_VERSION 1u

#define PY_RING_ENTRIES    256u
#define PY_SLOTS           1024u
#define PY_NO_SLOT         UINT32_MAX

/* Addresses for the blocks of each direction; only pages in use cost. */
#define PY_HEAP_BYTES      (UINT64_C(1) << 36)

/* Tensors up to this size travel inside their message. */
#define PY_INLINE_MAX      2048u

/* A message of the interpreter is copied before it is read. */
#define PY_MESSAGE_MAX     (UINT64_C(256) << 20)

/* Backend to interpreter: entries of the work ring; READY is one of the side
   ring.  package/_host_channel.py has the same numbers, as it has those of
   py_up_t: a new one is the last in both. */
typedef enum {
    PY_TASK_INITIALIZE = 1,
    PY_TASK_COMPLETE,          /* auto_complete_config                      */
    PY_TASK_EXECUTE,
    PY_TASK_FINALIZE,
    PY_TASK_READY,
    PY_TASK_TAKEN              /* outputs of the last batch are copied      */
} py_task_t;

/* An input for another model and a file of one may have so many bytes: the
   backend allocates what an interpreter says they take. */
#define PY_COPY_MAX         (UINT64_C(1) << 32)

/* Interpreter to backend. */
typedef enum {
    PY_UP_HELLO = 1,
    PY_UP_DONE,                /* of the task with that id                  */
    PY_UP_FREE,                /* a block of the down heap                  */
    PY_UP_LOG,
    PY_UP_SEND,                /* a sender's response; id: the request      */
    PY_UP_CANCELLED,           /* id: the request                           */
    PY_UP_CLOSE,               /* nobody has that request's sender any more */
    PY_UP_EXEC,                /* a request for another model               */
    PY_UP_NEXT,                /* id: of a decoupled one                    */
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
    PY_UP_METRIC_VALUE
} py_up_t;

typedef enum {
    PY_METRIC_INCREMENT,
    PY_METRIC_ASSIGN,
    PY_METRIC_OBSERVE
} py_metric_op_t;

/* How the consumer of a ring learns of an entry. */
typedef enum {
    PY_WAIT_NONE,              /* it looks by itself                        */
    PY_WAIT_FUTEX,             /* it sleeps on the ring's word `posted`     */
    PY_WAIT_EVENTFD
} py_wait_t;

typedef struct {
    uint32_t kind;              /* py_task_t, py_up_t                      */
    uint32_t slot;              /* of the call that waits, or PY_NO_SLOT    */
    uint64_t id;
    uint64_t offset;            /* of the message; length 0: none            */
    uint64_t length;
} py_entry_t;

typedef struct {
    _Atomic uint32_t tail;      /* producer's; release, acquire              */
    _Atomic uint32_t posted;    /* moves with each entry: the consumer's
                                   futex; seq_cst                            */
    uint32_t         unused[14];
    _Atomic uint32_t head;      /* consumer's; release, acquire              */
    _Atomic uint32_t waiting;   /* py_wait_t, the consumer's; seq_cst        */
    _Atomic uint32_t full;      /* a producer sleeps on head; seq_cst        */
    uint32_t         unused2[13];
    py_entry_t       entries[PY_RING_ENTRIES];
} py_ring_t;

typedef struct {
    _Atomic uint32_t replies;   /* how many so far; release, acquire         */
    uint32_t         unused;
    uint64_t         offset;
    uint64_t         length;
    uint64_t         unused2;
} py_slot_t;

typedef struct {
    uint64_t   magic;
    uint32_t   version;
    _Atomic uint32_t copies;    /* 1: the backend can't read the memory of
                                   the interpreter, data come in blocks      */
    uint64_t   size;            /* of the whole mapping                      */
    uint64_t   down;            /* where the heaps begin                     */
    uint64_t   up;
    py_ring_t  work;
    py_ring_t  side;
    py_ring_t  back;            /* the up ring: entries are py_up_t          */
    py_slot_t  slots[PY_SLOTS];
} py_header_t;

#define PY_HEAPS_AT ((sizeof(py_header_t) + 4095) & ~(uint64_t) 4095)
#define PY_CHANNEL_BYTES (PY_HEAPS_AT + 2 * PY_HEAP_BYTES)

static inline void
py_futex_wait(_Atomic uint32_t *word, uint32_t seen,
    const struct timespec *limit)
{
    (void) syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0);
}

static inline void
py_futex_wake(_Atomic uint32_t *word)
{
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

#endif /* PY_CHANNEL_H */
