#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/include/datatype.h"
#include "core/wire/response_record.h"

static void
response_is_written_as_described(void **state)
{
    (void) state;
    const int64_t shape[] = { 1, 10 };
    const inf_slice_t labels[] = { INF_SLICE("cat"), INF_SLICE(""),
        INF_SLICE("dog") };
    const inf_response_output_desc_t outputs[] = {
        { .name = INF_SLICE("scores"), .datatype = INF_TYPE_FP32,
          .dim_count = 2, .shape = shape, .data_offset = 128,
          .data_length = 40 },
        { .name = INF_SLICE("class"), .datatype = INF_TYPE_BYTES,
          .labels = labels, .label_count = 3 }
    };
    const inf_response_parameter_desc_t parameters[] = {
        { .name = INF_SLICE("a"), .type = INF_PARAMETER_STRING,
          .text = INF_SLICE("b") },
        { .name = INF_SLICE("x"), .type = INF_PARAMETER_DOUBLE, .d = 0.5 },
        { .name = INF_SLICE("n"), .type = INF_PARAMETER_INT, .i = -3 }
    };
    const inf_response_builder_t b = {
        .status = INF_STATUS(INF_ERR_UNAVAILABLE),
        .error = INF_SLICE("why"),
        .model_name = INF_SLICE("m"),
        .model_version = 4,
        .id = INF_SLICE("7"),
        .backend = INF_SLICE("identity"),
        .batch_dim = 1,
        .output_count = 2,
        .outputs = outputs,
        .parameter_count = 3,
        .parameters = parameters
    };

    uint64_t size;
    assert_null(inf_response_builder_size(&b, &size));
    unsigned char *p = malloc(size);
    assert_non_null(p);
    inf_response_builder_write(&b, p, size);

    const inf_response_record_t *r = (void *) p;
    assert_int_equal(r->size, size);
    assert_int_equal(r->status, b.status);
    assert_int_equal(r->model_version, 4);
    assert_int_equal(r->batch_dim, 1);
    assert_memory_equal(p + r->error.offset, "why", 3);
    assert_memory_equal(p + r->backend.offset, "identity", r->backend.len);
    assert_int_equal(r->instance.len, 0);
    assert_int_equal(r->output_offset % 8, 0);

    const inf_response_output_t *o = (void *) (p + r->output_offset);
    assert_memory_equal(p + o[0].name.offset, "scores", o[0].name.len);
    assert_memory_equal(p + o[0].shape_offset, shape, sizeof(shape));
    assert_int_equal(o[0].data_offset, 128);
    assert_int_equal(o[0].data_length, 40);
    assert_int_equal(o[1].label_count, 3);
    const inf_ref_t *l = (void *) (p + o[1].label_offset);
    assert_memory_equal(p + l[2].offset, "dog", l[2].len);
    assert_int_equal(l[1].len, 0);

    const inf_record_parameter_t *q = (void *) (p + r->parameter_offset);
    assert_memory_equal(p + q[0].text.offset, "b", 1);
    assert_true(q[1].number.d == 0.5);
    assert_int_equal(q[2].number.i, -3);

    /* the worker accepts it, if the arena has the values */
    assert_null(inf_response_record_check(p, size, 168));
    inf_err_t *err = inf_response_record_check(p, size, 167);
    assert_non_null(err);
    inf_err_free(err);
    free(p);
}

static void
response_beyond_the_limit_is_rejected(void **state)
{
    (void) state;
    const inf_response_builder_t b = {
        .error = inf_slice("", INF_RECORD_MAX)
    };
    uint64_t size;
    inf_err_t *err = inf_response_builder_size(&b, &size);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    inf_err_free(err);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(response_is_written_as_described),
        cmocka_unit_test(response_beyond_the_limit_is_rejected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
