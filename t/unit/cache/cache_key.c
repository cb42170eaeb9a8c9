#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/cache/cache_key.h"

#define SECRET "the secret of the tests "

static inf_cache_hash_t *hash;
static inf_model_t model = { .name = "m", .version = 1 };

static const int32_t six[6] = { 1, 2, 3, 4, 5, 6 };

static inf_input_t *
put(inf_request_t *r, const char *name, inf_datatype_t type,
    const int64_t *shape, uint32_t dims, const void *data, size_t size)
{
    inf_input_t *in = inf_request_add_input(r, name, strlen(name), type, shape,
        dims);
    assert_non_null(in);
    assert_null(inf_request_add_data(r, in,
        &(inf_buffer_t) { .base = data, .size = size }));
    return in;
}

static void
usual(inf_request_t *r)
{
    inf_request_init(r);
    put(r, "A", INF_TYPE_INT32, (int64_t[]) { 2, 3 }, 2, six, sizeof(six));
    put(r, "B", INF_TYPE_UINT8, (int64_t[]) { 2 }, 1, "xy", 2);
    assert_null(inf_request_add_output(r, "OUT", 3));
}

static inf_cache_key_t
key(const inf_cache_hash_t *with, const inf_model_t *of, uint64_t load,
    inf_request_t *r)
{
    inf_cache_key_t found;
    inf_buf_t begin;
    inf_buf_init(&begin);
    inf_cache_key_model(of, load, &begin);
    assert_null(inf_buf_status(&begin));
    assert_true(inf_cache_key(with, inf_buf_slice(&begin), r, &found));
    inf_buf_fini(&begin);
    return found;
}

static inf_cache_key_t
key_of(inf_request_t *r)
{
    uint64_t bytes;
    assert_true(inf_cache_key_bytes(r, &bytes));
    inf_cache_key_t found = key(hash, &model, 1, r);
    inf_request_fini(r);
    return found;
}

static inf_cache_key_t
usual_key(void)
{
    inf_request_t r;
    usual(&r);
    return key_of(&r);
}

static bool
same(inf_cache_key_t a, inf_cache_key_t b)
{
    return inf_cache_key_eq(&a, &b);
}

static void
differs(inf_request_t *r)
{
    assert_false(same(key_of(r), usual_key()));
}

static void
the_same_request_has_the_same_key(void **state)
{
    (void) state;
    inf_request_t r;

    usual(&r);
    r.id = "another";
    r.priority = 3;
    r.timeout_us = 9;
    r.correlation_id = 7;
    assert_true(same(key_of(&r), usual_key()));
}

/* scheduling.md 7.2 */
static void
the_order_of_inputs_does_not_matter(void **state)
{
    (void) state;
    inf_request_t r;

    inf_request_init(&r);
    put(&r, "B", INF_TYPE_UINT8, (int64_t[]) { 2 }, 1, "xy", 2);
    put(&r, "A", INF_TYPE_INT32, (int64_t[]) { 2, 3 }, 2, six, sizeof(six));
    assert_null(inf_request_add_output(&r, "OUT", 3));
    assert_true(same(key_of(&r), usual_key()));
}

static void
how_the_bytes_are_cut_does_not_matter(void **state)
{
    (void) state;
    unsigned char data[5000];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char) (i * 37 + i / 7);
    }

    for (size_t cut = 1; cut < sizeof(data); cut += cut < 300 ? 1 : 61) {
        inf_cache_key_t keys[2];
        for (int i = 0; i < 2; i++) {
            inf_request_t r;
            inf_request_init(&r);
            size_t first = i == 0 ? sizeof(data) : cut;
            inf_input_t *in = put(&r, "A", INF_TYPE_UINT8,
                (int64_t[]) { sizeof(data) }, 1, data, first);
            assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) {
                .base = data + first, .size = sizeof(data) - first }));
            keys[i] = key_of(&r);
        }
        assert_true(same(keys[0], keys[1]));
    }
}

