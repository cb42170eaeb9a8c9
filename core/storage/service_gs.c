/* Google Cloud Storage, by its XML API. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/access_token.h"
#include "core/storage/cloud_credentials.h"
#include "core/storage/gs_credentials.h"
#include "core/storage/gs_token.h"
#include "core/storage/object_service.h"
#include "core/storage/percent.h"
#include "core/storage/s3_listing.h"

#define ENDPOINT      "https://storage.googleapis.com"
#define METADATA_HOST "metadata.google.internal"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default" \
                      "/token"
#define NO_ACCOUNT_S  60        /* until metadata are asked for again        */

typedef struct {
    inf_object_credentials_t base;
    char                    *bearer;        /* of a token; NULL: anonymous   */
} who_t;

static const char *emulator(void);
static inf_err_t *gs_find(const char *address, const _Atomic bool *cancelled,
    inf_object_credentials_t **out);
static inf_err_t *find_token(const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled, inf_access_token_t *out);
static inf_err_t *ask_metadata(const _Atomic bool *cancelled,
    inf_access_token_t *out);
static void gs_free(inf_object_credentials_t *c);
static void put_bucket(inf_buf_t *url, const inf_object_address_t *a);
static void gs_put_object_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const char *key);
static void gs_put_page_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const inf_object_page_t *page);
static inf_err_t *gs_authorize(inf_object_http_t *h,
    const inf_object_get_t *what);

const inf_object_service_t inf_service_gs = {
    .scheme         = INF_GS_SCHEME,
    .name           = "gs",
    .mount          = "TRITON_GCS_MOUNT_DIRECTORY",
    .stored_coding  = "x-goog-stored-content-encoding",
    .renew          = { 401 },
    .find           = gs_find,
    .free           = gs_free,
    .put_object_url = gs_put_object_url,
    .put_page_url   = gs_put_page_url,
    .parse_page     = inf_s3_listing_parse,
    .authorize      = gs_authorize,
};

/* The endpoint that a variable names; NULL: Google's. */
static const char *
emulator(void)
{
    const char *cpp = inf_environment("CLOUD_STORAGE_EMULATOR_ENDPOINT");

    return cpp != NULL ? cpp : inf_environment("STORAGE_EMULATOR_HOST");
}

static inf_err_t *
gs_find(const char *address, const _Atomic bool *cancelled,
    inf_object_credentials_t **out)
{
    inf_access_token_t token = { NULL, UINT64_MAX };
    inf_gs_credentials_t c;

    inf_err_t *err = inf_gs_credentials_find(address, emulator() != NULL, &c);
    if (err != NULL) {
        return err;
    }
    err = find_token(&c, cancelled, &token);
    inf_gs_credentials_fini(&c);
    if (err != NULL) {
        return err;
    }

    who_t *who = calloc(1, sizeof(*who));
    if (who == NULL) {
        inf_access_token_fini(&token);
        return inf_err_nomem();
    }
    atomic_init(&who->base.refs, 1);
    who->base.until_ns = token.until_ns;
    who->bearer = token.bearer;
    *out = &who->base;
    return NULL;
}

/* Leaves out as it is for anonymous requests. */
static inf_err_t *
find_token(const inf_gs_credentials_t *c, const _Atomic bool *cancelled,
    inf_access_token_t *out)
{
    switch (c->account) {
    case INF_GS_ANONYMOUS:
        return NULL;
    case INF_GS_METADATA:
        return ask_metadata(cancelled, out);
    case INF_GS_USER:
    case INF_GS_SERVICE:
    case INF_GS_EXTERNAL:
        break;
    }
    inf_err_t *err = inf_gs_token_ask(c, cancelled, out);
    return err == NULL ? NULL
        : inf_err_add(err, "cloud credentials '%s'", c->file);
}

/* A machine that is not Google's has no such service, and one of Google's may
   have no account, or not yet. */
static inf_err_t *
ask_metadata(const _Atomic bool *cancelled, inf_access_token_t *out)
{
    const char *host = inf_environment("GCE_METADATA_HOST");
    unsigned status;
    char *url;

    if (asprintf(&url, "http://%s" METADATA_PATH,
        host != NULL ? host : METADATA_HOST) < 0)
    {
        return inf_err_nomem();
    }
    const inf_token_request_t ask = {
        .scheme = INF_GS_SCHEME,
        .url = url,
        .header = "Metadata-Flavor",
        .value = "Google",
        .link_local = true,
        .cancelled = cancelled,
    };
    inf_access_token_t token;

    inf_err_t *err = inf_access_token_ask(&ask, &status, &token);
    free(url);
    if (err == NULL) {
        *out = token;
    } else if (status == 404 || (status == 0 && host == NULL
        && inf_err_code(err) == INF_ERR_UNAVAILABLE))
    {
        inf_err_free(err);
        out->until_ns = inf_clock_ns() + NO_ACCOUNT_S * UINT64_C(1000000000);
        err = NULL;
    }
    return err;
}

static void
gs_free(inf_object_credentials_t *c)
{
    who_t *who = (who_t *) c;

    inf_cloud_wipe(&who->bearer);
    free(who);
}

static void
put_bucket(inf_buf_t *url, const inf_object_address_t *a)
{
    const char *endpoint = emulator();

    if (endpoint == NULL) {
        endpoint = ENDPOINT;
    } else if (strstr(endpoint, "://") == NULL) {
        inf_buf_puts(url, "http://");
    }
    inf_buf_put(url, endpoint, inf_path_len(endpoint));
    inf_buf_printf(url, "/%s", a->bucket);
}

static void
gs_put_object_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const char *key)
{
    (void) who;

    put_bucket(url, a);
    inf_buf_putc(url, '/');
    inf_percent_encode(url, key, true);
}

static void
gs_put_page_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const inf_object_page_t *page)
{
    (void) who;

    put_bucket(url, a);
    inf_buf_putc(url, '?');
    inf_s3_listing_put_query(url, page);
}

static inf_err_t *
gs_authorize(inf_object_http_t *h, const inf_object_get_t *what)
{
    const who_t *who = what->who;

    return who->bearer == NULL ? NULL
        : inf_object_http_add_header(h, "Authorization", who->bearer);
}
