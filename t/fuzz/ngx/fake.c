#include "t/fuzz/ngx/fake.h"

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_control.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_events.h"
#include "ngx_module/ngx_http_inference_infer.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_response.h"

#include "core/base/clock.h"

#include <time.h>


/* ---- what a real nginx exports ------------------------------------------- */

ngx_module_t          ngx_http_core_module;
ngx_module_t          ngx_http_inference_module;
ngx_rbtree_t          ngx_event_timer_rbtree;
volatile ngx_msec_t   ngx_current_msec;
ngx_queue_t           ngx_posted_events;
ngx_queue_t           ngx_posted_next_events;

ngx_http_request_body_filter_pt  ngx_http_top_request_body_filter;

fake_world_t  fake;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __real_clock_gettime(clockid_t id, struct timespec *ts);

typedef struct block_s  block_t;

struct block_s {
    block_t  *next;
    void     *bytes;
};

static block_t   *blocks;       /* of the pool                               */
static ngx_pool_t pool;


/* Each look at it may be the one after which a slice is over. */
int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    static uint64_t now_ns = 1000000000;

    if (fake.client == NULL) {
        return __real_clock_gettime(id, ts);
    }

    if (fake.clock != NULL && input_next(fake.clock, 1) & 1) {
        now_ns += 2 * NGX_HTTP_INFERENCE_SLICE_NS;
    }

    ts->tv_sec = (time_t) (now_ns / 1000000000);
    ts->tv_nsec = (long) (now_ns % 1000000000);
    return 0;
}


/* ---- memory -------------------------------------------------------------- */

void *
ngx_palloc(ngx_pool_t *p, size_t size)
{
    block_t *b = malloc(sizeof(*b));

    check(p == &pool && b != NULL);
    b->bytes = malloc(size);
    check(b->bytes != NULL || size == 0);
    b->next = blocks;
    blocks = b;
    return b->bytes;
}

void *
ngx_pnalloc(ngx_pool_t *p, size_t size)
{
    return ngx_palloc(p, size);
}

void *
ngx_pcalloc(ngx_pool_t *p, size_t size)
{
    return memset(ngx_palloc(p, size), 0, size);
}

