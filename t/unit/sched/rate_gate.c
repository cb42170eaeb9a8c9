/* Instance threads of several models under one rate limiter: exclusion,
   turns, cancels, batches, warm-up and the end, with real threads. */

#include "model/config_text.h"
#include "model/instance_array.h"
#include "sched/idle_role.h"
#include "sched/job.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { INSTANCES = 4, JOBS = 400 };

typedef struct {
    inf_model_t         *model;
    inf_instance_t       instances[INSTANCES];
    inf_instance_spec_t  specs[INSTANCES];
    job_t                jobs[JOBS];
    _Atomic bool         closed;        /* executions wait inside            */
    _Atomic uint32_t     inside;
    _Atomic uint32_t     entered;
    _Atomic uint32_t     prepared;
    _Atomic uint32_t     per_instance[INSTANCES];
    _Atomic uint32_t     sizes[16];     /* executions of so many requests    */
} side_t;

static inf_rate_gate_t *gate;
static side_t a, b;
static inf_timekeeper_t timekeeper;
static _Atomic uint32_t order_count;
static const side_t *order[2 * JOBS];
static _Atomic uint32_t overlaps;       /* of a and b                        */

#define wait_until(condition)                                                \
    while (!(condition)) {                                                   \
        sched_yield();                                                       \
    }

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    side_t *s = instance->model->owner;
    side_t *other = s == &a ? &b : &a;
    uint32_t at = atomic_fetch_add(&order_count, 1);

    must(at < 2 * JOBS);
    order[at] = s;
    atomic_fetch_add(&s->inside, 1);
    atomic_fetch_add(&overlaps, atomic_load(&other->inside) > 0);
    atomic_fetch_add(&s->per_instance[instance - s->instances], 1);
    atomic_fetch_add(&s->sizes[count], 1);
    atomic_fetch_add(&s->entered, 1);
    wait_until(!atomic_load(&s->closed));
    atomic_fetch_sub(&s->inside, 1);

    for (uint32_t i = 0; i < count; i++) {
        job_execute(requests[i]);
    }
}

static inf_err_t *
prepare(void *userp, inf_instance_t *instance)
{
    side_t *s = instance->model->owner;
    (void) userp;
    atomic_fetch_add(&s->inside, 1);
    atomic_fetch_add(&overlaps, atomic_load(&(s == &a ? &b : &a)->inside) > 0);
    usleep(1000);
    atomic_fetch_sub(&s->inside, 1);
    atomic_fetch_add(&s->prepared, 1);
    return NULL;
}

static const inf_executor_t executor = { .execute = execute };

static void
fill(side_t *s, const char *config)
{
    char text[2048];

    snprintf(text, sizeof(text), "name: 'm' backend: 'x'"
        " input { name: 'IN' data_type: TYPE_INT32 dims: 4 }"
        " output { name: 'OUT' data_type: TYPE_INT32 dims: -1 } %s", config);
    memset(s, 0, sizeof(*s));
    s->model = inf_model_new("m", 1, "/m");
    assert_non_null(s->model);
    s->model->owner = s;
    s->model->built = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(s->model->built, &s->model->tensors));

    uint32_t count = (uint32_t) s->model->built->n_instance_group;
    memset(s->instances, 0, sizeof(s->instances));
    instances_listed(s->model, s->instances, count);
    for (uint32_t i = 0; i < count; i++) {
        Inference__ModelInstanceGroup *g = s->model->built->instance_group[i];
        s->specs[i].name = "m";
        s->specs[i].settings = g;
        s->specs[i].kind = g->n_gpus > 0 ? INF_INSTANCE_GPU : INF_INSTANCE_CPU;
        s->specs[i].device_id = g->n_gpus > 0 ? g->gpus[0] : 0;
        s->instances[i].spec = &s->specs[i];
    }
    for (int i = 0; i < JOBS; i++) {
        job_init(&s->jobs[i]);
    }
}

static inf_runner_options_t
usual(void)
{
    return (inf_runner_options_t) {
        .executor = &executor, .timekeeper = &timekeeper, .rate_gate = gate
    };
}

static void
start_with(side_t *s, const char *config, const inf_runner_options_t *options)
{
    fill(s, config);
    assert_ok(inf_runner_start(s->model, options));
}

static void
start(side_t *s, const char *config)
{
    const inf_runner_options_t options = usual();
    start_with(s, config, &options);
}

static void
stop(side_t *s)
{
    inf_runner_free(s->model->sched.runner);
    s->model->sched.runner = NULL;
    for (int i = 0; i < JOBS; i++) {
        job_fini(&s->jobs[i]);
    }
    instances_unlisted(s->model);
    inf_model_free(s->model);
}

