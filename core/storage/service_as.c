/* Azure Blob Storage. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/access_token.h"
#include "core/storage/azure_credentials.h"
#include "core/storage/azure_listing.h"
#include "core/storage/azure_signature.h"
#include "core/storage/azure_token.h"
#include "core/storage/cloud_credentials.h"
#include "core/storage/http_date.h"
#include "core/storage/object_service.h"
#include "core/storage/percent.h"

/* Of signature, key and bearer at most one is not NULL. */
typedef struct {
    inf_object_credentials_t base;
    char                    *endpoint;
    char                    *account;
    char                    *signature;     /* query of each request         */
    char                    *key;
    char                    *bearer;        /* of a token                    */
} who_t;

static inf_err_t *
ask_token(who_t *who, const inf_azure_credentials_t *c,
    const _Atomic bool *cancelled)
{
    inf_azure_token_request_t request;
    inf_access_token_t token;
    unsigned status;

    inf_err_t *err = inf_azure_token_request(
        c->auth == INF_AZURE_ANY_IDENTITY, c->client_id, &request);
    if (err != NULL) {
        return err;
    }
    const inf_token_request_t ask = {
        .scheme = INF_AS_SCHEME,
        .url = request.url,
        .form = request.form,
        .header = request.header,
        .value = request.value,
        .link_local = request.form == NULL
            || inf_cloud_url_is_plain(request.url),
        .authorities = inf_environment(inf_service_as.authorities),
        .cancelled = cancelled
    };
    err = inf_access_token_ask(&ask, &status, &token);
    inf_azure_token_request_fini(&request);
    if (err != NULL) {
        return err;
    }

    who->base.until_ns = token.until_ns;
    who->bearer = token.bearer;
    return NULL;
}

/* An emulator's endpoint has the account in its path; others have it in the
   host's name. */
static inf_err_t *
take_account(who_t *who, inf_azure_credentials_t *c, inf_object_address_t *a)
{
    const char *endpoint = inf_environment("AZURE_STORAGE_SERVICE_ENDPOINT");
    inf_buf_t url;

    /* its text may have a key, if it is a connection string */
    if (endpoint != NULL && (!inf_cloud_url_is_web(endpoint)
        || strpbrk(endpoint, "?#@") != NULL))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "AZURE_STORAGE_SERVICE_ENDPOINT"
            " is not http:// or https:// with a host, port and path");
    }
    char **account = c->account != NULL ? &c->account : &a->account;
    who->account = *account;
    *account = NULL;

    inf_buf_init(&url);
    if (endpoint != NULL) {
        inf_buf_put(&url, endpoint, inf_path_len(endpoint));
    } else {
        inf_buf_puts(&url, "https://");
        inf_percent_encode(&url, who->account, false);
        inf_buf_puts(&url, INF_AS_DOMAIN);
    }
    inf_err_t *err = inf_buf_status(&url);
    if (err == NULL) {
        who->endpoint = inf_buf_give(&url, NULL);
        err = who->endpoint == NULL ? inf_err_nomem() : NULL;
    }
    inf_buf_fini(&url);
    return err;
}

static void
as_free(inf_object_credentials_t *c)
{
    who_t *who = (who_t *) c;

    inf_cloud_wipe(&who->endpoint);
    inf_cloud_wipe(&who->account);
    inf_cloud_wipe(&who->signature);
    inf_cloud_wipe(&who->key);
    inf_cloud_wipe(&who->bearer);
    free(who);
}

/* The address's signature comes before keys and identities. */
static inf_err_t *
fill(who_t *who, inf_azure_credentials_t *c, inf_object_address_t *a,
    const _Atomic bool *cancelled)
{
    inf_err_t *err = take_account(who, c, a);
    if (err != NULL) {
        return err;
    }

    if (a->query != NULL) {
        who->signature = a->query;
        a->query = NULL;
        return NULL;
    }
    switch (c->auth) {
    case INF_AZURE_ANONYMOUS:
        return NULL;
    case INF_AZURE_KEY:
        who->key = c->key;
        c->key = NULL;
        return NULL;
    case INF_AZURE_MANAGED_IDENTITY:
    case INF_AZURE_ANY_IDENTITY:
        return ask_token(who, c, cancelled);
    }
    return NULL;
}

