/* cuda_streams.c - streams, events, and the work that is done when one of them
   is waited for, or has been asked for often enough. */

#include "inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of work ------------------------------------------------------- */

void
append(works_t *works, work_t *w)
{
    if (works->last == NULL) {
        works->first = w;
    } else {
        works->last->next = w;
    }
    works->last = w;
}

static void
unref_event_locked(event_t *e)
{
    if (--e->refs == 0) {
        free(e);
    }
}

static void
free_work_locked(work_t *w)
{
    if (w->event != NULL) {
        w->event->stream = NULL;
        unref_event_locked(w->event);
    }
    if (w->launch != NULL) {
        w->launch->module->queued--;
        free(w->launch);
    }
    free(w);
}

void
free_works_locked(works_t *works)
{
    work_t *w = works->first;

    while (w != NULL) {
        work_t *next = w->next;
        free_work_locked(w);
        w = next;
    }
    *works = (works_t) { NULL, NULL };
}

static void
drop_locked(stream_t *s)
{
    for (const work_t *w = s->works.first; w != NULL; w = w->next) {
        fake.queued--;
    }
    free_works_locked(&s->works);
}

/* ---- streams ------------------------------------------------------------- */

result_t
cuStreamCreate(inf_cu_stream_t *stream, unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || flags != INF_CU_STREAM_NON_BLOCK))
    {
        rc = wrong_locked(__func__, "no context, or flags",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS) {
        stream_t *s = calloc(1, sizeof(*s));
        assert(s != NULL);
        s->device = number_of(current());
        s->next = fake.streams;
        fake.streams = s;
        fake.objects++;
        *stream = s;
    }
    return end(rc);
}

stream_t *
stream_locked(inf_cu_stream_t stream)
{
    if (stream != NULL) {
        return stream;
    }
    if (current() == NULL) {
        return NULL;
    }

    stream_t *s = &current()->null_stream;
    s->device = number_of(current());
    return s;
}

result_t
cuStreamDestroy_v2(inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream;
    stream_t **link = &fake.streams;

    fake.report = true;
    while (*link != NULL && *link != s) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return end(wrong_locked(__func__, "no such stream",
            INF_CU_INVALID_VALUE));
    }
    *link = s->next;

    if ((s->works.first != NULL || s->running)
        && fake.devices[s->device].broken == INF_CU_SUCCESS)
    {
        wrong_locked(__func__, "its work was never waited for", 0);
    }
    if (s->capture != CAPTURE_NONE) {
        wrong_locked(__func__, "it captures", 0);
    }
    while (s->running) {
        pthread_cond_wait(&fake_changed, &fake_lock);
    }
    drop_locked(s);
    free_works_locked(&s->captured);
    free(s);
    fake.objects--;
    return end(rc);
}

result_t
queue_locked(const char *function, stream_t *s, work_t what)
{
    assert(current() != NULL && s->device == number_of(current()));
    if (s->capture == CAPTURE_INVALID) {
        return CAPTURE_INVALIDATED;
    }
    if (s->capture == CAPTURE_ACTIVE && s->mode == GPU_CAPTURE_THREAD_LOCAL
        && !pthread_equal(s->thread, pthread_self()))
    {
        return wrong_locked(function, "another thread captures",
            CAPTURE_WRONG_THREAD);
    }

    work_t *w = malloc(sizeof(*w));
    assert(w != NULL);
    *w = what;
    w->next = NULL;
    if (s->capture == CAPTURE_ACTIVE) {
        append(&s->captured, w);
    } else {
        append(&s->works, w);
        s->asked = 0;
        fake.queued++;
    }
    return INF_CU_SUCCESS;
}

/* ---- doing it ------------------------------------------------------------ */

/* Without the lock. */
static result_t
perform(const work_t *w)
{
    switch (w->kind) {
    case WORK_COPY:
        memmove(w->dst, w->src, w->size);
        break;
    case WORK_FILL:
        memset(w->dst, w->value, w->size);
        break;
    case WORK_LAUNCH:
        return run_kernel(w->launch);
    case WORK_EVENT:
        break;
    }
    return INF_CU_SUCCESS;
}