/* scheduling.md 7.2, 7.3 and 10 */
static void
whatever_the_answer_depends_on_changes_the_key(void **state)
{
    (void) state;
    inf_request_t r;
    int32_t data[6];

    for (int bit = 0; bit < (int) sizeof(six) * 8; bit++) {
        memcpy(data, six, sizeof(six));
        ((char *) data)[bit / 8] ^= (char) (1 << bit % 8);
        usual(&r);
        r.inputs[0].buffers[0].base = data;
        differs(&r);
    }

    usual(&r);
    ((int64_t *) r.inputs[0].shape)[0] = 3;
    ((int64_t *) r.inputs[0].shape)[1] = 2;
    differs(&r);
    usual(&r);
    r.inputs[0].datatype = INF_TYPE_UINT32;
    differs(&r);
    usual(&r);
    r.inputs[0].name = "C";
    differs(&r);
    usual(&r);
    r.input_count = 1;
    differs(&r);
    usual(&r);
    assert_null(inf_request_add_output(&r, "MORE", 4));
    differs(&r);
    usual(&r);
    const char *const other[] = { "OTHER" };
    r.outputs = other;
    differs(&r);
}

static void
parameters_change_the_key(void **state)
{
    (void) state;
    inf_cache_key_t keys[7];
    inf_request_t r;

    for (int i = 0; i < 7; i++) {
        usual(&r);
        inf_parameter_t *p = i == 0 ? NULL : inf_parameter_add(&r.parameters,
            &r.arena, i == 1 ? "q" : "p", 1, (inf_parameter_type_t[]) {
                0, INF_PARAMETER_INT, INF_PARAMETER_INT, INF_PARAMETER_INT,
                INF_PARAMETER_BOOL, INF_PARAMETER_DOUBLE,
                INF_PARAMETER_STRING }[i]);
        if (p != NULL) {
            p->i = i == 3;
            p->text = "t";
            p->text_len = 1;
        }
        keys[i] = key_of(&r);
        for (int j = 0; j < i; j++) {
            assert_false(same(keys[i], keys[j]));
        }
    }
}

static void
names_and_bytes_do_not_run_into_each_other(void **state)
{
    (void) state;
    inf_request_t r;
    inf_cache_key_t keys[2];

    for (int i = 0; i < 2; i++) {
        inf_request_init(&r);
        put(&r, i == 0 ? "A" : "AB", INF_TYPE_UINT8, (int64_t[]) { 2 }, 1,
            i == 0 ? "Bx" : "x", i == 0 ? 2 : 1);
        keys[i] = key_of(&r);
    }
    assert_false(same(keys[0], keys[1]));

    for (int i = 0; i < 2; i++) {           /* zeros at the end count        */
        static const char zeros[64];
        inf_request_init(&r);
        put(&r, "A", INF_TYPE_UINT8, (int64_t[]) { 33 + i }, 1, zeros,
            33 + (size_t) i);
        ((int64_t *) r.inputs[0].shape)[0] = 0;
        keys[i] = key_of(&r);
    }
    assert_false(same(keys[0], keys[1]));
}

/* scheduling.md 7.8 */
static void
model_version_load_and_secret_change_the_key(void **state)
{
    (void) state;
    inf_model_t others[] = {
        { .name = "n", .version = 1 }, { .name = "m", .version = 2 }
    };
    inf_cache_key_t plain = usual_key();
    char secret[] = "the secret of the tests ";
    inf_cache_hash_t *random;
    inf_request_t r;

    usual(&r);
    for (int i = 0; i < 2; i++) {
        assert_false(same(plain, key(hash, &others[i], 1,
            &r)));
    }
    assert_false(same(plain, key(hash, &model, 2, &r)));
    for (int i = 0; i < 3; i++) {
        secret[0] ^= (char) (1 << i);
        assert_null(inf_cache_hash_new(secret, sizeof(secret), &random));
        assert_false(same(plain, key(random, &model, 1, &r)));
        inf_cache_hash_free(random);
    }
    inf_request_fini(&r);
}

static void
what_cannot_be_read_has_no_key(void **state)
{
    (void) state;
    inf_host_data_t host = { .policy = "p" };
    inf_request_t r;
    uint64_t bytes;

    usual(&r);
    assert_true(inf_cache_key_bytes(&r, &bytes));
    assert_int_equal(bytes, sizeof(six) + 2);
    r.inputs[1].buffers[0].memory_type = INF_MEMORY_GPU;
    assert_false(inf_cache_key_bytes(&r, &bytes));
    r.inputs[1].buffers[0].memory_type = INF_MEMORY_CPU_PINNED;
    assert_true(inf_cache_key_bytes(&r, &bytes));
    r.inputs[0].host_data = &host;
    assert_false(inf_cache_key_bytes(&r, &bytes));
    inf_request_fini(&r);
}

/* Each of the 256 bits depends on each byte of the data: half of them change
   with it. */
