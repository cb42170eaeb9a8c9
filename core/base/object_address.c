#include "core/base/object_address.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char  *text;
    /* Takes the endpoint that rest begins with, if any; NULL: never one. */
    inf_err_t *(*take_endpoint)(const char **rest, char **endpoint);
} scheme_t;

static const scheme_t *find_scheme(const char *text);
static inf_err_t *s3_endpoint(const char **rest, char **endpoint);
static size_t endpoint_len(const char *rest, const char **scheme);
static bool bucket_is_good(const char *bucket);
static void collapse_slashes(char *path);
static inf_err_t *address_bad(const char *address, const char *what);

static const scheme_t schemes[] = {
    { INF_S3_SCHEME, s3_endpoint },
    { INF_GS_SCHEME, NULL },
};

inf_err_t *
inf_object_address_parse(const char *address, inf_object_address_t *out)
{
    const scheme_t *scheme = find_scheme(address);

    *out = (inf_object_address_t) { NULL, NULL, NULL };
    if (scheme == NULL) {
        return address_bad(address, "it does not begin with s3:// or"
            " gs://");
    }

    const char *rest = address + strlen(scheme->text);
    inf_err_t *err = scheme->take_endpoint == NULL ? NULL
        : scheme->take_endpoint(&rest, &out->endpoint);
    if (err != NULL) {
        return err;
    }
    while (*rest == '/') {
        rest++;
    }

    out->bucket = strndup(rest, strcspn(rest, "/"));
    out->prefix = strdup(rest + strcspn(rest, "/"));
    if (out->bucket == NULL || out->prefix == NULL) {
        inf_object_address_fini(out);
        return inf_err_nomem();
    }
    collapse_slashes(out->prefix);
    if (out->prefix[0] == '/') {
        memmove(out->prefix, out->prefix + 1, strlen(out->prefix));
    }

    if (out->bucket[0] == '\0') {
        inf_object_address_fini(out);
        return address_bad(address, "it names no bucket");
    }
    if (!bucket_is_good(out->bucket)) {
        inf_object_address_fini(out);
        return address_bad(address, "the bucket's name may hold letters, "
            "digits, dots, dashes and underscores");
    }
    return NULL;
}

void
inf_object_address_fini(inf_object_address_t *a)
{
    free(a->endpoint);
    free(a->bucket);
    free(a->prefix);
    *a = (inf_object_address_t) { NULL, NULL, NULL };
}

char *
inf_object_address_root(const char *address)
{
    const char *scheme = find_scheme(address)->text;
    const char *rest = address + strlen(scheme);
    const char *inner = strncmp(rest, "https://", 8) == 0 ? "https://"
        : strncmp(rest, "http://", 7) == 0 ? "http://" : "";

    char *root = strdup(address);
    if (root != NULL) {
        collapse_slashes(root + strlen(scheme) + strlen(inner));
    }
    return root;
}

static const scheme_t *
find_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(text, schemes[i].text, strlen(schemes[i].text)) == 0) {
            return &schemes[i];
        }
    }
    return NULL;
}

static inf_err_t *
s3_endpoint(const char **rest, char **endpoint)
{
    const char *scheme = "";
    size_t len = endpoint_len(*rest, &scheme);

    if (len == 0) {
        return NULL;
    }
    if (asprintf(endpoint, "%s%.*s", scheme, (int) len, *rest) < 0) {
        *endpoint = NULL;
        return inf_err_nomem();
    }
    *rest += len;
    return NULL;
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
