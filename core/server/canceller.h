/*
 * canceller.h - a thread that answers cancelled requests of the C API; the
 *               cancelling thread may hold the client's locks.
 *
 * Owner    The server owns the canceller, which owns pushed requests until
 *          they are answered.
 * Thread   push: any.  The canceller's thread is started by the first push.
 * Units    none.
 * Errors   Without a thread the request is answered on the caller's thread.
 * Route    InferenceRequestCancel -> runtime's queue -> [canceller] -> sink
 */

#ifndef INF_SERVER_CANCELLER_H
#define INF_SERVER_CANCELLER_H

#include "core/base/lock.h"
#include "core/base/queue.h"
#include "core/tensor/request.h"

typedef struct {
    inf_lock_t  lock;       /* rank 32; guards the next four                 */
    inf_cond_t  work;
    inf_link_t  queue;
    bool        running;
    bool        stopping;
    pthread_t   thread;     /* set under lock, joined by fini                */
} inf_canceller_t;

/* The first push starts the thread. */
void inf_canceller_init(inf_canceller_t *c);

/* Answers queued requests and ends the thread. */
void inf_canceller_fini(inf_canceller_t *c);

/* Takes req, which is in no other queue. */
void inf_canceller_push(inf_canceller_t *c, inf_request_t *req);

#endif /* INF_SERVER_CANCELLER_H */
