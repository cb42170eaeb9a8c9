#include "core/base/s3_address.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t endpoint_len(const char *rest, const char **scheme);
static bool bucket_is_good(const char *bucket);
static void collapse_slashes(char *path);
static inf_err_t *address_bad(const char *address, const char *what);

inf_err_t *
inf_s3_address_parse(const char *address, inf_s3_address_t *out)
{
    *out = (inf_s3_address_t) { NULL, NULL, NULL };
    if (strncmp(address, INF_S3_SCHEME, strlen(INF_S3_SCHEME)) != 0) {
        return address_bad(address, "it does not begin with s3://");
    }

    const char *rest = address + strlen(INF_S3_SCHEME);
    const char *scheme = "";
    size_t host = endpoint_len(rest, &scheme);

    if (host > 0) {
        size_t len = strlen(scheme) + host + 1;
        out->endpoint = malloc(len);
        if (out->endpoint == NULL) {
            return inf_err_nomem();
        }
        memcpy(out->endpoint, scheme, strlen(scheme));
        memcpy(out->endpoint + strlen(scheme), rest, host);
        out->endpoint[len - 1] = '\0';
        rest += host;
    }
    while (*rest == '/') {
        rest++;
    }

    out->bucket = strndup(rest, strcspn(rest, "/"));
    out->prefix = strdup(rest + strcspn(rest, "/"));
    if (out->bucket == NULL || out->prefix == NULL) {
        inf_s3_address_fini(out);
        return inf_err_nomem();
    }
    collapse_slashes(out->prefix);
    if (out->prefix[0] == '/') {
        memmove(out->prefix, out->prefix + 1, strlen(out->prefix));
    }

    if (out->bucket[0] == '\0') {
        inf_s3_address_fini(out);
        return address_bad(address, "it names no bucket");
    }
    if (!bucket_is_good(out->bucket)) {
        inf_s3_address_fini(out);
        return address_bad(address, "the bucket's name may hold letters, "
            "digits, dots, dashes and underscores");
    }
    return NULL;
}

void
inf_s3_address_fini(inf_s3_address_t *a)
{
    free(a->endpoint);
    free(a->bucket);
    free(a->prefix);
    *a = (inf_s3_address_t) { NULL, NULL, NULL };
}

char *
inf_s3_address_root(const char *address)
{
    const char *rest = address + strlen(INF_S3_SCHEME);
    const char *scheme = strncmp(rest, "https://", 8) == 0 ? "https://"
        : strncmp(rest, "http://", 7) == 0 ? "http://" : "";
    size_t keep = strlen(INF_S3_SCHEME) + strlen(scheme);

    char *root = strdup(address);
    if (root != NULL) {
        collapse_slashes(root + keep);
    }
    return root;
}

/* The length of the endpoint in rest, including its scheme; 0: none.  A name
   with a port and no scheme is plain HTTP; scheme is then the text to
   prepend. */
static size_t
endpoint_len(const char *rest, const char **scheme)
{
    if (strncmp(rest, "http://", 7) == 0) {
        return 7 + strcspn(rest + 7, "/");
    }
    if (strncmp(rest, "https://", 8) == 0) {
        return 8 + strcspn(rest + 8, "/");
    }

    size_t len = strcspn(rest, "/");
    const char *colon = memchr(rest, ':', len);
    if (colon == NULL || colon == rest || colon + 1 == rest + len) {
        return 0;
    }
    for (const char *p = colon + 1; p < rest + len; p++) {
        if (!isdigit((unsigned char) *p)) {
            return 0;
        }
    }

    *scheme = "http://";
    return len;
}

static bool
bucket_is_good(const char *bucket)
{
    if (strcmp(bucket, ".") == 0 || strcmp(bucket, "..") == 0) {
        return false;
    }
    for (const char *p = bucket; *p != '\0'; p++) {
        if (!isalnum((unsigned char) *p) && strchr("._-", *p) == NULL) {
            return false;
        }
    }
    return true;
}

/* Collapses repeated slashes and removes those at the end, in place. */
static void
collapse_slashes(char *path)
{
    char *to = path;

    for (const char *from = path; *from != '\0'; from++) {
        if (*from != '/' || to == path || to[-1] != '/') {
            *to++ = *from;
        }
    }
    while (to > path && to[-1] == '/') {
        to--;
    }
    *to = '\0';
}

static inf_err_t *
address_bad(const char *address, const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "model repository '%s': %s",
        address, what);
}