static void
the_key_is_spread_over_all_its_bits(void **state)
{
    (void) state;
    unsigned char data[96] = { 0 };
    unsigned changed[256] = { 0 };
    inf_cache_key_t base = { 0 };

    for (int at = -1; at < (int) sizeof(data) * 8; at++) {
        inf_request_t r;
        memset(data, 0, sizeof(data));
        if (at >= 0) {
            data[at / 8] = (unsigned char) (1 << at % 8);
        }
        inf_request_init(&r);
        put(&r, "A", INF_TYPE_UINT8, (int64_t[]) { sizeof(data) }, 1, data,
            sizeof(data));
        inf_cache_key_t key = key_of(&r);
        if (at < 0) {
            base = key;
            continue;
        }
        for (int i = 0; i < 256; i++) {
            changed[i] += (unsigned) ((key.words[i / 64]
                ^ base.words[i / 64]) >> i % 64 & 1);
        }
    }
    for (int i = 0; i < 256; i++) {         /* of 768; six deviations        */
        assert_in_range(changed[i], 384 - 84, 384 + 84);
    }
}

/* Servers that share a cache and its secret have the same keys. */
static void
keys_do_not_change_with_the_processor_or_the_build(void **state)
{
    (void) state;
    static const char *const expected[] = {
        "1cab411c451d1d7835ff46e75284a72d"
        "a1f9c0c0daee62c3a539a2a97eddc3d6",
        "68d733025f73fe7e70408fec5ec7036f"
        "2ef514ba433a853fd2ed1bad6fdadf5c",
        "b350c8025d54eb6dcc3ff49b37a1c8e8"
        "b93a060b0076a8fb32d308876c6722e6"
    };
    const size_t sizes[] = { 3, 2048, 10000 };
    unsigned char data[10000];
    char text[INF_CACHE_KEY_TEXT];

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char) (i * 37 + i / 7);
    }
    for (int i = 0; i < 3; i++) {
        inf_request_t r;
        usual(&r);
        put(&r, "C", INF_TYPE_UINT8, (int64_t[]) { (int64_t) sizes[i] }, 1,
            data, sizes[i]);
        inf_cache_key_t k = key_of(&r);
        inf_cache_key_write(&k, text);
        assert_string_equal(text, expected[i]);
    }
}

static void
a_million_keys_are_distinct(void **state)
{
    (void) state;
    enum { N = 1 << 20 };
    uint32_t value;
    uint64_t *seen = calloc(2 * N, sizeof(*seen));
    inf_request_t r;

    inf_request_init(&r);
    put(&r, "A", INF_TYPE_UINT32, (int64_t[]) { 1 }, 1, &value, sizeof(value));
    for (value = 0; value < N; value++) {
        inf_cache_key_t k = key(hash, &model, 1, &r);
        uint64_t at = k.words[0] % (2 * N); /* 64 bits alone do not collide  */
        while (seen[at] != 0) {
            assert_true(seen[at] != k.words[1]);
            at = (at + 1) % (2 * N);
        }
        seen[at] = k.words[1];
    }
    inf_request_fini(&r);
    free(seen);
}

static void
the_text_is_the_bytes(void **state)
{
    (void) state;
    char text[INF_CACHE_KEY_TEXT];
    inf_cache_key_t k;
    unsigned char *bytes = (unsigned char *) k.words;

    for (unsigned i = 0; i < sizeof(k.words); i++) {
        bytes[i] = (unsigned char) (i * 9);
    }
    inf_cache_key_write(&k, text);
    assert_string_equal(text, "0009121b242d363f48515a636c757e87"
        "9099a2abb4bdc6cfd8e1eaf3fc050e17");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_request_has_the_same_key),
        cmocka_unit_test(the_order_of_inputs_does_not_matter),
        cmocka_unit_test(how_the_bytes_are_cut_does_not_matter),
        cmocka_unit_test(whatever_the_answer_depends_on_changes_the_key),
        cmocka_unit_test(parameters_change_the_key),
        cmocka_unit_test(names_and_bytes_do_not_run_into_each_other),
        cmocka_unit_test(model_version_load_and_secret_change_the_key),
        cmocka_unit_test(what_cannot_be_read_has_no_key),
        cmocka_unit_test(the_key_is_spread_over_all_its_bits),
        cmocka_unit_test(keys_do_not_change_with_the_processor_or_the_build),
        cmocka_unit_test(a_million_keys_are_distinct),
        cmocka_unit_test(the_text_is_the_bytes)
    };
    assert_null(inf_cache_hash_new(SECRET, sizeof(SECRET), &hash));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    inf_cache_hash_free(hash);
    return failed;
}
