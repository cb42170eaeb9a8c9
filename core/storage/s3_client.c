#include "core/storage/s3_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/os/environment.h"
#include "core/base/os/thread.h"
#include "core/storage/s3_credentials.h"
#include "core/storage/s3_http.h"

#define CLIENT_RANK     60
#define CONNECTIONS     8u
#define TRIES           5u
#define PART_BYTES      ((uint64_t) 8 << 20)
#define FETCHERS        4u
#define PAGES_MAX_BYTES ((size_t) 16 << 20)     /* of one page               */
#define PAGES_EMPTY     100u                    /* of one listing            */
#define LISTING_MAX     ((size_t) 1000000)      /* limit of keys             */

struct inf_s3_client_s {
    char                 *text;             /* address as given              */
    inf_s3_address_t      address;          /* set in new()                  */
    _Atomic bool          cancelled;        /* seq_cst; permanent            */
    inf_lock_t            lock;             /* rank 60; guards the fields
                                               below                         */
    inf_cond_t            wake;             /* cancelled                     */
    inf_s3_credentials_t  who;
    bool                  known;            /* credentials were read         */
    inf_s3_http_t        *idle[CONNECTIONS];
    unsigned              idle_count;
};

/* Destination of an answer's bytes: memory, or an offset in a file. */
typedef struct {
    inf_buf_t *buf;                         /* NULL: the file                */
    size_t     limit;
    int        fd;
    uint64_t   at;
    uint64_t   got;
    int        errnum;                      /* of a failed write             */
    bool       over;                        /* more than limit               */
} sink_t;

typedef struct {
    size_t     file;
    uint64_t   first;
    uint64_t   len;
} part_t;

typedef struct {
    inf_s3_client_t      *client;           /* these are set before threads
                                               start                         */
    const inf_s3_fetch_t *files;
    part_t               *parts;
    size_t                part_count;

    atomic_size_t         next;             /* seq_cst: next part to take    */
    atomic_bool           stop;             /* seq_cst: err is set           */
    inf_lock_t            lock;             /* rank 61; guards err           */
    inf_err_t            *err;              /* the first                     */
} fetch_t;

static inf_err_t *get(inf_s3_client_t *c, const char *key, const char *query,
    inf_s3_get_t *what, sink_t *sink, const char *etag);
static inf_err_t *get_once(inf_s3_client_t *c, const char *key,
    const char *query, inf_s3_get_t *what, const char *etag,
    unsigned *status);
static bool take_bytes(void *userp, const char *data, size_t len);
static void sink_reset(sink_t *s);
static inf_err_t *make_url(const inf_s3_client_t *c,
    const inf_s3_credentials_t *who, const char *key, const char *query,
    char **out);
static void put_encoded(inf_buf_t *b, const char *text, bool slashes);
static inf_err_t *borrow(inf_s3_client_t *c, inf_s3_http_t **http,
    inf_s3_credentials_t *who);
static void give_back(inf_s3_client_t *c, inf_s3_http_t *http,
    inf_s3_credentials_t *who);
static inf_err_t *check_end(const inf_s3_listing_t *l, unsigned empty);
static inf_err_t *copy_credentials(const inf_s3_credentials_t *from,
    inf_s3_credentials_t *to);
static void forget_credentials(inf_s3_client_t *c);
static bool pause_before(inf_s3_client_t *c, unsigned attempt);
static inf_err_t *cut_into_parts(fetch_t *f, size_t count);
static void *fetch_main(void *arg);
static inf_err_t *fetch_part(fetch_t *f, const part_t *p);

inf_err_t *
inf_s3_client_new(const char *address, inf_s3_client_t **out)
{
    inf_s3_client_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&c->lock, CLIENT_RANK);
    inf_cond_init(&c->wake);
    atomic_init(&c->cancelled, false);
    c->text = strdup(address);
    inf_err_t *err = c->text == NULL ? inf_err_nomem()
        : inf_s3_address_parse(address, &c->address);
    if (err != NULL) {
        inf_s3_client_free(c);
        return err;
    }
    *out = c;
    return NULL;
}

void
inf_s3_client_free(inf_s3_client_t *c)
{
    if (c == NULL) {
        return;
    }

    for (unsigned i = 0; i < c->idle_count; i++) {
        inf_s3_http_close(c->idle[i]);
    }
    inf_s3_credentials_fini(&c->who);
    inf_s3_address_fini(&c->address);
    inf_cond_fini(&c->wake);
    inf_lock_fini(&c->lock);
    free(c->text);
    free(c);
}

void
inf_s3_client_cancel(inf_s3_client_t *c)
{
    inf_lock(&c->lock);
    atomic_store(&c->cancelled, true);
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->wake);
}

