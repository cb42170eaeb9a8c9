/*
 * Every allocation of a request and of a response fails once, in turn: each
 * time the caller is told, and nothing is left behind.
 */

#include "scarce_memory.h"
#include "fail_each.h"

#include <stdio.h>
#include <string.h>

#include "core/tensor/request.h"
#include "core/tensor/response.h"

#define COUNT 40            /* of anything: more than one chunk has room for */

static inf_err_t *
build_request(void)
{
    int64_t shape[2] = { 2, 3 };
    inf_request_t r;
    bool done = true;

    inf_request_init(&r);
    for (int i = 0; done && i < COUNT; i++) {
        char name[8];
        int len = snprintf(name, sizeof(name), "n%d", i);
        inf_input_t *in = inf_request_add_input(&r, name, (size_t) len,
            INF_TYPE_UINT8, shape, 2);
        done = in != NULL;

        for (int j = 0; done && j < COUNT; j++) {
            done = inf_request_add_data(&r, in, &(inf_buffer_t) {
                .base = "x", .size = 1 }) == NULL;
        }
        if (done) {
            assert_string_equal(in->name, name);
            assert_int_equal(in->byte_size, COUNT);
            done = inf_request_add_output(&r, name, (size_t) len) == NULL
                && inf_parameter_add(&r.parameters, &r.arena, name,
                    (size_t) len, INF_PARAMETER_INT) != NULL;
        }
    }
    if (done) {
        assert_int_equal(r.input_count, COUNT);
        assert_int_equal(r.output_count, COUNT);
    }

    inf_request_fini(&r);
    return done ? NULL : inf_err_nomem();
}

static inf_err_t *
build_responses(void)
{
    int64_t shape[2] = { 2, 3 };
    static const inf_sink_ops_t sink = { 0 };
    inf_response_t *pair[2] = { NULL, NULL };
    inf_factory_t f;
    bool done = true;

    inf_factory_init(&f);
    inf_factory_start(&f, NULL, "id", &sink, NULL);
    for (int k = 0; done && k < 2; k++) {       /* one of them is embedded   */
        done = inf_response_new(&f, &pair[k]) == NULL;
        for (int i = 0; done && i < COUNT; i++) {
            inf_output_t *out = inf_response_add_output(pair[k], "O",
                INF_TYPE_UINT8, shape, 2);
            done = out != NULL;
        }
    }

    inf_response_free(pair[0]);
    inf_response_free(pair[1]);
    inf_factory_fini(&f);
    return done ? NULL : inf_err_nomem();
}

static void
a_request_does_without_memory(void **state)
{
    (void) state;
    fail_each(build_request, 10);
}

static void
a_response_does_without_memory(void **state)
{
    (void) state;
    fail_each(build_responses, 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_does_without_memory),
        cmocka_unit_test(a_response_does_without_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
