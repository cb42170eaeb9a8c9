/*
 * canceller.h - answers cancelled requests of the C API away from the thread
 *               that cancelled them, which may hold the client's locks.
 *
 * Owner    The server owns it.  It owns the requests pushed, until answered.
 * Thread   push: any.  One thread of its own, started by the first push.
 * Units    none.
 * Errors   Without a thread the request is answered on the caller's.
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

/* The thread is started by the first request. */
void inf_canceller_init(inf_canceller_t *c);

/* Answers what is queued, ends the thread. */
void inf_canceller_fini(inf_canceller_t *c);

/* Takes req, which no queue holds any more. */
void inf_canceller_push(inf_canceller_t *c, inf_request_t *req);

#endif /* INF_SERVER_CANCELLER_H */
