#include "core/storage/object_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/json_doc.h"
#include "core/storage/curl_library.h"

#define CONNECT_MS     10000L
#define LOCAL_MS       1000L    /* likewise, to a service of this machine    */
#define SLOW_BYTES     1024L    /* bytes per second, for SLOW_SECONDS: below it
                                   the request fails                         */
#define SLOW_SECONDS   30L
#define COMPLAINT_MAX  4096u
#define DISCARD_MAX    65536u   /* of an error's body; then the request ends  */

struct inf_object_http_s {
    const inf_curl_t       *curl;
    CURL                   *easy;
    const inf_object_get_t *what;
    inf_object_answer_t    *answer;
    struct curl_slist      *headers;
    bool                    stopped;        /* take returned false           */
    bool                    enough;         /* of an error's body            */
    bool                    encoded;        /* the body is as it is stored   */
    char                    encoding[32];   /* of the stored object; "": none
                                               or not known                  */
    size_t                  discarded;
    size_t                  complaint_len;
    char                    complaint[COMPLAINT_MAX + 1];
    char                    reason[CURL_ERROR_SIZE];
};

static inf_err_t *set_up(inf_object_http_t *h);
static size_t on_header(char *data, size_t size, size_t count, void *userp);
static bool header_is(inf_slice_t line, const char *name, inf_slice_t *value);
static bool is_decoded(const inf_object_http_t *h, unsigned status);
static size_t on_body(char *data, size_t size, size_t count, void *userp);
static int on_progress(void *userp, curl_off_t down_all, curl_off_t down,
    curl_off_t up_all, curl_off_t up);
static inf_err_t *judge(inf_object_http_t *h, CURLcode code);
static void find_oauth_error(const char *complaint, char *name,
    size_t name_cap, char *text, size_t text_cap);
static void copy_words(const char *from, size_t len, char *out, size_t cap);
static void find_element(const char *text, const char *name, char *out,
    size_t cap);

inf_err_t *
inf_object_http_open(inf_object_http_t **out)
{
    const inf_curl_t *curl;
    inf_err_t *err = inf_curl_open(&curl);
    if (err != NULL) {
        return err;
    }

    inf_object_http_t *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return inf_err_nomem();
    }
    h->curl = curl;
    h->easy = curl->easy_init();
    if (h->easy == NULL) {
        free(h);
        return inf_err_nomem();
    }
    *out = h;
    return NULL;
}

void
inf_object_http_close(inf_object_http_t *h)
{
    if (h != NULL) {
        h->curl->easy_cleanup(h->easy);
        free(h);
    }
}

inf_err_t *
inf_object_http_get(inf_object_http_t *h, const inf_object_get_t *what,
    inf_object_answer_t *out)
{
    *out = (inf_object_answer_t) { 0, "" };
    h->what = what;
    h->answer = out;
    h->headers = NULL;
    h->stopped = false;
    h->enough = false;
    h->encoded = false;
    h->encoding[0] = '\0';
    h->discarded = 0;
    h->complaint_len = 0;
    h->complaint[0] = '\0';
    h->reason[0] = '\0';

    inf_err_t *err = set_up(h);
    if (err == NULL) {
        CURLcode code = h->curl->easy_perform(h->easy);
        long status = 0;
        h->curl->easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
        out->status = (unsigned) status;
        err = judge(h, code);
    }

    for (struct curl_slist *line = h->headers; line != NULL;
        line = line->next)
    {
        explicit_bzero(line->data, strlen(line->data));
    }
    h->curl->slist_free_all(h->headers);
    h->curl->easy_reset(h->easy);         /* secrets go, connection stays    */
    return err;
}

