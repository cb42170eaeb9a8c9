#include "core/storage/azure_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/base64.h"
#include "core/storage/percent.h"

#define PARAMETERS_MAX 32u
#define MAC_BYTES      32u

static void put_request(inf_buf_t *text, const inf_azure_request_t *r);
static inf_err_t *put_parameters(inf_buf_t *text, const char *query);
static int by_name(const void *a, const void *b);
static inf_err_t *put_mac(inf_buf_t *out, const char *key, inf_slice_t text);

inf_err_t *
inf_azure_sign(const inf_azure_request_t *r, const char *key, inf_buf_t *out)
{
    inf_buf_t text;

    inf_buf_init(&text);
    put_request(&text, r);
    inf_err_t *err = r->query == NULL ? NULL
        : put_parameters(&text, r->query);
    if (err == NULL) {
        err = inf_buf_status(&text);
    }
    if (err == NULL) {
        inf_buf_printf(out, "SharedKey %s:", r->account);
        err = put_mac(out, key, inf_buf_slice(&text));
    }
    inf_buf_fini(&text);
    return err != NULL ? err : inf_buf_status(out);
}

static void
put_request(inf_buf_t *text, const inf_azure_request_t *r)
{
    /* Content-Encoding, -Language, -Length, -MD5, -Type, Date and
       If-Modified-Since, which these requests do not have */
    inf_buf_puts(text, "GET\n\n\n\n\n\n\n\n");
    inf_buf_printf(text, "%s\n", r->if_match != NULL ? r->if_match : "");
    /* If-None-Match, If-Unmodified-Since */
    inf_buf_printf(text, "\n\n%s\n", r->range != NULL ? r->range : "");
    inf_buf_printf(text, "x-ms-date:%s\nx-ms-version:%s\n", r->date,
        INF_AZURE_VERSION);
    inf_buf_printf(text, "/%s%s", r->account, r->path);
}

/* Appends the parameters, decoded and in the order of their names. */
static inf_err_t *
put_parameters(inf_buf_t *text, const char *query)
{
    char *parts[PARAMETERS_MAX];
    size_t count = 0;
    char *rest;

    char *copy = strdup(query);
    if (copy == NULL) {
        return inf_err_nomem();
    }
    for (char *part = strtok_r(copy, "&", &rest);
        part != NULL && count < PARAMETERS_MAX;
        part = strtok_r(NULL, "&", &rest))
    {
        parts[count++] = part;
    }

    qsort(parts, count, sizeof(parts[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        char *value = strchr(parts[i], '=');
        if (value != NULL) {
            *value++ = '\0';
            inf_percent_decode(value);
        }
        inf_buf_printf(text, "\n%s:%s", parts[i], value != NULL ? value : "");
    }
    free(copy);
    return NULL;
}

static int
by_name(const void *a, const void *b)
{
    const char *x = *(char *const *) a;
    const char *y = *(char *const *) b;
    size_t x_len = strcspn(x, "=");
    size_t y_len = strcspn(y, "=");
    int order = memcmp(x, y, x_len < y_len ? x_len : y_len);

    return order != 0 ? order : (x_len > y_len) - (x_len < y_len);
}

static inf_err_t *
put_mac(inf_buf_t *out, const char *key, inf_slice_t text)
{
    unsigned char mac[MAC_BYTES];
    size_t room = inf_base64_room(strlen(key));
    size_t len = 0;
    unsigned mac_len = 0;

    uint8_t *secret = malloc(room);
    if (secret == NULL) {
        return inf_err_nomem();
    }
    bool good = inf_base64_decode(inf_slice(key, strlen(key)), secret, &len)
        && len > 0;
    bool done = good && HMAC(EVP_sha256(), secret, (int) len,
        (const unsigned char *) text.data, text.len, mac, &mac_len) != NULL;
    explicit_bzero(secret, room);
    free(secret);

    if (done) {
        inf_base64_put(out, inf_slice((const char *) mac, mac_len));
    }
    return !good ? inf_err_new(INF_ERR_INVALID_ARG, "the key of the storage"
            " account is not base64")
        : !done ? inf_err_new(INF_ERR_UNSUPPORTED, "libcrypto has no"
            " HMAC-SHA256")
        : NULL;
}