const inf_s3_address_t *
inf_s3_client_address(const inf_s3_client_t *c)
{
    return &c->address;
}

inf_err_t *
inf_s3_client_list(inf_s3_client_t *c, const char *prefix, bool recursive,
    size_t limit, inf_s3_listing_t *out)
{
    inf_buf_t query;
    inf_buf_t page;
    unsigned empty = 0;
    inf_err_t *err = NULL;

    inf_s3_listing_init(out);
    inf_buf_init(&query);
    inf_buf_init(&page);

    do {
        /* sorted, as the signature requires */
        inf_buf_reset(&query);
        if (out->next != NULL) {
            inf_buf_puts(&query, "continuation-token=");
            put_encoded(&query, out->next, false);
            inf_buf_putc(&query, '&');
        }
        inf_buf_puts(&query, recursive ? "encoding-type=url&list-type=2"
            : "delimiter=%2F&encoding-type=url&list-type=2");
        if (limit > 0) {
            inf_buf_printf(&query, "&max-keys=%zu", limit);
        }
        inf_buf_puts(&query, "&prefix=");
        put_encoded(&query, prefix, false);
        inf_buf_putc(&query, '\0');
        err = inf_buf_status(&query);

        if (err == NULL) {
            sink_t sink = { .buf = &page, .limit = PAGES_MAX_BYTES };
            inf_s3_get_t what = { .userp = &sink };
            err = get(c, "", inf_buf_slice(&query).data, &what, &sink, NULL);
        }
        if (err == NULL) {
            inf_slice_t xml = inf_buf_slice(&page);
            size_t before = out->count;
            err = inf_s3_listing_parse(out, xml.data, xml.len);
            empty += out->count == before;
        }
        if (err == NULL && out->next != NULL) {
            err = check_end(out, empty);
        }
    } while (err == NULL && out->next != NULL
        && (limit == 0 || out->count < limit));

    inf_buf_fini(&page);
    inf_buf_fini(&query);
    if (err != NULL) {
        inf_s3_listing_fini(out);
        return inf_err_add(err, "%s: cannot list '%s'", c->text, prefix);
    }
    return NULL;
}

/* Checks a listing against limits, since a service may always claim more
   pages. */
static inf_err_t *
check_end(const inf_s3_listing_t *l, unsigned empty)
{
    return empty <= PAGES_EMPTY && l->count <= LISTING_MAX ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "the listing has no end: %zu keys, %u"
            " pages without any", l->count, empty);
}

inf_err_t *
inf_s3_client_read(inf_s3_client_t *c, const char *key, size_t limit,
    char **data, size_t *len)
{
    inf_buf_t buf;
    sink_t sink = { .buf = &buf, .limit = limit };
    inf_s3_get_t what = { .userp = &sink };

    inf_buf_init(&buf);
    inf_err_t *err = get(c, key, NULL, &what, &sink, NULL);
    if (err != NULL) {
        inf_buf_fini(&buf);
        return inf_err_add(err, "%s: cannot read '%s'", c->text, key);
    }

    *data = inf_buf_give(&buf, len);
    return *data == NULL ? inf_err_nomem() : NULL;
}

inf_err_t *
inf_s3_client_fetch(inf_s3_client_t *c, const inf_s3_fetch_t *files,
    size_t count)
{
    fetch_t f = { .client = c, .files = files };
    pthread_t threads[FETCHERS];
    unsigned started = 0;

    inf_err_t *err = cut_into_parts(&f, count);
    if (err != NULL) {
        return err;
    }

    inf_lock_init(&f.lock, CLIENT_RANK + 1);
    while (err == NULL && started + 1 < FETCHERS
        && started + 1 < f.part_count)
    {
        err = inf_thread_start(&threads[started], "fetch", fetch_main, &f);
        started += err == NULL;
    }
    inf_err_free(err);                  /* fewer threads fetch               */
    fetch_main(&f);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }

    inf_lock_fini(&f.lock);
    free(f.parts);
    return f.err;
}

/* Sends a request with retries of temporary errors.  Expired credentials, which
   may be a 400, are read again once. */