static void
submit(side_t *s, int i)
{
    inf_request_t *r = job_reset(&s->jobs[i], s->model);

    r->batch_size = 1;
    must(inf_runner_submit(s->model->sched.runner, r, inf_clock_ns()) == NULL);
}

static void
cancel(side_t *s, int i)
{
    must(inf_runner_cancel(s->model->sched.runner, &s->jobs[i].request));
    inf_factory_send_error(&s->jobs[i].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&s->jobs[i].request, 1);
}

static void
wait_released(side_t *s, int from, int to)
{
    for (int i = from; i < to; i++) {
        wait_until(atomic_load(&s->jobs[i].released) == 1);
    }
    wait_until(inf_runner_pending(s->model->sched.runner) == 0);
}

static int
setup(void **state)
{
    (void) state;
    atomic_store(&order_count, 0);
    atomic_store(&overlaps, 0);
    inf_timekeeper_init(&timekeeper);
    assert_ok(inf_rate_gate_new(NULL, 0, &gate));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_rate_gate_free(gate);
    inf_timekeeper_fini(&timekeeper);
    return 0;
}

#define GROUP(text) " instance_group { kind: KIND_CPU rate_limiter { "       \
    text " } } "
#define R1 "resources { name: 'R' count: 1 } "

static void *
sender_main(void *arg)
{
    side_t *s = arg;
    for (int i = 0; i < JOBS; i++) {
        submit(s, i);
        if (i % 8 == 7) {
            wait_released(s, i - 7, i + 1);
        }
    }
    return NULL;
}

static void
models_that_share_a_resource_never_run_at_once(void **state)
{
    (void) state;
    pthread_t senders[2];

    start(&a, GROUP(R1) GROUP(R1));
    start(&b, GROUP(R1));
    assert_int_equal(pthread_create(&senders[0], NULL, sender_main, &a), 0);
    assert_int_equal(pthread_create(&senders[1], NULL, sender_main, &b), 0);
    pthread_join(senders[0], NULL);
    pthread_join(senders[1], NULL);
    assert_int_equal(atomic_load(&a.entered), JOBS);
    assert_int_equal(atomic_load(&b.entered), JOBS);
    assert_int_equal(atomic_load(&overlaps), 0);
    stop(&a);
    stop(&b);
}

/* scheduling.md 5.1: both have work all the time, and the turns are exact */
static void
priorities_give_turns(void **state)
{
    (void) state;
    uint32_t of_a = 0;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1 "priority: 2"));
    atomic_store(&a.closed, true);
    for (int i = 0; i < JOBS; i++) {
        submit(&a, i);
    }
    wait_until(atomic_load(&a.entered) == 1);
    for (int i = 0; i < JOBS; i++) {
        submit(&b, i);
    }
    usleep(200000);                     /* b's thread has asked              */
    atomic_store(&a.closed, false);
    wait_released(&a, 0, JOBS);
    wait_released(&b, 0, JOBS);
    for (int i = 0; i < 300; i++) {
        of_a += order[i] == &a;
    }
    assert_in_range(of_a, 180, 220);
    assert_int_equal(atomic_load(&overlaps), 0);
    stop(&a);
    stop(&b);
}

/* scheduling.md 5.8, inside one model and across two */
static void
who_needs_nothing_does_not_wait(void **state)
{
    (void) state;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1) GROUP(""));
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    for (int i = 0; i < 50; i++) {
        submit(&b, i);
        wait_released(&b, i, i + 1);
    }
    assert_int_equal(atomic_load(&b.per_instance[0]), 0);
    assert_int_equal(atomic_load(&b.per_instance[1]), 50);
    atomic_store(&a.closed, false);
    wait_released(&a, 0, 1);
    stop(&a);
    stop(&b);
}

/* scheduling.md 8.11 */
static void
a_request_cancelled_while_it_waits_for_leave_never_runs(void **state)
{
    (void) state;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1));
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    submit(&b, 0);
    usleep(20000);
    cancel(&b, 0);
    assert_int_equal(inf_runner_pending(b.model->sched.runner), 0);
    submit(&a, 1);
    atomic_store(&a.closed, false);
    wait_released(&a, 0, 2);
    assert_int_equal(atomic_load(&b.entered), 0);
    submit(&b, 1);
    wait_released(&b, 1, 2);
    assert_int_equal(atomic_load(&b.entered), 1);
    stop(&a);
    stop(&b);
}

