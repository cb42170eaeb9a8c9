#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/include/datatype.h"
#include "core/service/response_check.h"

static char data[64];

/* "": it is sent. */
static void
says(inf_datatype_t datatype, int64_t d0, int64_t d1, uint64_t byte_size,
    const char *text)
{
    const int64_t shape[] = { d0, d1 };
    inf_output_t out = {
        .name = "O", .datatype = datatype, .dim_count = 2, .shape = shape,
        .byte_size = byte_size, .base = data
    };
    const inf_response_t response = { .first = &out };
    inf_err_t *err = inf_response_check(NULL, &response);

    if (text[0] == '\0') {
        assert_null(err);
        return;
    }
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INTERNAL);
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("%s is not in %s", text, inf_err_msg(err));
    }
    inf_err_free(err);
}

static void
an_output_has_the_bytes_of_its_shape(void **state)
{
    (void) state;
    says(INF_TYPE_FP32, 2, 4, 32, "");
    says(INF_TYPE_FP32, 2, 4, 31, "has less data than its shape says");
    says(INF_TYPE_FP32, 2, 4, 33, "has more data than its shape says");
    says(INF_TYPE_BYTES, 2, 4, 32, "");
    says(INF_TYPE_BYTES, 2, 4, 40, "");
    says(INF_TYPE_BYTES, 2, 4, 31, "has less data than its shape says");
    says(INF_TYPE_FP32, 0, 4, 0, "");
    says(INF_TYPE_FP32, 0, 4, 1, "has data but no elements");
    says(INF_TYPE_FP32, 1, -1, 4, "has a negative dimension");
    says(INF_TYPE_INVALID, 1, 1, 4, "has no datatype");
}

/* Modulo 2^64 these have 0, 4 and 16 bytes. */
static void
a_shape_that_overflows_has_no_bytes_at_all(void **state)
{
    (void) state;
    const int64_t half = INT64_C(1) << 32;

    says(INF_TYPE_INT8, half, half, 0, "more elements than can be counted");
    says(INF_TYPE_INT8, (INT64_C(1) << 62) + 1, 4, 4,
        "more elements than can be counted");
    says(INF_TYPE_FP32, (INT64_C(1) << 60) + 1, 4, 16,
        "more elements than can be counted");
    says(INF_TYPE_BYTES, half, half, 0, "more elements than can be counted");
    says(INF_TYPE_FP32, INT64_MAX, INT64_MAX, 4,
        "more elements than can be counted");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_has_the_bytes_of_its_shape),
        cmocka_unit_test(a_shape_that_overflows_has_no_bytes_at_all)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
