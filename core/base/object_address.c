#include "core/base/object_address.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char  *text;
    /* Takes the endpoint or account that rest begins with, if any; NULL: never
       one. */
    inf_err_t *(*take_host)(const char **rest, inf_object_address_t *out);
    const char  *no_bucket;             /* errors                            */
    const char  *bad_bucket;
    const char  *marks;                 /* that a bucket's name may have     */
} scheme_t;

static const scheme_t *find_scheme(const char *text);
static inf_err_t *parse_text(const scheme_t *scheme, const char *text,
    inf_object_address_t *out);
static inf_err_t *take_query(const char *query, inf_object_address_t *out);
static inf_err_t *s3_endpoint(const char **rest, inf_object_address_t *out);
static size_t endpoint_len(const char *rest, const char **scheme);
static inf_err_t *as_account(const char **rest, inf_object_address_t *out);
static bool bucket_is_good(const char *bucket, const char *marks);
static void collapse_slashes(char *path);
static inf_err_t *address_bad(const char *what);

static const scheme_t schemes[] = {
    { INF_S3_SCHEME, s3_endpoint, "it names no bucket", "the bucket's name may"
      " hold letters, digits, dots, dashes and underscores", "._-" },
    { INF_GS_SCHEME, NULL, "it names no bucket", "the bucket's name may hold"
      " letters, digits, dots, dashes and underscores", "._-" },
    { INF_AS_SCHEME, as_account, "it names no container", "the container's"
      " name may hold letters, digits, dashes and \"$\"", "-$" },
};

/* Errors name the address without its query. */
inf_err_t *
inf_object_address_parse(const char *address, inf_object_address_t *out)
{
    const scheme_t *scheme = find_scheme(address);
    size_t len = inf_object_address_shown(address);

    *out = (inf_object_address_t) { 0 };
    char *text = strndup(address, len);
    if (text == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = scheme != NULL ? parse_text(scheme, text, out)
        : address_bad("it does not begin with s3://, gs:// or as://");
    if (err == NULL && address[len] == '?') {
        err = take_query(address + len + 1, out);
    }
    if (err != NULL) {
        inf_object_address_fini(out);
        err = inf_err_add(err, "model repository '%s'", text);
    }
    free(text);
    return err;
}

static inf_err_t *
parse_text(const scheme_t *scheme, const char *text, inf_object_address_t *out)
{
    const char *rest = text + strlen(scheme->text);
    inf_err_t *err = scheme->take_host == NULL ? NULL
        : scheme->take_host(&rest, out);
    if (err != NULL) {
        return err;
    }
    while (*rest == '/') {
        rest++;
    }

    out->bucket = strndup(rest, strcspn(rest, "/"));
    out->prefix = strdup(rest + strcspn(rest, "/"));
    if (out->bucket == NULL || out->prefix == NULL) {
        return inf_err_nomem();
    }
    collapse_slashes(out->prefix);
    if (out->prefix[0] == '/') {
        memmove(out->prefix, out->prefix + 1, strlen(out->prefix));
    }

    return out->bucket[0] == '\0' ? address_bad(scheme->no_bucket)
        : !bucket_is_good(out->bucket, scheme->marks)
            ? address_bad(scheme->bad_bucket)
        : NULL;
}

/* The service judges the other parameters of a query. */
static inf_err_t *
take_query(const char *query, inf_object_address_t *out)
{
    for (const char *p = query; *p != '\0'; p++) {
        if (!isgraph((unsigned char) *p)
            || strchr("\"#<>\\^`{|}", *p) != NULL)
        {
            return address_bad("its query has a character that must be"
                " percent-encoded");
        }
    }
    if (strncmp(query, "sig=", 4) != 0 && strstr(query, "&sig=") == NULL) {
        return address_bad("its query is no shared access signature: it has no"
            " sig=");
    }
    out->query = strdup(query);
    return out->query == NULL ? inf_err_nomem() : NULL;
}

void
inf_object_address_fini(inf_object_address_t *a)
{
    free(a->endpoint);
    free(a->account);
    free(a->bucket);
    free(a->prefix);
    if (a->query != NULL) {
        explicit_bzero(a->query, strlen(a->query));
    }
    free(a->query);
    *a = (inf_object_address_t) { 0 };
}

char *
inf_object_address_root(const char *address)
{
    const char *scheme = find_scheme(address)->text;
    const char *rest = address + strlen(scheme);
    const char *inner = strncmp(rest, "https://", 8) == 0 ? "https://"
        : strncmp(rest, "http://", 7) == 0 ? "http://" : "";

    char *root = strndup(address, inf_object_address_shown(address));
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
s3_endpoint(const char **rest, inf_object_address_t *out)
{
    const char *scheme = "";
    size_t len = endpoint_len(*rest, &scheme);

    if (len == 0) {
        return NULL;
    }
    if (asprintf(&out->endpoint, "%s%.*s", scheme, (int) len, *rest) < 0) {
        out->endpoint = NULL;
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

/* An account stands alone or with its domain. */
static inf_err_t *
as_account(const char **rest, inf_object_address_t *out)
{
    size_t domain = strlen(INF_AS_DOMAIN);
    size_t whole = strcspn(*rest, "/");
    size_t len = whole;

    if (whole > domain
        && strncmp(*rest + whole - domain, INF_AS_DOMAIN, domain) == 0)
    {
        len -= domain;
    }
    if (len == 0) {
        return address_bad("it names no storage account");
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char) (*rest)[i];
        if (!isalnum(c) && c != '-') {
            return address_bad("it does not begin with a storage account, such"
                " as as://account/container or as://account" INF_AS_DOMAIN
                "/container");
        }
    }

    out->account = strndup(*rest, len);
    if (out->account == NULL) {
        return inf_err_nomem();
    }
    *rest += whole;
    return NULL;
}

static bool
bucket_is_good(const char *bucket, const char *marks)
{
    if (strcmp(bucket, ".") == 0 || strcmp(bucket, "..") == 0) {
        return false;
    }
    for (const char *p = bucket; *p != '\0'; p++) {
        if (!isalnum((unsigned char) *p) && strchr(marks, *p) == NULL) {
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
address_bad(const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s", what);
}
