#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/request.h"
#include "core/tensor/response.h"

typedef struct {
    int      released;
    int      freed;
    uint32_t flags;
    bool     freed_before_released;
} seen_t;

static void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    seen_t *seen = userp;
    assert_int_equal(r->state, INF_REQUEST_RELEASED);
    assert_null(r->factory);
    seen->freed_before_released |= seen->freed > 0;
    seen->released++;
    seen->flags = flags;
}

static void
on_factory_free(void *userp, inf_factory_t *f)
{
    (void) f;
    ((seen_t *) userp)->freed++;
}

static void
expect_invalid(inf_err_t *err, const char *text)
{
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_non_null(strstr(inf_err_msg(err), text));
    inf_err_free(err);
}

static void
an_input_copies_its_name_and_shape(void **state)
{
    (void) state;
    inf_request_t r;
    char name[] = { 'A', 'B', 'x' };
    int64_t shape[2] = { 3, 4 };

    inf_request_init(&r);
    assert_string_equal(r.id, "");
    inf_input_t *in = inf_request_add_input(&r, name, 2, INF_TYPE_FP32, shape,
        2);
    assert_non_null(in);
    memset(name, '?', sizeof(name));
    memset(shape, 0xff, sizeof(shape));

    assert_string_equal(in->name, "AB");
    assert_int_equal(in->dim_count, 2);
    assert_int_equal(in->shape[0], 3);
    assert_int_equal(in->shape[1], 4);
    assert_ptr_equal(in->model_shape, in->shape);
    assert_int_equal(in->model_dim_count, 2);
    assert_ptr_equal(inf_request_find_input(&r, "AB"), in);
    assert_null(inf_request_find_input(&r, "A"));
    assert_null(inf_request_find_input(&r, "ABx"));
    inf_request_fini(&r);
}

static void
an_input_without_dimensions_is_allowed(void **state)
{
    (void) state;
    inf_request_t r;

    inf_request_init(&r);
    inf_input_t *in = inf_request_add_input(&r, "", 0, INF_TYPE_BYTES, NULL,
        0);
    assert_non_null(in);
    assert_string_equal(in->name, "");
    assert_int_equal(in->dim_count, 0);
    assert_int_equal(in->buffer_count, 0);
    inf_request_fini(&r);
}

/* The table of inputs moves several times; each input's only buffer lies
   inside the input and has to move along. */
static void
inline_buffers_survive_the_growth_of_the_input_table(void **state)
{
    (void) state;
    enum { COUNT = 100 };
    static char bytes[COUNT + 1];
    inf_request_t r;
    char name[16];

    inf_request_init(&r);
    for (int i = 0; i < COUNT; i++) {
        int64_t dim = i;
        snprintf(name, sizeof(name), "in%d", i);
        inf_input_t *in = inf_request_add_input(&r, name, strlen(name),
            INF_TYPE_UINT8, &dim, 1);
        assert_non_null(in);
        assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) {
            .base = &bytes[i], .size = (uint64_t) i }));
        if (i % 3 == 0) {
            assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) {
                .base = bytes, .size = 7 }));
        }
    }

    assert_int_equal(r.input_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "in%d", i);
        inf_input_t *in = inf_request_find_input(&r, name);
        uint32_t own = i > 0;
        uint32_t more = i % 3 == 0;

        assert_ptr_equal(in, &r.inputs[i]);
        assert_int_equal(in->buffer_count, own + more);
        assert_int_equal(in->byte_size, i + (int) (7 * more));
        if (in->buffer_cap == 1) {
            assert_ptr_equal(in->buffers, &in->one);
        }
        if (own) {
            assert_ptr_equal(in->buffers[0].base, &bytes[i]);
            assert_int_equal(in->buffers[0].size, i);
        }
        if (more) {
            assert_ptr_equal(in->buffers[own].base, bytes);
        }
    }
    inf_request_fini(&r);
}

