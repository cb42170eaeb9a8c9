#include "model/request_world.h"

#include <sys/mman.h>

static const char strings_config[] = "name: 'm' input { name: 'S' data_type:"
    " TYPE_STRING dims: -1 } output { name: 'O' data_type: TYPE_BOOL dims: 1"
    " }";

/* Prefixes 3, 0, 5, 1 with their texts. */
static const char strings[] = "\3\0\0\0abc\0\0\0\0\5\0\0\0defgh\1\0\0\0i";

#define STRINGS (sizeof(strings) - 1)

static void
strings_may_be_cut_anywhere_but_in_a_prefix(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, strings_config);
    for (size_t cut = 0; cut <= STRINGS; cut++) {
        /* the first bytes of the four prefixes: 0, 7, 11, 20 */
        bool inside = (cut > 0 && cut < 4) || (cut > 7 && cut < 11)
            || (cut > 11 && cut < 15) || (cut > 20 && cut < 24);
        inf_input_t *in = add(&w, "S", INF_TYPE_BYTES, SHAPE(4));
        add_data(&w, in, strings, cut);
        add_data(&w, in, strings + cut, STRINGS - cut);
        if (!inside) {
            assert_ok(check(&w));
            again(&w);
        } else {
            rejected(&w, "incomplete string length indicator for inference"
                " input 'S' for model 'm', expecting 4 bytes but only");
        }
    }

    /* an element over three buffers, one of them a single byte */
    inf_input_t *in = add(&w, "S", INF_TYPE_BYTES, SHAPE(4));
    add_data(&w, in, strings, 16);
    add_data(&w, in, strings + 16, 1);
    add_data(&w, in, strings + 17, 3);
    add_data(&w, in, strings + 20, STRINGS - 20);
    assert_ok(check(&w));
    world_close(&w);
}

static void
the_number_of_strings_is_the_shapes(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, strings_config);
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(3)), strings, STRINGS);
    rejected(&w, "unexpected number of string elements 4 for inference input"
        " 'S' for model 'm', expecting 3");
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(1)), strings, STRINGS);
    rejected(&w, "unexpected number of string elements 2 for inference input"
        " 'S' for model 'm', expecting 1");
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(5)), strings, STRINGS);
    rejected(&w, "expected 5 string elements for inference input 'S' for model"
        " 'm', got 4");
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(INT64_MAX)), strings,
        STRINGS);
    rejected(&w, "string elements for inference input 'S'");
    add(&w, "S", INF_TYPE_BYTES, SHAPE(1));
    rejected(&w, "expected 1 string elements for inference input 'S' for model"
        " 'm', got 0");
    add(&w, "S", INF_TYPE_BYTES, SHAPE(0));
    assert_ok(check(&w));
    world_close(&w);
}

static void
a_string_longer_than_its_bytes_is_rejected(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, strings_config);
    for (size_t len = 1; len < STRINGS; len++) {
        char *exact = malloc(len);          /* a read behind it is seen      */
        memcpy(exact, strings, len);
        add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(4)), exact, len);
        rejected(&w, "inference input 'S' for model 'm'");
        free(exact);
    }

    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(1)),
        "\xff\xff\xff\xff" "abc", 7);
    rejected(&w, "incomplete string data for inference input 'S' for model 'm',"
        " 4294967292 more bytes expected");
    world_close(&w);
}

static void
device_memory_is_not_read(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, strings_config);
    inf_input_t *in = add(&w, "S", INF_TYPE_BYTES, SHAPE(4));
    assert_ok(inf_request_add_data(&w.req, in, &(inf_buffer_t) {
        .base = (const void *) 16, .size = 100,
        .memory_type = INF_MEMORY_GPU }));
    assert_ok(check(&w));
    world_close(&w);
}

/* The walk is long where a client sends many strings, and not the intake's. */
static void
normalising_reads_no_string(void **state)
{
    (void) state;
    const size_t size = 1u << 20;
    world_t w;
    void *shut = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    assert_true(shut != MAP_FAILED);

    world_open(&w, strings_config);
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE((int64_t) size / 4)),
        shut, size);
    assert_ok(inf_request_normalize(w.model, &w.req));
    assert_true(w.req.strings_unchecked);

    assert_int_equal(mprotect(shut, size, PROT_READ), 0);
    assert_ok(inf_request_check_strings(&w.req));
    assert_false(w.req.strings_unchecked);
    assert_int_equal(mprotect(shut, size, PROT_NONE), 0);
    assert_ok(inf_request_check_strings(&w.req));       /* once is enough    */

    again(&w);
    assert_false(w.req.strings_unchecked);
    world_close(&w);
    munmap(shut, size);
}

static void
an_error_carries_the_requests_id(void **state)
{
    (void) state;
    world_t w;

    world_open(&w, strings_config);
    w.req.id = "r7";
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(3)), strings, STRINGS);
    assert_error(check(&w), INF_ERR_INVALID_ARG, "[request id: r7] unexpected"
        " number of string elements 4 for inference input 'S' for model 'm',"
        " expecting 3");
    again(&w);
    add_data(&w, add(&w, "S", INF_TYPE_BYTES, SHAPE(3)), strings, STRINGS);
    assert_error(check(&w), INF_ERR_INVALID_ARG, "[request id: <id_unknown>]"
        " unexpected number of string elements 4");
    world_close(&w);
}

/* An ensemble's client is told of what it sent, not of what became of it. */
static void
a_request_of_an_ensemble_tells_of_the_clients_inputs(void **state)
{
    (void) state;
    world_t outer, inner, step;

    world_open(&outer, strings_config);
    world_open(&inner, strings_config);
    world_open(&step, "name: 's' input { name: 'T' data_type: TYPE_STRING"
        " dims: -1 } output { name: 'O' data_type: TYPE_BOOL dims: 1 }");
    outer.req.id = "o";
    inner.req.whole = &outer.req;
    step.req.whole = &inner.req;
    add_data(&outer, add(&outer, "S", INF_TYPE_BYTES, SHAPE(3)), strings,
        STRINGS);
    add_data(&step, add(&step, "T", INF_TYPE_BYTES, SHAPE(3)), strings,
        STRINGS);
    assert_ok(inf_request_normalize(outer.model, &outer.req));
    assert_ok(inf_request_normalize(step.model, &step.req));
    inf_err_t *err = inf_request_check_strings(&step.req);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_STRINGS);
    assert_error(err, INF_ERR_INVALID_ARG, "[request id: o] unexpected"
        " number of string elements 4 for inference input 'S' for model 'm',"
        " expecting 3");

    /* what another step made is that step's fault */
    outer.req.strings_unchecked = false;
    step.req.strings_unchecked = true;
    err = inf_request_check_strings(&step.req);
    assert_int_equal(inf_err_cause(err), INF_CAUSE_NONE);
    assert_string_equal(inf_err_msg(err), "unexpected number of string"
        " elements 4 for inference input 'T' for model 'm', expecting 3");
    inf_err_free(err);
    world_close(&step);
    world_close(&inner);
    world_close(&outer);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_may_be_cut_anywhere_but_in_a_prefix),
        cmocka_unit_test(the_number_of_strings_is_the_shapes),
        cmocka_unit_test(a_string_longer_than_its_bytes_is_rejected),
        cmocka_unit_test(device_memory_is_not_read),
        cmocka_unit_test(normalising_reads_no_string),
        cmocka_unit_test(an_error_carries_the_requests_id),
        cmocka_unit_test(a_request_of_an_ensemble_tells_of_the_clients_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
