#include "core/server/tracer.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/base/refs.h"
#include "core/server/trace_collector.h"
#include "core/server/trace_file.h"

#define TRACER_RANK     74
#define TRACER_MEMORY   (UINT64_C(64) << 20)    /* of records in progress    */
#define COMPLAIN_NS     UINT64_C(10000000000)   /* between two log lines     */
#define END_NS          UINT64_C(2000000000)    /* for queued records, at
                                                   stop                      */

struct inf_tracer_s {
    inf_trace_settings_t   settings;    /* has a lock of its own             */
    uint32_t               limit;       /* set in new(): limit of queued
                                           records                           */
    uint64_t               delay_ns;    /* maximum age of a batch         */
    uint32_t               batch;
    inf_trace_file_t      *file;        /* file or collector; at most one is
                                           set                               */
    inf_trace_collector_t *collector;
    pthread_t              thread;      /* if there is one of them           */

    _Atomic uint32_t       refs;        /* up relaxed, down acq_rel          */
    _Atomic uint64_t       memory;      /* relaxed: bytes of records         */
    _Atomic uint64_t       dropped;     /* relaxed: a statistic              */
    _Atomic uint64_t       until_ns;    /* relaxed: later records are dropped;
                                           set at stop                       */

    inf_lock_t             lock;        /* rank 74; guards the rest          */
    inf_cond_t             work;
    inf_link_t             queue;
    uint32_t               queued;
    bool                   stopping;
};

static inf_err_t *open_target(inf_tracer_t *t,
    const NginxInference__TraceSettings *config);
static void tracer_free(inf_tracer_t *t);
static void *tracer_main(void *arg);
static uint32_t take_batch(inf_tracer_t *t, inf_link_t *batch, bool *last);
static void bring_away(inf_tracer_t *t, inf_link_t *batch, uint32_t count);
static void drop(inf_tracer_t *t, uint64_t count);
static void complain(inf_tracer_t *t, uint64_t *told, uint64_t *told_ns,
    bool now);

inf_err_t *
inf_tracer_new(const NginxInference__TraceSettings *config,
    inf_tracer_t **out)
{
    inf_tracer_t *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&t->refs, 1);
    atomic_init(&t->until_ns, UINT64_MAX);
    t->limit = config->bsp_max_queue_size;
    t->batch = config->bsp_max_export_batch_size;
    if (t->batch > t->limit) {
        t->batch = t->limit;
    }
    t->delay_ns = config->bsp_schedule_delay_ms * UINT64_C(1000000);
    inf_link_init(&t->queue);
    inf_cond_init(&t->work);
    inf_lock_init(&t->lock, TRACER_RANK);

    inf_err_t *err = inf_trace_settings_init(&t->settings, config);
    if (err == NULL) {
        err = open_target(t, config);
    }
    if (err == NULL && (t->file != NULL || t->collector != NULL)) {
        err = inf_thread_start(&t->thread, "traces", tracer_main, t);
    }
    if (err != NULL) {
        inf_tracer_unref(t);
        return err;
    }

    *out = t;
    return NULL;
}

void
inf_tracer_stop(inf_tracer_t *t)
{
    if (t == NULL) {
        return;
    }

    atomic_store_explicit(&t->until_ns, inf_clock_ns() + END_NS,
        memory_order_relaxed);
    inf_lock(&t->lock);
    t->stopping = true;
    inf_unlock(&t->lock);
    inf_cond_broadcast(&t->work);
    if (t->file != NULL || t->collector != NULL) {
        pthread_join(t->thread, NULL);
    }
    inf_tracer_unref(t);
}

inf_tracer_t *
inf_tracer_ref(inf_tracer_t *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void
inf_tracer_unref(inf_tracer_t *t)
{
    if (inf_refs_drop(&t->refs)) {
        tracer_free(t);
    }
}

inf_trace_settings_t *
inf_tracer_settings(inf_tracer_t *t)
{
    return &t->settings;
}

bool
inf_tracer_is_on(const inf_tracer_t *t)
{
    return atomic_load_explicit(&t->settings.on, memory_order_relaxed);
}

void
inf_tracer_push(inf_trace_record_t *r)
{
    inf_tracer_t *t = r->tracer;
    bool whole = !atomic_load_explicit(&r->incomplete, memory_order_relaxed);

    inf_lock(&t->lock);
    bool queued = whole && !t->stopping && t->queued < t->limit;
    if (queued) {
        inf_list_push_back(&t->queue, &r->link);
        t->queued++;
    }
    if (queued && (t->queued == 1 || t->queued == t->batch)) {
        inf_cond_signal(&t->work);
    }
    inf_unlock(&t->lock);       /* t may be freed with a queued record       */

    if (!queued) {
        drop(t, 1);
        inf_trace_record_free(r);
    }
}

bool
inf_tracer_take(inf_tracer_t *t, size_t bytes)
{
    return atomic_fetch_add_explicit(&t->memory, bytes, memory_order_relaxed)
        + bytes <= TRACER_MEMORY;
}

void
inf_tracer_give(inf_tracer_t *t, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&t->memory, bytes, memory_order_relaxed);
}