static inf_err_t *
as_find(const char *address, const _Atomic bool *cancelled,
    inf_object_credentials_t **out)
{
    inf_azure_credentials_t c;
    inf_object_address_t a;

    inf_err_t *err = inf_object_address_parse(address, &a);
    if (err != NULL) {
        return err;
    }
    who_t *who = calloc(1, sizeof(*who));
    if (who == NULL) {
        inf_object_address_fini(&a);
        return inf_err_nomem();
    }

    atomic_init(&who->base.refs, 1);
    who->base.until_ns = UINT64_MAX;
    if (a.query != NULL) {          /* no other account, and no other key    */
        c = (inf_azure_credentials_t) { INF_AZURE_ANONYMOUS, NULL, NULL,
            NULL };
    } else {
        err = inf_azure_credentials_find(address, &c);
    }
    if (err == NULL) {
        err = fill(who, &c, &a, cancelled);
        inf_azure_credentials_fini(&c);
    }
    inf_object_address_fini(&a);
    if (err != NULL) {
        as_free(&who->base);
        return err;
    }
    *out = &who->base;
    return NULL;
}

static void
as_put_object_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *c, const char *key)
{
    const who_t *who = (const who_t *) c;

    inf_buf_printf(url, "%s/%s/", who->endpoint, a->bucket);
    inf_percent_encode(url, key, true);
    if (who->signature != NULL) {
        inf_buf_printf(url, "?%s", who->signature);
    }
}

static void
as_put_page_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *c, const inf_object_page_t *page)
{
    const who_t *who = (const who_t *) c;

    inf_buf_printf(url, "%s/%s?", who->endpoint, a->bucket);
    inf_azure_listing_put_query(url, page);
    if (who->signature != NULL) {
        inf_buf_printf(url, "&%s", who->signature);
    }
}

/* The headers as libcurl writes them. */
static inf_err_t *
sign(inf_object_http_t *h, const inf_object_get_t *what, const who_t *who)
{
    const char *path = strchr(strstr(what->url, "://") + 3, '/');
    const char *query = strchr(path, '?');
    char date[INF_HTTP_DATE_BYTES];
    char if_match[INF_OBJECT_ETAG_MAX + 2];
    char range[64];
    inf_buf_t value;

    char *only_path = strndup(path, strcspn(path, "?"));
    if (only_path == NULL) {
        return inf_err_nomem();
    }
    inf_http_date_format(time(NULL), date);
    snprintf(if_match, sizeof(if_match), "\"%s\"",
        what->etag != NULL ? what->etag : "");
    snprintf(range, sizeof(range), "bytes=%llu-%llu",
        (unsigned long long) what->first, (unsigned long long) what->last);

    const inf_azure_request_t request = {
        .account = who->account,
        .path = only_path,
        .query = query != NULL ? query + 1 : NULL,
        .date = date,
        .if_match = what->etag != NULL ? if_match : NULL,
        .range = what->ranged ? range : NULL
    };
    inf_buf_init(&value);
    inf_err_t *err = inf_azure_sign(&request, who->key, &value);
    if (err == NULL) {
        err = inf_object_http_add_header(h, "x-ms-date", date);
    }
    if (err == NULL) {
        err = inf_object_http_add_header(h, "Authorization", value.data);
    }
    inf_buf_fini(&value);
    free(only_path);
    return err;
}

static inf_err_t *
as_authorize(inf_object_http_t *h, const inf_object_get_t *what)
{
    const who_t *who = what->who;

    inf_err_t *err = inf_object_http_add_header(h, "x-ms-version",
        INF_AZURE_VERSION);
    if (err == NULL && who->bearer != NULL) {
        err = inf_object_http_add_header(h, "Authorization", who->bearer);
    }
    if (err == NULL && who->key != NULL) {
        err = sign(h, what, who);
    }
    return err;
}

const inf_object_service_t inf_service_as = {
    .scheme         = INF_AS_SCHEME,
    .name           = "as",
    .mount          = "TRITON_AZURE_MOUNT_DIRECTORY",
    .authorities    = "REQUESTS_CA_BUNDLE",
    .renew          = { 401, 403 },
    .find           = as_find,
    .free           = as_free,
    .put_object_url = as_put_object_url,
    .put_page_url   = as_put_page_url,
    .parse_page     = inf_azure_listing_parse,
    .authorize      = as_authorize,
};
