/*
 * Every allocation between an ensemble's making and its answer fails once, in
 * turn: each time the request is answered once and released once, and nothing
 * is left behind.  Members have no threads: the test answers for them.
 */

#include "scarce_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/model/normalize.h"
#include "core/sched/ensemble.h"
#include "core/sched/entrance.h"
#include "core/sched/runtime.h"
#include "core/tensor/response.h"

#if OWN_MALLOC

#include "sched/ensemble_models.h"

static inf_model_t *composing[3];
static inf_request_t request;
static inf_factory_t factory;
static uint32_t answers, errors, finals, released, freed;

static inf_err_t *
job_alloc(void *userp, inf_output_t *out, size_t size)
{
    (void) userp;
    out->base = malloc(size);
    out->memory_type = INF_MEMORY_CPU;
    return out->base != NULL ? NULL : inf_err_nomem();
}

static void
job_release(void *userp, inf_output_t *out)
{
    (void) userp;
    free(out->base);
}

static void
job_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    (void) userp;
    if (response != NULL) {
        answers += response->err == NULL;
        errors += response->err != NULL;
    }
    finals += (flags & INF_SEND_FINAL) != 0;
    inf_response_free(response);
}

static void
job_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    inf_model_unref(f->model);
    freed++;
}

static void
job_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) userp;
    (void) r;
    (void) flags;
    released++;
}

static const inf_sink_ops_t job_sink = {
    .alloc = job_alloc,
    .release = job_release,
    .complete = job_complete,
    .factory_free = job_factory_free
};
static const inf_request_ops_t job_ops = { .released = job_released };

/* As a backend that reports what it could not get. */
static void
answer(inf_request_t *r, uint32_t count)
{
    inf_factory_t *f = r->factory;
    const int64_t shape[1] = { 1 };

    for (uint32_t i = 0; i < count; i++) {
        inf_response_t *response;
        inf_output_t *out = NULL;
        inf_err_t *err = inf_response_new(f, &response);
        if (err != NULL) {
            inf_factory_send_error(f, err);
            return;
        }
        out = inf_response_add_output(response, "O", INF_TYPE_INT32, shape,
            1);
        err = out == NULL ? inf_err_nomem() : inf_output_alloc(out, 4);
        if (err == NULL) {
            memset(out->base, 1, 4);
        }
        inf_response_send(response, i + 1 == count ? INF_SEND_FINAL : 0, err);
        inf_err_free(err);
    }
}

static void
serve(void)
{
    inf_request_t *r;
    bool any;

    do {
        any = false;
        for (int i = 0; i < 3; i++) {
            inf_runner_t *runner = composing[i]->sched.runner;
            while ((r = inf_runner_take_queued(runner)) != NULL) {
                answer(r, i == 1 ? 3 : 1);
                inf_request_release(r, 1);
                any = true;
            }
        }
    } while (any);
}

static inf_err_t *
ask(inf_model_t *e)
{
    static const int32_t data[1] = { 7 };
    const int64_t shape[1] = { 1 };

    inf_request_reset(&request);
    inf_model_ref(e);
    inf_factory_start(&factory, e, "id", &job_sink, NULL);
    request.factory = &factory;
    request.model = e;
    request.ops = &job_ops;
    request.id = "id";
    inf_input_t *in = inf_request_add_input(&request, "X", 1, INF_TYPE_INT32,
        shape, 1);
    inf_err_t *err = in == NULL ? inf_err_nomem()
        : inf_request_add_data(&request, in, &(inf_buffer_t) {
            .base = data, .size = 4 });
    if (err == NULL) {
        err = inf_request_normalize(e, &request);
    }
    if (err == NULL) {
        err = inf_entrance_execute(e, &request, inf_clock_ns());
    }
    if (err != NULL) {
        inf_factory_unref(&factory);
    }
    return err;
}

/* Whether an allocation failed. */
static bool
one_turn(inf_model_t *model, long at)
{
    inf_ensemble_t *e;
    bool failed = false;
    answers = errors = finals = released = freed = 0;

    countdown = at;
    inf_err_t *err = inf_ensemble_new(model, (inf_model_t *[]) { composing[0],
        composing[1], composing[2] }, 3, NULL, &e);
    if (err == NULL) {
        model->sched.ensemble = e;
        err = ask(model);
        if (err == NULL) {
            serve();
            failed = countdown == 0;
            countdown = 0;
            assert_int_equal(finals, 1);
            assert_int_equal(released, 1);
            assert_int_equal(freed, 1);
            assert_true(failed || (answers == 3 && errors == 0));
            assert_true(errors <= 1);
        } else {
            assert_int_equal(freed, 1);
            assert_int_equal(released, 0);
        }
        assert_int_equal(inf_ensemble_pending(e), 0);
        inf_ensemble_free(e);
        model->sched.ensemble = NULL;
    }
    failed |= err != NULL;
    countdown = 0;
    inf_err_free(err);
    return failed;
}

static void
every_allocation_may_fail(void **state)
{
    (void) state;
    static const char *const configs[] = {
        "input { name: \"I\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " output { name: \"O\" data_type: TYPE_INT32 dims: [ -1 ] }",
        "input { name: \"I\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " output { name: \"O\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " model_transaction_policy { decoupled: true }",
        "input { name: \"I\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " output { name: \"O\" data_type: TYPE_INT32 dims: [ -1 ] }"
    };
    static const inf_executor_t none = { .execute = NULL };

    for (int i = 0; i < 3; i++) {
        composing[i] = test_model("m", configs[i]);
        inf_err_t *err = inf_runner_start(composing[i],
            &(inf_runner_options_t) { .executor = &none });
        assert_null(err);
        inf_runner_close_to_clients(composing[i]->sched.runner);
    }
    inf_model_t *model = test_model("e", "platform: \"ensemble\""
        " input { name: \"X\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " output { name: \"Y\" data_type: TYPE_INT32 dims: [ -1 ] }"
        " ensemble_scheduling { max_inflight_requests: 1"
        " step { model_name: \"m\" model_version: -1 input_map { key: \"I\""
        " value: \"X\" } output_map { key: \"O\" value: \"a\" } }"
        " step { model_name: \"m\" model_version: -1 input_map { key: \"I\""
        " value: \"a\" } output_map { key: \"O\" value: \"b\" } }"
        " step { model_name: \"m\" model_version: -1 input_map { key: \"I\""
        " value: \"b\" } output_map { key: \"O\" value: \"Y\" } } }");
    inf_request_init(&request);
    inf_factory_init(&factory);

    long at = 1;
    long before = 0;
    while (one_turn(model, at)) {
        inf_request_fini(&request);
        inf_factory_fini(&factory);
        assert_true(at == 1 || live == before);
        before = live;
        inf_request_init(&request);
        inf_factory_init(&factory);
        assert_true(++at < 1000);
    }
    assert_true(at > 30);
    assert_int_equal(answers, 3);

    inf_request_fini(&request);
    inf_factory_fini(&factory);
    inf_model_free(model);
    for (int i = 0; i < 3; i++) {
        inf_runner_free(composing[i]->sched.runner);
        inf_model_free(composing[i]);
    }
}

#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
#if OWN_MALLOC
        cmocka_unit_test(every_allocation_may_fail),
#else
        { .name = "nothing under a sanitizer", .test_func = NULL }
#endif
    };
#if OWN_MALLOC
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    (void) tests;
    return 0;
#endif
}