static bool
is_hanging_locked(const work_t *w)
{
    return w->launch != NULL && fake.hang[0] != '\0'
        && strcmp(w->launch->name, fake.hang) == 0;
}

static void
account_locked(const work_t *w)
{
    if (w->kind == WORK_COPY) {
        fake.moved[w->moved] += w->size;
        fake.copies[w->moved]++;
        fake.pageable += w->pageable;
    }
    if (w->kind == WORK_LAUNCH) {
        count_locked(fake.kernels, w->launch->name);
    }
}

/* One piece of work; the lock is let go of meanwhile. */
static void
run_one_locked(stream_t *s, work_t *w)
{
    result_t rc = INF_CU_SUCCESS;

    while (is_hanging_locked(w)) {
        pthread_cond_wait(&fake_changed, &fake_lock);
    }
    account_locked(w);
    if (w->launch != NULL && strcmp(w->launch->name, fake.fault) == 0) {
        rc = GPU_ILLEGAL_ADDRESS;
    }
    if (rc == INF_CU_SUCCESS) {
        pthread_mutex_unlock(&fake_lock);
        rc = perform(w);
        pthread_mutex_lock(&fake_lock);
    }
    if (rc != INF_CU_SUCCESS) {
        fake.devices[s->device].broken = rc;
    }
}

/* Work behind a fault is gone with the context. */
result_t
run_locked(stream_t *s, const event_t *until)
{
    const device_t *d = &fake.devices[s->device];
    bool found = false;

    while (s->running) {
        pthread_cond_wait(&fake_changed, &fake_lock);
    }
    if (until != NULL && until->stream != s) {
        return d->broken;
    }

    s->running = true;
    while (!found && s->works.first != NULL && d->broken == INF_CU_SUCCESS) {
        work_t *w = s->works.first;
        run_one_locked(s, w);
        s->works.first = w->next;
        s->works.last = w->next != NULL ? s->works.last : NULL;
        fake.queued--;
        found = until != NULL && w->event == until;
        free_work_locked(w);
    }
    s->running = false;
    s->asked = 0;
    pthread_cond_broadcast(&fake_changed);
    if (d->broken != INF_CU_SUCCESS) {
        drop_locked(s);
    }
    fake.report = true;
    return d->broken;
}

/* Whether a kernel that never ends is before that event, or in all of it. */
static bool
hangs_locked(const stream_t *s, const event_t *until)
{
    for (const work_t *w = s->works.first; w != NULL; w = w->next) {
        if (is_hanging_locked(w)) {
            return true;
        }
        if (until != NULL && w->event == until) {
            return false;
        }
    }
    return false;
}

/* true, and the capture is void: that may not be asked of such a stream. */
static bool
captures_locked(const char *function, stream_t *s)
{
    if (s->capture == CAPTURE_NONE) {
        return false;
    }
    s->capture = CAPTURE_INVALID;
    wrong_locked(function, "the stream captures", 0);
    return true;
}

/* As the real one: what failed is gone, the stream goes on. */
result_t
cuStreamSynchronize(inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream_locked(stream);

    fake.waits++;
    if (s == NULL) {
        return end(wrong_locked(__func__, "no context",
            INF_CU_INVALID_CONTEXT));
    }
    if (captures_locked(__func__, s)) {
        return end(CAPTURE_UNSUPPORTED);
    }
    if (rc != INF_CU_SUCCESS) {
        while (s->running) {
            pthread_cond_wait(&fake_changed, &fake_lock);
        }
        drop_locked(s);
        return end(rc);
    }
    return end(run_locked(s, NULL));
}

/* Of the device that this thread is in. */
result_t
cuCtxSynchronize(void)
{
    BEGIN();
    device_t *d = current();

    fake.waits++;
    if (d == NULL) {
        return end(wrong_locked(__func__, "no context",
            INF_CU_INVALID_CONTEXT));
    }
    if (forbidden_locked(__func__)) {
        return end(CAPTURE_UNSUPPORTED);
    }
    if (rc == INF_CU_SUCCESS) {
        rc = run_locked(&d->null_stream, NULL);
    }
    for (stream_t *s = fake.streams; s != NULL && rc == INF_CU_SUCCESS;
        s = s->next)
    {
        rc = s->device == number_of(d) ? run_locked(s, NULL) : rc;
    }
    return end(rc);
}

