/*
 * link.h - the backend's side of one channel to one interpreter.
 *
 * Owner    Reference counted: by the instance, and by each running request to
 *          another model, which may write outputs here after the interpreter's
 *          end.
 * Thread   pop, wait, read, sleep: the thread with the instance's consumer
 *          role.  The rest: any.
 * Units    bytes.
 * Errors   A violation of the channel's rules is reported once by pop
 *          (PY_POP_BROKEN); the interpreter is to be killed then.
 * Route    instance -> [link] <-> interpreter
 *
 * Data written by the interpreter are not trusted: entries and messages are
 * copied before they are checked, positions are kept here, ids are looked up.
 */

#ifndef PY_LINK_H
#define PY_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "../common/error.h"
#include "channel.h"
#include "gpu_blocks.h"
#include "heap.h"
#include "value.h"

/* A copied message of the interpreter. */
typedef struct {
    uint8_t *data;
    size_t   len;
    size_t   capacity;
} py_message_t;

typedef enum {
    PY_POP_EMPTY,
    PY_POP_ENTRY,
    PY_POP_BROKEN
} py_pop_t;

/* A ring written by the backend. */
typedef struct {
    py_ring_t  *ring;
    uint32_t    tail;
    uint32_t    freed;          /* blocks of earlier messages are free       */
    uint64_t    blocks[PY_RING_ENTRIES];       /* id + 1; 0: none           */
} py_feed_t;

typedef struct {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    _Atomic bool     dead;      /* the interpreter has ended; seq_cst        */
    int              fd;        /* set in new(), as the next three           */
    int              event_fd;
    py_header_t     *header;
    pid_t            pid;       /* set once started                          */
    py_gpu_blocks_t  gpu;       /* with a lock of its own                    */

    pthread_mutex_t  lock;      /* guards the next five                      */
    py_heap_t        heap;
    py_feed_t        work;
    py_feed_t        side;
    uint64_t         replies[PY_SLOTS];        /* blocks, as in a feed      */
    bool             claimed[PY_SLOTS];

    uint32_t         head;      /* consumer's, as what follows               */
    py_message_t     message;   /* of the last popped entry                  */
    uint64_t         read;      /* total bytes read at addresses, and on GPUs */
} py_link_t;

/* Creates a channel, with one reference. */
BK_CHECK TRITONSERVER_Error *py_link_new(py_link_t **out);
py_link_t *py_link_ref(py_link_t *l);
void py_link_unref(py_link_t *l);         /* NULL does nothing             */

/* die: marks the process as ended and wakes waiting threads. */
void py_link_die(py_link_t *l);
bool py_link_is_dead(const py_link_t *l);

/* Pushes a task; w may be NULL.  false: no room. */
bool py_link_push(py_link_t *l, py_feed_t *to, py_task_t task,
    uint64_t id, const py_writer_t *w);

/* Reserves a slot whose reply comes from another thread; error: no such slot,
   or it is reserved.  So a slot has one such call at a time. */
BK_CHECK TRITONSERVER_Error *py_link_claim(py_link_t *l, uint32_t slot);

/* Ends the reservation; called before the reply, after which the interpreter
   may use the slot again. */
void py_link_unclaim(py_link_t *l, uint32_t slot);

/* Replies to the call of a slot; a slot out of range has no caller. */
void py_link_reply(py_link_t *l, uint32_t slot, const py_writer_t *w);

/* Allocates a block for a tensor, which the interpreter gives back.  NULL: no
   room. */
void *py_link_alloc(py_link_t *l, uint64_t len, uint32_t *id,
    uint64_t *offset);
void py_link_free(py_link_t *l, uint64_t id);

/* Takes the next entry; its message is in l->message until the next pop. */
py_pop_t py_link_pop(py_link_t *l, py_entry_t *e);

/* Waits for an entry, or the interpreter's end; a second at most. */
void py_link_wait(py_link_t *l);

/* Makes the eventfd report entries to the next consumer; true: there are
   some. */
bool py_link_sleep(py_link_t *l);

/* Clears the eventfd without waiting. */
void py_link_hear(const py_link_t *l);

/* Whether there may be entries; for a thread without the role. */
bool py_link_has_entries(const py_link_t *l);

/* Copies data->length bytes of the interpreter, or of a GPU, to dst. */
BK_CHECK TRITONSERVER_Error *py_link_read(py_link_t *l,
    const py_data_t *data, void *dst);

#endif /* PY_LINK_H */
