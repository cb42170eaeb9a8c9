/* The runner with a dynamic batcher: many senders, cancels, timeouts, a
   plug-in and kept order, with real threads. */

#include "model/config_text.h"
#include "model/instance_array.h"
#include "sched/idle_role.h"
#include "sched/plug_in_of_three.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

enum { INSTANCES = 3, SENDERS = 3, ROUNDS = 60, WINDOW = 120, LIMIT = 8,
    WITHIN = 300 };

typedef struct {
    pthread_t        thread;
    unsigned         seed;
    job_t            jobs[WINDOW];
    _Atomic uint64_t answered;      /* FINALs so far, when order is kept     */
    uint64_t         sent;
} sender_t;

static inf_model_t *model;
static inf_instance_spec_t specs[INSTANCES];
static inf_instance_t instances[INSTANCES];
static sender_t senders[SENDERS], within;
static inf_timekeeper_t timekeeper;
static _Atomic uint64_t payloads, executed, timed_out, cancelled;
static bool keeps_order, cancels, limits, calls_back;
static inf_rate_gate_t *gate;
static _Atomic uint32_t at_once;

static void
count_rejection(const inf_err_t *err)
{
    atomic_fetch_add(inf_err_code(err) == INF_ERR_CANCELLED ? &cancelled
        : &timed_out, 1);
}

/* Of one sender only. */
static void
check_order(const job_t *job)
{
    if (keeps_order) {
        must(job->number == senders[0].answered);
        atomic_fetch_add(&senders[0].answered, 1);
    }
}

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    uint64_t rows = 0;

    (void) instance;
    uint64_t number = atomic_fetch_add(&payloads, 1);
    must(atomic_fetch_add(&at_once, 1) < (limits ? 2 : INSTANCES));
    for (uint32_t i = 0; i < count; i++) {
        rows += requests[i]->batch_size;
    }
    must(count == 1 || rows <= LIMIT);
    if (number % 16 == 0) {
        usleep(200);
    }
    for (uint32_t k = 0; k < count; k++) {
        atomic_fetch_add(&executed, 1);
        job_execute(requests[number % 2 ? k : count - 1 - k]);
    }
    atomic_fetch_sub(&at_once, 1);
}

static const inf_executor_t executor = { .execute = execute };

/* ---- senders ------------------------------------------------------------- */

static void
job_submit(sender_t *s, job_t *job)
{
    inf_request_t *r = job_reset(job, model);

    job->number = s->sent++;
    r->batch_size = 1 + (uint32_t) rand_r(&s->seed) % 3;
    r->priority = (uint64_t) rand_r(&s->seed) % 4;
    must(inf_runner_submit(model->sched.runner, r, inf_clock_ns()) == NULL);
}

/* No lock is held: the plug-in may ask, submit and cancel itself.  Not for
   ever: a batch is begun anew when one of its requests leaves. */
static void
call_back(bool includes)
{
    job_t *job = &within.jobs[0];

    if (includes && payloads % 8 == 0) {
        sched_yield();
    }
    if (!calls_back) {
        return;
    }
    (void) inf_runner_pending(model->sched.runner);
    (void) inf_runner_queued(model->sched.runner);
    if (within.sent > 0 && !job_done(job)) {
        job_cancel(model->sched.runner, job);
    } else if (within.sent < WITHIN
        && inf_runner_queued(model->sched.runner) > 1)
    {
        job_submit(&within, job);
    }
}

static void *
sender_main(void *arg)
{
    sender_t *s = arg;

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t window = round % 3 == 0 ? 1 : WINDOW;

        for (uint32_t i = 0; i < window; i++) {
            job_submit(s, &s->jobs[i]);
            if (cancels && rand_r(&s->seed) % 8 == 0) {
                job_cancel(model->sched.runner,
                    &s->jobs[(uint32_t) rand_r(&s->seed) % (i + 1)]);
            }
        }
        for (uint32_t i = 0; i < window; i++) {
            job_wait(&s->jobs[i]);
        }
    }
    return NULL;
}

/* ---- storms -------------------------------------------------------------- */

static void
open_model(const char *batching, bool leads, inf_batch_strategy_t *strategy);
static void close_model(void);