static inf_err_t *
set_up(inf_object_http_t *h)
{
    const inf_object_get_t *what = h->what;
    char range[64];
    const inf_curl_t *curl = h->curl;
    CURLcode rc = CURLE_OK;
    CURL *e = h->easy;

    rc |= curl->easy_setopt(e, CURLOPT_URL, what->url);
    rc |= curl->easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    rc |= curl->easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    rc |= curl->easy_setopt(e, CURLOPT_HTTP_VERSION,
        (long) CURL_HTTP_VERSION_1_1);
    rc |= curl->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    rc |= curl->easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS,
        what->link_local ? LOCAL_MS : CONNECT_MS);
    rc |= curl->easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
    rc |= curl->easy_setopt(e, CURLOPT_LOW_SPEED_TIME, SLOW_SECONDS);
    rc |= curl->easy_setopt(e, CURLOPT_ERRORBUFFER, h->reason);
    rc |= curl->easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    rc |= curl->easy_setopt(e, CURLOPT_HEADERDATA, h);
    rc |= curl->easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    rc |= curl->easy_setopt(e, CURLOPT_WRITEDATA, h);
    rc |= curl->easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    rc |= curl->easy_setopt(e, CURLOPT_XFERINFOFUNCTION, on_progress);
    rc |= curl->easy_setopt(e, CURLOPT_XFERINFODATA, h);
    if (what->authorities != NULL) {
        rc |= curl->easy_setopt(e, CURLOPT_CAINFO, what->authorities);
    }
    if (what->link_local) {
        rc |= curl->easy_setopt(e, CURLOPT_PROXY, "");
    }
    if (what->form != NULL) {
        rc |= curl->easy_setopt(e, CURLOPT_POSTFIELDS, what->form);
    }
    if (what->ranged) {
        snprintf(range, sizeof(range), "%llu-%llu",
            (unsigned long long) what->first, (unsigned long long) what->last);
        rc |= curl->easy_setopt(e, CURLOPT_RANGE, range);
    }
    if (rc != CURLE_OK) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "%s repositories need a newer"
            " libcurl, or memory ran out", what->scheme);
    }

    inf_err_t *err = NULL;
    if (what->etag != NULL) {
        char quoted[INF_OBJECT_ETAG_MAX + 2];
        snprintf(quoted, sizeof(quoted), "\"%s\"", what->etag);
        err = inf_object_http_add_header(h, "If-Match", quoted);
    }
    if (err == NULL && what->authorize != NULL) {
        err = what->authorize(h, what);
    }
    if (err == NULL && h->headers != NULL
        && curl->easy_setopt(e, CURLOPT_HTTPHEADER, h->headers) != CURLE_OK)
    {
        err = inf_err_nomem();
    }
    return err;
}

bool
inf_object_http_is_header(inf_slice_t s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] <= ' ' || s.data[i] > '~') {
            return false;
        }
    }
    return s.len > 0;
}

inf_err_t *
inf_object_http_add_header(inf_object_http_t *h, const char *name,
    const char *value)
{
    size_t len = strlen(name) + strlen(value) + 3;
    char *text = malloc(len);

    if (text == NULL) {
        return inf_err_nomem();
    }
    snprintf(text, len, "%s: %s", name, value);
    struct curl_slist *list = h->curl->slist_append(h->headers, text);
    explicit_bzero(text, len);
    free(text);
    if (list == NULL) {
        return inf_err_nomem();
    }
    h->headers = list;
    return NULL;
}

inf_err_t *
inf_object_http_sign_aws(inf_object_http_t *h, const char *region,
    const char *key_id, const char *secret_key)
{
    char scope[128];

    snprintf(scope, sizeof(scope), "aws:amz:%s:s3", region);
    if (h->curl->easy_setopt(h->easy, CURLOPT_AWS_SIGV4, scope) != CURLE_OK
        || h->curl->easy_setopt(h->easy, CURLOPT_USERNAME, key_id)
            != CURLE_OK
        || h->curl->easy_setopt(h->easy, CURLOPT_PASSWORD, secret_key)
            != CURLE_OK)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED, "%s repositories need a "
            "libcurl that signs (AWS Signature Version 4)", h->what->scheme);
    }
    return NULL;
}

/* Called for each header line, also those of a 100 response. */
static size_t
on_header(char *data, size_t size, size_t count, void *userp)
{
    inf_object_http_t *h = userp;
    size_t len = size * count;
    inf_slice_t line = inf_slice(data, len);
    const char *stored = h->what->stored_coding;
    char *etag = h->answer->etag;
    inf_slice_t value;

    if (header_is(line, "etag", &value)) {
        size_t n = 0;
        for (size_t i = 0; i < value.len && n + 1 < INF_OBJECT_ETAG_MAX; i++) {
            if (value.data[i] > ' ' && value.data[i] != '"') {
                etag[n++] = value.data[i];
            }
        }
        etag[n] = '\0';
    } else if (header_is(line, "content-encoding", &value)) {
        h->encoded = true;
    } else if (stored != NULL && header_is(line, stored, &value)) {
        copy_words(value.data, value.len, h->encoding, sizeof(h->encoding));
    }
    return len;
}

/* value: without blanks around it. */
static bool
header_is(inf_slice_t line, const char *name, inf_slice_t *value)
{
    size_t len = strlen(name);

    if (line.len <= len || line.data[len] != ':'
        || strncasecmp(line.data, name, len) != 0)
    {
        return false;
    }
    *value = inf_slice(line.data + len + 1, line.len - len - 1);
    while (value->len > 0 && (unsigned char) value->data[0] <= ' ') {
        *value = inf_slice(value->data + 1, value->len - 1);
    }
    while (value->len > 0
        && (unsigned char) value->data[value->len - 1] <= ' ')
    {
        value->len--;
    }
    return true;
}

/* Whether other bytes come than are stored and listed. */
static bool
is_decoded(const inf_object_http_t *h, unsigned status)
{
    return status / 100 == 2 && !h->encoded && h->encoding[0] != '\0'
        && strcasecmp(h->encoding, "identity") != 0;
}