/* Data may be added to an early input after the table has grown. */
static void
data_is_added_after_the_table_has_grown(void **state)
{
    (void) state;
    static const char bytes[8];
    inf_request_t r;

    inf_request_init(&r);
    inf_request_add_input(&r, "first", 5, INF_TYPE_UINT8, NULL, 0);
    for (int i = 0; i < 9; i++) {
        assert_non_null(inf_request_add_input(&r, "x", 1, INF_TYPE_UINT8,
            NULL, 0));
    }

    inf_input_t *in = inf_request_find_input(&r, "first");
    for (uint64_t i = 1; i <= 8; i++) {
        assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) {
            .base = bytes, .size = i }));
    }
    assert_int_equal(in->buffer_count, 8);
    assert_int_equal(in->byte_size, 36);
    for (uint64_t i = 1; i <= 8; i++) {
        assert_int_equal(in->buffers[i - 1].size, i);
    }
    inf_request_fini(&r);
}

static void
zero_bytes_add_no_buffer(void **state)
{
    (void) state;
    inf_request_t r;

    inf_request_init(&r);
    inf_input_t *in = inf_request_add_input(&r, "A", 1, INF_TYPE_UINT8, NULL,
        0);
    assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) { 0 }));
    assert_int_equal(in->buffer_count, 0);
    assert_int_equal(in->byte_size, 0);
    inf_request_fini(&r);
}

static void
byte_sizes_never_wrap(void **state)
{
    (void) state;
    inf_request_t r;
    static const char byte;

    inf_request_init(&r);
    inf_input_t *in = inf_request_add_input(&r, "A", 1, INF_TYPE_UINT8, NULL,
        0);
    assert_null(inf_request_add_data(&r, in, &(inf_buffer_t) {
        .base = &byte, .size = UINT64_MAX }));
    expect_invalid(inf_request_add_data(&r, in, &(inf_buffer_t) {
        .base = &byte, .size = 1 }), "input 'A'");
    assert_int_equal(in->byte_size, UINT64_MAX);
    assert_int_equal(in->buffer_count, 1);
    inf_request_fini(&r);
}

static void
outputs_are_kept_as_they_come_and_found_once_sorted(void **state)
{
    (void) state;
    static const char *const names[] = { "m", "z", "a", "m" };
    static const char *const sorted[] = {
        "", "B", "a", "aa", "b", "c", "l", "m", "mm", "y", "z"
    };
    uint32_t count = sizeof(sorted) / sizeof(sorted[0]);
    inf_request_t r;

    inf_request_init(&r);
    assert_false(inf_request_wants_output(&r, "m"));
    for (uint32_t i = 0; i < 4; i++) {
        assert_null(inf_request_add_output(&r, names[i], strlen(names[i])));
    }
    assert_int_equal(r.output_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(r.outputs[i], names[i]);
    }

    r.outputs = sorted;                 /* as normalising leaves them        */
    r.output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(inf_request_wants_output(&r, sorted[i]));
    }
    assert_false(inf_request_wants_output(&r, "zz"));
    assert_false(inf_request_wants_output(&r, "A"));
    inf_request_fini(&r);
}

static void
a_reset_request_is_like_new(void **state)
{
    (void) state;
    inf_request_t r, fresh;
    int64_t shape = 1;

    inf_request_init(&r);
    inf_request_init(&fresh);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 500; i++) {     /* more than an arena chunk      */
            assert_non_null(inf_request_add_input(&r, "A", 1, INF_TYPE_BOOL,
                &shape, 1));
        }
        assert_null(inf_request_add_output(&r, "O", 1));
        assert_non_null(inf_parameter_add(&r.parameters, &r.arena, "p", 1,
            INF_PARAMETER_INT));
        r.batch_size = 4;
        r.suspect = true;
        inf_request_move(&r, INF_REQUEST_PENDING);
        inf_request_move(&r, INF_REQUEST_RELEASED);

        inf_request_reset(&r);
        assert_int_equal(r.state, INF_REQUEST_IDLE);
        assert_string_equal(r.id, "");
        assert_int_equal(r.input_count, 0);
        assert_int_equal(r.output_count, 0);
        assert_int_equal(r.parameters.count, 0);
        assert_null(r.parameters.items);
        assert_false(r.suspect);
        assert_int_equal(r.batch_size, 0);
        assert_true(inf_list_empty(&r.link));
    }
    inf_request_fini(&r);
    inf_request_fini(&fresh);
}

