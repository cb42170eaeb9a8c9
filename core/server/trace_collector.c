#include "core/server/trace_collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/os/environment.h"
#include "core/proto/message_json.h"
#include "core/server/trace_activity.h"
#include "core/storage/http_post.h"

#define POST_MS 10000L

#define KIND_INTERNAL 1
#define KIND_SERVER   2

/* Number of the whole request's span. */
#define SPAN_REQUEST 0u

struct inf_trace_collector_s {
    inf_http_post_t *post;
    char            *url;
    inf_buf_t        resource;      /* attributes as JSON                    */
    inf_buf_t        text;
    bool             failing;       /* a failure was logged                  */
};

/* State while the spans of a record are written. */
typedef struct {
    const inf_trace_record_t *r;
    const inf_trace_event_t  *events;
    inf_buf_t                *out;
    uint32_t                  next;     /* number of the next span           */
    bool                      any;
} spans_t;

/* One span. */
typedef struct {
    const char              *name;
    int                      kind;
    uint32_t                 number;
    uint32_t                 parent;
    uint64_t                 start_ns;
    uint64_t                 end_ns;
    const inf_trace_event_t *who;       /* source of the attributes; NULL:
                                           none                              */
} span_t;

typedef bool (*chosen_fn)(const inf_trace_event_t *e);

static inf_err_t *take_environment(inf_trace_collector_t *c);
static const char *variable(const char *what);
static void put_attribute(inf_buf_t *out, inf_slice_t key, const char *value);
static void put_request(spans_t *s);
static void put_model(spans_t *s, const inf_trace_event_t *who);
static uint32_t number_of(const spans_t *s, uint64_t id);
static void put_custom(spans_t *s, const inf_trace_event_t *who,
    const span_t *model, const span_t *compute);
static const inf_trace_event_t *end_of(const inf_trace_event_t *start,
    size_t stem);
static bool bounds(const spans_t *s, uint64_t id, chosen_fn chosen,
    uint64_t *from, uint64_t *to);
static void put_span(spans_t *s, const span_t *span, chosen_fn chosen);
static void put_ids(spans_t *s, const span_t *span);
static void put_attributes(inf_buf_t *out, const inf_trace_event_t *who);
static bool is_front(const inf_trace_event_t *e);
static bool is_compute(const inf_trace_event_t *e);
static bool is_custom(const inf_trace_event_t *e);
static bool is_models(const inf_trace_event_t *e);
static bool is_none(const inf_trace_event_t *e);
static bool ends_with(const char *text, const char *end, size_t *stem);

inf_err_t *
inf_trace_collector_new(const NginxInference__TraceSettings *config,
    const _Atomic uint64_t *until_ns, inf_trace_collector_t **out)
{
    inf_trace_collector_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_buf_init(&c->text);
    inf_buf_init(&c->resource);
    bool named = false;
    for (size_t i = 0; i < config->n_resources; i++) {
        const char *text = config->resources[i];
        const char *equals = strchr(text, '=');
        if (equals == NULL) {
            continue;
        }
        inf_slice_t key = inf_slice(text, (size_t) (equals - text));
        named |= inf_slice_eq(key, INF_SLICE("service.name"));
        put_attribute(&c->resource, key, equals + 1);
    }
    if (!named) {
        put_attribute(&c->resource, INF_SLICE("service.name"),
            "triton-inference-server");
    }

    inf_err_t *err = inf_buf_status(&c->resource);
    if (err == NULL) {
        c->url = strdup(config->url);
        err = c->url == NULL ? inf_err_nomem()
            : inf_http_post_open(c->url, POST_MS, until_ns, &c->post);
    }
    if (err == NULL) {
        err = take_environment(c);
    }
    if (err != NULL) {
        inf_trace_collector_free(c);
        return err;
    }

    *out = c;
    return NULL;
}

