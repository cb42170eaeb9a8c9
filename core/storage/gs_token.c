#include "core/storage/gs_token.h"

#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/object_address.h"
#include "core/proto/json_doc.h"
#include "core/storage/cloud_credentials.h"
#include "core/storage/jwt.h"
#include "core/storage/percent.h"

#define SCOPE          "https://www.googleapis.com/auth/devstorage.read_only"
#define SCOPE_ALL      "https://www.googleapis.com/auth/cloud-platform"
#define GRANT_JWT      "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define GRANT_EXCHANGE "urn:ietf:params:oauth:grant-type:token-exchange"
#define ACCESS_TOKEN   "urn:ietf:params:oauth:token-type:access_token"
#define JWT_LIFE_S     3600
#define SUBJECT_MAX    ((size_t) 64 << 10)
#define FORM_ROOM      (4 * SUBJECT_MAX)        /* so that it is not moved   */

static inf_err_t *ask_account(const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled, inf_access_token_t *out);
static inf_err_t *put_grant(inf_buf_t *form, const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled);
static inf_err_t *put_assertion(inf_buf_t *form,
    const inf_gs_credentials_t *c);
static inf_err_t *put_exchange(inf_buf_t *form, const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled);
static inf_err_t *read_source(const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled, inf_buf_t *text);
static inf_err_t *put_subject(inf_buf_t *form, const inf_gs_credentials_t *c,
    inf_slice_t text);
static inf_err_t *put_checked(inf_buf_t *form, inf_slice_t token);
static void put_field(inf_buf_t *form, const char *name, const char *value);
static inf_err_t *impersonate(const inf_gs_credentials_t *c,
    const inf_access_token_t *by, const _Atomic bool *cancelled,
    inf_access_token_t *out);
static const char *scope_of(const inf_gs_credentials_t *c);

inf_err_t *
inf_gs_token_ask(const inf_gs_credentials_t *c, const _Atomic bool *cancelled,
    inf_access_token_t *out)
{
    inf_access_token_t first;

    if (c->impersonation_url == NULL) {
        return ask_account(c, cancelled, out);
    }
    inf_err_t *err = ask_account(c, cancelled, &first);
    if (err == NULL) {
        err = impersonate(c, &first, cancelled, out);
        inf_access_token_fini(&first);
    }
    return err;
}

static inf_err_t *
ask_account(const inf_gs_credentials_t *c, const _Atomic bool *cancelled,
    inf_access_token_t *out)
{
    inf_buf_t form;
    unsigned status;

    inf_buf_init(&form);
    if (!inf_buf_reserve(&form, FORM_ROOM)) {
        return inf_err_nomem();
    }
    inf_err_t *err = put_grant(&form, c, cancelled);
    if (err == NULL) {
        const inf_token_request_t ask = {
            .scheme = INF_GS_SCHEME,
            .url = c->token_uri,
            .form = form.data,
            /* one that is not encrypted is of this machine */
            .link_local = inf_cloud_url_is_plain(c->token_uri),
            .cancelled = cancelled,
        };
        err = inf_access_token_ask(&ask, &status, out);
    }
    inf_cloud_wipe_buf(&form);
    return err;
}

static inf_err_t *
put_grant(inf_buf_t *form, const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled)
{
    inf_err_t *err = NULL;

    if (c->account == INF_GS_USER) {
        inf_buf_puts(form, "grant_type=refresh_token");
        put_field(form, "client_id", c->client_id);
        put_field(form, "client_secret", c->client_secret);
        put_field(form, "refresh_token", c->refresh_token);
    } else if (c->account == INF_GS_SERVICE) {
        inf_buf_puts(form, "grant_type=");
        inf_percent_encode(form, GRANT_JWT, false);
        inf_buf_puts(form, "&assertion=");
        err = put_assertion(form, c);
    } else {
        err = put_exchange(form, c, cancelled);
    }
    return err != NULL ? err : inf_buf_status(form);
}

/* The characters of a token need no encoding. */
static inf_err_t *
put_assertion(inf_buf_t *form, const inf_gs_credentials_t *c)
{
    json_int_t now = (json_int_t) (inf_clock_wall_ms() / 1000);
    json_t *header = json_pack("{s:s, s:s, s:s*}", "alg", "RS256", "typ",
        "JWT", "kid", c->private_key_id);
    json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss",
        c->client_email, "scope", scope_of(c), "aud", c->token_uri, "iat", now,
        "exp", now + JWT_LIFE_S);
    inf_buf_t parts[2];

    inf_buf_init(&parts[0]);
    inf_buf_init(&parts[1]);
    inf_err_t *err = inf_json_doc_put(header, &parts[0]);
    if (err == NULL) {
        err = inf_json_doc_put(claims, &parts[1]);
    }
    if (err == NULL) {
        err = inf_jwt_put(form, inf_buf_slice(&parts[0]),
            inf_buf_slice(&parts[1]), c->private_key);
        err = err == NULL ? NULL : inf_err_add(err, "\"private_key\"");
    }
    inf_buf_fini(&parts[0]);
    inf_buf_fini(&parts[1]);
    json_decref(header);
    json_decref(claims);
    return err;
}