/* scheduling.md 5.11: a batch grows until its instance may run */
static void
a_batch_grows_until_leave_is_granted(void **state)
{
    (void) state;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1) GROUP(R1) "max_batch_size: 4 dynamic_batching {"
        " preferred_batch_size: [ 1, 2, 3, 4 ]"
        " max_queue_delay_microseconds: 5000000 }");
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    for (int i = 0; i < 80; i++) {
        submit(&b, i);
    }
    atomic_store(&a.closed, false);
    wait_released(&b, 0, 80);
    assert_int_equal(atomic_load(&b.sizes[4]), 20);
    assert_int_equal(atomic_load(&b.entered), 20);
    wait_released(&a, 0, 1);
    stop(&a);
    stop(&b);
}

/* Instances of one device on one thread: the one that may run does. */
static void
instances_on_one_thread_ask_together(void **state)
{
    (void) state;
    inf_runner_options_t options = usual();
    options.device_blocking = true;

    start(&a, " instance_group { kind: KIND_GPU gpus: 1 rate_limiter { " R1
        " } } ");
    start_with(&b, " instance_group { kind: KIND_GPU gpus: 1 rate_limiter { "
        R1 " } } instance_group { kind: KIND_GPU gpus: 1 rate_limiter {"
        " resources { name: 'S' global: true count: 1 } } } ", &options);
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    for (int i = 0; i < 10; i++) {
        submit(&b, i);
    }
    wait_released(&b, 0, 10);
    assert_int_equal(atomic_load(&b.per_instance[0]), 0);
    assert_int_equal(atomic_load(&b.per_instance[1]), 10);
    atomic_store(&a.closed, false);
    wait_released(&a, 0, 1);

    atomic_store(&b.closed, true);
    for (int i = 0; i < 100; i++) {
        submit(&b, i);
    }
    wait_until(atomic_load(&b.inside) == 1);
    atomic_store(&b.closed, false);
    wait_released(&b, 0, 100);
    assert_in_range(atomic_load(&b.per_instance[0]), 40, 60);
    stop(&a);
    stop(&b);
}

/* An instance that is prepared holds its resources, and that is no turn. */
static void
instances_are_prepared_with_leave(void **state)
{
    (void) state;
    inf_runner_options_t options = usual();
    options.prepare = prepare;
    options.parallel = true;

    fill(&b, GROUP(R1) GROUP(R1) GROUP(R1));    /* before a thread looks */
    start(&a, GROUP(R1));
    for (int i = 0; i < 20; i++) {
        submit(&a, i);
    }
    assert_ok(inf_runner_start(b.model, &options));
    assert_int_equal(atomic_load(&b.prepared), 3);
    wait_released(&a, 0, 20);
    submit(&b, 0);
    wait_released(&b, 0, 1);
    assert_int_equal(atomic_load(&overlaps), 0);
    stop(&a);
    stop(&b);
}

static void *
open_later(void *arg)
{
    usleep(30000);
    atomic_store((_Atomic bool *) arg, false);
    return NULL;
}

/* scheduling.md 9.9 */
static void
a_stop_lets_those_run_that_wait_for_leave(void **state)
{
    (void) state;
    pthread_t opener;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1) GROUP(R1));
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    for (int i = 0; i < 20; i++) {
        submit(&b, i);
    }
    assert_int_equal(pthread_create(&opener, NULL, open_later, &a.closed), 0);
    stop(&b);
    assert_int_equal(atomic_load(&b.entered), 20);
    pthread_join(opener, NULL);
    submit(&a, 1);
    wait_released(&a, 0, 2);
    stop(&a);
}

static void
a_stop_does_not_wait_for_leave_that_is_not_needed(void **state)
{
    (void) state;
    inf_request_t *req;

    start(&a, GROUP(R1));
    start(&b, GROUP(R1) GROUP(R1));
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    submit(&b, 0);
    submit(&b, 1);
    usleep(20000);                      /* b's threads have asked            */
    inf_runner_close(b.model->sched.runner);
    while ((req = inf_runner_take_queued(b.model->sched.runner)) != NULL) {
        inf_factory_send_error(req->factory,
            inf_err_new(INF_ERR_UNAVAILABLE, "%s", ""));
        inf_request_release(req, 1);
    }
    stop(&b);
    assert_int_equal(atomic_load(&b.entered), 0);
    assert_int_equal(atomic_load(&a.inside), 1);
    atomic_store(&a.closed, false);
    wait_released(&a, 0, 1);
    stop(&a);
}

