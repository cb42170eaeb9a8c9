#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/index_join.h"

static void
assert_joined(const char *ours, const char *theirs, const char *expected)
{
    inf_buf_t out;

    inf_buf_init(&out);
    assert_null(inf_index_join(inf_slice_str(ours), inf_slice_str(theirs),
                               &out));
    assert_string_equal(out.data, expected);
    inf_buf_fini(&out);
}

static void
rows_of_both_are_there(void **state)
{
    (void) state;
    assert_joined("[]", "[]", "[]");
    assert_joined("[{\"name\":\"a\",\"version\":\"1\",\"state\":\"READY\"}]",
                  "[{\"name\":\"b\"},{\"name\":\"c\",\"reason\":\"r\\n\"}]",
                  "[{\"name\":\"a\",\"version\":\"1\",\"state\":\"READY\"},"
                  "{\"name\":\"b\"},{\"name\":\"c\",\"reason\":\"r\\n\"}]");
    assert_joined("[]", "[{\"name\":\"b\"}]", "[{\"name\":\"b\"}]");
}

static void
ours_win(void **state)
{
    (void) state;
    assert_joined("[{\"name\":\"a\",\"version\":\"1\"},{\"name\":\"b\"}]",
                  "[{\"name\":\"b\",\"state\":\"READY\"},"
                  "{\"name\":\"a\",\"version\":\"2\"},{\"name\":\"ab\"}]",
                  "[{\"name\":\"a\",\"version\":\"1\"},{\"name\":\"b\"},"
                  "{\"name\":\"ab\"}]");
}

static void
rows_that_are_none_are_left_out(void **state)
{
    (void) state;
    assert_joined("[]", "[1,{},{\"name\":\"\"},{\"name\":2},"
                  "{\"name\":\"a\",\"version\":3,\"more\":{\"x\":1}}]",
                  "[{\"name\":\"a\"}]");
    /* texts that no message can have */
    assert_joined("[]", "[{\"name\":\"a\\u0000\"},"
                  "{\"name\":\"b\",\"state\":\"\\u0000\"}]",
                  "[{\"name\":\"b\"}]");
}

static void
other_texts_are_errors(void **state)
{
    (void) state;
    static const char *const texts[] = { "", "{}", "[", "nonsense", "[]x" };
    inf_buf_t out;

    inf_buf_init(&out);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        inf_err_t *err = inf_index_join(INF_SLICE("[{\"name\":\"a\"}]"),
                                        inf_slice_str(texts[i]), &out);
        assert_non_null(err);
        inf_err_free(err);
        assert_int_equal(out.len, 0);
    }
    inf_buf_fini(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_both_are_there),
        cmocka_unit_test(ours_win),
        cmocka_unit_test(rows_that_are_none_are_left_out),
        cmocka_unit_test(other_texts_are_errors)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
