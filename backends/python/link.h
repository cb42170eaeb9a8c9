/*
 * link.h - the backend's side of one channel to one interpreter.
 *
 * Owner    Reference counted: the instance holds one, and so does each
 *          request for another model that is under way, which may write its
 *          outputs here after the interpreter has died.
 * Thread   pop, wait, read, sleep: the one thread that has the instance's
 *          consumer role.  The rest: any.
 * Units    bytes.
 * Errors   An interpreter that breaks the rules of the channel is reported
 *          once by pop (PY_POP_BROKEN); it is to be killed then.
 * Route    instance -> [link] <-> interpreter
 *
 * Nothing the interpreter writes is trusted: entries and messages are copied
 * before they are checked, positions are kept here, ids are looked up.
 */

#ifndef PY_LINK_H
#define PY_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "../common/error.h"
#include "channel.h"
#include "heap.h"
#include "value.h"

/* A message of the interpreter's, copied. */
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

/* A ring that the backend writes. */
typedef struct {
    py_ring_t  *ring;
    uint32_t    tail;
    uint32_t    freed;          /* blocks of messages before it are free     */
    uint64_t    blocks[PY_RING_ENTRIES];       /* id + 1; 0: none           */
} py_feed_t;

typedef struct {
    _Atomic uint32_t refs;      /* up relaxed, down acq_rel                  */
    _Atomic bool     dead;      /* the interpreter has ended; seq_cst        */
    int              fd;        /* set in new(), like the next three         */
    int              event_fd;
    py_header_t     *header;
    pid_t            pid;       /* set once it was started                   */

    pthread_mutex_t  lock;      /* guards the next five                      */
    py_heap_t        heap;
    py_feed_t        work;
    py_feed_t        side;
    uint64_t         replies[PY_SLOTS];        /* blocks, as in a feed      */
    bool             claimed[PY_SLOTS];

    uint32_t         head;      /* the consumer's, with what follows         */
    py_message_t     message;   /* of the entry that pop gave                */
    uint64_t         read;      /* bytes read at addresses, ever             */
} py_link_t;

BK_CHECK TRITONSERVER_Error *py_link_new(py_link_t **out);
py_link_t *py_link_ref(py_link_t *l);
void py_link_unref(py_link_t *l);         /* NULL does nothing             */

/* The process has ended: a thread that waits is woken. */
void py_link_die(py_link_t *l);
bool py_link_is_dead(const py_link_t *l);

/* A task; w may be NULL.  false: no room. */
bool py_link_push(py_link_t *l, py_feed_t *to, py_task_t task,
    uint64_t id, const py_writer_t *w);

/* A slot whose reply comes from another thread; an error where there is none,
   or it has such a call already: so each slot has one at a time. */
BK_CHECK TRITONSERVER_Error *py_link_claim(py_link_t *l, uint32_t slot);

/* The reply that a call waits for; a slot out of range has no caller. */
void py_link_reply(py_link_t *l, uint32_t slot, const py_writer_t *w);

/* A block for a tensor, which the interpreter gives back.  NULL: no room. */
void *py_link_alloc(py_link_t *l, uint64_t len, uint32_t *id,
    uint64_t *offset);
void py_link_free(py_link_t *l, uint64_t id);

/* The next entry; its message is in l->message until the next pop. */
py_pop_t py_link_pop(py_link_t *l, py_entry_t *e);

/* Waits until there may be an entry, or the interpreter is dead. */
void py_link_wait(py_link_t *l);

/* How the consumer that comes next learns of entries: by the eventfd; true:
   there are some already. */
bool py_link_sleep(py_link_t *l);

/* Takes what the eventfd says, without waiting for it. */
void py_link_hear(const py_link_t *l);

/* Whether there seem to be entries, for a thread without the role. */
bool py_link_has_entries(const py_link_t *l);

/* Copies data of the interpreter's to dst, data->length bytes. */
BK_CHECK TRITONSERVER_Error *py_link_read(py_link_t *l,
    const py_data_t *data, void *dst);

#endif /* PY_LINK_H */
