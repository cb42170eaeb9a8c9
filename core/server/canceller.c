#include "core/server/canceller.h"

#include "core/base/os/thread.h"
#include "core/sched/rejection.h"

#define CANCELLER_RANK 32

static bool start_locked(inf_canceller_t *c) INF_NEEDS(c->lock);
static void *canceller_main(void *arg);

void
inf_canceller_init(inf_canceller_t *c)
{
    inf_lock_init(&c->lock, CANCELLER_RANK);
    inf_cond_init(&c->work);
    inf_link_init(&c->queue);
    c->running = false;
    c->stopping = false;
}

void
inf_canceller_fini(inf_canceller_t *c)
{
    inf_lock(&c->lock);
    c->stopping = true;
    bool running = c->running;
    inf_unlock(&c->lock);

    if (running) {
        inf_cond_signal(&c->work);
        pthread_join(c->thread, NULL);
    }

    inf_cond_fini(&c->work);
    inf_lock_fini(&c->lock);
}

void
inf_canceller_push(inf_canceller_t *c, inf_request_t *req)
{
    inf_lock(&c->lock);
    bool queued = c->running || start_locked(c);
    if (queued) {
        inf_list_push_back(&c->queue, &req->link);
    }
    inf_unlock(&c->lock);

    if (queued) {
        inf_cond_signal(&c->work);
    } else {
        inf_reject_cancelled(req);
    }
}

static bool
start_locked(inf_canceller_t *c)
{
    inf_err_t *err = inf_thread_start(&c->thread, "canceller", canceller_main,
        c);
    c->running = err == NULL;
    inf_err_free(err);
    return c->running;
}

static void *
canceller_main(void *arg)
{
    inf_canceller_t *c = arg;

    inf_lock(&c->lock);
    for (;;) {
        inf_link_t *link = inf_list_pop_front(&c->queue);
        if (link == NULL && c->stopping) {
            break;
        }
        if (link == NULL) {
            inf_cond_wait(&c->work, &c->lock);
            continue;
        }

        inf_unlock(&c->lock);
        inf_reject_cancelled(inf_link_entry(link, inf_request_t, link));
        inf_lock(&c->lock);
    }
    inf_unlock(&c->lock);
    return NULL;
}
