#include "scarce_memory.h"

#include "model/request_world.h"

#include "core/model/generate_request.h"
#include "core/proto/infer_request.h"
#include "fail_each.h"

static const char inputs[] =
    "name: 'm' backend: 'x' max_batch_size: %s\n"
    "input [ { name: 'A' data_type: TYPE_INT32 dims: [ -1 ] },\n"
    "        { name: 'B' data_type: TYPE_FP32 dims: [ 2, -1, 3, -1 ]\n"
    "          optional: true },\n"
    "        { name: 'C' data_type: TYPE_INT64 dims: [ 4 ] optional: true },\n"
    "        { name: 'S' data_type: TYPE_STRING dims: [ -1 ]\n"
    "          optional: true } ]\n"
    "output { name: 'P' data_type: TYPE_INT32 dims: 4 }\n";

static void
open_model(world_t *w, const char *batch)
{
    char text[1024];

    snprintf(text, sizeof(text), inputs, batch);
    world_open(w, text);
    w->req.id = "";
}

static void
made(world_t *w, const char *json)
{
    again(w);
    w->req.id = "";
    assert_ok(inf_generate_request(w->model, &w->req, inf_slice_str(json),
        INF_INFER_MAX_JSON));
}

static void
fails(world_t *w, const char *json, const char *text)
{
    again(w);
    assert_error(inf_generate_request(w->model, &w->req, inf_slice_str(json),
        INF_INFER_MAX_JSON),
        INF_ERR_INVALID_ARG, text);
}

static void
shaped(world_t *w, const char *name, uint32_t dims, const int64_t *shape)
{
    const inf_input_t *in = inf_request_find_input(&w->req, name);

    assert_non_null(in);
    assert_int_equal(in->dim_count, dims);
    for (uint32_t i = 0; i < dims; i++) {
        assert_int_equal(in->shape[i], shape[i]);
    }
}

static void
elements_become_shapes(void **state)
{
    (void) state;
    world_t w;

    open_model(&w, "0");
    made(&w, "{\"A\": 1}");
    shaped(&w, "A", SHAPE(1));
    made(&w, "{\"A\": [1, 2, 3]}");
    shaped(&w, "A", SHAPE(3));
    made(&w, "{\"B\": [1,2,3,4,5,6,7,8,9,10,11,12]}");
    shaped(&w, "B", SHAPE(2, 1, 3, 2));
    made(&w, "{\"C\": [1,2,3,4]}");
    shaped(&w, "C", SHAPE(4));
    made(&w, "{\"A\": []}");
    shaped(&w, "A", SHAPE(0));
    made(&w, "{\"B\": []}");
    shaped(&w, "B", SHAPE(2, 1, 3, 0));
    fails(&w, "{\"C\": []}", "can not convert input 'C'");
    fails(&w, "{\"C\": [1,2,3]}", "The schema can not convert input 'C' to"
        " tensor with proper shape");
    fails(&w, "{\"C\": [1,2,3,4,5,6,7,8]}", "can not convert input 'C'");
    fails(&w, "{\"B\": [1,2,3,4]}", "can not convert input 'B'");
    world_close(&w);

    open_model(&w, "8");
    made(&w, "{\"A\": [1, 2, 3]}");
    shaped(&w, "A", SHAPE(1, 3));
    made(&w, "{\"A\": []}");
    shaped(&w, "A", SHAPE(1, 0));
    made(&w, "{\"C\": [1,2,3,4,5,6,7,8]}");
    shaped(&w, "C", SHAPE(2, 4));
    made(&w, "{\"B\": [1,2,3,4,5,6]}");
    shaped(&w, "B", SHAPE(1, 2, 1, 3, 1));
    world_close(&w);
}

static void
elements_become_bytes(void **state)
{
    static const char text[] = "\2\0\0\0\xc3\xa9\0\0\0\0\1\0\0\0\0";
    static const int32_t numbers[] = { -1, 0x7fffffff };
    (void) state;
    world_t w;

    open_model(&w, "0");
    made(&w, "{\"S\": [\"\\u00e9\", \"\", \"\\u0000\"], \"A\": [-1,"
        " 2147483647]}");
    const inf_input_t *s = inf_request_find_input(&w.req, "S");
    const inf_input_t *a = inf_request_find_input(&w.req, "A");
    assert_int_equal(s->byte_size, sizeof(text) - 1);
    assert_memory_equal(s->buffers[0].base, text, sizeof(text) - 1);
    assert_int_equal(a->byte_size, sizeof(numbers));
    assert_memory_equal(a->buffers[0].base, numbers, sizeof(numbers));
    assert_int_equal((uintptr_t) a->buffers[0].base % INF_ARENA_ALIGN, 0);
    /* what a backend may read behind it */
    for (size_t i = sizeof(numbers); i < INF_ARENA_ALIGN; i++) {
        assert_int_equal(((const char *) a->buffers[0].base)[i], 0);
    }
    world_close(&w);
}

