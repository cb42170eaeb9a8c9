#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/metadata_join.h"

#define OURS "{\"name\":\"us\",\"version\":\"1\",\"extensions\":[\"a\",\"b\"," \
    "\"c\"]}"

static void
assert_joined(const char *theirs, const char *extensions)
{
    char expected[256] = "{\"name\":\"us\",\"version\":\"1\",\"extensions\":";
    inf_buf_t out;

    inf_buf_init(&out);
    assert_null(inf_metadata_join(INF_SLICE(OURS), inf_slice_str(theirs),
                                  &out));
    strcat(strcat(expected, extensions), "}");
    assert_string_equal(out.data, expected);
    inf_buf_fini(&out);
}

static void
extensions_are_those_of_both(void **state)
{
    (void) state;
    assert_joined("{\"name\":\"them\",\"version\":\"2\","
                  "\"extensions\":[\"c\",\"d\",\"a\"]}", "[\"a\",\"c\"]");
    assert_joined("{\"extensions\":[]}", "[]");
    assert_joined("{\"extensions\":[1,null,[\"a\"],\"b\"],\"more\":{}}",
                  "[\"b\"]");
}

static void
metadata_of_no_server_are_errors(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "", "[]", "{}", "{", "nonsense", "{\"extensions\":\"a\"}",
        "{\"extensions\":{\"a\":1}}"
    };
    inf_buf_t out;

    inf_buf_init(&out);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        inf_err_t *err = inf_metadata_join(INF_SLICE(OURS),
                                           inf_slice_str(texts[i]), &out);
        assert_non_null(err);
        inf_err_free(err);
    }
    inf_buf_fini(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extensions_are_those_of_both),
        cmocka_unit_test(metadata_of_no_server_are_errors)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
