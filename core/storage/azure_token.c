#include "core/storage/azure_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/os/environment.h"
#include "core/base/path.h"
#include "core/storage/cloud_credentials.h"
#include "core/storage/percent.h"

#define RESOURCE         "https%3A%2F%2Fstorage.azure.com%2F"
#define METADATA_HOST    "http://169.254.169.254"
#define AUTHORITY_HOST   "https://login.microsoftonline.com"
#define ASSERTION_TYPE                                                        \
    "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
#define FILE_MAX_BYTES   ((size_t) 64 << 10)
#define FORM_ROOM        (4 * FILE_MAX_BYTES)   /* so that it is not moved   */

static inf_err_t *managed(const char *client_id,
    inf_azure_token_request_t *out);
static inf_err_t *principal(const char *tenant, const char *client_id,
    inf_azure_token_request_t *out);
static inf_err_t *put_assertion(inf_buf_t *form, const char *file);
static inf_err_t *read_text(const char *file, char *text);
static void put_host(inf_buf_t *url, const char *variable,
    const char *otherwise);
static inf_err_t *give(inf_buf_t *b, char **out);

inf_err_t *
inf_azure_token_request(bool any_identity, const char *client_id,
    inf_azure_token_request_t *out)
{
    const char *tenant = inf_environment("AZURE_TENANT_ID");
    const char *principal_id = inf_environment("AZURE_CLIENT_ID");

    *out = (inf_azure_token_request_t) { NULL, NULL, NULL, NULL };
    if (any_identity && client_id == NULL) {
        client_id = principal_id;
    }
    inf_err_t *err = any_identity && tenant != NULL && principal_id != NULL
        && (inf_environment("AZURE_CLIENT_SECRET") != NULL
            || inf_environment("AZURE_FEDERATED_TOKEN_FILE") != NULL)
        ? principal(tenant, principal_id, out) : managed(client_id, out);
    if (err != NULL) {
        inf_azure_token_request_fini(out);
    }
    return err;
}

void
inf_azure_token_request_fini(inf_azure_token_request_t *r)
{
    inf_cloud_wipe(&r->url);
    inf_cloud_wipe(&r->value);
    inf_cloud_wipe(&r->form);
}

static inf_err_t *
managed(const char *client_id, inf_azure_token_request_t *out)
{
    const char *endpoint = inf_environment("IDENTITY_ENDPOINT");
    const char *secret = inf_environment("IDENTITY_HEADER");
    inf_buf_t url;

    if (endpoint != NULL && secret == NULL) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "IDENTITY_ENDPOINT without"
            " IDENTITY_HEADER (Azure Arc) is not supported");
    }

    inf_buf_init(&url);
    if (endpoint != NULL) {
        inf_buf_printf(&url, "%s?api-version=2019-08-01", endpoint);
        out->header = "X-IDENTITY-HEADER";
        out->value = strdup(secret);
    } else {
        put_host(&url, "AZURE_POD_IDENTITY_AUTHORITY_HOST", METADATA_HOST);
        inf_buf_puts(&url, "/metadata/identity/oauth2/token"
            "?api-version=2018-02-01");
        out->header = "Metadata";
        out->value = strdup("true");
    }
    inf_buf_puts(&url, "&resource=" RESOURCE);
    if (client_id != NULL) {
        inf_buf_puts(&url, "&client_id=");
        inf_percent_encode(&url, client_id, false);
    }

    inf_err_t *err = out->value == NULL ? inf_err_nomem()
        : give(&url, &out->url);
    inf_buf_fini(&url);
    return err;
}

static inf_err_t *
principal(const char *tenant, const char *client_id,
    inf_azure_token_request_t *out)
{
    const char *secret = inf_environment("AZURE_CLIENT_SECRET");
    const char *host = inf_environment("AZURE_AUTHORITY_HOST");
    inf_err_t *err = NULL;
    inf_buf_t form;
    inf_buf_t url;

    if (host != NULL && !inf_cloud_url_is_private(host)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "AZURE_AUTHORITY_HOST must"
            " begin with https:// (http:// only for a loopback address)");
    }

    inf_buf_init(&form);
    inf_buf_init(&url);
    inf_buf_reserve(&form, FORM_ROOM);
    put_host(&url, "AZURE_AUTHORITY_HOST", AUTHORITY_HOST);
    inf_buf_putc(&url, '/');
    inf_percent_encode(&url, tenant, false);
    inf_buf_puts(&url, "/oauth2/v2.0/token");

    inf_buf_puts(&form, "grant_type=client_credentials&scope=" RESOURCE
        ".default&client_id=");
    inf_percent_encode(&form, client_id, false);
    if (secret != NULL) {
        inf_buf_puts(&form, "&client_secret=");
        inf_percent_encode(&form, secret, false);
    } else {
        err = put_assertion(&form,
            inf_environment("AZURE_FEDERATED_TOKEN_FILE"));
    }

    if (err == NULL) {
        err = give(&url, &out->url);
    }
    if (err == NULL) {
        err = give(&form, &out->form);
    }
    inf_buf_fini(&url);
    inf_cloud_wipe_buf(&form);
    return err;
}

static inf_err_t *
put_assertion(inf_buf_t *form, const char *file)
{
    char *text = malloc(FILE_MAX_BYTES + 1);
    if (text == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = read_text(file, text);
    if (err == NULL) {
        text[strcspn(text, "\r\n")] = '\0';
        inf_buf_puts(form, "&client_assertion_type=" ASSERTION_TYPE
            "&client_assertion=");
        inf_percent_encode(form, text, false);
    }
    explicit_bzero(text, FILE_MAX_BYTES + 1);
    free(text);
    return err == NULL ? NULL
        : inf_err_add(err, "AZURE_FEDERATED_TOKEN_FILE '%s'", file);
}

static inf_err_t *
read_text(const char *file, char *text)
{
    FILE *f = fopen(file, "re");
    if (f == NULL) {
        return inf_err_recode(inf_err_os(errno, "cannot open it"),
            INF_ERR_INVALID_ARG);
    }

    setbuf(f, NULL);                    /* no copy of it stays               */
    size_t len = fread(text, 1, FILE_MAX_BYTES, f);
    bool whole = feof(f) != 0;
    fclose(f);
    text[len] = '\0';
    return whole ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "it can't be read,"
        " or has more than %zu bytes", FILE_MAX_BYTES);
}

static void
put_host(inf_buf_t *url, const char *variable, const char *otherwise)
{
    const char *host = inf_environment(variable);
    if (host == NULL) {
        host = otherwise;
    }

    inf_buf_put(url, host, inf_path_len(host));
}

/* Leaves b empty, unless memory ran out. */
static inf_err_t *
give(inf_buf_t *b, char **out)
{
    inf_err_t *err = inf_buf_status(b);
    if (err == NULL) {
        *out = inf_buf_give(b, NULL);
        err = *out == NULL ? inf_err_nomem() : NULL;
    }
    return err;
}