ngx_int_t
ngx_pfree(ngx_pool_t *p, void *bytes)
{
    check(p == &pool);
    for (block_t **at = &blocks; *at != NULL; at = &(*at)->next) {
        block_t *b = *at;

        if (b->bytes == bytes) {
            *at = b->next;
            free(b->bytes);
            free(b);
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}

ngx_pool_cleanup_t *
ngx_pool_cleanup_add(ngx_pool_t *p, size_t size)
{
    ngx_pool_cleanup_t *c = ngx_pcalloc(p, sizeof(*c));

    check(size == 0);
    c->next = p->cleanup;
    p->cleanup = c;
    return c;
}

ngx_http_cleanup_t *
ngx_http_cleanup_add(ngx_http_request_t *r, size_t size)
{
    ngx_http_cleanup_t *c = ngx_pcalloc(r->pool, sizeof(*c));

    check(size == 0 && r == r->main);
    c->next = r->cleanup;
    r->cleanup = c;
    return c;
}

ngx_buf_t *
ngx_create_temp_buf(ngx_pool_t *p, size_t size)
{
    ngx_buf_t *b = ngx_pcalloc(p, sizeof(*b));

    b->start = b->pos = b->last = ngx_palloc(p, size);
    b->end = b->start + size;
    b->temporary = 1;
    return b;
}

ngx_chain_t *
ngx_alloc_chain_link(ngx_pool_t *p)
{
    return ngx_palloc(p, sizeof(ngx_chain_t));
}

void *
ngx_list_push(ngx_list_t *list)
{
    (void) list;
    return ngx_palloc(&pool, sizeof(ngx_table_elt_t));
}


/* ---- texts --------------------------------------------------------------- */

/* Says little, but takes every argument that its format names. */
u_char *
ngx_vslprintf(u_char *buf, u_char *last, const char *fmt, va_list args)
{
    while (*fmt != '\0' && buf < last) {
        char        text[32];
        const char *from = text;
        size_t      len = 0;
        bool        hex = false;

        if (*fmt != '%') {
            *buf++ = (u_char) *fmt++;
            continue;
        }

        for (fmt++; *fmt == 'u' || *fmt == '0' || *fmt == '2' || *fmt == 'X';
            fmt++)
        {
            hex |= *fmt == 'X';                 /* "%02Xi" alone             */
        }

        switch (*fmt++) {

        case 'V':
        {
            const ngx_str_t *s = va_arg(args, ngx_str_t *);
            from = (const char *) s->data;
            len = s->len;
            break;
        }

        case 's':
            from = va_arg(args, const char *);
            len = strlen(from);
            break;

        case 'O':
        case 'L':
        case 'M':
        case 'i':
        case 'z':
            len = (size_t) snprintf(text, sizeof(text), hex ? "%02llX" : "%lld",
                va_arg(args, long long));
            break;

        default:
            check(!"a conversion that this file doesn't know");
        }

        len = ngx_min(len, (size_t) (last - buf));
        memcpy(buf, from, len);
        buf += len;
    }

    return buf;
}

u_char *
ngx_sprintf(u_char *buf, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    buf = ngx_vslprintf(buf, (u_char *) UINTPTR_MAX, fmt, args);
    va_end(args);
    return buf;
}

ngx_int_t
ngx_strncasecmp(u_char *a, u_char *b, size_t n)
{
    return strncasecmp((char *) a, (char *) b, n);
}

/* n: the length of text without its last character, as in nginx */
u_char *
ngx_strlcasestrn(u_char *p, u_char *last, u_char *text, size_t n)
{
    for (; last - p > (ptrdiff_t) n; p++) {
        if (strncasecmp((char *) p, (char *) text, n + 1) == 0) {
            return p;
        }
    }

    return NULL;
}

ngx_int_t
ngx_hextoi(u_char *line, size_t n)
{
    ngx_int_t value = 0;

    for (size_t i = 0; i < n; i++) {
        int c = line[i] | 0x20;

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return NGX_ERROR;
        }
        value = value * 16 + (c >= 'a' ? c - 'a' + 10 : c - '0');
    }

    return n > 0 ? value : NGX_ERROR;
}

off_t
ngx_atoof(u_char *line, size_t n)
{
    off_t value = 0;

    for (size_t i = 0; i < n; i++) {
        if (line[i] < '0' || line[i] > '9'
            || __builtin_mul_overflow(value, 10, &value)
            || __builtin_add_overflow(value, line[i] - '0', &value))
        {
            return NGX_ERROR;
        }
    }

    return n > 0 ? value : NGX_ERROR;
}

ssize_t
ngx_atosz(u_char *line, size_t n)
{
    return ngx_atoof(line, n);
}

u_char *
ngx_hex_dump(u_char *dst, u_char *src, size_t len)
{
    for (size_t i = 0; i < 2 * len; i++) {
        *dst++ = "0123456789abcdef"[src[i / 2] >> (i % 2 ? 0 : 4) & 15];
    }
    return dst;
}

uintptr_t
ngx_escape_json(u_char *dst, u_char *src, size_t size)
{
    if (dst == NULL) {
        return 0;
    }

    memcpy(dst, src, size);
    return (uintptr_t) (dst + size);
}

void
ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err,
    const char *fmt, ...)
{
    (void) log, (void) err, (void) fmt;
    check(level > NGX_LOG_ALERT);
}


/* ---- events -------------------------------------------------------------- */

void
ngx_rbtree_insert(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    (void) tree, (void) node;
}

void
ngx_rbtree_delete(ngx_rbtree_t *tree, ngx_rbtree_node_t *node)
{
    (void) tree, (void) node;
}

bool
fake_posted(void)
{
    return !ngx_queue_empty(&ngx_posted_next_events);
}

