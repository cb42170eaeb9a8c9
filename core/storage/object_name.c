#include "core/storage/object_name.h"

#include <openssl/evp.h>
#include <string.h>

static void put_text(inf_buf_t *texts, const char *text);

inf_err_t *
inf_object_name_put(inf_buf_t *out, const inf_object_address_t *a,
    const inf_object_t *o)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    inf_buf_t texts;

    inf_buf_init(&texts);
    put_text(&texts, a->endpoint);
    put_text(&texts, a->account);
    put_text(&texts, a->bucket);
    put_text(&texts, o->key);
    put_text(&texts, o->etag);

    inf_err_t *err = inf_buf_status(&texts);
    if (err == NULL && EVP_Digest(texts.data, texts.len, sum, &len,
        EVP_sha256(), NULL) != 1)
    {
        err = inf_err_new(INF_ERR_UNSUPPORTED, "libcrypto has no SHA-256");
    }
    inf_buf_fini(&texts);
    if (err != NULL) {
        return err;
    }

    for (unsigned i = 0; i < len; i++) {
        inf_buf_printf(out, "%02x", sum[i]);
    }
    inf_buf_printf(out, "-%llu", (unsigned long long) o->size);
    return inf_buf_status(out);
}

/* With its NUL, so that texts cannot run into each other. */
static void
put_text(inf_buf_t *texts, const char *text)
{
    if (text == NULL) {
        text = "";
    }
    inf_buf_put(texts, text, strlen(text) + 1);
}
