#include "core/storage/access_token.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/proto/json_doc.h"
#include "core/storage/cloud_credentials.h"
#include "core/storage/iso_time.h"
#include "core/storage/object_http.h"

#define ANSWER_MAX     ((size_t) 64 << 10)
#define LIFE_S         300u     /* of a token that does not say              */
#define LIFE_MAX_S     86400u
#define MARGIN_S       60u      /* before it expires; of a short life half   */

static inf_err_t *add_headers(inf_object_http_t *h,
    const inf_object_get_t *what);
static inf_err_t *name_url(inf_err_t *err, const char *url);
static bool take_bytes(void *userp, const char *data, size_t len);
static inf_err_t *read_life(const inf_json_doc_t *doc, double *seconds);
static bool read_seconds(const json_t *v, double *out);
static inf_err_t *read_answer(const inf_json_doc_t *doc, uint64_t now_ns,
    inf_access_token_t *out);

inf_err_t *
inf_access_token_ask(const inf_token_request_t *ask, unsigned *status,
    inf_access_token_t *out)
{
    inf_buf_t body;

    *out = (inf_access_token_t) { NULL, 0 };
    inf_buf_init(&body);
    inf_err_t *err = inf_access_token_fetch(ask, status, &body);
    if (err == NULL) {
        err = inf_access_token_parse(inf_buf_slice(&body), inf_clock_ns(),
            out);
        err = err == NULL ? NULL : name_url(err, ask->url);
    }
    inf_cloud_wipe_buf(&body);
    return err;
}

inf_err_t *
inf_access_token_fetch(const inf_token_request_t *ask, unsigned *status,
    inf_buf_t *body)
{
    inf_object_http_t *http;
    inf_object_answer_t answer = { 0, "" };

    *status = 0;
    inf_err_t *err = inf_object_http_open(&http);
    if (err != NULL) {
        return inf_err_add(err, "%s repositories need libcurl", ask->scheme);
    }

    if (!inf_buf_reserve(body, ANSWER_MAX)) {       /* so that it is not
                                                       moved                 */
        err = inf_err_nomem();
    }
    if (err == NULL) {
        const inf_object_get_t what = {
            .scheme = ask->scheme,
            .url = ask->url,
            .form = ask->form,
            .authorities = ask->authorities,
            .link_local = ask->link_local,
            .cancelled = ask->cancelled,
            .authorize = add_headers,
            .who = ask,
            .take = take_bytes,
            .userp = body,
        };
        err = inf_object_http_get(http, &what, &answer);
        *status = answer.status;
    }

    inf_object_http_close(http);
    if (err == NULL) {
        return NULL;
    }
    if (*status / 100 == 4 && inf_err_code(err) != INF_ERR_UNAVAILABLE) {
        err = inf_err_recode(err, INF_ERR_INTERNAL);    /* of no object      */
    }
    return name_url(err, ask->url);
}

/* Without user, password and query, which may have secrets. */
static inf_err_t *
name_url(inf_err_t *err, const char *url)
{
    const char *scheme = strstr(url, "://");
    int scheme_len = scheme == NULL ? 0 : (int) (scheme + 3 - url);
    const char *host = url + scheme_len;
    size_t authority = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', authority);

    if (at != NULL) {
        host = at + 1;
    }
    return inf_err_add(err, "%.*s%.*s", scheme_len, url,
        (int) strcspn(host, "?#"), host);
}

static inf_err_t *
add_headers(inf_object_http_t *h, const inf_object_get_t *what)
{
    const inf_token_request_t *ask = what->who;

    inf_err_t *err = ask->header == NULL ? NULL
        : inf_object_http_add_header(h, ask->header, ask->value);
    if (err == NULL && ask->form_type != NULL) {
        err = inf_object_http_add_header(h, "Content-Type", ask->form_type);
    }
    return err;
}

static bool
take_bytes(void *userp, const char *data, size_t len)
{
    inf_buf_t *body = userp;

    if (len > ANSWER_MAX - body->len) {
        return false;
    }
    inf_buf_put(body, data, len);
    return true;
}

inf_err_t *
inf_access_token_parse(inf_slice_t json, uint64_t now_ns,
    inf_access_token_t *out)
{
    inf_json_doc_t doc = { NULL };

    *out = (inf_access_token_t) { NULL, 0 };
    inf_err_t *err = inf_json_doc_parse(&doc, json, 0);
    if (err != NULL) {          /* its text may have a part of the token     */
        inf_err_code_t code = inf_err_code(err);
        inf_err_free(err);
        return code == INF_ERR_UNAVAILABLE ? inf_err_nomem()
            : inf_err_new(INF_ERR_INTERNAL, "the answer is no JSON");
    }

    err = read_answer(&doc, now_ns, out);
    inf_cloud_json_fini(&doc);
    return err;
}

static inf_err_t *
read_answer(const inf_json_doc_t *doc, uint64_t now_ns,
    inf_access_token_t *out)
{
    inf_slice_t text;
    double seconds = LIFE_S;

    const json_t *token = json_object_get(doc->root, "access_token");
    if (token == NULL) {
        token = json_object_get(doc->root, "accessToken");
    }
    if (!inf_json_doc_string(token, &text)
        || !inf_object_http_is_header(text))
    {
        return inf_err_new(INF_ERR_INTERNAL, "the answer has no"
            " \"access_token\"");
    }
    inf_err_t *err = read_life(doc, &seconds);
    if (err != NULL) {
        return err;
    }
    seconds = fmin(fmax(seconds, 0), LIFE_MAX_S);

    if (asprintf(&out->bearer, "Bearer %.*s", (int) text.len, text.data) < 0) {
        out->bearer = NULL;
        return inf_err_nomem();
    }
    seconds -= fmin(seconds / 2, MARGIN_S);
    out->until_ns = now_ns + (uint64_t) (seconds * 1e9);
    return NULL;
}

/* Azure's managed identities have expires_on (seconds since 1970), some of them
   alone, and Google's impersonated accounts expireTime. */
static inf_err_t *
read_life(const inf_json_doc_t *doc, double *seconds)
{
    const json_t *life = json_object_get(doc->root, "expires_in");
    const json_t *end = json_object_get(doc->root, "expires_on");
    const json_t *time = json_object_get(doc->root, "expireTime");
    int64_t end_ns = -1;

    if (life != NULL || end != NULL) {
        if (!read_seconds(life != NULL ? life : end, seconds)) {
            return inf_err_new(INF_ERR_INTERNAL, "\"expires_in\" of the answer"
                " is no number, or \"expires_on\" without it");
        }
        if (life != NULL) {
            return NULL;
        }
    } else if (time != NULL) {
        if (json_is_string(time)) {
            end_ns = inf_iso_time_parse(json_string_value(time));
        }
        if (end_ns < 0) {
            return inf_err_new(INF_ERR_INTERNAL, "\"expireTime\" of the answer"
                " is not of the form 2026-11-21T15:24:46Z");
        }
        *seconds = (double) (end_ns / 1000000000);
    } else {
        return NULL;
    }
    *seconds -= (double) (inf_clock_wall_ms() / 1000);
    return NULL;
}

/* Azure's services write numbers as strings, too, of digits alone. */
static bool
read_seconds(const json_t *v, double *out)
{
    const char *text = json_string_value(v);

    if (text == NULL) {
        *out = json_number_value(v);
        return json_is_number(v) && *out >= 0;
    }
    *out = (double) strtoull(text, NULL, 10);
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

void
inf_access_token_fini(inf_access_token_t *t)
{
    inf_cloud_wipe(&t->bearer);
}