void
fake_turn(void)
{
    ngx_queue_t  due;

    if (!fake_posted()) {
        return;
    }

    ngx_queue_init(&due);
    ngx_queue_add(&due, &ngx_posted_next_events);
    ngx_queue_init(&ngx_posted_next_events);

    while (!ngx_queue_empty(&due)) {
        ngx_event_t *ev = ngx_queue_data(ngx_queue_head(&due), ngx_event_t,
            queue);

        ngx_delete_posted_event(ev);
        ev->handler(ev);
    }
}

void
ngx_http_run_posted_requests(ngx_connection_t *c)
{
    (void) c;
}

void
ngx_http_block_reading(ngx_http_request_t *r)
{
    (void) r;
}

void
ngx_http_test_reading(ngx_http_request_t *r)
{
    (void) r;
}

void
ngx_http_request_empty_handler(ngx_http_request_t *r)
{
    (void) r;
}


/* ---- the body ------------------------------------------------------------ */

static void
fake_reading(ngx_http_request_t *r)
{
    (void) r;
}

static ngx_int_t
save_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    /* what comes here was not for us: its last buffer, without bytes */
    check(in == NULL || ngx_buf_size(in->buf) == 0);
    (void) r;
    return NGX_OK;
}

ngx_int_t
ngx_http_read_client_request_body(ngx_http_request_t *r,
    ngx_http_client_body_handler_pt post)
{
    if (r->request_body != NULL || r->headers_in.content_length_n == 0) {
        if (r->request_body == NULL) {
            r->request_body = ngx_pcalloc(r->pool,
                sizeof(*r->request_body));
        }
        r->main->count++;
        post(r);
        return NGX_OK;
    }

    r->main->count++;
    r->request_body = ngx_pcalloc(r->pool, sizeof(*r->request_body));
    r->request_body->rest = -1;
    r->read_event_handler = fake_reading;
    fake.post = post;
    return NGX_AGAIN;
}

bool
fake_piece(const void *data, size_t len, bool last)
{
    ngx_http_request_t  *r = &fake.request;
    ngx_buf_t            b = { 0 };
    ngx_chain_t          in = { .buf = &b };
    u_char              *bytes;

    if (fake.finalized || fake.post == NULL
        || r->read_event_handler != fake_reading)
    {
        return false;
    }

    /* gone when the filter has returned */
    bytes = malloc(len);
    check(bytes != NULL || len == 0);
    if (len > 0) {
        memcpy(bytes, data, len);
    }

    b.start = b.pos = bytes;
    b.last = b.end = bytes + len;
    b.temporary = len > 0;
    b.last_buf = last;

    check(ngx_http_top_request_body_filter(r, &in) == NGX_OK);
    check(b.pos == b.last);
    free(bytes);

    if (last && r->read_event_handler == fake_reading) {
        r->request_body->rest = 0;
        r->read_event_handler = ngx_http_block_reading;
        fake.post(r);
    }

    return true;
}

ngx_int_t
ngx_http_discard_request_body(ngx_http_request_t *r)
{
    r->discard_body = 1;
    return NGX_OK;
}

ssize_t
ngx_read_file(ngx_file_t *file, u_char *buf, size_t size, off_t offset)
{
    return pread(file->fd, buf, size, offset);
}


/* ---- answers ------------------------------------------------------------- */

ngx_int_t
ngx_http_send_header(ngx_http_request_t *r)
{
    check(!fake.sent && r->headers_out.status >= 200);
    fake.sent = 1;
    return NGX_OK;
}

ngx_int_t
ngx_http_output_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    check(fake.sent && in->buf->last_buf);
    (void) r;
    return NGX_OK;
}

ngx_int_t
ngx_http_send_special(ngx_http_request_t *r, ngx_uint_t flags)
{
    check(fake.sent);
    (void) r, (void) flags;
    return NGX_OK;
}

void
ngx_http_finalize_request(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_DONE) {
        /* a handler or a reading has gone on without its count */
        r->count--;
        check(fake.finalized || r->count > 0);
        return;
    }

    check(!fake.finalized && r->count > 0);
    r->count--;
    fake.finalized = 1;
    fake.rc = rc;
}