uint64_t
inf_tracer_dropped(const inf_tracer_t *t)
{
    return atomic_load_explicit(&t->dropped, memory_order_relaxed);
}

static inf_err_t *
open_target(inf_tracer_t *t, const NginxInference__TraceSettings *config)
{
    if (config->url[0] != '\0') {
        return inf_trace_collector_new(config, &t->until_ns,
            &t->collector);
    }

    return config->file[0] != '\0' ? inf_trace_file_new(config->file,
        &t->file) : NULL;
}

static void
tracer_free(inf_tracer_t *t)
{
    inf_trace_file_free(t->file);
    inf_trace_collector_free(t->collector);
    inf_trace_settings_fini(&t->settings);
    inf_cond_fini(&t->work);
    inf_lock_fini(&t->lock);
    free(t);
}

static void *
tracer_main(void *arg)
{
    inf_tracer_t *t = arg;
    uint64_t told = 0, told_ns = 0;
    bool last = false;

    while (!last) {
        inf_link_t batch;
        uint32_t count = take_batch(t, &batch, &last);
        bring_away(t, &batch, count);
        complain(t, &told, &told_ns, last);
    }
    return NULL;
}

/* Takes queued records for a file, or a batch for a collector when it is full
   or old enough.  last: no more records will come. */
static uint32_t
take_batch(inf_tracer_t *t, inf_link_t *batch, bool *last)
{
    uint32_t count = 0;

    inf_link_init(batch);
    inf_lock(&t->lock);
    while (t->queued == 0 && !t->stopping) {
        inf_cond_wait(&t->work, &t->lock);
    }
    if (t->collector != NULL) {
        uint64_t until = inf_clock_ns() + t->delay_ns;
        while (t->queued < t->batch && !t->stopping
            && inf_cond_wait_until(&t->work, &t->lock, until))
        {
            continue;
        }
    }
    while (t->queued > 0 && count < t->batch) {
        inf_list_push_back(batch, inf_list_pop_front(&t->queue));
        t->queued--;
        count++;
    }
    *last = t->stopping && t->queued == 0;
    inf_unlock(&t->lock);
    return count;
}

static void
bring_away(inf_tracer_t *t, inf_link_t *batch, uint32_t count)
{
    if (count == 0) {
        return;
    }

    uint32_t lost = count;
    if (inf_clock_ns() < atomic_load_explicit(&t->until_ns,
            memory_order_relaxed))
    {
        lost = t->collector != NULL
            ? inf_trace_collector_send(t->collector, batch, count)
            : inf_trace_file_write(t->file, batch);
    }
    if (lost > 0) {
        drop(t, lost);
    }

    inf_link_t *link;
    while ((link = inf_list_pop_front(batch)) != NULL) {
        inf_trace_record_free(inf_link_entry(link, inf_trace_record_t, link));
    }
}

static void
drop(inf_tracer_t *t, uint64_t count)
{
    atomic_fetch_add_explicit(&t->dropped, count, memory_order_relaxed);
}

/* Logs the number of dropped traces, at intervals. */
static void
complain(inf_tracer_t *t, uint64_t *told, uint64_t *told_ns, bool now)
{
    uint64_t dropped = inf_tracer_dropped(t);
    uint64_t clock = inf_clock_ns();

    if (dropped == *told || (!now && *told_ns != 0
        && clock - *told_ns < COMPLAIN_NS))
    {
        return;
    }

    inf_log(INF_LOG_WARN, "%llu traces were dropped: they came faster than"
        " they could be exported, took too much memory, or their file or"
        " collector failed", (unsigned long long) (dropped - *told));
    *told = dropped;
    *told_ns = clock;
}
