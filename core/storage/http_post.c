#include "core/storage/http_post.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/storage/curl_library.h"
#include "core/storage/percent.h"

struct inf_http_post_s {
    const inf_curl_t       *curl;
    CURL                   *easy;
    struct curl_slist      *headers;
    const _Atomic uint64_t *until_ns;   /* relaxed: the holder's             */
    char                    reason[CURL_ERROR_SIZE];
};

static bool put_header(inf_buf_t *line, const char *pair, size_t len);
static int on_progress(void *userp, curl_off_t down_all, curl_off_t down,
    curl_off_t up_all, curl_off_t up);
static size_t ignore(char *data, size_t size, size_t count, void *userp);

inf_err_t *
inf_http_post_open(const char *url, long timeout_ms,
    const _Atomic uint64_t *until_ns, inf_http_post_t **out)
{
    const inf_curl_t *curl;

    inf_err_t *err = inf_curl_open(&curl);
    if (err != NULL) {
        return inf_err_add(err, "%s: libcurl", url);
    }

    inf_http_post_t *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return inf_err_nomem();
    }

    p->curl = curl;
    p->until_ns = until_ns;
    p->easy = curl->easy_init();
    p->headers = curl->slist_append(NULL, "Content-Type: application/json");
    if (p->easy == NULL || p->headers == NULL) {
        inf_http_post_close(p);
        return inf_err_nomem();
    }

    CURLcode rc = curl->easy_setopt(p->easy, CURLOPT_URL, url);
    rc |= curl->easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    rc |= curl->easy_setopt(p->easy, CURLOPT_HTTP_VERSION,
        (long) CURL_HTTP_VERSION_1_1);
    rc |= curl->easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
    rc |= curl->easy_setopt(p->easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    rc |= curl->easy_setopt(p->easy, CURLOPT_NOPROGRESS, 0L);
    rc |= curl->easy_setopt(p->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    rc |= curl->easy_setopt(p->easy, CURLOPT_XFERINFODATA, p);
    rc |= curl->easy_setopt(p->easy, CURLOPT_ERRORBUFFER, p->reason);
    rc |= curl->easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
    rc |= curl->easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, ignore);
    rc |= curl->easy_setopt(p->easy, CURLOPT_POST, 1L);
    if (rc != CURLE_OK) {
        inf_http_post_close(p);
        return inf_err_new(INF_ERR_UNSUPPORTED, "%s needs a newer libcurl, or"
            " memory ran out", url);
    }

    *out = p;
    return NULL;
}

inf_err_t *
inf_http_post_add_headers(inf_http_post_t *p, const char *text, uint32_t *bad)
{
    inf_err_t *err = NULL;
    inf_buf_t  line;

    *bad = 0;
    inf_buf_init(&line);
    while (err == NULL && *text != '\0') {
        size_t len = strcspn(text, ",");

        inf_buf_reset(&line);
        if (len > 0 && !put_header(&line, text, len)) {
            ++*bad;
        } else if (len > 0) {
            err = inf_buf_status(&line);
            if (err == NULL
                && p->curl->slist_append(p->headers, line.data) == NULL)
            {
                err = inf_err_nomem();
            }
        }
        text += len + (text[len] == ',');
    }
    inf_buf_fini(&line);
    return err;
}

/* Writes "name: value"; false: pair is no header. */
static bool
put_header(inf_buf_t *line, const char *pair, size_t len)
{
    size_t name = strspn(pair, "!#$%&'*+-.^_`|~0123456789"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

    if (name == 0 || name + 1 >= len || pair[name] != '=') {
        return false;
    }
    inf_buf_put(line, pair, name);
    inf_buf_puts(line, ": ");
    inf_buf_put(line, pair + name + 1, len - name - 1);
    if (line->failed) {
        return true;
    }

    char *value = line->data + name + 2;
    inf_percent_decode(value);
    for (const char *c = value; *c != '\0'; c++) {
        if ((unsigned char) *c < ' ' || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

inf_err_t *
inf_http_post_trust(inf_http_post_t *p, const char *path)
{
    return p->curl->easy_setopt(p->easy, CURLOPT_CAINFO, path) == CURLE_OK
        ? NULL : inf_err_nomem();
}

void
inf_http_post_close(inf_http_post_t *p)
{
    if (p == NULL) {
        return;
    }

    if (p->easy != NULL) {
        p->curl->easy_cleanup(p->easy);
    }
    p->curl->slist_free_all(p->headers);
    free(p);
}

inf_err_t *
inf_http_post_send(inf_http_post_t *p, inf_slice_t json)
{
    long status = 0;

    p->reason[0] = '\0';
    CURLcode rc = p->curl->easy_setopt(p->easy, CURLOPT_POSTFIELDS,
        json.data);
    rc |= p->curl->easy_setopt(p->easy, CURLOPT_POSTFIELDSIZE_LARGE,
        (curl_off_t) json.len);
    if (rc == CURLE_OK) {
        rc = p->curl->easy_perform(p->easy);
    }
    if (rc != CURLE_OK) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%s", p->reason[0] != '\0'
            ? p->reason : p->curl->easy_strerror(rc));
    }

    p->curl->easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300 ? NULL
        : inf_err_new(INF_ERR_UNAVAILABLE, "HTTP status %ld", status);
}

static int
on_progress(void *userp, curl_off_t down_all, curl_off_t down,
    curl_off_t up_all, curl_off_t up)
{
    const inf_http_post_t *p = userp;
    (void) down_all;
    (void) down;
    (void) up_all;
    (void) up;
    return inf_clock_ns() >= atomic_load_explicit(p->until_ns,
        memory_order_relaxed);
}

static size_t
ignore(char *data, size_t size, size_t count, void *userp)
{
    (void) data;
    (void) userp;
    return size * count;
}
