#include "core/server/trace_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/refs.h"
#include "core/server/tracer.h"

static size_t room_of(const inf_trace_event_t *event, bool copy_name);
static char *take_text(char **at, const char *text);
static uint64_t wall_offset(void);

inf_err_t *
inf_trace_record_new(inf_tracer_t *tracer, inf_trace_setting_t *setting,
    const inf_trace_context_t *parent, inf_slice_t state,
    inf_trace_record_t **out)
{
    inf_trace_record_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return inf_err_nomem();
    }

    if (state.len > 0) {
        r->state = strndup(state.data, state.len);
        if (r->state == NULL) {
            free(r);
            return inf_err_nomem();
        }
    }
    if (getrandom(&r->spans, sizeof(r->spans), 0) != sizeof(r->spans)
        || getrandom(r->context.trace_id, INF_TRACE_ID, 0) != INF_TRACE_ID)
    {
        free(r->state);
        free(r);
        return inf_err_new(INF_ERR_INTERNAL, "no random numbers for a trace");
    }
    if (parent != NULL) {
        r->context = *parent;
        r->has_parent = true;
    }

    atomic_init(&r->refs, 1);
    inf_link_init(&r->link);
    r->tracer = inf_tracer_ref(tracer);
    r->setting = setting;
    r->tensors = (setting->values.level & INF_TRACE_TENSORS)
        && !inf_trace_is_otel(inf_tracer_settings(tracer));
    r->timestamps = setting->values.level & INF_TRACE_TIMESTAMPS;
    r->wall_ns = wall_offset();
    *out = r;
    return NULL;
}

void
inf_trace_record_ref(inf_trace_record_t *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

void
inf_trace_record_unref(inf_trace_record_t *r)
{
    if (r != NULL && inf_refs_drop(&r->refs)) {
        inf_tracer_push(r);
    }
}

void
inf_trace_record_free(inf_trace_record_t *r)
{
    inf_trace_event_t *e = atomic_load_explicit(&r->events,
        memory_order_acquire);

    while (e != NULL) {
        inf_trace_event_t *next = e->next;
        free(e);
        e = next;
    }

    inf_tracer_give(r->tracer, atomic_load_explicit(&r->bytes,
        memory_order_relaxed));
    inf_tracer_unref(r->tracer);
    inf_trace_setting_unref(r->setting);
    free(r->state);
    free(r);
}

void
inf_trace_record_note(inf_trace_record_t *r, const inf_trace_event_t *event,
    bool copy_name)
{
    size_t room = room_of(event, copy_name);

    if (atomic_load_explicit(&r->incomplete, memory_order_relaxed)) {
        return;
    }

    inf_trace_event_t *e = inf_tracer_take(r->tracer, room) ? malloc(room)
        : NULL;
    atomic_fetch_add_explicit(&r->bytes, room, memory_order_relaxed);
    if (e == NULL) {
        atomic_store_explicit(&r->incomplete, true, memory_order_relaxed);
        return;
    }

    *e = *event;
    int64_t *shape = (int64_t *) (void *) (e + 1);
    if (event->dim_count > 0) {
        memcpy(shape, event->shape, event->dim_count * sizeof(*shape));
        e->shape = shape;
    }
    char *at = (char *) (shape + event->dim_count);
    if (event->size > 0) {
        memcpy(at, event->data, event->size);
        e->data = at;
        at += event->size;
    }
    e->name = copy_name ? take_text(&at, event->name) : event->name;
    e->request_id = take_text(&at, event->request_id);
    e->tensor = take_text(&at, event->tensor);

    e->next = atomic_load_explicit(&r->events, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&r->events, &e->next, e,
        memory_order_release, memory_order_relaxed))
    {
        continue;
    }
}

uint32_t
inf_trace_record_next_span(inf_trace_record_t *r)
{
    return atomic_fetch_add_explicit(&r->traces, 1, memory_order_relaxed) + 1;
}

inf_trace_event_t *
inf_trace_record_events(inf_trace_record_t *r)
{
    inf_trace_event_t *from = atomic_load_explicit(&r->events,
        memory_order_acquire);
    inf_trace_event_t *to = NULL;

    while (from != NULL) {
        inf_trace_event_t *next = from->next;
        from->next = to;
        to = from;
        from = next;
    }
    atomic_store_explicit(&r->events, to, memory_order_relaxed);
    return to;
}

/* A permutation of 64 bits gives ids that look random and differ. */
void
inf_trace_record_span(const inf_trace_record_t *r, uint32_t n,
    uint8_t id[INF_SPAN_ID])
{
    uint64_t x = r->spans + n;

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    if (x == 0) {
        x = r->spans | 1;               /* zero is not a valid id            */
    }
    memcpy(id, &x, INF_SPAN_ID);
}

static size_t
room_of(const inf_trace_event_t *event, bool copy_name)
{
    size_t room = sizeof(*event) + event->dim_count * sizeof(int64_t)
        + event->size;

    room += copy_name ? strlen(event->name) + 1 : 0;
    room += event->request_id != NULL ? strlen(event->request_id) + 1 : 0;
    room += event->tensor != NULL ? strlen(event->tensor) + 1 : 0;
    return room;
}

/* Copies a text and advances *at; NULL stays NULL. */
static char *
take_text(char **at, const char *text)
{
    if (text == NULL) {
        return NULL;
    }

    size_t n = strlen(text) + 1;
    char *copy = *at;
    memcpy(copy, text, n);
    *at += n;
    return copy;
}

static uint64_t
wall_offset(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000)
        + (uint64_t) now.tv_nsec - inf_clock_ns();
}
