#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/proto/model_metadata.h"

static void
assert_model(const char *theirs, const char *expected)
{
    inf_buf_t out;

    inf_buf_init(&out);
    assert_null(inf_model_metadata_restrict(INF_SLICE("m"), inf_slice_str(theirs),
                                      &out));
    assert_string_equal(out.data, expected);
    inf_buf_fini(&out);
}

static void
a_model_is_told_of_as_ours_are(void **state)
{
    (void) state;
    assert_model(
        "{\"name\":\"m\",\"versions\":[\"1\",\"7\"],\"platform\":\"p\","
        "\"inputs\":[{\"name\":\"IN\",\"datatype\":\"INT32\","
        "\"shape\":[-1,16]}],\"outputs\":[]}",
        "{\"name\":\"m\",\"versions\":[\"1\",\"7\"],\"platform\":\"p\","
        "\"inputs\":[{\"name\":\"IN\",\"datatype\":\"INT32\","
        "\"shape\":[-1,16]}],\"outputs\":[]}");
    assert_model("{\"name\":\"m\"}", "{\"name\":\"m\",\"versions\":[],"
                 "\"platform\":\"\",\"inputs\":[],\"outputs\":[]}");
}

static void
what_others_add_is_left_out(void **state)
{
    (void) state;
    assert_model(
        "{\"parameters\":{\"x\":[1]},\"name\":\"m\",\"inputs\":[{\"name\":"
        "\"IN\",\"tags\":{\"a\":\"b\"},\"parameters\":{}}]}",
        "{\"name\":\"m\",\"versions\":[],\"platform\":\"\",\"inputs\":"
        "[{\"name\":\"IN\",\"datatype\":\"\",\"shape\":[]}],\"outputs\":[]}");
}

static void
metadata_of_no_such_model_are_errors(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "", "[]", "{}", "{", "\"m\"", "{\"name\":\"n\"}", "{\"name\":1}",
        "{\"name\":\"m\\u0000\"}", "{\"name\":\"m\",\"platform\":[]}",
        "{\"name\":\"m\",\"platform\":\"a\\u0000b\"}",
        "{\"name\":\"m\",\"inputs\":1}", "{\"name\":\"m\",\"inputs\":[1]}",
        "{\"name\":\"m\",\"inputs\":[{\"shape\":[\"x\"]}]}",
        "{\"name\":\"m\",\"inputs\":[{\"shape\":{}}]}"
    };
    inf_buf_t out;

    inf_buf_init(&out);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        inf_err_t *err = inf_model_metadata_restrict(INF_SLICE("m"),
                                               inf_slice_str(texts[i]), &out);
        if (err == NULL) {
            fail_msg("%s is taken", texts[i]);
        }
        inf_err_free(err);
    }
    inf_buf_fini(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_told_of_as_ours_are),
        cmocka_unit_test(what_others_add_is_left_out),
        cmocka_unit_test(metadata_of_no_such_model_are_errors)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