static inf_err_t *
get(inf_s3_client_t *c, const char *key, const char *query,
    inf_s3_get_t *what, sink_t *sink, const char *etag)
{
    inf_err_t *err = NULL;
    bool renewed = false;

    what->take = take_bytes;
    for (unsigned attempt = 0; attempt < TRIES; attempt++) {
        unsigned status = 0;

        inf_err_free(err);
        if (!pause_before(c, attempt)) {
            return inf_err_new(INF_ERR_UNAVAILABLE,
                "it is not asked any more");
        }
        sink_reset(sink);
        err = get_once(c, key, query, what, etag, &status);
        if (err == NULL) {
            return NULL;
        }

        if (sink->errnum != 0) {
            inf_err_free(err);
            return inf_err_os(sink->errnum, "cannot write it to disk");
        }
        if (sink->over) {
            inf_err_free(err);
            return inf_err_new(INF_ERR_INVALID_ARG, "more than %zu bytes",
                sink->limit);
        }
        if ((status == 400 || status == 401 || status == 403) && !renewed) {
            renewed = true;
            forget_credentials(c);
            continue;
        }
        if (inf_err_code(err) != INF_ERR_UNAVAILABLE) {
            return err;
        }
    }
    return err;
}

static inf_err_t *
get_once(inf_s3_client_t *c, const char *key, const char *query,
    inf_s3_get_t *what, const char *etag, unsigned *status)
{
    inf_s3_credentials_t who;
    inf_s3_http_t *http;
    inf_s3_answer_t answer;
    char *url;

    inf_err_t *err = borrow(c, &http, &who);
    if (err != NULL) {
        return err;
    }

    err = make_url(c, &who, key, query, &url);
    if (err == NULL) {
        what->url = url;
        what->who = &who;
        what->etag = etag;
        what->cancelled = &c->cancelled;
        err = inf_s3_http_get(http, what, &answer);
        *status = answer.status;
        if (err == NULL && etag != NULL && strcmp(etag, answer.etag) != 0) {
            err = inf_err_new(INF_ERR_INVALID_ARG, "the object changed while"
                " it was fetched: ETag \"%s\", not \"%s\"", answer.etag, etag);
        }
        free(url);
    }

    give_back(c, http, &who);
    return err;
}

static bool
take_bytes(void *userp, const char *data, size_t len)
{
    sink_t *s = userp;

    s->over = len > s->limit - s->got;
    if (s->over) {
        return false;
    }
    if (s->buf != NULL) {
        inf_buf_put(s->buf, data, len);
        s->got += len;
        return true;
    }

    while (len > 0) {
        ssize_t n = pwrite(s->fd, data, len, (off_t) (s->at + s->got));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            s->errnum = n < 0 ? errno : ENOSPC;
            return false;
        }
        data += n;
        len -= (size_t) n;
        s->got += (uint64_t) n;
    }
    return true;
}

static void
sink_reset(sink_t *s)
{
    s->got = 0;
    s->errnum = 0;
    s->over = false;
    if (s->buf != NULL) {
        inf_buf_reset(s->buf);
    }
}

static inf_err_t *
make_url(const inf_s3_client_t *c, const inf_s3_credentials_t *who,
    const char *key, const char *query, char **out)
{
    const char *endpoint = c->address.endpoint;
    inf_buf_t url;

    if (endpoint == NULL) {
        endpoint = inf_environment("AWS_ENDPOINT_URL_S3");
    }
    if (endpoint == NULL) {
        endpoint = inf_environment("AWS_ENDPOINT_URL");
    }

    inf_buf_init(&url);
    if (endpoint == NULL) {
        inf_buf_puts(&url, "https://s3.");
        put_encoded(&url, who->region, false);
        inf_buf_puts(&url, ".amazonaws.com");
    } else {
        size_t len = strlen(endpoint);
        while (len > 0 && endpoint[len - 1] == '/') {
            len--;
        }
        inf_buf_put(&url, endpoint, len);
    }
    inf_buf_printf(&url, "/%s", c->address.bucket);
    if (key[0] != '\0') {
        inf_buf_putc(&url, '/');
        put_encoded(&url, key, true);
    }
    if (query != NULL) {
        inf_buf_printf(&url, "?%s", query);
    }
    inf_buf_putc(&url, '\0');

    inf_err_t *err = inf_buf_status(&url);
    if (err != NULL) {
        inf_buf_fini(&url);
        return err;
    }
    *out = inf_buf_give(&url, NULL);
    return *out == NULL ? inf_err_nomem() : NULL;
}

/* RFC 3986's unreserved characters are not encoded. */
static void
put_encoded(inf_buf_t *b, const char *text, bool slashes)
{
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char) *p;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'
            || c == '~' || (slashes && c == '/');
        if (plain) {
            inf_buf_putc(b, (char) c);
        } else {
            inf_buf_printf(b, "%%%02X", c);
        }
    }
}