static void
all_else_is_a_parameter(void **state)
{
    (void) state;
    world_t w;

    open_model(&w, "0");
    made(&w, "{\"id\": \"i\", \"parameters\": {\"sequence_id\": 5, \"A\": 1},"
        " \"half\": 0.5, \"yes\": true, \"large\": 9223372036854775808,"
        " \"nan\": NaN}");
    assert_string_equal(w.req.id, "i");
    assert_int_equal(w.req.correlation_id, 0);
    assert_int_equal(w.req.input_count, 1);
    assert_int_equal(w.req.parameters.count, 6);

    const inf_parameter_t *p = inf_parameter_at(&w.req.parameters, 0);
    assert_string_equal(p->name, "id");
    assert_string_equal(p->text, "i");
    p = inf_parameter_at(&w.req.parameters, 1);
    assert_string_equal(p->name, "sequence_id");
    assert_int_equal(p->type, INF_PARAMETER_INT);
    assert_int_equal(p->i, 5);
    p = inf_parameter_at(&w.req.parameters, 3);
    assert_int_equal(p->type, INF_PARAMETER_BOOL);
    assert_true(p->b);
    p = inf_parameter_at(&w.req.parameters, 4);
    assert_int_equal(p->type, INF_PARAMETER_DOUBLE);
    assert_true(p->d > 9.2e18);
    world_close(&w);
}

static void
what_can_not_be_mapped_is_rejected(void **state)
{
    (void) state;
    world_t w;

    open_model(&w, "0");
    fails(&w, "{\"A\": \"x\"}", "(input 'A' is one INT32 or an array of them)");
    fails(&w, "{\"A\": [1, \"x\"]}", "(input 'A' is one INT32 or an array of them)");
    fails(&w, "{\"A\": [[\"x\"]]}", "(input 'A' is one INT32 or an array of");
    fails(&w, "{\"A\": [[1], {}]}", "(input 'A' is one INT32 or an array of");
    fails(&w, "{\"A\": {}}", "(input 'A' is one INT32 or an array of them)");
    fails(&w, "{\"A\": null}", "(input 'A' is one INT32 or an array of them)");
    fails(&w, "{\"A\": 2147483648}", "out of range of INT32");
    fails(&w, "{\"A\": 1.5}", "non-signed-integer as signed-integer");
    fails(&w, "{\"S\": 1}", "(input 'S' is one BYTES or an array of them)");
    fails(&w, "{\"p\": [1]}", "parameter 'p' has invalid type");
    fails(&w, "{\"p\": null}", "parameter 'p' has invalid type");
    fails(&w, "{\"p\": -1e999}", "out of range");
    fails(&w, "{\"id\": 1}", "'id'");
    fails(&w, "{\"id\": \"a\\u0000\"}", "NUL");
    fails(&w, "{\"parameters\": []}", "Expected JSON object for keyword");
    fails(&w, "{\"p\": 1, \"parameters\": {\"p\": 1}}", "appears twice");
    fails(&w, "{\"parameters\": {\"p\": [1]}}",
          "Converting keyword: 'parameters': parameter 'p' has invalid type");
    fails(&w, "{\"p\": \"\x80\"}", "Invalid UTF-8");
    fails(&w, "{", "failed to parse the request JSON buffer");
    fails(&w, "{} {}", "failed to parse the request JSON buffer");
    fails(&w, "[]", "attempt to get members for non-object");
    world_close(&w);

    world_open(&w, "name: 'm' backend: 'x'\n"
        "input { name: 'parameters' data_type: TYPE_INT32 dims: 1 }\n"
        "output { name: 'P' data_type: TYPE_INT32 dims: 4 }\n");
    fails(&w, "{\"parameters\": {}}", "input 'parameters' of model 'm'");
    world_close(&w);
}

static inf_err_t *
make_once(void)
{
    world_t w;

    long saved = countdown;
    countdown = 0;
    open_model(&w, "0");
    countdown = saved;

    inf_err_t *err = inf_generate_request(w.model, &w.req, inf_slice_str(
        "{\"A\": [1, 2], \"S\": \"text\", \"id\": \"i\", \"p\": \"q\","
        " \"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1,"
        " \"g\": 1, \"h\": 1, \"i\": 1, \"j\": 1, \"k\": 1, \"l\": 1,"
        " \"m\": 1, \"n\": 1, \"o\": 1, \"r\": 1, \"s\": 1}"),
        INF_INFER_MAX_JSON);

    saved = countdown;
    countdown = 0;
    world_close(&w);
    countdown = saved;
    return err;
}

static void
each_allocation_may_fail(void **state)
{
    (void) state;
    fail_each(make_once, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_become_shapes),
        cmocka_unit_test(elements_become_bytes),
        cmocka_unit_test(all_else_is_a_parameter),
        cmocka_unit_test(what_can_not_be_mapped_is_rejected),
        cmocka_unit_test(each_allocation_may_fail)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