/* The factory's reference is dropped after the submitter knows. */
static void
release_tells_the_submitter_then_drops_the_factory(void **state)
{
    (void) state;
    static const inf_sink_ops_t sink = { .factory_free = on_factory_free };
    static const inf_request_ops_t ops = { .released = on_released };
    seen_t seen = { 0 };
    inf_factory_t f;
    inf_request_t r;

    inf_factory_init(&f);
    inf_factory_start(&f, NULL, "id", &sink, &seen);
    inf_request_init(&r);
    r.factory = &f;
    r.ops = &ops;
    r.userp = &seen;
    inf_request_move(&r, INF_REQUEST_PENDING);
    inf_request_move(&r, INF_REQUEST_EXECUTING);
    inf_request_release(&r, 1);

    assert_int_equal(seen.released, 1);
    assert_int_equal(seen.flags, 1);
    assert_int_equal(seen.freed, 1);
    assert_false(seen.freed_before_released);
    inf_request_fini(&r);
    inf_factory_fini(&f);
}

static void
parameters_keep_order_and_repeats(void **state)
{
    (void) state;
    inf_arena_t arena;
    inf_parameter_list_t list = { 0 };

    inf_arena_init(&arena);
    for (int i = 0; i < 3; i++) {
        inf_parameter_t *p = inf_parameter_add(&list, &arena, "same", 4,
            INF_PARAMETER_INT);
        assert_non_null(p);
        p->i = i;
    }
    inf_parameter_t *p = inf_parameter_add(&list, &arena, "textual", 4,
        INF_PARAMETER_STRING);
    p->text = "value";
    p->text_len = 5;
    p = inf_parameter_add(&list, &arena, "b", 1, INF_PARAMETER_BOOL);
    p->b = true;
    p = inf_parameter_add(&list, &arena, "d", 1, INF_PARAMETER_DOUBLE);
    p->d = 0.5;

    assert_int_equal(list.count, 6);
    for (uint32_t i = 0; i < 3; i++) {
        const inf_parameter_t *at = inf_parameter_at(&list, i);
        assert_string_equal(at->name, "same");
        assert_int_equal(*(const int64_t *) inf_parameter_value(at), i);
    }
    assert_string_equal(inf_parameter_at(&list, 3)->name, "text");
    assert_string_equal(inf_parameter_value(inf_parameter_at(&list, 3)),
        "value");
    assert_true(*(const bool *) inf_parameter_value(
        inf_parameter_at(&list, 4)));
    assert_float_equal(*(const double *) inf_parameter_value(
        inf_parameter_at(&list, 5)), 0.5, 0);
    assert_null(inf_parameter_at(&list, 6));
    for (uint32_t i = 0; i < 1000; i++) {   /* the table moves               */
        p = inf_parameter_add(&list, &arena, "n", 1, INF_PARAMETER_INT);
        p->i = i;
    }
    assert_string_equal(inf_parameter_at(&list, 3)->name, "text");
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(inf_parameter_at(&list, 6 + i)->i, i);
    }
    assert_null(inf_parameter_at(&list, 1006));
    assert_null(inf_parameter_at(&list, UINT32_MAX));
    inf_arena_fini(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_copies_its_name_and_shape),
        cmocka_unit_test(an_input_without_dimensions_is_allowed),
        cmocka_unit_test(inline_buffers_survive_the_growth_of_the_input_table),
        cmocka_unit_test(data_is_added_after_the_table_has_grown),
        cmocka_unit_test(zero_bytes_add_no_buffer),
        cmocka_unit_test(byte_sizes_never_wrap),
        cmocka_unit_test(outputs_are_kept_as_they_come_and_found_once_sorted),
        cmocka_unit_test(a_reset_request_is_like_new),
        cmocka_unit_test(release_tells_the_submitter_then_drops_the_factory),
        cmocka_unit_test(parameters_keep_order_and_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