static inf_err_t *
borrow(inf_s3_client_t *c, inf_s3_http_t **http, inf_s3_credentials_t *who)
{
    inf_err_t *err = NULL;

    *http = NULL;
    *who = (inf_s3_credentials_t) { NULL, NULL, NULL, NULL };
    inf_lock(&c->lock);
    if (!c->known) {
        err = inf_s3_credentials_find(c->text, &c->who);
        c->known = err == NULL;
    }
    if (err == NULL) {
        err = copy_credentials(&c->who, who);
    }
    if (err == NULL && c->idle_count > 0) {
        *http = c->idle[--c->idle_count];
    }
    inf_unlock(&c->lock);

    if (err == NULL && *http == NULL) {
        err = inf_s3_http_open(http);
    }
    if (err != NULL) {
        inf_s3_credentials_fini(who);
    }
    return err;
}

static void
give_back(inf_s3_client_t *c, inf_s3_http_t *http, inf_s3_credentials_t *who)
{
    inf_s3_credentials_fini(who);

    inf_lock(&c->lock);
    if (c->idle_count < CONNECTIONS) {
        c->idle[c->idle_count++] = http;
        http = NULL;
    }
    inf_unlock(&c->lock);

    inf_s3_http_close(http);
}

static inf_err_t *
copy_credentials(const inf_s3_credentials_t *from, inf_s3_credentials_t *to)
{
    to->region = strdup(from->region);
    to->key_id = from->key_id != NULL ? strdup(from->key_id) : NULL;
    to->secret_key = from->secret_key != NULL ? strdup(from->secret_key)
        : NULL;
    to->session_token = from->session_token != NULL
        ? strdup(from->session_token) : NULL;

    return to->region == NULL
        || (to->key_id == NULL) != (from->key_id == NULL)
        || (to->secret_key == NULL) != (from->secret_key == NULL)
        || (to->session_token == NULL) != (from->session_token == NULL)
        ? inf_err_nomem() : NULL;
}

static void
forget_credentials(inf_s3_client_t *c)
{
    inf_lock(&c->lock);
    inf_s3_credentials_fini(&c->who);
    c->known = false;
    inf_unlock(&c->lock);
}

/* Waits 0, 50, 200, 800 ms, 3.2 s.  false: no further attempt. */
static bool
pause_before(inf_s3_client_t *c, unsigned attempt)
{
    uint64_t ms = attempt == 0 ? 0 : UINT64_C(50) << (2 * (attempt - 1));
    uint64_t until = inf_clock_ns() + ms * 1000000;
    bool waiting = attempt > 0;

    if (waiting) {
        inf_lock(&c->lock);
        while (waiting && !atomic_load(&c->cancelled)) {
            waiting = inf_cond_wait_until(&c->wake, &c->lock, until);
        }
        inf_unlock(&c->lock);
    }
    return !atomic_load(&c->cancelled);
}

/* Splits the objects; an empty one is one part without bytes. */
static inf_err_t *
cut_into_parts(fetch_t *f, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += (size_t) (f->files[i].object->size / PART_BYTES) + 1;
    }

    f->parts = calloc(total + 1, sizeof(*f->parts));
    if (f->parts == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        uint64_t size = f->files[i].object->size;
        uint64_t at = 0;
        do {
            uint64_t len = size - at < PART_BYTES ? size - at : PART_BYTES;
            f->parts[f->part_count++] = (part_t) { i, at, len };
            at += len;
        } while (at < size);
    }
    return NULL;
}

static void *
fetch_main(void *arg)
{
    fetch_t *f = arg;

    while (!atomic_load(&f->stop)) {
        size_t i = atomic_fetch_add(&f->next, 1);
        if (i >= f->part_count) {
            break;
        }

        inf_err_t *err = fetch_part(f, &f->parts[i]);
        if (err != NULL) {
            atomic_store(&f->stop, true);
            inf_lock(&f->lock);
            if (f->err == NULL) {
                f->err = err;
                err = NULL;
            }
            inf_unlock(&f->lock);
            inf_err_free(err);
        }
    }
    return NULL;
}

static inf_err_t *
fetch_part(fetch_t *f, const part_t *p)
{
    const inf_s3_object_t *o = f->files[p->file].object;
    sink_t sink = {
        .limit = p->len,
        .fd = f->files[p->file].fd,
        .at = p->first
    };
    inf_s3_get_t what = {
        .userp = &sink,
        .ranged = p->len < o->size,
        .first = p->first,
        .last = p->first + p->len - (p->len > 0)
    };

    inf_err_t *err = get(f->client, o->key, NULL, &what, &sink, o->etag);
    if (err == NULL && sink.got != p->len) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "%llu bytes came, not %llu",
            (unsigned long long) sink.got, (unsigned long long) p->len);
    }
    return err == NULL ? NULL
        : inf_err_add(err, "%s: cannot fetch '%s'", f->client->text, o->key);
}