ngx_int_t
ngx_http_complex_value(ngx_http_request_t *r, ngx_http_complex_value_t *val,
    ngx_str_t *value)
{
    (void) r;
    *value = val->value;
    return NGX_OK;
}


/* ---- the rest of our module ---------------------------------------------- */

ngx_http_inference_counters_t *
ngx_http_inference_counters(void)
{
    static ngx_http_inference_counters_t  counters;

    return &counters;
}

uint64_t
ngx_http_inference_turn_begin(void)
{
    if (fake.turning) {
        return 0;
    }

    fake.turning = 1;
    return inf_clock_ns();
}

void
ngx_http_inference_turn_end(uint64_t began_ns)
{
    if (began_ns != 0) {
        fake.turning = 0;
    }
}

inf_client_t *
ngx_http_inference_channel(uint64_t *epoch)
{
    *epoch = 1;
    return fake.client;
}

inf_client_t *
ngx_http_inference_last_channel(uint64_t *epoch)
{
    return ngx_http_inference_channel(epoch);
}

ngx_int_t
ngx_http_inference_wait_ready(ngx_http_inference_submission_t *submission)
{
    (void) submission;
    return NGX_ERROR;
}

ngx_str_t *
ngx_http_inference_why_no_channel(void)
{
    static ngx_str_t  text = ngx_null_string;

    return &text;
}


ngx_msec_t
ngx_http_inference_grace(void)
{
    return 0;
}

void
ngx_http_inference_next_turn(ngx_event_t *turn)
{
    ngx_post_event(turn, &ngx_posted_next_events);
}

void
ngx_http_inference_leaving_request(ngx_http_request_t *r)
{
    (void) r;
}

void
ngx_http_inference_client_plan_sweep(void)
{
}

static void
free_regions(ngx_http_inference_submission_t *submission)
{
    while (submission->nregions > 0) {
        inf_client_free_region(fake.client,
            submission->regions[--submission->nregions]);
    }
}

ngx_int_t
ngx_http_inference_submit(ngx_http_inference_submission_t *submission,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count)
{
    check(epoch == 1 && count <= NGX_HTTP_INFERENCE_REGIONS);
    check(!fake.submitted);
    for (ngx_uint_t i = 0; i < count; i++) {
        submission->regions[i] = regions[i];
    }
    submission->nregions = count;
    submission->state = NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED;
    fake.record = *s;
    fake.submission = submission;
    fake.submitted = 1;
    return NGX_OK;
}

/* Its memory is freed once, by either side. */
void
ngx_http_inference_abandon(ngx_http_inference_submission_t *submission)
{
    free_regions(submission);
    submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
}

/* Its bytes stay until it is abandoned. */
void
ngx_http_inference_cancel(ngx_http_inference_submission_t *submission)
{
    (void) submission;
}

void
fake_core_dies(void)
{
    ngx_http_inference_submission_t  *submission = fake.submission;

    if (submission == NULL || fake.finalized
        || submission->state != NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED)
    {
        return;
    }

    submission->state = NGX_HTTP_INFERENCE_SUBMISSION_FREE;
    if (!submission->keep) {
        free_regions(submission);
    }
    submission->answer(submission, NULL);
}

ngx_int_t
ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_submission_t *submission, const inf_completion_t *c)
{
    check(c == NULL && submission == fake.submission);
    (void) ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE, "the core ended");
    return NGX_OK;
}

void
ngx_http_inference_forget(ngx_http_inference_submission_t *submission)
{
    submission->keep = 0;
    if (submission->state == NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
        free_regions(submission);
    }
}

void
ngx_http_inference_drop_response(
    const ngx_http_inference_submission_t *submission,
    const inf_completion_t *c)
{
    check(submission == fake.submission && c == NULL);
}

/* Its memory is the request's, and goes with that. */
ngx_pool_t *
ngx_create_pool(size_t size, ngx_log_t *log)
{
    check(size > 0 && log == &fake.log);
    return &pool;
}