/* RFC 8693: another provider's token for Google's. */
static inf_err_t *
put_exchange(inf_buf_t *form, const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled)
{
    inf_buf_t text;

    inf_buf_puts(form, "grant_type=");
    inf_percent_encode(form, GRANT_EXCHANGE, false);
    put_field(form, "requested_token_type", ACCESS_TOKEN);
    put_field(form, "audience", c->audience);
    put_field(form, "scope", scope_of(c));
    put_field(form, "subject_token_type", c->subject_type);

    inf_buf_init(&text);
    inf_err_t *err = read_source(c, cancelled, &text);
    if (err == NULL) {
        err = put_subject(form, c, inf_buf_slice(&text));
    }
    inf_cloud_wipe_buf(&text);
    return err == NULL ? NULL : inf_err_add(err, "\"credential_source\"");
}

static inf_err_t *
read_source(const inf_gs_credentials_t *c, const _Atomic bool *cancelled,
    inf_buf_t *text)
{
    unsigned status;

    if (c->source_file != NULL) {
        inf_err_t *err = inf_cloud_file_read(c->source_file, text);
        return err == NULL ? NULL
            : inf_err_add(err, "'%s'", c->source_file);
    }
    const inf_token_request_t ask = {
        .scheme = INF_GS_SCHEME,
        .url = c->source_url,
        .header = c->source_header,
        .value = c->source_value,
        .link_local = inf_cloud_url_is_plain(c->source_url),
        .cancelled = cancelled,
    };
    return inf_access_token_fetch(&ask, &status, text);
}

/* The token in text; no error has a part of it. */
static inf_err_t *
put_subject(inf_buf_t *form, const inf_gs_credentials_t *c, inf_slice_t text)
{
    inf_json_doc_t doc = { NULL };
    inf_slice_t token = { NULL, 0 };

    if (c->source_field == NULL) {
        while (text.len > 0 && strchr("\r\n", text.data[text.len - 1])) {
            text.len--;
        }
        return put_checked(form, text);
    }

    inf_err_free(inf_json_doc_parse(&doc, text, 0));
    inf_err_t *err = inf_json_doc_string(json_object_get(doc.root,
        c->source_field), &token) ? put_checked(form, token)
        : inf_err_new(INF_ERR_INVALID_ARG, "it is no JSON with the string"
            " \"%s\"", c->source_field);
    inf_cloud_json_fini(&doc);
    return err;
}

static inf_err_t *
put_checked(inf_buf_t *form, inf_slice_t token)
{
    if (token.len == 0 || token.len > SUBJECT_MAX
        || memchr(token.data, '\0', token.len) != NULL)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "its token is empty or no"
            " token");
    }

    char *text = strndup(token.data, token.len);
    if (text == NULL) {
        return inf_err_nomem();
    }
    put_field(form, "subject_token", text);
    inf_cloud_wipe(&text);
    return NULL;
}

static void
put_field(inf_buf_t *form, const char *name, const char *value)
{
    inf_buf_printf(form, "&%s=", name);
    inf_percent_encode(form, value, false);
}

/* Asks for the token of a service's account with the token of another. */
static inf_err_t *
impersonate(const inf_gs_credentials_t *c, const inf_access_token_t *by,
    const _Atomic bool *cancelled, inf_access_token_t *out)
{
    inf_buf_t form;
    unsigned status;

    inf_buf_init(&form);
    inf_buf_printf(&form, "{\"scope\":[\"" SCOPE "\"],\"lifetime\":\"%us\","
        "\"delegates\":%s}", c->lifetime_s,
        c->delegates != NULL ? c->delegates : "[]");
    inf_err_t *err = inf_buf_status(&form);
    if (err == NULL) {
        const inf_token_request_t ask = {
            .scheme = INF_GS_SCHEME,
            .url = c->impersonation_url,
            .form = form.data,
            .form_type = "application/json",
            .header = "Authorization",
            .value = by->bearer,
            .link_local = inf_cloud_url_is_plain(c->impersonation_url),
            .cancelled = cancelled,
        };
        err = inf_access_token_ask(&ask, &status, out);
    }
    inf_buf_fini(&form);
    return err;
}

/* Impersonation is no matter of storage. */
static const char *
scope_of(const inf_gs_credentials_t *c)
{
    return c->impersonation_url != NULL ? SCOPE_ALL : SCOPE;
}
