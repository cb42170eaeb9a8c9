/*
 * job.h - a request with its factory that counts what becomes of it, for tests
 *         with threads.
 *
 * Owner    the test; a job may be sent again when job_wait has returned.
 * Thread   any.
 * Units    none.
 * Errors   the program ends: a failed assertion may not leave a thread that is
 *          not the test's own.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_JOB_H
#define INF_T_SCHED_JOB_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/sched/runtime.h"
#include "core/tensor/response.h"

#define must(condition)                                                      \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
            abort();                                                         \
        }                                                                    \
    } while (0)

typedef struct {
    inf_request_t    request;
    inf_factory_t    factory;
    uint64_t         number;        /* the test's                            */
    _Atomic uint32_t executed, rejected, finals, released, freed;
} job_t;

/* Called with each error and before each end is counted; may be NULL. */
static void (*job_rejected)(const inf_err_t *err);
static void (*job_final)(const job_t *job);

static void
job_on_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    job_t *job = userp;

    if (response != NULL && response->err != NULL) {
        atomic_fetch_add(&job->rejected, 1);
        if (job_rejected != NULL) {
            job_rejected(response->err);
        }
    }
    if (flags & INF_SEND_FINAL) {
        if (job_final != NULL) {
            job_final(job);
        }
        atomic_fetch_add(&job->finals, 1);
    }
    inf_response_free(response);
}

static void
job_on_free(void *userp, inf_factory_t *f)
{
    (void) f;
    atomic_fetch_add(&((job_t *) userp)->freed, 1);
}

static void
job_on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    atomic_fetch_add(&((job_t *) userp)->released, 1);
}

static const inf_sink_ops_t job_sink = {
    .complete = job_on_complete, .factory_free = job_on_free
};
static const inf_request_ops_t job_ops = { .released = job_on_released };

static inline void
job_init(job_t *job)
{
    inf_request_init(&job->request);
    inf_factory_init(&job->factory);
}

static inline void
job_fini(job_t *job)
{
    inf_request_fini(&job->request);
    inf_factory_fini(&job->factory);
}

/* To be filled and submitted. */
static inline inf_request_t *
job_reset(job_t *job, inf_model_t *model)
{
    inf_request_t *r = &job->request;

    inf_request_reset(r);
    job->executed = job->rejected = job->finals = 0;
    job->released = job->freed = 0;
    inf_factory_start(&job->factory, NULL, "id", &job_sink, job);
    r->ops = &job_ops;
    r->userp = job;
    r->factory = &job->factory;
    r->model = model;
    return r;
}

/* One response, the last. */
static inline void
job_answer(inf_request_t *r)
{
    inf_response_t *response;

    must(inf_response_new(r->factory, &response) == NULL);
    inf_response_send(response, INF_SEND_FINAL, NULL);
}

/* As a backend does it that has nothing to do. */
static inline void
job_execute(inf_request_t *r)
{
    job_t *job = r->userp;

    atomic_fetch_add(&job->executed, 1);
    job_answer(r);
    inf_request_release(r, 1);
}

/* At any time after job_reset; by one thread at a time. */
static inline void
job_cancel(inf_runner_t *runner, job_t *job)
{
    if (!inf_factory_try_ref(&job->factory)) {
        return;
    }
    atomic_store(&job->factory.cancelled, true);
    if (inf_runner_cancel(runner, &job->request)) {
        inf_factory_send_error(&job->factory,
            inf_err_new(INF_ERR_CANCELLED, "%s", ""));
        inf_request_release(&job->request, 1);
    }
    inf_factory_unref(&job->factory);
}

static inline bool
job_done(const job_t *job)
{
    return job->released > 0 && job->freed > 0;
}

/* It ran or was rejected, once. */
static inline void
job_wait(const job_t *job)
{
    while (!job_done(job)) {
        sched_yield();
    }
    must(job->finals == 1);
    must(job->released == 1);
    must(job->executed + job->rejected == 1);
}

#endif /* INF_T_SCHED_JOB_H */
