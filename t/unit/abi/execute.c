/* Requests that a backend gives back: __wrap_inf_plugin_execute is its
   Execute, __wrap_inf_runner_reschedule the runner. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/abi/execute.h"
#include "core/abi/objects.h"
#include "core/abi/plugin.h"
#include "core/sched/runtime.h"
#include "core/tensor/response.h"
#include "model/config_text.h"

typedef struct {
    inf_request_t request;
    inf_factory_t factory;
    int           errors;
    int           finals;
    int           released;
} shot_t;

static inf_model_t         *model;
static inf_backend_t        backend = { .name = (char *) "b" };
static inf_instance_spec_t  spec = { .name = (char *) "m_0" };
static inf_instance_t       instance;
static inf_instance_t       other;          /* of another model              */
static shot_t               others;
static bool                 several;
static inf_err_t          *(*does)(inf_request_t **requests, uint32_t count);
static int                  rescheduled;
static bool                 sequence_is_over;

inf_err_t *__wrap_inf_runner_reschedule(inf_runner_t *runner,
    inf_request_t *req);
inf_err_t *__wrap_inf_plugin_execute(inf_instance_t *i,
    inf_request_t **requests, uint32_t count);

inf_err_t *
__wrap_inf_plugin_execute(inf_instance_t *i, inf_request_t **requests,
    uint32_t count)
{
    assert_true(i == &instance || i == &other);
    for (uint32_t n = 0; n < count; n++) {
        assert_int_equal(requests[n]->payload_rows, count);
    }
    return does(requests, count);
}

inf_err_t *
__wrap_inf_runner_reschedule(inf_runner_t *runner, inf_request_t *req)
{
    (void) runner;
    (void) req;
    if (sequence_is_over) {
        return inf_err_new(INF_ERR_INVALID_ARG, "its sequence is over");
    }

    rescheduled++;
    return NULL;
}

static void
shot_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    shot_t *s = userp;

    s->errors += response != NULL && response->err != NULL;
    s->finals += (flags & INF_SEND_FINAL) != 0;
    inf_response_free(response);
}

static void
shot_freed(void *userp, inf_factory_t *f)
{
    (void) userp;
    (void) f;
}

static void
shot_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    ((shot_t *) userp)->released++;
}

static const inf_sink_ops_t sink = {
    .complete = shot_complete, .factory_free = shot_freed
};
static const inf_request_ops_t ops = { .released = shot_released };

static void
shoot(shot_t *s, bool padding)
{
    memset(s, 0, sizeof(*s));
    inf_request_init(&s->request);
    inf_factory_init(&s->factory);
    inf_factory_start(&s->factory, model, "id", &sink, s);
    s->factory.padding = padding;
    s->request.padding = padding;
    s->request.model = model;
    s->request.batch_size = 1;
    s->request.factory = &s->factory;
    s->request.ops = &ops;
    s->request.userp = s;
    inf_request_move(&s->request, INF_REQUEST_EXECUTING);
}

static inf_err_t *
give_all_back(inf_request_t **requests, uint32_t count)
{
    (void) requests;
    (void) count;
    return inf_err_new(INF_ERR_INTERNAL, "not today");
}

static inf_err_t *
release(inf_request_t *r, uint32_t flags)
{
    return TRITONBACKEND_RequestRelease(inf_abi_as_request(r), flags);
}

