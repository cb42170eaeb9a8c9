/* The frames of gRPC around messages. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/proto/grpc.h"

#define T(name) cmocka_unit_test(name)

static void
each_code_has_the_status_of_triton(void **state)
{
    static const struct {
        inf_err_code_t code;
        int            status;
    } cases[] = {
        { INF_ERR_UNKNOWN, 2 }, { INF_ERR_INTERNAL, 13 },
        { INF_ERR_NOT_FOUND, 5 }, { INF_ERR_INVALID_ARG, 3 },
        { INF_ERR_UNAVAILABLE, 14 }, { INF_ERR_UNSUPPORTED, 12 },
        { INF_ERR_ALREADY_EXISTS, 6 }, { INF_ERR_CANCELLED, 1 },
        { (inf_err_code_t) 99, 2 }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(inf_grpc_status(cases[i].code), cases[i].status);
    }
}

static void
a_prefix_is_a_flag_and_a_length(void **state)
{
    char bytes[INF_GRPC_PREFIX];
    inf_grpc_prefix_t p = { true, 0x01020384 };

    (void) state;
    inf_grpc_put_prefix(bytes, &p);
    assert_memory_equal(bytes, "\1\1\2\3\x84", 5);
    p = (inf_grpc_prefix_t) { false, 0 };
    assert_true(inf_grpc_read_prefix(bytes, &p));
    assert_true(p.compressed);
    assert_int_equal(p.len, 0x01020384);
    assert_true(inf_grpc_read_prefix("\0\xff\xff\xff\xff", &p));
    assert_false(p.compressed);
    assert_int_equal(p.len, UINT32_MAX);
    assert_false(inf_grpc_read_prefix("\2\0\0\0\0", &p));
}

static void
a_message_is_visible_ascii(void **state)
{
    inf_slice_t text = INF_SLICE("100 %\n\xc3\xa9 ~\x7f");
    const char *want = "100 %25%0A%C3%A9 ~%7F";
    char got[64];

    (void) state;
    assert_int_equal(inf_grpc_escaped_size(text), strlen(want));
    inf_grpc_escape(got, text);
    assert_memory_equal(got, want, strlen(want));
    assert_int_equal(inf_grpc_escaped_size(inf_slice(NULL, 0)), 0);
}

static void
a_timeout_has_up_to_eight_digits_and_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t    ns;
    } good[] = {
        { "1n", 1 }, { "2u", 2000 }, { "3m", 3000000 },
        { "4S", UINT64_C(4000000000) }, { "5M", UINT64_C(300000000000) },
        { "1H", UINT64_C(3600000000000) }, { "00000000S", 0 },
        { "99999999u", UINT64_C(99999999000) }, { "99999999H", UINT64_MAX }
    };
    static const char *const bad[] = {
        "", "S", "1", "1s", "123456789S", "-1S", "1.5S", " 1S", "1S ", "1 S"
    };
    uint64_t ns;

    (void) state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(inf_grpc_timeout(inf_slice_str(good[i].text), &ns));
        assert_true(ns == good[i].ns);
    }

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(inf_grpc_timeout(inf_slice_str(bad[i]), &ns));
    }
}

static void
an_encoding_is_known_by_its_name(void **state)
{
    inf_grpc_encoding_t e = INF_GRPC_GZIP;

    (void) state;
    for (int i = INF_GRPC_IDENTITY; i <= INF_GRPC_GZIP; i++) {
        const char *name = inf_grpc_encoding_name((inf_grpc_encoding_t) i);
        assert_true(inf_grpc_encoding(inf_slice_str(name), &e));
        assert_int_equal(e, i);
    }

    assert_false(inf_grpc_encoding(INF_SLICE("snappy"), &e));
    assert_false(inf_grpc_encoding(INF_SLICE("GZIP"), &e));
    assert_false(inf_grpc_encoding(INF_SLICE(""), &e));
}

static void
a_reply_is_encoded_by_level_and_what_the_client_accepts(void **state)
{
    static const struct {
        const char         *accept;
        inf_grpc_encoding_t by_level[4];
    } cases[] = {
        { "", { 0, 0, 0, 0 } },
        { "identity", { 0, 0, 0, 0 } },
        { "identity, deflate, gzip",
          { 0, INF_GRPC_GZIP, INF_GRPC_DEFLATE, INF_GRPC_DEFLATE } },
        { "gzip,\tdeflate ",
          { 0, INF_GRPC_GZIP, INF_GRPC_DEFLATE, INF_GRPC_DEFLATE } },
        { "identity,gzip", { 0, INF_GRPC_GZIP, INF_GRPC_GZIP, INF_GRPC_GZIP } },
        { " deflate ,,", { 0, INF_GRPC_DEFLATE, INF_GRPC_DEFLATE,
                           INF_GRPC_DEFLATE } },
        { "gzipped, x-deflate", { 0, 0, 0, 0 } },
        { " , ,\t", { 0, 0, 0, 0 } }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int level = 0; level < 4; level++) {
            assert_int_equal(
                inf_grpc_reply_encoding(inf_slice_str(cases[i].accept),
                                        (inf_grpc_level_t) level),
                cases[i].by_level[level]);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_code_has_the_status_of_triton),
        T(a_prefix_is_a_flag_and_a_length),
        T(a_message_is_visible_ascii),
        T(a_timeout_has_up_to_eight_digits_and_a_unit),
        T(an_encoding_is_known_by_its_name),
        T(a_reply_is_encoded_by_level_and_what_the_client_accepts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