/* Headers and authorities, which may be secret and are no settings. */
static inf_err_t *
take_environment(inf_trace_collector_t *c)
{
    const char *headers = variable("HEADERS");
    const char *authorities = variable("CERTIFICATE");
    inf_err_t  *err = NULL;
    uint32_t    bad = 0;

    if (headers != NULL) {
        err = inf_http_post_add_headers(c->post, headers, &bad);
    }
    if (bad > 0) {
        inf_log(INF_LOG_WARN, "%u of the headers for %s"
            " (OTEL_EXPORTER_OTLP_HEADERS) are left out: they are not"
            " name=value", bad, c->url);
    }
    return err != NULL || authorities == NULL ? err
        : inf_http_post_trust(c->post, authorities);
}

/* Of an exporter of traces, or of all; NULL: not set, or empty. */
static const char *
variable(const char *what)
{
    char        name[64];
    const char *value;

    snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_TRACES_%s", what);
    value = inf_environment(name);
    if (value == NULL) {
        snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", what);
        value = inf_environment(name);
    }
    return value;
}

void
inf_trace_collector_free(inf_trace_collector_t *c)
{
    if (c != NULL) {
        inf_http_post_close(c->post);
        free(c->url);
        inf_buf_fini(&c->resource);
        inf_buf_fini(&c->text);
        free(c);
    }
}