void
ngx_destroy_pool(ngx_pool_t *p)
{
    check(p == &pool);
}

/* No request of these fuzzers is a stream. */
ngx_int_t
ngx_http_inference_peek_check(ngx_http_inference_ctx_t *ctx,
    inf_slice_t model, inf_slice_t version)
{
    (void) ctx, (void) model, (void) version;
    return NGX_OK;
}

ngx_int_t
ngx_http_inference_stream_hand_on(ngx_http_inference_ctx_t *ctx)
{
    (void) ctx;
    return NGX_DECLINED;
}

ngx_int_t
ngx_http_inference_peek_check_call(ngx_http_inference_ctx_t *ctx)
{
    (void) ctx;
    return NGX_OK;
}

void
ngx_http_inference_grpc_install_filter(void)
{
}

void
ngx_http_inference_output_install_filter(void)
{
}

ngx_int_t
ngx_http_inference_stream_open(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream_close(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

void
ngx_http_inference_stream_abandon(ngx_http_inference_ctx_t *ctx)
{
    check(ctx->stream == NULL);
}

ngx_uint_t
ngx_http_inference_stream_holds_window(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return 0;
}

ngx_int_t
ngx_http_inference_stream_next(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream_respond(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream_reject(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream_check_rate(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_stream_check_time(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_watcher_open(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_watcher(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

void
ngx_http_inference_stream_over(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
}

ngx_int_t
ngx_http_inference_stream_admit(ngx_http_inference_ctx_t *ctx)
{
    check(ctx->message == NULL);
    return NGX_OK;
}

void
ngx_http_inference_stream_count(ngx_http_inference_ctx_t *ctx, uint64_t size)
{
    check(ctx == NULL && size == 0);
}

void
ngx_http_inference_stream_name(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s)
{
    check(ctx->message == NULL && s != NULL);
}

ngx_uint_t
ngx_http_inference_stream_begun(ngx_http_inference_ctx_t *ctx)
{
    check(ctx->message == NULL);
    return 0;
}

void
ngx_http_inference_stream_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    check(ctx == NULL && c == NULL);
}

/* Nor do their locations forward headers. */
ngx_int_t
ngx_http_inference_forward(ngx_http_inference_ctx_t *ctx)
{
    check(ctx != NULL);
    return NGX_OK;
}

/* Nor do they ask for load reports. */
void
ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx)
{
    check(ngx_http_inference_is_generate(ctx));
}

/* generate_stream is none of their endpoints. */
ngx_uint_t
ngx_http_inference_events_begun(ngx_http_inference_ctx_t *ctx)
{
    check(ctx->events == NULL);
    return 0;
}

void
ngx_http_inference_events_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c)
{
    check(ctx == NULL && c == NULL);
}

void
ngx_http_inference_events_free(ngx_http_inference_events_t *events)
{
    check(events == NULL);
}

void
ngx_http_inference_events_reject(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
}

ngx_int_t
ngx_http_inference_events_open(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_events_next(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_events_respond(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_events_send(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

void
ngx_http_inference_pack_close(ngx_http_inference_packer_t *packer)
{
    check(packer == NULL);
}

ngx_int_t
ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

void
ngx_http_inference_release(uint64_t epoch, uint64_t offset, ngx_uint_t notify)
{
    check(epoch == 0 && offset == 1 && notify == 0);
}

void
ngx_http_inference_reply_release(ngx_http_inference_reply_t *reply)
{
    if (reply->held) {
        reply->held = 0;
        ngx_http_inference_release(reply->epoch, reply->offset,
                                   reply->traced);
    }
}

ngx_int_t
ngx_http_inference_control_room(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_int_t
ngx_http_inference_control_respond(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}

ngx_uint_t
ngx_http_inference_control_asks_now(ngx_http_inference_ctx_t *ctx)
{
    return ctx->endpoint->call == INF_METHOD_SERVER_READY;
}

ngx_uint_t
ngx_http_inference_status_wants_page(ngx_http_inference_ctx_t *ctx)
{
    check(ctx != NULL);
    return 0;
}

ngx_int_t
ngx_http_inference_status_page(ngx_http_request_t *r)
{
    check(r == NULL);
    return NGX_ERROR;
}

void
ngx_http_inference_borrow_begin(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
}

void
ngx_http_inference_borrow_begun(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
}

ngx_int_t
ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx)
{
    check(ctx == NULL);
    return NGX_ERROR;
}


/* ---- the world ----------------------------------------------------------- */

void
fake_open(const char *path, inf_client_t *client)
{
    ngx_http_request_t  *r = &fake.request;

    memset(&fake, 0, sizeof(fake));
    memset(&pool, 0, sizeof(pool));
    fake.client = client;

    ngx_http_core_module.ctx_index = 0;
    ngx_http_inference_module.ctx_index = 1;
    ngx_queue_init(&ngx_posted_events);
    ngx_queue_init(&ngx_posted_next_events);

    if (ngx_http_top_request_body_filter == NULL) {
        ngx_http_top_request_body_filter = save_filter;
        ngx_http_inference_install_filters();
    }

    fake.log.log_level = NGX_LOG_NOTICE;
    fake.log.data = &fake.log_ctx;
    fake.connection.read = &fake.read;
    fake.connection.write = &fake.write;
    fake.connection.log = &fake.log;
    fake.read.log = fake.write.log = &fake.log;
    fake.read.data = fake.write.data = &fake.connection;

    fake.confs[0] = &fake.core_conf;
    fake.confs[1] = &fake.loc_conf;
    nginx_inference__trace_settings__init(&fake.trace);
    fake.main_conf.config.trace = &fake.trace;
    fake.main_conf.config.max_json_bytes = INF_INFER_MAX_JSON;
    fake.main_conf.arena = (off_t) 1 << 40;     /* the client has the bound */
    fake.main_confs[1] = &fake.main_conf;
    fake.loc_conf.parts = NGX_HTTP_INFERENCE_ALL
        | NGX_HTTP_INFERENCE_REPOSITORY;

    r->pool = &pool;
    r->main = r;
    r->count = 1;
    r->connection = &fake.connection;
    r->loc_conf = fake.confs;
    r->main_conf = fake.main_confs;
    r->ctx = fake.ctx;
    r->method = NGX_HTTP_POST;
    r->uri_changes = 11;
    r->uri.data = r->unparsed_uri.data = (u_char *) (uintptr_t) path;
    r->uri.len = r->unparsed_uri.len = strlen(path);
    r->valid_unparsed_uri = 1;
    r->headers_in.content_length_n = -1;
    r->headers_in.headers.part.elts = fake.headers;
}

void
fake_header(const char *key, const void *value, size_t len)
{
    ngx_list_part_t  *part = &fake.request.headers_in.headers.part;
    ngx_table_elt_t  *h = &fake.headers[part->nelts++];

    h->key.data = (u_char *) (uintptr_t) key;
    h->key.len = strlen(key);
    h->value.data = ngx_palloc(&pool, len);
    h->value.len = len;
    memcpy(h->value.data, value, len);

    h->lowcase_key = ngx_palloc(&pool, h->key.len);
    for (size_t i = 0; i < h->key.len; i++) {
        h->lowcase_key[i] = ngx_tolower(h->key.data[i]);
    }
}

void
fake_close(void)
{
    for (ngx_http_cleanup_t *c = fake.request.cleanup; c != NULL; c = c->next)
    {
        c->handler(c->data);
    }
    check(!fake_posted() && !fake.turning);
    check(!fake.finalized || fake.request.count == 0);

    for (ngx_pool_cleanup_t *c = pool.cleanup; c != NULL; c = c->next) {
        c->handler(c->data);
    }

    while (blocks != NULL) {
        block_t *b = blocks;

        blocks = b->next;
        free(b->bytes);
        free(b);
    }

    fake.client = NULL;
}
