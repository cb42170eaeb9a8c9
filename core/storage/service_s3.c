/* Amazon S3 and services with its protocol. */

#include <stdlib.h>

#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/object_service.h"
#include "core/storage/percent.h"
#include "core/storage/s3_credentials.h"
#include "core/storage/s3_listing.h"

typedef struct {
    inf_object_credentials_t base;
    inf_s3_credentials_t     keys;
} who_t;

static inf_err_t *
s3_find(const char *address, const _Atomic bool *cancelled,
    inf_object_credentials_t **out)
{
    (void) cancelled;

    who_t *who = calloc(1, sizeof(*who));
    if (who == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_s3_credentials_find(address, &who->keys);
    if (err != NULL) {
        free(who);
        return err;
    }
    atomic_init(&who->base.refs, 1);
    who->base.until_ns = UINT64_MAX;
    *out = &who->base;
    return NULL;
}

static void
s3_free(inf_object_credentials_t *c)
{
    who_t *who = (who_t *) c;

    inf_s3_credentials_fini(&who->keys);
    free(who);
}

static void
put_bucket(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *c)
{
    const char *endpoint = a->endpoint;

    if (endpoint == NULL) {
        endpoint = inf_environment("AWS_ENDPOINT_URL_S3");
    }
    if (endpoint == NULL) {
        endpoint = inf_environment("AWS_ENDPOINT_URL");
    }

    if (endpoint == NULL) {
        inf_buf_puts(url, "https://s3.");
        inf_percent_encode(url, ((const who_t *) c)->keys.region, false);
        inf_buf_puts(url, ".amazonaws.com");
    } else {
        inf_buf_put(url, endpoint, inf_path_len(endpoint));
    }
    inf_buf_printf(url, "/%s", a->bucket);
}

static void
s3_put_object_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const char *key)
{
    put_bucket(url, a, who);
    inf_buf_putc(url, '/');
    inf_percent_encode(url, key, true);
}

static void
s3_put_page_url(inf_buf_t *url, const inf_object_address_t *a,
    const inf_object_credentials_t *who, const inf_object_page_t *page)
{
    put_bucket(url, a, who);
    inf_buf_putc(url, '?');
    inf_s3_listing_put_query(url, page);
}

static inf_err_t *
s3_authorize(inf_object_http_t *h, const inf_object_get_t *what)
{
    const inf_s3_credentials_t *keys = &((const who_t *) what->who)->keys;

    if (keys->key_id == NULL) {
        return NULL;
    }

    inf_err_t *err = inf_object_http_add_header(h, "x-amz-content-sha256",
        "UNSIGNED-PAYLOAD");
    if (err == NULL && keys->session_token != NULL) {
        err = inf_object_http_add_header(h, "x-amz-security-token",
            keys->session_token);
    }
    return err != NULL ? err : inf_object_http_sign_aws(h, keys->region,
        keys->key_id, keys->secret_key);
}

const inf_object_service_t inf_service_s3 = {
    .scheme         = INF_S3_SCHEME,
    .name           = "s3",
    .mount          = "TRITON_AWS_MOUNT_DIRECTORY",
    .authorities    = "AWS_CA_BUNDLE",
    .renew          = { 400, 401, 403 },
    .find           = s3_find,
    .free           = s3_free,
    .put_object_url = s3_put_object_url,
    .put_page_url   = s3_put_page_url,
    .parse_page     = inf_s3_listing_parse,
    .authorize      = s3_authorize,
};