static size_t
on_body(char *data, size_t size, size_t count, void *userp)
{
    inf_object_http_t *h = userp;
    size_t len = size * count;
    long status = 0;

    h->curl->easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
    if (is_decoded(h, (unsigned) status)) {
        return 0;
    }
    if (status == (h->what->ranged ? 206 : 200)) {
        h->stopped = !h->what->take(h->what->userp, data, len);
        return h->stopped ? 0 : len;
    }

    h->discarded += len;
    if (h->discarded > DISCARD_MAX) {
        h->enough = true;
        return 0;
    }

    size_t room = COMPLAINT_MAX - h->complaint_len;
    size_t n = len < room ? len : room;
    memcpy(h->complaint + h->complaint_len, data, n);
    h->complaint_len += n;
    h->complaint[h->complaint_len] = '\0';
    return len;
}

/* Called repeatedly, also without data; not 0: ends the request. */
static int
on_progress(void *userp, curl_off_t down_all, curl_off_t down,
    curl_off_t up_all, curl_off_t up)
{
    const inf_object_http_t *h = userp;
    (void) down_all;
    (void) down;
    (void) up_all;
    (void) up;
    return atomic_load(h->what->cancelled);
}

static inf_err_t *
judge(inf_object_http_t *h, CURLcode code)
{
    unsigned status = h->answer->status;
    char name[64];
    char text[256];
    char details[256];

    if (is_decoded(h, status)) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "it is stored with the metadata"
            " \"Content-Encoding: %s\", so the service sends other bytes than"
            " it lists; store it without", h->encoding);
    }
    if (h->stopped) {
        return inf_err_new(INF_ERR_INTERNAL, "the answer is not taken");
    }
    if (code == CURLE_OK && status == (h->what->ranged ? 206u : 200u)) {
        return NULL;
    }
    if (code != CURLE_OK && !h->enough) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%s", h->reason[0] != '\0'
            ? h->reason : h->curl->easy_strerror(code));
    }

    find_element(h->complaint, "Details", details, sizeof(details));
    if (h->complaint[0] == '{') {
        find_oauth_error(h->complaint, name, sizeof(name), text,
            sizeof(text));
    } else {
        find_element(h->complaint, "Code", name, sizeof(name));
        find_element(h->complaint, "Message", text, sizeof(text));
    }
    inf_err_code_t kind = status >= 500 || status == 429 || status == 408
        ? INF_ERR_UNAVAILABLE
        : status == 404 ? INF_ERR_NOT_FOUND
        : status == 412 || status == 416 ? INF_ERR_INVALID_ARG
        : INF_ERR_INTERNAL;
    inf_err_t *err = inf_err_new(kind, "HTTP status %u%s%s%s%s", status,
        name[0] != '\0' ? ", " : "", name, text[0] != '\0' ? ": " : "", text);
    return details[0] == '\0' ? err : inf_err_note(err, "%s", details);
}

/* RFC 6749, section 5.2, and Google's own form, whose "error" is an object with
   "status" and "message". */
static void
find_oauth_error(const char *complaint, char *name, size_t name_cap,
    char *text, size_t text_cap)
{
    inf_json_doc_t doc = { NULL };
    inf_slice_t value;

    name[0] = '\0';
    text[0] = '\0';
    inf_err_free(inf_json_doc_parse(&doc, inf_slice(complaint,
        strlen(complaint)), 0));
    const json_t *error = json_object_get(doc.root, "error");
    const json_t *words = json_object_get(doc.root, "error_description");
    if (json_is_object(error)) {
        words = json_object_get(error, "message");
        error = json_object_get(error, "status");
    }
    if (inf_json_doc_string(error, &value)) {
        copy_words(value.data, value.len, name, name_cap);
    }
    if (inf_json_doc_string(words, &value)) {
        copy_words(value.data, value.len, text, text_cap);
    }
    inf_json_doc_fini(&doc);
}

/* Copies a part that fits, without control characters. */
static void
copy_words(const char *from, size_t len, char *out, size_t cap)
{
    size_t n = len < cap ? len : cap - 1;

    for (size_t i = 0; i < n; i++) {
        out[i] = (unsigned char) from[i] < ' ' ? ' ' : from[i];
    }
    out[n] = '\0';
}

/* The first <name>text</name> of a service's error document, for error texts;
   "": none. */
static void
find_element(const char *text, const char *name, char *out, size_t cap)
{
    char tag[32];

    out[0] = '\0';
    snprintf(tag, sizeof(tag), "<%s>", name);
    const char *from = strstr(text, tag);
    if (from == NULL) {
        return;
    }

    from += strlen(tag);
    copy_words(from, strcspn(from, "<"), out, cap);
}