static void
storm(const char *batching, unsigned count, bool leads,
    inf_batch_strategy_t *strategy)
{
    within.sent = 0;
    job_init(&within.jobs[0]);
    open_model(batching, leads, strategy);
    for (unsigned i = 0; i < count; i++) {
        senders[i].seed = i + 1;
        senders[i].sent = 0;
        senders[i].answered = 0;
        for (int k = 0; k < WINDOW; k++) {
            job_init(&senders[i].jobs[k]);
        }
        assert_int_equal(pthread_create(&senders[i].thread, NULL, sender_main,
            &senders[i]), 0);
    }
    uint64_t sent = 0;
    for (unsigned i = 0; i < count; i++) {
        pthread_join(senders[i].thread, NULL);
        sent += senders[i].sent;
    }

    close_model();
    assert_int_equal(executed + timed_out + cancelled, sent + within.sent);
    assert_true(!calls_back || within.sent > 0);
    job_fini(&within.jobs[0]);
    assert_true(payloads <= executed);
    assert_int_equal(open_batches, 0);
    for (unsigned i = 0; i < count; i++) {
        for (int k = 0; k < WINDOW; k++) {
            job_fini(&senders[i].jobs[k]);
        }
    }
}

static void
open_model(const char *batching, bool leads, inf_batch_strategy_t *strategy)
{
    char text[1024];
    const inf_rate_resource_t two = { "R", 2, INF_RATE_EVERY_DEVICE };

    gate = NULL;
    if (limits) {
        assert_ok(inf_rate_gate_new(&two, 1, &gate));
    }
    const inf_runner_options_t options = {
        .executor = &executor, .timekeeper = &timekeeper,
        .idle = leads ? &role_ops : NULL, .rate_gate = gate
    };

    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: %d"
        " input { name: 'IN' data_type: TYPE_INT32 dims: 4 }"
        " output { name: 'OUT' data_type: TYPE_INT32 dims: -1 }"
        " instance_group { kind: KIND_CPU rate_limiter {"
        "  resources { name: 'R' count: 1 } } }"
        " dynamic_batching { %s }", LIMIT, batching);
    model = inf_model_new("m", 1, "/m");
    assert_non_null(model);
    model->built = config_parse_normal(text);
    model->sched.strategy = strategy;
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    memset(instances, 0, sizeof(instances));
    instances_listed(model, instances, INSTANCES);
    for (int i = 0; i < INSTANCES; i++) {
        specs[i].name = "m";
        specs[i].settings = model->built->instance_group[0];
        instances[i].spec = &specs[i];
    }
    inf_timekeeper_init(&timekeeper);
    payloads = executed = timed_out = cancelled = 0;
    assert_ok(inf_runner_start(model, &options));
}

/* Queued requests run first. */
static void
close_model(void)
{
    inf_runner_free(model->sched.runner);
    model->sched.runner = NULL;
    inf_timekeeper_fini(&timekeeper);
    instances_unlisted(model);
    inf_model_free(model);
    inf_rate_gate_free(gate);
}

static void
batches_form_and_nothing_is_lost(void **state)
{
    (void) state;
    cancels = true;
    storm("", SENDERS, false, NULL);
    storm("max_queue_delay_microseconds: 300 preferred_batch_size: [ 4, 8 ]",
        SENDERS, false, NULL);
    assert_true(cancelled > 0 && payloads < executed);
}

static void
the_leader_of_the_rings_keeps_the_delay_too(void **state)
{
    (void) state;
    cancels = true;
    storm("max_queue_delay_microseconds: 300 preferred_batch_size: [ 4, 8 ]",
        SENDERS, true, NULL);
    storm("max_queue_delay_microseconds: 1000000 preferred_batch_size: 1",
        SENDERS, true, NULL);
}

static void
requests_time_out_beside_batches(void **state)
{
    (void) state;
    cancels = true;
    storm("max_queue_delay_microseconds: 400 preferred_batch_size: 8"
        " priority_levels: 3 default_priority_level: 2"
        " default_queue_policy { default_timeout_microseconds: 250 }"
        " priority_queue_policy { key: 3 value { timeout_action: DELAY"
        "  default_timeout_microseconds: 100 } }", SENDERS, false, NULL);
    assert_true(timed_out > 0);
}

static void
a_plug_in_is_never_asked_by_two(void **state)
{
    (void) state;
    cancels = true;
    storm("max_queue_delay_microseconds: 200"
        " default_queue_policy { default_timeout_microseconds: 2000 }",
        SENDERS, true, &plug_in);
    storm("", SENDERS, false, &plug_in);
}

static void
a_plug_in_may_call_the_server(void **state)
{
    (void) state;
    cancels = true;
    calls_back = true;
    storm("max_queue_delay_microseconds: 200", SENDERS, true, &plug_in);
    storm("", SENDERS, false, &plug_in);
    calls_back = false;
}

static void
order_is_kept_over_all_instances(void **state)
{
    (void) state;
    cancels = false;
    keeps_order = true;
    storm("preserve_ordering: true", 1, false, NULL);
    storm("preserve_ordering: true max_queue_delay_microseconds: 100", 1,
        true, NULL);
    keeps_order = false;
}