uint32_t
inf_trace_collector_send(inf_trace_collector_t *c, inf_link_t *records,
    uint32_t count)
{
    inf_buf_t *out = &c->text;
    bool any = false;

    inf_buf_reset(out);
    inf_buf_puts(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    inf_buf_put(out, c->resource.data, c->resource.len);
    inf_buf_puts(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":"
        "\"triton-server\"},\"spans\":[");
    for (inf_link_t *l = records->next; l != records; l = l->next) {
        size_t start = out->len;
        if (any) {
            inf_buf_putc(out, ',');
        }
        if (inf_trace_collector_text(inf_link_entry(l, inf_trace_record_t,
            link), out))
        {
            any = true;
        } else {
            out->len = start;
        }
    }
    inf_buf_puts(out, "]}]}]}");

    inf_err_t *err = inf_buf_status(out);
    if (err == NULL && any) {
        err = inf_http_post_send(c->post, inf_buf_slice(out));
    }
    if (err == NULL) {
        c->failing = false;
        return 0;
    }

    if (!c->failing) {
        inf_err_log(inf_err_add(err, "collector %s: traces are lost", c->url));
    } else {
        inf_err_free(err);
    }
    c->failing = true;
    return count;
}

bool
inf_trace_collector_text(inf_trace_record_t *r, inf_buf_t *out)
{
    spans_t s = {
        .r = r,
        .events = inf_trace_record_events(r),
        .out = out
    };

    for (const inf_trace_event_t *e = s.events; e != NULL; e = e->next) {
        s.next += e->kind == INF_TRACE_WHO;
    }
    s.next++;

    put_request(&s);
    for (const inf_trace_event_t *e = s.events; e != NULL; e = e->next) {
        if (e->kind == INF_TRACE_WHO) {
            put_model(&s, e);
        }
    }
    return s.any;
}

static void
put_attribute(inf_buf_t *out, inf_slice_t key, const char *value)
{
    inf_buf_puts(out, out->len > 0 ? ",{\"key\":" : "{\"key\":");
    inf_json_put_string(out, key);
    inf_buf_puts(out, ",\"value\":{\"stringValue\":");
    inf_json_put_string(out, inf_slice_str(value));
    inf_buf_puts(out, "}}");
}

/* Writes the request's span, from its first event to its last. */
static void
put_request(spans_t *s)
{
    uint64_t from = UINT64_MAX, to = 0;

    for (const inf_trace_event_t *e = s->events; e != NULL; e = e->next) {
        if (e->kind == INF_TRACE_TIME || e->kind == INF_TRACE_FRONT) {
            from = e->ns < from ? e->ns : from;
            to = e->ns > to ? e->ns : to;
        }
    }
    if (to == 0) {
        return;
    }

    put_span(s, &(span_t) {
        .name = "InferRequest",
        .kind = KIND_SERVER,
        .number = SPAN_REQUEST,
        .start_ns = from,
        .end_ns = to
    }, is_front);
}

static void
put_model(spans_t *s, const inf_trace_event_t *who)
{
    span_t model = {
        .name = who->name,
        .kind = KIND_INTERNAL,
        .number = who->span,
        .parent = number_of(s, who->parent_id),
        .who = who
    };
    span_t compute = {
        .name = "compute",
        .kind = KIND_INTERNAL,
        .parent = model.number,
        .who = who
    };

    if (!bounds(s, who->id, is_models, &model.start_ns, &model.end_ns)) {
        return;
    }
    put_span(s, &model, is_models);

    if (bounds(s, who->id, is_compute, &compute.start_ns, &compute.end_ns)) {
        compute.number = s->next++;
        put_span(s, &compute, is_compute);
    }
    put_custom(s, who, &model, &compute);
}

/* The number of the trace's span; the whole request's for an unknown id. */
static uint32_t
number_of(const spans_t *s, uint64_t id)
{
    for (const inf_trace_event_t *e = s->events; e != NULL; e = e->next) {
        if (e->kind == INF_TRACE_WHO && e->id == id) {
            return e->span;
        }
    }
    return SPAN_REQUEST;
}

/* Writes spans of pairs of events named by a backend. */
static void
put_custom(spans_t *s, const inf_trace_event_t *who, const span_t *model,
    const span_t *compute)
{
    for (const inf_trace_event_t *e = s->events; e != NULL; e = e->next) {
        size_t stem;
        char name[256];
        if (e->id != who->id || !is_custom(e)
            || !ends_with(e->name, "_START", &stem) || stem >= sizeof(name))
        {
            continue;
        }
        const inf_trace_event_t *end = end_of(e, stem);
        if (end == NULL) {
            continue;
        }

        memcpy(name, e->name, stem);
        name[stem] = '\0';
        bool inside = compute->number != 0 && e->ns >= compute->start_ns
            && end->ns <= compute->end_ns;
        put_span(s, &(span_t) {
            .name = name,
            .kind = KIND_INTERNAL,
            .number = s->next++,
            .parent = inside ? compute->number : model->number,
            .start_ns = e->ns,
            .end_ns = end->ns
        }, is_none);
    }
}

static const inf_trace_event_t *
end_of(const inf_trace_event_t *start, size_t stem)
{
    for (const inf_trace_event_t *e = start->next; e != NULL; e = e->next) {
        size_t n;
        if (e->id == start->id && is_custom(e)
            && ends_with(e->name, "_END", &n) && n == stem
            && memcmp(e->name, start->name, stem) == 0)
        {
            return e;
        }
    }
    return NULL;
}

/* The first and the last time of the chosen events; false: there are none. */
static bool
bounds(const spans_t *s, uint64_t id, chosen_fn chosen, uint64_t *from,
    uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    for (const inf_trace_event_t *e = s->events; e != NULL; e = e->next) {
        if (e->id == id && e->kind == INF_TRACE_TIME && chosen(e)) {
            *from = e->ns < *from ? e->ns : *from;
            *to = e->ns > *to ? e->ns : *to;
        }
    }
    return *to != 0;
}

static void
put_span(spans_t *s, const span_t *span, chosen_fn chosen)
{
    inf_buf_t *out = s->out;
    bool first = true;

    inf_buf_puts(out, s->any ? ",{" : "{");
    s->any = true;
    put_ids(s, span);
    inf_buf_puts(out, ",\"name\":");
    inf_json_put_string(out, inf_slice_str(span->name));
    inf_buf_printf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%llu\","
        "\"endTimeUnixNano\":\"%llu\",\"attributes\":[", span->kind,
        (unsigned long long) (span->start_ns + s->r->wall_ns),
        (unsigned long long) (span->end_ns + s->r->wall_ns));
    if (span->who != NULL) {
        put_attributes(out, span->who);
    }
    inf_buf_puts(out, "],\"events\":[");
    for (const inf_trace_event_t *e = s->events; e != NULL; e = e->next) {
        if (!chosen(e) || (span->who != NULL && e->id != span->who->id)) {
            continue;
        }
        inf_buf_printf(out, "%s{\"timeUnixNano\":\"%llu\",\"name\":",
            first ? "" : ",", (unsigned long long) (e->ns + s->r->wall_ns));
        inf_json_put_string(out, inf_slice_str(e->name));
        inf_buf_putc(out, '}');
        first = false;
    }
    inf_buf_puts(out, "]}");
}

