#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/cache/cache_hash.h"

static void
sum_of(const void *secret, size_t secret_len, const void *data, size_t len,
    size_t cut, char text[65])
{
    unsigned char out[INF_CACHE_HASH_BYTES];
    inf_cache_hash_t *hash;
    inf_cache_sum_t s;

    assert_null(inf_cache_hash_new(secret, secret_len, &hash));
    inf_cache_sum_begin(&s, hash);
    for (size_t at = 0; at < len; at += cut) {
        size_t n = len - at < cut ? len - at : cut;
        inf_cache_sum_put(&s, (const char *) data + at, n);
    }
    assert_true(inf_cache_sum_end(&s, out));
    inf_cache_hash_free(hash);
    for (unsigned i = 0; i < sizeof(out); i++) {
        sprintf(text + 2 * i, "%02x", out[i]);
    }
}

/* hashlib.blake2b(DATA, key=KEY, digest_size=32) of Python */
static void
it_is_blake2b_with_a_key(void **state)
{
    (void) state;
    static const struct {
        size_t      key, data;
        const char *sum;
    } rows[] = {
        { 32, 0, "4e51e7a913fc80137da52880fecca175"
          "bf81e117d5c68126dc2774033517ea0d" },
        { 32, 3, "e87852e5078702f2371b58199a216f96"
          "2293139a1838199eb06c4fab385c3feb" },
        { 32, 128, "18158677c2b6e4837b93083cbbfb8c58"
          "7fc014193a5a732077479655a575af29" },
        { 32, 129, "0a715464887d618d52db3019fd7f8fac"
          "3c2537a6eb85a06e9c922ae14a7a1f30" },
        { 1, 5000, "f6476846a37d7590159f031d9b476a68"
          "a0961926628380eac05f54e90a952a6f" },
        { 64, 5000, "e48b8ba80a9b5b9628498a82bc6af4f3"
          "d13589f53a58c0c148c235101448acae" },
        { 32, 512, "196c0a3925b2f985e996b83f3b3cb186"
          "721c42e3d0531d739046d9cad05888c0" }
    };
    static const size_t cuts[] = { 1, 7, 127, 128, 511, 512, 513, 100000 };
    unsigned char key[64];
    static unsigned char data[5000];
    char text[65];

    for (unsigned i = 0; i < sizeof(key); i++) {
        key[i] = (unsigned char) i;
    }
    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char) (i * 37 + i / 7);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
            sum_of(key, rows[i].key, data, rows[i].data, cuts[c], text);
            assert_string_equal(text, rows[i].sum);
        }
    }
}

static void
a_key_that_is_too_long_is_an_error(void **state)
{
    (void) state;
    static const char key[INF_CACHE_SECRET_MAX + 1];
    inf_cache_hash_t *hash;
    inf_err_t *err = inf_cache_hash_new(key, sizeof(key), &hash);

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNSUPPORTED);
    inf_err_free(err);
    inf_cache_hash_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_blake2b_with_a_key),
        cmocka_unit_test(a_key_that_is_too_long_is_an_error)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