result_t
cuStreamQuery(inf_cu_stream_t stream)
{
    BEGIN();
    stream_t *s = stream_locked(stream);

    if (s == NULL) {
        return end(wrong_locked(__func__, "no context",
            INF_CU_INVALID_CONTEXT));
    }
    if (captures_locked(__func__, s)) {
        return end(CAPTURE_UNSUPPORTED);
    }
    if (rc != INF_CU_SUCCESS) {
        return end(rc);
    }
    if (s->running || hangs_locked(s, NULL)
        || (s->works.first != NULL && ++s->asked < PATIENCE))
    {
        return end(GPU_NOT_READY);
    }
    return end(run_locked(s, NULL));
}

/* ---- events -------------------------------------------------------------- */

result_t
cuEventCreate(gpu_event_t *event, unsigned flags)
{
    BEGIN();
    if (rc == INF_CU_SUCCESS && (current() == NULL
        || (flags & ~(GPU_EVENT_BLOCKING | GPU_EVENT_NO_TIMING)) != 0))
    {
        rc = wrong_locked(__func__, "no context, or flags",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        event_t *e = calloc(1, sizeof(*e));
        assert(e != NULL);
        e->refs = 1;
        fake.objects++;
        *event = e;
    }
    return end(rc);
}

result_t
cuEventDestroy_v2(gpu_event_t event)
{
    BEGIN();
    fake.objects--;
    fake.report = true;
    unref_event_locked(event);
    return end(rc);
}

/* Recorded again before it was reached: its stream forgets the first time. */
static void
forget_locked(event_t *e)
{
    stream_t *s = e->stream;

    for (work_t *w = s != NULL ? s->works.first : NULL; w != NULL;
        w = w->next)
    {
        if (w->event == e) {
            w->event = NULL;
            e->stream = NULL;
            e->refs--;
        }
    }
}

result_t
cuEventRecord(gpu_event_t event, gpu_stream_t stream)
{
    BEGIN();
    event_t *e = event;
    stream_t *s = stream_locked(stream);

    if (rc == INF_CU_SUCCESS && (s == NULL || current() == NULL
        || s->device != number_of(current())))
    {
        rc = wrong_locked(__func__, "no context, or another device's",
            INF_CU_INVALID_CONTEXT);
    }
    if (rc == INF_CU_SUCCESS && s->capture != CAPTURE_NONE) {
        e->captured = true;             /* orders the graph, nothing else    */
        return end(s->capture == CAPTURE_INVALID ? CAPTURE_INVALIDATED : rc);
    }
    if (rc == INF_CU_SUCCESS) {
        forget_locked(e);
        rc = queue_locked(__func__, s, (work_t) { .kind = WORK_EVENT,
            .event = e });
    }
    if (rc == INF_CU_SUCCESS) {
        e->refs++;
        e->stream = s;
        e->asked = 0;
        e->captured = false;
    }
    return end(rc);
}

result_t
cuEventQuery(gpu_event_t event)
{
    BEGIN();
    event_t *e = event;

    if (e->captured) {
        return end(wrong_locked(__func__, "the event is a graph's",
            CAPTURED_EVENT));
    }
    if (rc != INF_CU_SUCCESS || e->stream == NULL) {
        return end(rc);
    }
    if (e->stream->running || hangs_locked(e->stream, e)
        || ++e->asked < PATIENCE)
    {
        return end(GPU_NOT_READY);
    }
    return end(run_locked(e->stream, e));
}

result_t
cuEventSynchronize(gpu_event_t event)
{
    BEGIN();
    event_t *e = event;

    fake.waits++;
    if (e->captured) {
        return end(wrong_locked(__func__, "the event is a graph's",
            CAPTURED_EVENT));
    }
    if (rc != INF_CU_SUCCESS || e->stream == NULL) {
        return end(rc);
    }
    return end(run_locked(e->stream, e));
}