/* Writes ids; the parent of the whole request's span is the client's. */
static void
put_ids(spans_t *s, const span_t *span)
{
    const inf_trace_record_t *r = s->r;
    char text[2 * INF_TRACE_ID + 1];
    uint8_t id[INF_SPAN_ID];

    inf_trace_hex(r->context.trace_id, INF_TRACE_ID, text);
    inf_buf_printf(s->out, "\"traceId\":\"%s\"", text);
    inf_trace_record_span(r, span->number, id);
    inf_trace_hex(id, INF_SPAN_ID, text);
    inf_buf_printf(s->out, ",\"spanId\":\"%s\"", text);

    bool whole = span->number == SPAN_REQUEST;
    if (!whole || r->has_parent) {
        if (whole) {
            memcpy(id, r->context.span_id, INF_SPAN_ID);
        } else {
            inf_trace_record_span(r, span->parent, id);
        }
        inf_trace_hex(id, INF_SPAN_ID, text);
        inf_buf_printf(s->out, ",\"parentSpanId\":\"%s\"", text);
    }
    if (r->state != NULL) {
        inf_buf_puts(s->out, ",\"traceState\":");
        inf_json_put_string(s->out, inf_slice_str(r->state));
    }
}

static void
put_attributes(inf_buf_t *out, const inf_trace_event_t *who)
{
    inf_buf_puts(out, "{\"key\":\"triton.model_name\",\"value\":"
        "{\"stringValue\":");
    inf_json_put_string(out, inf_slice_str(who->name));
    inf_buf_printf(out, "}},{\"key\":\"triton.model_version\",\"value\":"
        "{\"intValue\":\"%lld\"}},{\"key\":\"triton.trace_id\",\"value\":"
        "{\"intValue\":\"%llu\"}},{\"key\":\"triton.trace_parent_id\","
        "\"value\":{\"intValue\":\"%llu\"}}", (long long) who->version,
        (unsigned long long) who->id, (unsigned long long) who->parent_id);
    if (who->request_id[0] != '\0') {
        inf_buf_puts(out, ",{\"key\":\"triton.request_id\",\"value\":"
            "{\"stringValue\":");
        inf_json_put_string(out, inf_slice_str(who->request_id));
        inf_buf_puts(out, "}}");
    }
}

static bool
is_front(const inf_trace_event_t *e)
{
    return e->kind == INF_TRACE_FRONT;
}

static bool
is_compute(const inf_trace_event_t *e)
{
    return e->kind == INF_TRACE_TIME
        && inf_trace_activity_part(e->name) == INF_ACTIVITY_COMPUTE;
}

static bool
is_custom(const inf_trace_event_t *e)
{
    return e->kind == INF_TRACE_TIME
        && inf_trace_activity_part(e->name) == INF_ACTIVITY_CUSTOM;
}

/* Events of a model's span, including custom events that are not part of a
   pair. */
static bool
is_models(const inf_trace_event_t *e)
{
    return e->kind == INF_TRACE_TIME && !is_compute(e);
}

static bool
is_none(const inf_trace_event_t *e)
{
    (void) e;
    return false;
}

/* stem: length of text without end. */
static bool
ends_with(const char *text, const char *end, size_t *stem)
{
    size_t len = strlen(text);
    size_t n = strlen(end);

    *stem = len >= n ? len - n : 0;
    return *stem > 0 && strcmp(text + *stem, end) == 0;
}
