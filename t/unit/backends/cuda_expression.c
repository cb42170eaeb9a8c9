/* expressions over shapes, the rules of outputs' shapes, and requirements */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/cuda/buffer.c"
#include "backends/cuda/expression.c"
#include "backends/cuda/expression_read.c"
#include "backends/cuda/reader.c"
#include "backends/cuda/requirement.c"
#include "backends/cuda/rule.c"

static const int64_t x_dims[] = { -1, 8 };
static const int64_t y_dims[] = { -1 };

static const gpu_tensor_t tensors[] = {
    { .name = "x", .dims = x_dims, .dims_count = 2, .size = 4 },
    { .name = "a:0", .dims = y_dims, .dims_count = 1, .size = 2 }
};

static const gpu_buffer_t buffers[] = {
    { .name = "tmp" }, { .name = "w", .file = "w.bin", .file_bytes = 4096 }
};

static const gpu_names_t names = {
    .tensors = tensors, .tensor_count = 2, .buffers = buffers,
    .buffer_count = 2
};

static gpu_shape_t shapes[] = {
    { .dims = { 5, 8 }, .elements = 120, .bytes = 480 },
    { .dims = { 7 }, .elements = 21, .bytes = 42 }
};

static const gpu_shapes_t batch = { .batch = 3, .tensors = shapes };

/* An error is for TRITONSERVER_ErrorDelete. */
static TRITONSERVER_Error *
value_of(const char *text, int64_t *value)
{
    gpu_reader_t r = { .parameter = "p", .text = text };
    gpu_expression_t e;

    TRITONSERVER_Error *err = gpu_expression_read(&e, &r, &names);
    if (err == NULL && !gpu_reader_at_end(&r)) {
        err = gpu_reader_error(&r, "more");
    }
    if (err == NULL) {
        err = gpu_expression_value(&e, &batch, "v", value);
    }
    gpu_expression_fini(&e);
    return err;
}

static void
expect_number(const char *text, int64_t expected)
{
    int64_t value = 0;

    TRITONSERVER_Error *err = value_of(text, &value);
    if (err != NULL) {
        fail_msg("%s: %s", text, TRITONSERVER_ErrorMessage(err));
    }
    if (value != expected) {
        fail_msg("%s is %" PRId64 ", not %" PRId64, text, value, expected);
    }
}

