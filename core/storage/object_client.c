#include "core/storage/object_client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/os/environment.h"
#include "core/base/os/thread.h"
#include "core/storage/object_http.h"

#define CLIENT_RANK     60
#define CONNECTIONS     8u
#define TRIES           5u
#define PART_BYTES      ((uint64_t) 8 << 20)
#define PARTS_MAX       (UINT64_C(1) << 20)     /* of one model              */
#define FETCHERS        4u
#define PAGES_MAX_BYTES ((size_t) 16 << 20)     /* of one page               */
#define PAGES_EMPTY     100u                    /* of one listing            */
#define LISTING_MAX     ((size_t) 1000000)      /* limit of keys             */

struct inf_object_client_s {
    char                       *text;       /* address as given, with query  */
    inf_object_address_t        address;    /* these are set in new()        */
    const inf_object_service_t *service;
    _Atomic bool                cancelled;  /* seq_cst; permanent            */
    inf_lock_t                  lock;       /* rank 60; guards the fields
                                               below                         */
    inf_cond_t                  wake;       /* cancelled, or credentials     */
    inf_object_credentials_t   *who;        /* NULL: not found yet           */
    bool                        finding;    /* a thread finds credentials    */
    inf_object_http_t          *idle[CONNECTIONS];
    unsigned                    idle_count;
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

/* The object or page of a request. */
typedef struct {
    const char              *key;
    const inf_object_page_t *page;          /* not NULL: a page              */
} wanted_t;

typedef struct {
    size_t     file;
    uint64_t   first;
    uint64_t   len;
} part_t;

typedef struct {
    inf_object_client_t      *client;       /* these are set before threads
                                               start                         */
    const inf_object_fetch_t *files;
    part_t                   *parts;
    size_t                    part_count;

    atomic_size_t             next;         /* seq_cst: next part to take    */
    atomic_bool               stop;         /* seq_cst: err is set           */
    inf_lock_t                lock;         /* rank 61; guards err           */
    inf_err_t                *err;          /* the first                     */
} fetch_t;

static int shown(const inf_object_client_t *c);
static inf_err_t *get(inf_object_client_t *c, const wanted_t *wanted,
    inf_object_get_t *what, sink_t *sink);
static bool may_be_expired(const inf_object_service_t *service,
    unsigned status);
static inf_err_t *get_once(inf_object_client_t *c, const wanted_t *wanted,
    inf_object_get_t *what, const inf_object_credentials_t *who,
    unsigned *status);
static bool take_bytes(void *userp, const char *data, size_t len);
static void sink_reset(sink_t *s);
static inf_err_t *make_url(const inf_object_client_t *c,
    const inf_object_credentials_t *who, const wanted_t *wanted, char **out);
static inf_err_t *borrow(inf_object_client_t *c, inf_object_http_t **http);
static void give_back(inf_object_client_t *c, inf_object_http_t *http);
static inf_err_t *check_end(const inf_object_listing_t *l, unsigned empty);
static inf_err_t *find_credentials(inf_object_client_t *c,
    inf_object_credentials_t **out);
static void forget_credentials(inf_object_client_t *c,
    const inf_object_credentials_t *who);
static bool pause_before(inf_object_client_t *c, unsigned attempt);
static inf_err_t *cut_into_parts(fetch_t *f, size_t count);
static void *fetch_main(void *arg);
static inf_err_t *fetch_part(fetch_t *f, const part_t *p);
static inf_err_t *fetch_bytes(fetch_t *f, const part_t *p, int fd);

inf_err_t *
inf_object_client_new(const char *address, inf_object_client_t **out)
{
    inf_object_client_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&c->lock, CLIENT_RANK);
    inf_cond_init(&c->wake);
    atomic_init(&c->cancelled, false);
    c->text = strdup(address);
    c->service = inf_object_service_of(address);
    inf_err_t *err = c->text == NULL ? inf_err_nomem()
        : inf_object_address_parse(address, &c->address);
    if (err != NULL) {
        inf_object_client_free(c);
        return err;
    }
    *out = c;
    return NULL;
}

void
inf_object_client_free(inf_object_client_t *c)
{
    if (c == NULL) {
        return;
    }

    for (unsigned i = 0; i < c->idle_count; i++) {
        inf_object_http_close(c->idle[i]);
    }
    inf_object_credentials_unref(c->service, c->who);
    inf_object_address_fini(&c->address);
    inf_cond_fini(&c->wake);
    inf_lock_fini(&c->lock);
    free(c->text);
    free(c);
}

void
inf_object_client_cancel(inf_object_client_t *c)
{
    inf_lock(&c->lock);
    atomic_store(&c->cancelled, true);
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->wake);
}

const inf_object_address_t *
inf_object_client_address(const inf_object_client_t *c)
{
    return &c->address;
}