/* The model that could not be: nothing of it is left behind. */
static void
a_model_that_needs_too_much_does_not_start(void **state)
{
    (void) state;
    const inf_rate_resource_t one = { "R", 1, INF_RATE_EVERY_DEVICE };
    inf_rate_gate_free(gate);
    assert_ok(inf_rate_gate_new(&one, 1, &gate));
    const inf_runner_options_t options = usual();

    fill(&b, GROUP(R1) GROUP("resources { name: 'R' count: 2 }"));
    assert_error(inf_runner_start(b.model, &options), INF_ERR_INVALID_ARG,
        "Resource count for \"R\" is limited to 1 which will prevent"
        " scheduling of one or more model instances, the minimum required"
        " count is 2");
    assert_null(b.model->sched.runner);
    stop(&b);

    start(&a, GROUP(R1));
    submit(&a, 0);
    wait_released(&a, 0, 1);
    stop(&a);
}

/* A model that calls others holds what a third one lacks, and the permit of the
   called one is kept back for that one. */
static void
what_is_kept_for_one_does_not_stop_others_for_ever(void **state)
{
    (void) state;
    const uint64_t second = 1000000000;
    inf_rate_permit_t caller = { 0 }, called = { 0 }, big = { 0 };
    inf_waiter_t waiter;

    inf_waiter_init(&waiter);
    fill(&a, GROUP(R1) GROUP(R1));
    fill(&b, GROUP("resources { name: 'R' count: 2 } "));
    for (int i = 0; i < INSTANCES; i++) {
        a.instances[i].sched.peer = &a.instances[i];
        b.instances[i].sched.peer = &b.instances[i];
    }
    assert_ok(inf_rate_permit_open(&caller, gate, &a.instances[0], &waiter));
    assert_ok(inf_rate_permit_open(&called, gate, &a.instances[1], &waiter));
    assert_ok(inf_rate_permit_open(&big, gate, &b.instances[0], &waiter));

    assert_true(inf_rate_permit_ask(&caller, second));
    (void) inf_rate_permit_use(&caller);
    assert_true(inf_rate_permit_ask(&called, second));
    (void) inf_rate_permit_use(&called);
    assert_false(inf_rate_permit_ask(&big, second));
    while (inf_rate_permit_ask(&called, second)) {
        (void) inf_rate_permit_use(&called);
    }

    for (int now = 2; now < 21; now++) {    /* nobody has called yet         */
        assert_int_equal(big.review_ns, ((now + 3) / 5 * 5 + 1) * second);
        assert_false(inf_rate_permit_ask(&big, now * second));
        assert_false(inf_rate_permit_may_take(&called));
    }
    inf_rate_gate_expect_calls(gate);
    assert_false(inf_rate_permit_ask(&big, 21 * second));
    assert_true(inf_rate_permit_may_take(&called));

    inf_rate_permit_close(&caller);
    inf_rate_permit_close(&called);
    inf_rate_permit_close(&big);
    stop(&a);
    stop(&b);
}

/* ---- waiting for leave and for the rings at once ------------------------- */

static void
who_waits_for_leave_may_lead(void **state)
{
    (void) state;
    pthread_t senders[2];
    inf_runner_options_t options = usual();
    options.idle = &role_ops;

    start_with(&a, GROUP(R1), &options);
    start_with(&b, GROUP(R1), &options);
    atomic_store(&a.closed, true);
    submit(&a, 0);
    wait_until(atomic_load(&a.entered) == 1);
    submit(&b, 0);
    uint32_t before = atomic_load(&role_turns);
    wait_until(atomic_load(&role_held));
    assert_true(before <= atomic_load(&role_turns));
    atomic_store(&a.closed, false);
    wait_released(&a, 0, 1);
    wait_released(&b, 0, 1);

    assert_int_equal(pthread_create(&senders[0], NULL, sender_main, &a), 0);
    for (int i = 0; i < JOBS - 10; i++) {
        submit(&b, i);
        wait_released(&b, i, i + 1);
    }
    pthread_join(senders[0], NULL);
    assert_int_equal(atomic_load(&overlaps), 0);
    stop(&a);
    stop(&b);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(models_that_share_a_resource_never_run_at_once),
        T(priorities_give_turns),
        T(who_needs_nothing_does_not_wait),
        T(a_request_cancelled_while_it_waits_for_leave_never_runs),
        T(a_batch_grows_until_leave_is_granted),
        T(instances_on_one_thread_ask_together),
        T(instances_are_prepared_with_leave),
        T(a_stop_lets_those_run_that_wait_for_leave),
        T(a_stop_does_not_wait_for_leave_that_is_not_needed),
        T(a_model_that_needs_too_much_does_not_start),
        T(what_is_kept_for_one_does_not_stop_others_for_ever),
        T(who_waits_for_leave_may_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
