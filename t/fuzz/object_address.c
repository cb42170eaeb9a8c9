/* Any address of a bucket or container: no crash; what is read has a bucket that
   is one word, and the root of an address has the same parts again, but no
   query. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(int truth)
{
    if (!truth) {
        abort();
    }
}

static int
same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void
check(const char *scheme, const uint8_t *data, size_t size)
{
    inf_object_address_t a, again;
    size_t before = strlen(scheme);
    char *text = malloc(before + size + 1);

    memcpy(text, scheme, before);
    if (size > 0) {
        memcpy(text + before, data, size);
    }
    text[before + size] = '\0';

    inf_err_t *err = inf_object_address_parse(text, &a);
    if (err != NULL) {
        inf_err_free(err);
        free(text);
        return;
    }

    size_t len = strlen(a.prefix);
    need(a.bucket[0] != '\0' && strchr(a.bucket, '/') == NULL);
    need(len == 0 || (a.prefix[0] != '/' && a.prefix[len - 1] != '/'));
    need(strstr(a.prefix, "//") == NULL);
    need(a.query == NULL || strstr(a.query, "sig=") != NULL);

    char *root = inf_object_address_root(text);
    err = inf_object_address_parse(root, &again);
    need(err == NULL && same(a.endpoint, again.endpoint)
        && same(a.account, again.account) && same(a.bucket, again.bucket)
        && same(a.prefix, again.prefix));
    need(again.query == NULL);
    need(inf_object_address_shown(root) == strlen(root));

    inf_object_address_fini(&a);
    inf_object_address_fini(&again);
    free(root);
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(INF_S3_SCHEME, data, size);
    check(INF_GS_SCHEME, data, size);
    check(INF_AS_SCHEME, data, size);
    return 0;
}