inf_err_t *
inf_object_client_list(inf_object_client_t *c, const char *prefix,
    bool recursive, size_t limit, inf_object_listing_t *out)
{
    inf_buf_t page;
    unsigned empty = 0;
    inf_err_t *err = NULL;

    inf_object_listing_init(out);
    inf_buf_init(&page);

    do {
        const inf_object_page_t ask = { prefix, recursive, limit, out->next };
        const wanted_t wanted = { .page = &ask };
        sink_t sink = { .buf = &page, .limit = PAGES_MAX_BYTES };
        inf_object_get_t what = { .userp = &sink };

        err = get(c, &wanted, &what, &sink);
        if (err == NULL) {
            inf_slice_t xml = inf_buf_slice(&page);
            size_t before = out->count;
            err = c->service->parse_page(out, xml.data, xml.len);
            empty += out->count == before;
        }
        if (err == NULL && out->next != NULL) {
            err = check_end(out, empty);
        }
    } while (err == NULL && out->next != NULL
        && (limit == 0 || out->count < limit));

    inf_buf_fini(&page);
    if (err != NULL) {
        inf_object_listing_fini(out);
        return inf_err_add(err, "%.*s: cannot list '%s'", shown(c), c->text,
            prefix);
    }
    return NULL;
}

/* Checks a listing against limits, since a service may always claim more
   pages. */
static inf_err_t *
check_end(const inf_object_listing_t *l, unsigned empty)
{
    return empty <= PAGES_EMPTY && l->count <= LISTING_MAX ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "the listing has no end: %zu keys, %u"
            " pages without any", l->count, empty);
}

inf_err_t *
inf_object_client_read(inf_object_client_t *c, const char *key, size_t limit,
    char **data, size_t *len)
{
    const wanted_t wanted = { .key = key };
    inf_buf_t buf;
    sink_t sink = { .buf = &buf, .limit = limit };
    inf_object_get_t what = { .userp = &sink };

    inf_buf_init(&buf);
    inf_err_t *err = get(c, &wanted, &what, &sink);
    if (err != NULL) {
        inf_buf_fini(&buf);
        return inf_err_add(err, "%.*s: cannot read '%s'", shown(c), c->text,
            key);
    }

    *data = inf_buf_give(&buf, len);
    return *data == NULL ? inf_err_nomem() : NULL;
}