static void
expect_words(TRITONSERVER_Error *err, const char *text, const char *words)
{
    if (err == NULL || strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("%s: \"%s\" lacks \"%s\"", text, err == NULL ? "(passes)"
            : TRITONSERVER_ErrorMessage(err), words);
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
expect_error(const char *text, const char *words)
{
    int64_t value;

    expect_words(value_of(text, &value), text, words);
}

static void
expressions_follow_the_rules_of_arithmetic(void **state)
{
    (void) state;
    expect_number("1 + 2 * 3 - 4", 3);
    expect_number("(1 + 2) * 3 % 4", 1);
    expect_number("20 / 3 / 2", 3);
    expect_number("2 - -3", 5);
    expect_number("- - 3", 3);
    expect_number("-7 / 2", -3);
    expect_number("-7 % 2", -1);
    expect_number(" min(4,\t3 , 9)\n+ max(1, 2)", 5);
    expect_number("ceildiv(9, 4)", 3);
    expect_number("ceildiv(8, 4)", 2);
    expect_number("ceildiv(0, 4)", 0);
    expect_number("ceildiv(-9, 4)", -2);
    expect_number("ceildiv(9, -4)", -2);
    expect_number("ceildiv(-9, -4)", 3);
    expect_number("9223372036854775807", INT64_MAX);
    expect_number("-9223372036854775807 - 1", INT64_MIN);
}

static void
expressions_know_the_batch_and_its_tensors(void **state)
{
    (void) state;
    expect_number("batch", 3);
    expect_number("x[0] * 100 + x[1]", 508);
    expect_number("'a:0'[0]", 7);
    expect_number("elements(x)", 120);
    expect_number("bytes('a:0')", 42);
    expect_number("ceildiv(elements(x), 256) * batch", 3);
}

static void
errors_say_what_and_where(void **state)
{
    (void) state;
    expect_error("", "parameter \"p\", at its end: an expression is missing");
    expect_error("1 + ", "an expression is missing");
    expect_error("(1", "\")\" is missing");
    expect_error("1 2", "character 3 (\"2\"): more");
    expect_error("x", "is no number");
    expect_error("x[2]", "\"x\" has 2 dimensions");
    expect_error("x[-1]", "has 2 dimensions");
    expect_error("x[99999999999999999999]", "has 2 dimensions");
    expect_error("x[0", "\"]\" is missing");
    expect_error("z[0]", "no tensor \"z\"");
    expect_error("elements(z)", "no tensor \"z\"");
    expect_error("elements(3)", "tensor's name is missing");
    expect_error("sqrt(4)", "there is no function \"sqrt\"");
    expect_error("min(4)", "\",\" is missing");
    expect_error("ceildiv(4, 2, 1)", "\")\" is missing");
    expect_error("''", "an expression is missing");
    expect_error("'x", "an expression is missing");
    expect_error("9223372036854775808", "beyond 64 bits");
}

static void
values_that_cannot_be_are_errors(void **state)
{
    (void) state;
    expect_error("1 / 0", "v: division by zero");
    expect_error("1 % (x[0] - 5)", "division by zero");
    expect_error("ceildiv(1, 0)", "division by zero");
    expect_error("9223372036854775807 + 1", "beyond 64 bits");
    expect_error("-9223372036854775807 - 2", "beyond 64 bits");
    expect_error("9223372036854775807 * 2", "beyond 64 bits");
    expect_error("-(-9223372036854775807 - 1)", "beyond 64 bits");
    expect_error("(-9223372036854775807 - 1) / -1", "beyond 64 bits");
    expect_error("(-9223372036854775807 - 1) % -1", "beyond 64 bits");
    expect_error("ceildiv(-9223372036854775807 - 1, -1)", "beyond 64 bits");
}

static void
depth_and_length_are_bounded(void **state)
{
    char text[1024];

    (void) state;
    memset(text, '(', 31);
    strcpy(text + 31, "1");
    memset(text + 32, ')', 31);
    text[63] = '\0';
    expect_number(text, 1);

    memset(text, '(', 500);
    strcpy(text + 500, "1");
    expect_error(text, "more than 32 expressions within each other");
    memset(text, '-', 500);
    expect_error(text, "more than 32 expressions");

    strcpy(text, "1");
    for (int i = 0; i < 63; i++) {
        strcat(text, "+1");
    }
    expect_number(text, 64);
    strcat(text, "+1");
    expect_error(text, "more than 128 parts");
}

static void
expect_rule(const char *text, const int64_t *configured, uint32_t count,
    const char *words, int64_t first)
{
    const gpu_tensor_t output = {
        .name = "out", .dims = configured, .dims_count = count, .size = 4
    };
    gpu_shape_t shape = { .elements = 0 };
    gpu_rule_t rule = { .count = 0 };

    TRITONSERVER_Error *err = gpu_rule_read(&rule, &output, "shape_out",
        text, &names);
    if (err == NULL) {
        err = gpu_rule_apply(&rule, &output, &batch, &shape);
    }
    if (words != NULL) {
        expect_words(err, text != NULL ? text : "(none)", words);
    } else if (err != NULL) {
        fail_msg("%s: %s", text, TRITONSERVER_ErrorMessage(err));
    } else {
        assert_int_equal(shape.dims[0], first);
    }
    gpu_rule_fini(&rule);
}

static void
shapes_of_outputs_follow_their_rules(void **state)
{
    const int64_t open[] = { -1 }, fixed[] = { 5 }, two[] = { -1, 8 };

    (void) state;
    expect_rule(NULL, fixed, 1, NULL, 5);
    expect_rule("x[0]", fixed, 1, NULL, 5);
    expect_rule("2 * x[0] + 1", open, 1, NULL, 11);
    expect_rule("like 'a:0'", open, 1, NULL, 7);
    expect_rule("like x", two, 2, NULL, 5);
    expect_rule("x[1], x[1]", two, 2, NULL, 8);

    expect_rule(NULL, open, 1, "parameter \"shape_out\" must be", 0);
    expect_rule("like x", open, 1, "no input \"x\" of 1 dimensions", 0);
    expect_rule("like z", open, 1, "no input \"z\"", 0);
    expect_rule("x[0]", two, 2, "\",\" is missing", 0);
    expect_rule("x[0], 8, 1", two, 2, "has 2 dimensions", 0);
    expect_rule("x[0], 9", two, 2, "would be 9, the configuration has 8", 0);
    expect_rule("1 - x[0]", open, 1, "would be -4", 0);
    expect_rule("like", open, 1, "is no number", 0);
}

/* words NULL: it holds. */
static void
expect_requirement(const char *text, const char *words)
{
    gpu_requirement_t q;

    TRITONSERVER_Error *err = gpu_requirement_read(&q, "require_1", text,
        &names);
    if (err == NULL) {
        err = gpu_requirement_check(&q, &batch);
    }
    if (words == NULL) {
        assert_null(err);
    } else {
        assert_non_null(err);
        assert_int_equal(TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ERROR_INVALID_ARG);
        assert_non_null(strstr(TRITONSERVER_ErrorMessage(err), words));
        TRITONSERVER_ErrorDelete(err);
    }
    gpu_requirement_fini(&q);
}

/* A requirement that no request can change is checked before there is one. */
static void
requirements_without_open_dims_are_checked_early(void **state)
{
    const struct {
        const char *text;
        bool        fails;
    } cases[] = {
        { "bytes(w) == 8 * x[1] * 64", false },
        { "bytes(w) == 8 * x[1] * 63", true },
        { "1 / (x[1] - 8) == 0", true },
        { "bytes(w) == x[0]", false },          /* open                      */
        { "bytes(w) == batch", false },
        { "bytes(w) == elements(x)", false },
        { "bytes(x) == bytes(w)", false }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gpu_requirement_t q;

        assert_null(gpu_requirement_read(&q, "require_1", cases[i].text,
            &names));
        TRITONSERVER_Error *err = gpu_requirement_check_certain(&q, &names);
        if ((err != NULL) != cases[i].fails) {
            fail_msg("%s", cases[i].text);
        }
        if (err != NULL) {
            TRITONSERVER_ErrorDelete(err);
        }
        gpu_requirement_fini(&q);
    }
}

static void
requirements_name_both_numbers(void **state)
{
    (void) state;
    expect_requirement("x[0] + 2 == 'a:0'[0]", NULL);
    expect_requirement("x[1]==batch * 2 + 2", NULL);
    expect_requirement("x[0] == 'a:0'[0]",
        "\"x[0] == 'a:0'[0]\" (require_1): 5 is not 7");
    expect_requirement("x[0] == x[1] / (batch - 3)", "division by zero");
    expect_requirement("x[0]", "\"==\" is missing");
    expect_requirement("x[0] == ", "at its end");
    expect_requirement("x[0] == 5 == 5", "goes on behind its end");
    expect_requirement("y[0] == 5", "\"y\"");
    expect_requirement("bytes(w) == 4096", NULL);
    expect_requirement("bytes(w) / 4 == x[1]", "1024 is not 8");
    expect_requirement("bytes(tmp) == 5", "no tensor \"tmp\"");
    expect_requirement("elements(w) == 5", "no tensor \"w\"");
    expect_requirement(NULL, "parameter \"require_1\"");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_follow_the_rules_of_arithmetic),
        cmocka_unit_test(expressions_know_the_batch_and_its_tensors),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(values_that_cannot_be_are_errors),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(shapes_of_outputs_follow_their_rules),
        cmocka_unit_test(requirements_without_open_dims_are_checked_early),
        cmocka_unit_test(requirements_name_both_numbers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