static void
answer_and_release(inf_request_t *r)
{
    TRITONBACKEND_Response *response;

    assert_null(TRITONBACKEND_ResponseNew(&response, inf_abi_as_request(r)));
    assert_null(TRITONBACKEND_ResponseSend(response,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    assert_null(release(r, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static void
shot_end(shot_t *s)
{
    inf_request_fini(&s->request);
    inf_factory_fini(&s->factory);
}

static void
execute_one(shot_t *s, inf_err_t *(*backend_does)(inf_request_t **, uint32_t))
{
    inf_request_t *requests[1] = { &s->request };

    does = backend_does;
    inf_backend_executor.execute(&instance, requests, 1);
}

/* The request that is released, which has a sequence, and one more. */
static inf_err_t *
reschedule_first(inf_request_t **requests, uint32_t count)
{
    assert_null(release(requests[0],
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    for (uint32_t i = 1; i < count; i++) {
        answer_and_release(requests[i]);
    }
    return NULL;
}

static inf_err_t *
reschedule_first_and_fail(inf_request_t **requests, uint32_t count)
{
    (void) count;
    assert_null(release(requests[0],
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    return inf_err_new(INF_ERR_INTERNAL, "not today");
}

static inf_err_t *
keep(inf_request_t **requests, uint32_t count)
{
    (void) requests;
    (void) count;
    return NULL;
}

static inf_err_t *
finish(inf_request_t **requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        answer_and_release(requests[i]);
    }
    return NULL;
}

static inf_err_t *
try_again_and_finish(inf_request_t **requests, uint32_t count)
{
    inf_err_t *err = release(requests[0],
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
    assert_non_null(err);
    assert_string_equal(inf_err_msg(err), "its sequence is over");
    inf_err_free(err);
    return finish(requests, count);
}

static uint64_t
still_kept(void)
{
    return atomic_load(&instance.kept) - atomic_load(&instance.returned);
}

static void
a_request_that_runs_once_more_is_not_kept(void **state)
{
    (void) state;
    shot_t shots[2];
    inf_request_t *requests[2];

    for (int i = 0; i < 2; i++) {
        shoot(&shots[i], false);
        requests[i] = &shots[i].request;
    }
    does = reschedule_first;
    inf_backend_executor.execute(&instance, requests, 2);
    assert_int_equal(rescheduled, 1);
    assert_int_equal(still_kept(), 0);
    assert_int_equal(shots[0].released, 0);
    assert_int_equal(shots[0].finals, 0);
    assert_int_equal(shots[1].released, 1);

    execute_one(&shots[0], finish);
    assert_int_equal(still_kept(), 0);
    assert_int_equal(shots[0].released, 1);
    assert_int_equal(shots[0].finals, 1);
    shot_end(&shots[0]);
    shot_end(&shots[1]);
}

/* By another thread of the backend, say. */
static void
a_request_may_be_rescheduled_after_execute(void **state)
{
    (void) state;
    shot_t s;

    shoot(&s, false);
    execute_one(&s, keep);
    assert_int_equal(still_kept(), 1);
    assert_null(release(&s.request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    assert_int_equal(still_kept(), 0);
    execute_one(&s, keep);
    assert_int_equal(still_kept(), 1);
    answer_and_release(&s.request);
    assert_int_equal(still_kept(), 0);
    assert_int_equal(s.released, 1);
    shot_end(&s);
}

static void
a_released_request_is_an_error(void **state)
{
    (void) state;
    shot_t s;
    TRITONBACKEND_Request *request = inf_abi_as_request(&s.request);
    TRITONBACKEND_Response *response;
    TRITONBACKEND_ResponseFactory *factory;
    bool cancelled;

    shoot(&s, false);
    execute_one(&s, keep);
    answer_and_release(&s.request);

    inf_err_t *const errors[] = {
        TRITONBACKEND_ResponseNew(&response, request),
        TRITONBACKEND_ResponseFactoryNew(&factory, request),
        TRITONBACKEND_RequestIsCancelled(request, &cancelled),
        release(&s.request, TRITONSERVER_REQUEST_RELEASE_ALL)
    };
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        assert_non_null(errors[i]);
        assert_int_equal(inf_err_code(errors[i]), INF_ERR_INVALID_ARG);
        assert_non_null(strstr(inf_err_msg(errors[i]),
            "has been released"));
        inf_err_free(errors[i]);
    }
    assert_null(response);
    assert_int_equal(s.released, 1);
    assert_int_equal(s.finals, 1);
    shot_end(&s);
}

static void
who_cannot_run_once_more_is_still_the_backend_s(void **state)
{
    (void) state;
    shot_t s;

    sequence_is_over = true;
    shoot(&s, false);
    execute_one(&s, try_again_and_finish);
    assert_int_equal(s.released, 1);
    assert_int_equal(s.finals, 1);
    assert_int_equal(still_kept(), 0);
    shot_end(&s);

    shoot(&s, false);
    execute_one(&s, keep);
    inf_err_t *err = release(&s.request,
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
    assert_non_null(err);
    inf_err_free(err);
    assert_int_equal(still_kept(), 1);
    answer_and_release(&s.request);
    assert_int_equal(still_kept(), 0);
    shot_end(&s);
}

static void
a_failed_execution_leaves_those_that_run_once_more_alone(void **state)
{
    (void) state;
    shot_t shots[2];
    inf_request_t *requests[2];

    for (int i = 0; i < 2; i++) {
        shoot(&shots[i], false);
        requests[i] = &shots[i].request;
    }
    does = reschedule_first_and_fail;
    inf_backend_executor.execute(&instance, requests, 2);
    assert_int_equal(shots[0].released + shots[0].errors, 0);
    assert_int_equal(shots[1].released, 1);
    assert_int_equal(shots[1].errors, 1);

    execute_one(&shots[0], finish);
    assert_int_equal(shots[0].released, 1);
    shot_end(&shots[0]);
    shot_end(&shots[1]);
}

static void
only_the_flag_of_a_reschedule_is_looked_at(void **state)
{
    (void) state;
    static const uint32_t again[] = { TRITONSERVER_REQUEST_RELEASE_ALL
        | TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, UINT32_MAX };
    static const uint32_t over[] = { 0, 4 };
    shot_t s;

    for (int i = 0; i < 2; i++) {
        shoot(&s, false);
        assert_null(release(&s.request, again[i]));
        assert_int_equal(rescheduled, i + 1);
        assert_int_equal(s.released, 0);
        execute_one(&s, finish);
        shot_end(&s);
    }

    for (int i = 0; i < 2; i++) {
        shoot(&s, false);
        assert_null(release(&s.request, over[i]));
        assert_int_equal(s.released, 1);
        shot_end(&s);
    }
}

static void
only_iterative_sequences_run_once_more(void **state)
{
    (void) state;
    static const char *const configs[] = {
        "name: 'm' backend: 'x' max_batch_size: 4",
        "name: 'm' backend: 'x' max_batch_size: 4 dynamic_batching { }",
        "name: 'm' backend: 'x' max_batch_size: 4 sequence_batching { }" };
    Inference__ModelConfig *iterative = model->built;
    shot_t s;

    for (size_t i = 0; i <= sizeof(configs) / sizeof(configs[0]); i++) {
        bool padding = i == sizeof(configs) / sizeof(configs[0]);
        model->built = padding ? iterative : config_parse_normal(configs[i]);
        shoot(&s, padding);
        inf_err_t *err = release(&s.request,
            TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        assert_non_null(strstr(inf_err_msg(err), "RELEASE_RESCHEDULE"));
        inf_err_free(err);
        execute_one(&s, finish);
        assert_int_equal(s.released, 1);
        shot_end(&s);
        if (!padding) {
            inf_message_free(&model->built->base);
        }
    }
    model->built = iterative;
    assert_int_equal(rescheduled, 0);
}

/* scheduling.md 1.6.  Padding requests are rows of the payload, answered and
   released as the others. */
static void
requests_given_back_fail_and_padding_requests_do_not_count(void **state)
{
    (void) state;
    shot_t shots[4];
    inf_request_t *requests[4];

    for (int i = 0; i < 4; i++) {
        shoot(&shots[i], i % 2 == 0);
        requests[i] = &shots[i].request;
    }
    does = give_all_back;
    inf_backend_executor.execute(&instance, requests, 4);

    for (int i = 0; i < 4; i++) {
        assert_int_equal(shots[i].errors, 1);
        assert_int_equal(shots[i].finals, 1);
        assert_int_equal(shots[i].released, 1);
        shot_end(&shots[i]);
    }
    assert_int_equal(instance.statistics.fail.count, 2);
    assert_int_equal(instance.statistics.failures[INF_FAILURE_BACKEND], 2);
    assert_int_equal(model->statistics.fail.count, 0);
}

static inf_err_t *
look_alone(inf_request_t **requests, uint32_t count)
{
    assert_ptr_equal(inf_execution_likely_culprit(&several), model);
    assert_false(several);
    return give_all_back(requests, count);
}

static inf_err_t *
look_at_two(inf_request_t **requests, uint32_t count)
{
    assert_null(inf_execution_likely_culprit(&several));
    assert_true(several);
    return give_all_back(requests, count);
}

static inf_err_t *
look_beside_another(inf_request_t **requests, uint32_t count)
{
    inf_request_t *of_other[1] = { &others.request };

    does = look_at_two;
    inf_backend_executor.execute(&other, of_other, 1);
    return give_all_back(requests, count);
}

static void
several_models_that_execute_are_told_from_none(void **state)
{
    (void) state;
    shot_t s;
    inf_model_t *second = inf_model_new("n", 1, "/n");

    second->backend = &backend;
    other = (inf_instance_t) { .model = second, .spec = &spec };
    several = true;
    assert_null(inf_execution_likely_culprit(&several));
    assert_false(several);

    shoot(&s, false);
    execute_one(&s, look_alone);
    shot_end(&s);

    shoot(&s, false);
    shoot(&others, false);
    execute_one(&s, look_beside_another);
    shot_end(&s);
    shot_end(&others);
    inf_execution_free(other.abi.execution);
    inf_statistics_fini(&other.statistics);
    inf_model_free(second);
}

static int
setup(void **state)
{
    (void) state;
    model = inf_model_new("m", 1, "/m");
    model->backend = &backend;
    model->built = config_parse_normal("name: 'm' backend: 'x'"
        " max_batch_size: 4 sequence_batching { iterative_sequence: true }");
    assert_non_null(model->built);
    rescheduled = 0;
    sequence_is_over = false;
    instance = (inf_instance_t) { .model = model, .spec = &spec };
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_execution_free(instance.abi.execution);
    inf_statistics_fini(&instance.statistics);
    inf_model_free(model);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(requests_given_back_fail_and_padding_requests_do_not_count),
        T(a_request_that_runs_once_more_is_not_kept),
        T(a_request_may_be_rescheduled_after_execute),
        T(a_released_request_is_an_error),
        T(who_cannot_run_once_more_is_still_the_backend_s),
        T(a_failed_execution_leaves_those_that_run_once_more_alone),
        T(only_the_flag_of_a_reschedule_is_looked_at),
        T(only_iterative_sequences_run_once_more),
        T(several_models_that_execute_are_told_from_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
