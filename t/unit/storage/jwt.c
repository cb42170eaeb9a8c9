/* JSON web tokens: their form, and their signature as libcrypto checks it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "core/proto/base64.h"
#include "core/storage/jwt.h"

static EVP_PKEY *key;

/* PEM of a key; malloc'ed. */
static char *
pem_of(EVP_PKEY *of, const char *password)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *data;

    assert_int_equal(PEM_write_bio_PrivateKey(bio, of,
        password != NULL ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL,
        (void *) password), 1);
    long len = BIO_get_mem_data(bio, &data);
    char *pem = strndup(data, (size_t) len);
    BIO_free(bio);
    return pem;
}

static int
setup(void **state)
{
    (void) state;
    key = EVP_RSA_gen(2048);
    return key == NULL;
}

static int
teardown(void **state)
{
    (void) state;
    EVP_PKEY_free(key);
    return 0;
}

static void
a_token_has_its_parts_and_their_signature(void **state)
{
    (void) state;
    static const char begin[] = "before=eyJhIjoiPyJ9.eyJiIjoifj8ifQ.";
    char *pem = pem_of(key, NULL);
    unsigned char sum[512];
    inf_buf_t out;
    size_t len;

    inf_buf_init(&out);
    inf_buf_puts(&out, "before=");
    assert_null(inf_jwt_put(&out, inf_slice_str("{\"a\":\"?\"}"),
        inf_slice_str("{\"b\":\"~?\"}"), pem));
    assert_true(strncmp(out.data, begin, strlen(begin)) == 0);
    assert_null(strpbrk(out.data + strlen(begin), "+/=."));

    char *signature = out.data + strlen(begin);
    for (char *p = signature; *p != '\0'; p++) {
        *p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
    }
    assert_true(inf_base64_decode(inf_slice_str(signature), sum, &len));
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key),
        1);
    assert_int_equal(EVP_DigestVerify(ctx, sum, len,
        (const unsigned char *) begin + 7, strlen(begin) - 8), 1);
    EVP_MD_CTX_free(ctx);
    inf_buf_fini(&out);
    free(pem);
}

static void
rejected(const char *pem)
{
    inf_buf_t out;

    inf_buf_init(&out);
    inf_err_t *err = inf_jwt_put(&out, inf_slice_str("{}"),
        inf_slice_str("{}"), pem);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "it is no RSA key in PEM");
    inf_err_free(err);
    inf_buf_fini(&out);
}

/* None of them asks for a password. */
static void
other_keys_are_rejected(void **state)
{
    (void) state;
    EVP_PKEY *curve = EVP_EC_gen("P-256");
    char *elliptic = pem_of(curve, NULL);
    char *locked = pem_of(key, "password");

    rejected("");
    rejected("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    rejected(elliptic);
    rejected(locked);
    EVP_PKEY_free(curve);
    free(elliptic);
    free(locked);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_its_parts_and_their_signature),
        cmocka_unit_test(other_keys_are_rejected),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