inf_err_t *
inf_object_client_fetch(inf_object_client_t *c, const inf_object_fetch_t *files,
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

static int
shown(const inf_object_client_t *c)
{
    return (int) inf_object_address_shown(c->text);
}

/* Sends a request with retries of temporary errors.  Credentials that may have
   expired are found anew once. */
static inf_err_t *
get(inf_object_client_t *c, const wanted_t *wanted, inf_object_get_t *what,
    sink_t *sink)
{
    inf_err_t *err = NULL;
    bool renewed = false;

    for (unsigned attempt = 0; attempt < TRIES; attempt++) {
        inf_object_credentials_t *who = NULL;
        unsigned status = 0;

        inf_err_free(err);
        if (!pause_before(c, attempt)) {
            return inf_err_new(INF_ERR_UNAVAILABLE,
                "it is not asked any more");
        }
        sink_reset(sink);
        err = find_credentials(c, &who);
        if (err == NULL) {
            err = get_once(c, wanted, what, who, &status);
        }
        bool expired = err != NULL && !renewed
            && may_be_expired(c->service, status);
        if (expired) {
            renewed = true;
            forget_credentials(c, who);
        }
        inf_object_credentials_unref(c->service, who);
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
        if (!expired && inf_err_code(err) != INF_ERR_UNAVAILABLE) {
            return err;
        }
    }
    return err;
}

static bool
may_be_expired(const inf_object_service_t *service, unsigned status)
{
    for (size_t i = 0; i < INF_OBJECT_RENEW_MAX; i++) {
        if (status != 0 && service->renew[i] == status) {
            return true;
        }
    }
    return false;
}

static inf_err_t *
get_once(inf_object_client_t *c, const wanted_t *wanted,
    inf_object_get_t *what, const inf_object_credentials_t *who,
    unsigned *status)
{
    const inf_object_service_t *service = c->service;
    inf_object_http_t *http;
    inf_object_answer_t answer;
    char *url;

    inf_err_t *err = borrow(c, &http);
    if (err != NULL) {
        return err;
    }

    err = make_url(c, who, wanted, &url);
    if (err == NULL) {
        what->scheme = service->scheme;
        what->url = url;
        what->authorities = service->authorities == NULL ? NULL
            : inf_environment(service->authorities);
        what->stored_coding = service->stored_coding;
        what->cancelled = &c->cancelled;
        what->authorize = service->authorize;
        what->who = who;
        what->take = take_bytes;
        err = inf_object_http_get(http, what, &answer);
        *status = answer.status;
        if (err == NULL && what->etag != NULL
            && strcmp(what->etag, answer.etag) != 0)
        {
            err = inf_err_new(INF_ERR_INVALID_ARG, "the object changed while"
                " it was fetched: ETag \"%s\", not \"%s\"", answer.etag,
                what->etag);
        }
        explicit_bzero(url, strlen(url));       /* a query may be a secret   */
        free(url);
    }

    give_back(c, http);
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
make_url(const inf_object_client_t *c, const inf_object_credentials_t *who,
    const wanted_t *wanted, char **out)
{
    inf_buf_t url;

    inf_buf_init(&url);
    if (wanted->page != NULL) {
        c->service->put_page_url(&url, &c->address, who, wanted->page);
    } else {
        c->service->put_object_url(&url, &c->address, who, wanted->key);
    }

    inf_err_t *err = inf_buf_status(&url);
    if (err != NULL) {
        inf_buf_fini(&url);
        return err;
    }
    *out = inf_buf_give(&url, NULL);
    return *out == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
borrow(inf_object_client_t *c, inf_object_http_t **http)
{
    *http = NULL;
    inf_lock(&c->lock);
    if (c->idle_count > 0) {
        *http = c->idle[--c->idle_count];
    }
    inf_unlock(&c->lock);

    if (*http != NULL) {
        return NULL;
    }
    inf_err_t *err = inf_object_http_open(http);
    return err == NULL ? NULL : inf_err_add(err, "%s repositories need"
        " libcurl", c->service->scheme);
}

static void
give_back(inf_object_client_t *c, inf_object_http_t *http)
{
    inf_lock(&c->lock);
    if (c->idle_count < CONNECTIONS) {
        c->idle[c->idle_count++] = http;
        http = NULL;
    }
    inf_unlock(&c->lock);

    inf_object_http_close(http);
}

/* The credentials that the client has, unless they are about to expire; one
   thread at a time finds others, without the lock. */
static inf_err_t *
find_credentials(inf_object_client_t *c, inf_object_credentials_t **out)
{
    inf_object_credentials_t *old = NULL;
    inf_object_credentials_t *found = NULL;

    inf_lock(&c->lock);
    while (c->finding && !atomic_load(&c->cancelled)) {
        inf_cond_wait(&c->wake, &c->lock);
    }
    bool have = c->who != NULL && inf_clock_ns() < c->who->until_ns;
    if (have) {
        *out = inf_object_credentials_ref(c->who);
    }
    bool cancelled = atomic_load(&c->cancelled);
    c->finding = c->finding || (!have && !cancelled);
    inf_unlock(&c->lock);
    if (have) {
        return NULL;
    }
    if (cancelled) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "it is not asked any more");
    }

    inf_err_t *err = c->service->find(c->text, &c->cancelled, &found);
    if (err == NULL) {
        *out = inf_object_credentials_ref(found);
    }

    inf_lock(&c->lock);
    old = c->who;
    c->who = found;
    c->finding = false;
    inf_unlock(&c->lock);
    inf_cond_broadcast(&c->wake);

    inf_object_credentials_unref(c->service, old);
    return err;
}

/* Forgets these, unless others have been found meanwhile. */
static void
forget_credentials(inf_object_client_t *c,
    const inf_object_credentials_t *who)
{
    inf_object_credentials_t *old = NULL;

    inf_lock(&c->lock);
    if (c->who == who) {
        old = c->who;
        c->who = NULL;
    }
    inf_unlock(&c->lock);
    inf_object_credentials_unref(c->service, old);
}

/* Waits 0, 50, 200, 800 ms, 3.2 s.  false: no further attempt. */
static bool
pause_before(inf_object_client_t *c, unsigned attempt)
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
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += f->files[i].object->size / PART_BYTES + 1;
        if (total > PARTS_MAX) {
            return inf_err_new(INF_ERR_INVALID_ARG, "%.*s: the objects up"
                " to '%s' have more than %llu bytes", shown(f->client),
                f->client->text, f->files[i].object->key,
                (unsigned long long) (PARTS_MAX * PART_BYTES));
        }
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

/* Late write errors are reported by close. */
static inf_err_t *
fetch_part(fetch_t *f, const part_t *p)
{
    const inf_object_fetch_t *file = &f->files[p->file];
    int fd = open(file->path, O_WRONLY | O_CLOEXEC);
    inf_err_t *err = fd < 0 ? inf_err_os(errno, "cannot open %s", file->path)
        : fetch_bytes(f, p, fd);

    if (fd >= 0 && close(fd) != 0 && err == NULL) {
        err = inf_err_os(errno, "cannot write it to disk");
    }
    return err == NULL ? NULL
        : inf_err_add(err, "%.*s: cannot fetch '%s'", shown(f->client),
            f->client->text, file->object->key);
}

static inf_err_t *
fetch_bytes(fetch_t *f, const part_t *p, int fd)
{
    const inf_object_t *o = f->files[p->file].object;
    sink_t sink = { .limit = p->len, .fd = fd, .at = p->first };
    const wanted_t wanted = { .key = o->key };
    inf_object_get_t what = {
        .etag = o->etag,
        .userp = &sink,
        .ranged = p->len < o->size,
        .first = p->first,
        .last = p->first + p->len - (p->len > 0)
    };

    inf_err_t *err = get(f->client, &wanted, &what, &sink);
    if (err == NULL && sink.got != p->len) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "%llu bytes came, not %llu",
            (unsigned long long) sink.got, (unsigned long long) p->len);
    }
    return err;
}
