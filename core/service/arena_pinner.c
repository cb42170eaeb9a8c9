#include "core/service/arena_pinner.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/base/queue.h"

#define PINNER_RANK 9

typedef struct {
    inf_link_t     link;
    inf_channel_t *channel;         /* a reference                           */
    uint32_t       pid;
} pinner_job_t;

struct inf_arena_pinner_s {
    pthread_t  thread;              /* set in new()                          */

    inf_lock_t lock;                /* rank 9; guards the rest               */
    inf_cond_t work;
    inf_link_t jobs;                /* pinner_job_t, the next one first      */
    bool       stopping;
};

static void *pinner_main(void *arg);
static pinner_job_t *wait_for_job(inf_arena_pinner_t *p);
static void pin(pinner_job_t *job);
static void job_free(pinner_job_t *job);

inf_err_t *
inf_arena_pinner_new(inf_arena_pinner_t **out)
{
    inf_arena_pinner_t *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&p->lock, PINNER_RANK);
    inf_cond_init(&p->work);
    inf_link_init(&p->jobs);
    inf_err_t *err = inf_thread_start(&p->thread, "pin arenas", pinner_main,
        p);
    if (err != NULL) {
        inf_cond_fini(&p->work);
        inf_lock_fini(&p->lock);
        free(p);
        return err;
    }

    *out = p;
    return NULL;
}

void
inf_arena_pinner_free(inf_arena_pinner_t *p)
{
    if (p == NULL) {
        return;
    }

    inf_lock(&p->lock);
    p->stopping = true;
    inf_unlock(&p->lock);
    inf_cond_signal(&p->work);
    pthread_join(p->thread, NULL);

    while (!inf_list_empty(&p->jobs)) {
        job_free(inf_link_entry(p->jobs.next, pinner_job_t, link));
    }
    inf_cond_fini(&p->work);
    inf_lock_fini(&p->lock);
    free(p);
}

void
inf_arena_pinner_push(inf_arena_pinner_t *p, inf_channel_t *channel,
    uint32_t pid)
{
    pinner_job_t *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        inf_err_log(inf_err_add(inf_err_nomem(),
            "the arenas of a worker stay pageable"));
        return;
    }

    inf_link_init(&job->link);
    job->channel = inf_channel_ref(channel);
    job->pid = pid;

    inf_lock(&p->lock);
    inf_list_push_back(&p->jobs, &job->link);
    inf_unlock(&p->lock);
    inf_cond_signal(&p->work);
}

void
inf_arena_pinner_cancel(inf_arena_pinner_t *p, const inf_channel_t *channel)
{
    pinner_job_t *found = NULL;

    inf_lock(&p->lock);
    for (inf_link_t *l = p->jobs.next; l != &p->jobs && found == NULL;
        l = l->next)
    {
        pinner_job_t *job = inf_link_entry(l, pinner_job_t, link);
        found = job->channel == channel ? job : NULL;
    }
    if (found != NULL) {
        inf_link_remove(&found->link);
    }
    inf_unlock(&p->lock);

    if (found != NULL) {
        job_free(found);
    }
}

static void *
pinner_main(void *arg)
{
    inf_arena_pinner_t *p = arg;
    pinner_job_t *job;

    while ((job = wait_for_job(p)) != NULL) {
        pin(job);
        job_free(job);
    }
    return NULL;
}

/* Takes the next job; NULL: the thread ends. */
static pinner_job_t *
wait_for_job(inf_arena_pinner_t *p)
{
    pinner_job_t *job = NULL;

    inf_lock(&p->lock);
    while (inf_list_empty(&p->jobs) && !p->stopping) {
        inf_cond_wait(&p->work, &p->lock);
    }
    if (!p->stopping) {
        job = inf_link_entry(p->jobs.next, pinner_job_t, link);
        inf_link_remove(&job->link);
    }
    inf_unlock(&p->lock);
    return job;
}

static void
pin(pinner_job_t *job)
{
    if (inf_channel_is_dead(job->channel)) {
        return;
    }

    inf_channel_pin(job->channel);
    if (job->pid != 0) {
        inf_log(INF_LOG_INFO, "worker %u: %llu bytes of responses and twice"
            " %llu of requests are pinned", job->pid,
            (unsigned long long) inf_channel_pinned(job->channel),
            (unsigned long long) inf_channel_pinned_requests(job->channel));
    }
}

static void
job_free(pinner_job_t *job)
{
    inf_link_remove(&job->link);
    inf_channel_unref(job->channel);
    free(job);
}
