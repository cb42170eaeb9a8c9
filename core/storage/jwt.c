#include "core/storage/jwt.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "core/proto/base64.h"

static int no_password(char *buf, int size, int rwflag, void *userp);
static inf_err_t *read_key(const char *pem, EVP_PKEY **out);
static inf_err_t *put_signature(inf_buf_t *out, size_t from, EVP_PKEY *key);

inf_err_t *
inf_jwt_put(inf_buf_t *out, inf_slice_t header, inf_slice_t claims,
    const char *pem)
{
    size_t from = out->len;
    EVP_PKEY *key;

    inf_err_t *err = read_key(pem, &key);
    if (err != NULL) {
        return err;
    }

    inf_base64_put_url(out, header);
    inf_buf_putc(out, '.');
    inf_base64_put_url(out, claims);
    err = inf_buf_status(out);
    if (err == NULL) {
        err = put_signature(out, from, key);
    }
    EVP_PKEY_free(key);
    return err;
}

static inf_err_t *
read_key(const char *pem, EVP_PKEY **out)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    if (bio == NULL) {
        return inf_err_nomem();
    }

    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    if (key == NULL || EVP_PKEY_base_id(key) != EVP_PKEY_RSA) {
        EVP_PKEY_free(key);
        ERR_clear_error();
        return inf_err_new(INF_ERR_INVALID_ARG, "it is no RSA key in PEM");
    }
    *out = key;
    return NULL;
}

/* Instead of libcrypto's own, which asks at the terminal. */
static int
no_password(char *buf, int size, int rwflag, void *userp)
{
    (void) buf;
    (void) size;
    (void) rwflag;
    (void) userp;
    return -1;
}

static inf_err_t *
put_signature(inf_buf_t *out, size_t from, EVP_PKEY *key)
{
    size_t len = (size_t) EVP_PKEY_size(key);
    unsigned char *sum = malloc(len);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    bool done = sum != NULL && ctx != NULL
        && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestSign(ctx, sum, &len,
            (const unsigned char *) out->data + from, out->len - from) == 1;
    if (done) {
        inf_buf_putc(out, '.');
        inf_base64_put_url(out, inf_slice((const char *) sum, len));
    }

    EVP_MD_CTX_free(ctx);
    free(sum);
    if (!done) {
        ERR_clear_error();
        return inf_err_new(INF_ERR_INTERNAL, "libcrypto cannot sign");
    }
    return inf_buf_status(out);
}