/* Two of the three instances may run at once. */
static void
nothing_is_lost_where_rates_are_limited(void **state)
{
    (void) state;
    limits = true;
    cancels = true;
    storm("", SENDERS, false, NULL);
    storm("max_queue_delay_microseconds: 300 preferred_batch_size: [ 4, 8 ]",
        SENDERS, true, NULL);
    storm("max_queue_delay_microseconds: 200"
        " default_queue_policy { default_timeout_microseconds: 2000 }",
        SENDERS, true, &plug_in);
    cancels = false;
    keeps_order = true;
    storm("preserve_ordering: true max_queue_delay_microseconds: 100", 1,
        false, NULL);
    keeps_order = false;
    limits = false;
}

/* scheduling.md 9.1 */
static void
a_closed_batcher_answers_what_it_has(void **state)
{
    (void) state;
    sender_t *s = &senders[0];

    cancels = false;
    for (int how = 0; how < 2; how++) {
        open_model("preferred_batch_size: 8"
            " max_queue_delay_microseconds: 3600000000", how == 1, NULL);
        s->sent = 0;
        for (int i = 0; i < 5; i++) {
            job_init(&s->jobs[i]);
        }
        job_submit(s, &s->jobs[0]);
        if (how == 0) {                     /* by itself it would wait       */
            inf_runner_close(model->sched.runner);
            while (atomic_load(&s->jobs[0].released) == 0) {
                sched_yield();
            }
            inf_request_reset(&s->jobs[1].request);
            assert_error(inf_runner_submit(model->sched.runner,
                &s->jobs[1].request, 1), INF_ERR_UNAVAILABLE,
                "has stopped accepting new inference requests");
        }
        close_model();
        assert_int_equal(executed, 1);
        assert_int_equal(s->jobs[0].finals, 1);
        assert_int_equal(s->jobs[0].released, 1);
        for (int i = 0; i < 5; i++) {
            job_fini(&s->jobs[i]);
        }
    }
}

/* ---- the timekeeper ------------------------------------------------------ */

typedef struct {
    inf_timer_t      timer;
    _Atomic uint64_t fired_ns;
    _Atomic int      fired;
} alarm_t;

static void
on_alarm(void *userp)
{
    alarm_t *a = userp;
    atomic_store(&a->fired_ns, inf_clock_ns());
    atomic_fetch_add(&a->fired, 1);
}

static void
timers_fire_in_order_and_not_before_their_time(void **state)
{
    (void) state;
    static alarm_t alarms[3];
    uint64_t now = inf_clock_ns();

    inf_timekeeper_init(&timekeeper);
    for (int i = 0; i < 3; i++) {
        alarms[i] = (alarm_t) { .timer = { .fire = on_alarm } };
        alarms[i].timer.userp = &alarms[i];
        assert_ok(inf_timekeeper_add(&timekeeper, &alarms[i].timer));
    }
    inf_timekeeper_arm(&timekeeper, &alarms[0].timer, now + 30000000);
    inf_timekeeper_arm(&timekeeper, &alarms[1].timer, INF_NEVER);
    inf_timekeeper_arm(&timekeeper, &alarms[2].timer, now + 900000000000u);
    inf_timekeeper_arm(&timekeeper, &alarms[2].timer, now + 20000000);
    inf_timekeeper_arm(&timekeeper, &alarms[2].timer, now + 800000000000u);
    while (atomic_load(&alarms[0].fired) == 0) {
        sched_yield();
    }
    assert_int_equal(alarms[2].fired, 1);
    assert_true(alarms[2].fired_ns >= now + 20000000);
    assert_true(alarms[0].fired_ns >= now + 30000000);
    assert_int_equal(alarms[1].fired, 0);
    for (int i = 0; i < 3; i++) {
        inf_timekeeper_remove(&timekeeper, &alarms[i].timer);
    }
    inf_timekeeper_fini(&timekeeper);
    assert_int_equal(alarms[0].fired, 1);
}

int
main(void)
{
    alarm(540);                         /* a lost wake-up ends here          */
    inf_log_set_levels(false, false, true, 0);
    job_rejected = count_rejection;
    job_final = check_order;
    plug_in_called = call_back;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_form_and_nothing_is_lost),
        cmocka_unit_test(the_leader_of_the_rings_keeps_the_delay_too),
        cmocka_unit_test(requests_time_out_beside_batches),
        cmocka_unit_test(a_plug_in_is_never_asked_by_two),
        cmocka_unit_test(a_plug_in_may_call_the_server),
        cmocka_unit_test(order_is_kept_over_all_instances),
        cmocka_unit_test(nothing_is_lost_where_rates_are_limited),
        cmocka_unit_test(a_closed_batcher_answers_what_it_has),
        cmocka_unit_test(timers_fire_in_order_and_not_before_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
