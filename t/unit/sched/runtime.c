#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/instance_array.h"

#include "core/base/clock.h"
#include "core/sched/runtime.h"
#include "core/tensor/response.h"

#define INSTANCES 3

/* One model with instances whose backend is the test; gate closed: an
   execution waits in the backend until it is opened. */
typedef struct {
    inf_model_t         model;
    inf_instance_t      instances[INSTANCES];
    inf_instance_spec_t specs[INSTANCES];
    char                names[INSTANCES][32];

    pthread_mutex_t     lock;       /* guards all below                      */
    pthread_cond_t      changed;
    bool                gate;       /* open                                  */
    uint32_t            inside;     /* executions in the backend now         */
    uint32_t            most_inside;
    uint32_t            entered;
    uint32_t            per_instance[INSTANCES];
    uint32_t            order[64];  /* marks of the first requests, entered  */
    bool                overlap;    /* one instance ran two at once          */
    bool                running[INSTANCES];
} backend_t;

typedef struct {
    inf_request_t    request;
    uint32_t         mark;
    bool             keeps;         /* execute does not release it           */
    _Atomic uint32_t executing;     /* times the state was announced         */
    _Atomic uint32_t released;
} job_t;

static backend_t *b;
static uint32_t passive;        /* so many first instances of start() are    */
static const int32_t *devices;  /* of start()'s instances; NULL: all CPU     */

static void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    job_t *job = userp;
    (void) r;
    (void) flags;
    atomic_fetch_add(&job->released, 1);
}

static void
on_executing(void *userp, inf_request_t *r)
{
    job_t *job = userp;
    atomic_fetch_add(&job->executing, r->state == INF_REQUEST_EXECUTING);
}

static const inf_request_ops_t job_ops = {
    .released = on_released,
    .executing = on_executing
};

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    long i = instance - b->instances;
    job_t *job = requests[0]->userp;

    pthread_mutex_lock(&b->lock);
    b->overlap |= b->running[i] || count != 1;
    b->running[i] = true;
    if (b->entered < 64) {
        b->order[b->entered] = job->mark;
    }
    b->entered++;
    b->per_instance[i]++;
    b->inside++;
    if (b->inside > b->most_inside) {
        b->most_inside = b->inside;
    }
    pthread_cond_broadcast(&b->changed);
    while (!b->gate) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    b->inside--;
    b->running[i] = false;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);

    if (!job->keeps) {
        inf_request_release(requests[0], 1);
    }
}

static const inf_executor_t executor = { .execute = execute };

static void
job_init(job_t *job, uint32_t mark)
{
    inf_request_init(&job->request);
    job->request.ops = &job_ops;
    job->request.userp = job;
    job->mark = mark;
    job->keeps = false;
    atomic_store(&job->executing, 0);
    atomic_store(&job->released, 0);
}

static inf_runner_t *
start_with(uint32_t instances, bool gate, const inf_runner_options_t *options)
{
    b = calloc(1, sizeof(*b));
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    b->gate = gate;
    instances_listed(&b->model, b->instances, instances);
    for (uint32_t i = 0; i < instances; i++) {
        snprintf(b->names[i], sizeof(b->names[i]), "a_long_model_name_%u", i);
        b->specs[i].name = b->names[i];
        b->specs[i].passive = i < passive;
        b->specs[i].kind = devices != NULL ? INF_INSTANCE_GPU
            : INF_INSTANCE_CPU;
        b->specs[i].device_id = devices != NULL ? devices[i] : 0;
        b->instances[i].spec = &b->specs[i];
    }
    assert_null(inf_runner_start(&b->model, options));
    assert_non_null(b->model.sched.runner);
    return b->model.sched.runner;
}

static inf_runner_t *
start(uint32_t instances, bool gate)
{
    const inf_runner_options_t options = { .executor = &executor };
    return start_with(instances, gate, &options);
}

static void
stop(void)
{
    inf_runner_free(b->model.sched.runner);
    instances_unlisted(&b->model);
    assert_false(b->overlap);
    assert_int_equal(b->inside, 0);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->changed);
    free(b);
}

static void
open_gate(void)
{
    pthread_mutex_lock(&b->lock);
    b->gate = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void
wait_entered(uint32_t count)
{
    pthread_mutex_lock(&b->lock);
    while (b->entered < count) {
        pthread_cond_wait(&b->changed, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static void
wait_released(job_t *job)
{
    while (atomic_load(&job->released) == 0) {
        sched_yield();
    }
}

static void
wait_pending(inf_runner_t *runner, uint32_t count)
{
    while (inf_runner_pending(runner) != count) {
        sched_yield();
    }
}

/* scheduling.md 2.1 */
static void
one_instance_runs_requests_one_by_one_in_order(void **state)
{
    (void) state;
    static job_t jobs[20];
    inf_runner_t *runner = start(1, false);

    for (uint32_t i = 0; i < 20; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 5));
    }
    wait_entered(1);
    assert_int_equal(inf_runner_pending(runner), 20);
    assert_int_equal(b->most_inside, 1);
    open_gate();
    for (uint32_t i = 0; i < 20; i++) {
        wait_released(&jobs[i]);
    }
    wait_pending(runner, 0);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(b->order[i], i);
        assert_int_equal(jobs[i].executing, 1);
        assert_int_equal(jobs[i].released, 1);
        assert_int_equal(jobs[i].request.queue_ns, 5);
        assert_true(jobs[i].request.exec_ns > 0);
    }
    assert_int_equal(b->most_inside, 1);
    stop();
}

/* scheduling.md 2.2 */
static void
three_instances_run_three_at_once_and_the_fourth_waits(void **state)
{
    (void) state;
    static job_t jobs[4];
    inf_runner_t *runner = start(3, false);

    for (uint32_t i = 0; i < 4; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
    }
    wait_entered(3);
    assert_int_equal(inf_runner_pending(runner), 4);
    pthread_mutex_lock(&b->lock);
    assert_int_equal(b->inside, 3);
    assert_int_equal(b->entered, 3);
    pthread_mutex_unlock(&b->lock);
    assert_int_equal(jobs[3].request.state, INF_REQUEST_PENDING);
    open_gate();
    wait_released(&jobs[3]);
    wait_pending(runner, 0);
    assert_int_equal(b->entered, 4);
    stop();
}

/* A limit of a nanosecond: what executes is stuck. */
static void
executions_beyond_the_limit_are_counted_and_none_without_it(void **state)
{
    (void) state;
    static job_t jobs[INSTANCES + 1];
    inf_stuck_limit_t limit = { .ns = 1 };
    const inf_runner_options_t options = {
        .executor = &executor, .stuck_limit = &limit
    };
    inf_runner_t *runner = start_with(INSTANCES, false, &options);

    inf_stuck_t count = inf_runner_stuck(runner);
    assert_int_equal(count.serving, INSTANCES);
    assert_int_equal(count.stuck, 0);
    for (uint32_t i = 0; i < INSTANCES + 1; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request,
            inf_clock_ns()));
        wait_entered(i < INSTANCES ? i + 1 : INSTANCES);
        count = inf_runner_stuck(runner);
        assert_int_equal(count.stuck, i < INSTANCES ? i + 1 : INSTANCES);
        assert_int_equal(inf_stuck_all(&count), i + 1 >= INSTANCES);
    }
    atomic_store(&limit.ns, 0);
    assert_int_equal(inf_runner_stuck(runner).stuck, 0);
    atomic_store(&limit.ns, 1);
    open_gate();
    wait_released(&jobs[INSTANCES]);
    wait_pending(runner, 0);
    assert_int_equal(inf_runner_stuck(runner).stuck, 0);
    stop();
}

/* Of two devices with a thread each, that of two instances is stuck. */
static void
instances_of_a_stuck_thread_are_stuck_with_it(void **state)
{
    (void) state;
    static const int32_t two[INSTANCES] = { 0, 1, 0 };
    static job_t jobs[2];
    const inf_stuck_limit_t limit = { .ns = 1 };
    const inf_runner_options_t options = {
        .executor = &executor, .device_blocking = true, .stuck_limit = &limit
    };

    devices = two;
    inf_runner_t *runner = start_with(INSTANCES, false, &options);
    devices = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
        wait_entered(i + 1);
    }
    inf_stuck_t count = inf_runner_stuck(runner);
    assert_int_equal(count.serving, INSTANCES);
    assert_true(inf_stuck_all(&count));
    open_gate();
    wait_released(&jobs[0]);
    wait_released(&jobs[1]);
    wait_pending(runner, 0);
    stop();
}

static void
passive_instances_never_execute(void **state)
{
    (void) state;
    static job_t jobs[50];
    passive = 1;
    inf_runner_t *runner = start(2, true);
    passive = 0;

    for (uint32_t i = 0; i < 50; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
    }
    for (uint32_t i = 0; i < 50; i++) {
        wait_released(&jobs[i]);
    }
    wait_pending(runner, 0);
    assert_int_equal(b->per_instance[0], 0);
    assert_int_equal(b->per_instance[1], 50);
    stop();
}

/* How many of n requests get into the backend at once. */
static uint32_t
most_at_once(const inf_runner_options_t *options, uint32_t n, uint32_t expect)
{
    static job_t jobs[64];
    inf_runner_t *runner = start_with(INSTANCES, false, options);

    for (uint32_t i = 0; i < n; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
    }
    wait_entered(expect);
    open_gate();
    for (uint32_t i = 0; i < n; i++) {
        wait_released(&jobs[i]);
    }
    wait_pending(runner, 0);
    return b->most_inside;
}

/* scheduling.md 2.5 and 2.6 */
static void
blocked_gpu_instances_take_turns_on_the_thread_of_their_device(void **state)
{
    (void) state;
    static const int32_t two[INSTANCES] = { 0, 1, 0 };
    static const int32_t one[INSTANCES] = { 3, 3, 3 };
    const inf_runner_options_t blocking = {
        .executor = &executor, .device_blocking = true
    };
    const inf_runner_options_t usual = { .executor = &executor };

    devices = two;
    assert_int_equal(most_at_once(&blocking, 6, 2), 2);
    stop();

    devices = one;
    assert_int_equal(most_at_once(&blocking, 63, 1), 1);
    for (uint32_t i = 0; i < INSTANCES; i++) {
        assert_int_equal(b->per_instance[i], 21);
    }
    stop();

    assert_int_equal(most_at_once(&usual, 6, 3), 3);
    stop();

    devices = NULL;
    assert_int_equal(most_at_once(&blocking, 6, 3), 3);
    stop();
}

/* The instances prepared on each thread, and the result of one of them. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    uint32_t        wait_for;       /* so many inside before one returns     */
    uint32_t        inside;
    uint32_t        most_inside;
    uint32_t        count;
    pthread_t       threads[INSTANCES];
    uint32_t        order[INSTANCES];
    long            fails;          /* that instance; -1: none               */
} prepared_t;

static prepared_t prep;

static inf_err_t *
prepare(void *userp, inf_instance_t *instance)
{
    prepared_t *p = userp;
    long i = instance - b->instances;

    pthread_mutex_lock(&p->lock);
    p->threads[i] = pthread_self();
    p->order[p->count++] = (uint32_t) i;
    p->inside++;
    if (p->inside > p->most_inside) {
        p->most_inside = p->inside;
    }
    pthread_cond_broadcast(&p->changed);
    while (p->most_inside < p->wait_for) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    p->inside--;
    pthread_mutex_unlock(&p->lock);

    return i == p->fails
        ? inf_err_new(INF_ERR_INVALID_ARG, "cold") : NULL;
}

static inf_runner_options_t
prepare_options(uint32_t at_once)
{
    prep = (prepared_t) {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .wait_for = at_once,
        .fails = -1
    };
    return (inf_runner_options_t) {
        .executor = &executor, .prepare = prepare, .prepare_userp = &prep,
        .parallel = at_once > 1
    };
}

static void
instances_are_prepared_on_their_threads_one_after_another(void **state)
{
    (void) state;
    inf_runner_options_t options = prepare_options(1);

    start_with(INSTANCES, true, &options);
    assert_int_equal(prep.count, INSTANCES);
    assert_int_equal(prep.most_inside, 1);
    for (uint32_t i = 0; i < INSTANCES; i++) {
        assert_int_equal(prep.order[i], i);
        assert_false(pthread_equal(prep.threads[i], pthread_self()));
        for (uint32_t k = 0; k < i; k++) {
            assert_false(pthread_equal(prep.threads[i], prep.threads[k]));
        }
    }
    stop();

    options = prepare_options(INSTANCES);       /* or all at once            */
    start_with(INSTANCES, true, &options);
    assert_int_equal(prep.count, INSTANCES);
    assert_int_equal(prep.most_inside, INSTANCES);
    stop();

    static const int32_t one[INSTANCES] = { 0, 0, 0 };
    devices = one;
    options = prepare_options(1);
    options.device_blocking = true;
    start_with(INSTANCES, true, &options);
    devices = NULL;
    assert_int_equal(prep.count, INSTANCES);
    assert_true(pthread_equal(prep.threads[0], prep.threads[2]));
    stop();
}

static void
an_instance_that_is_not_prepared_fails_the_start(void **state)
{
    (void) state;
    inf_runner_options_t options = prepare_options(1);
    prep.fails = 1;

    b = calloc(1, sizeof(*b));
    instances_listed(&b->model, b->instances, INSTANCES);
    for (uint32_t i = 0; i < INSTANCES; i++) {
        snprintf(b->names[i], sizeof(b->names[i]), "i_%u", i);
        b->specs[i].name = b->names[i];
        b->instances[i].spec = &b->specs[i];
    }

    inf_err_t *err = inf_runner_start(&b->model, &options);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_string_equal(inf_err_msg(err), "cold (instance 'i_1')");
    inf_err_free(err);
    assert_int_equal(prep.count, INSTANCES);    /* the others all the same   */
    assert_null(b->model.sched.runner);
    instances_unlisted(&b->model);
    free(b);
}

/* scheduling.md 2.3 and 8.2 */
static void
a_queued_request_can_be_cancelled_and_a_running_one_not(void **state)
{
    (void) state;
    static job_t jobs[3];
    inf_runner_t *runner = start(1, false);

    for (uint32_t i = 0; i < 3; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
        wait_entered(1);
    }
    assert_false(inf_runner_cancel(runner, &jobs[0].request));
    assert_true(inf_runner_cancel(runner, &jobs[1].request));
    inf_request_release(&jobs[1].request, 1);
    assert_false(inf_runner_cancel(runner, &jobs[1].request));
    assert_int_equal(inf_runner_pending(runner), 2);
    open_gate();
    wait_released(&jobs[2]);
    wait_pending(runner, 0);
    assert_false(inf_runner_cancel(runner, &jobs[2].request));
    assert_int_equal(b->entered, 2);
    assert_int_equal(b->order[1], 2);
    assert_int_equal(jobs[1].executing, 0);
    stop();
}

/* A rejected request is the caller's still: no callback, as it was. */
static void
a_closed_runner_rejects_and_finishes_what_it_has(void **state)
{
    (void) state;
    static job_t jobs[5];
    inf_runner_t *runner = start(1, false);

    for (uint32_t i = 0; i < 4; i++) {
        job_init(&jobs[i], i);
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
    }
    inf_runner_close(runner);
    job_init(&jobs[4], 4);
    inf_err_t *err = inf_runner_submit(runner, &jobs[4].request, 0);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    assert_string_equal(inf_err_msg(err), "[request id: <id_unknown>] Server"
        " is stopping, scheduler for model has stopped accepting new inference"
        " requests");
    inf_err_free(err);
    assert_int_equal(jobs[4].request.state, INF_REQUEST_IDLE);
    assert_int_equal(jobs[4].released, 0);

    open_gate();
    inf_runner_free(b->model.sched.runner); /* waits for the queue           */
    b->model.sched.runner = NULL;
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(jobs[i].released, 1);
    }
    assert_int_equal(b->entered, 4);
    stop();
}

/* scheduling.md 2.10: an execution ends when execute returns, even if the
   backend has still to answer. */
static void
an_instance_goes_on_while_a_stream_is_open(void **state)
{
    (void) state;
    static job_t jobs[3];
    inf_runner_t *runner = start(1, true);

    for (uint32_t i = 0; i < 3; i++) {
        job_init(&jobs[i], i);
        jobs[i].keeps = i == 0;             /* its request even              */
        assert_null(inf_runner_submit(runner, &jobs[i].request, 0));
    }
    wait_released(&jobs[1]);
    wait_released(&jobs[2]);
    wait_pending(runner, 0);
    assert_int_equal(jobs[0].executing, 1);
    assert_int_equal(jobs[0].released, 0);
    inf_request_release(&jobs[0].request, 1);
    stop();
}

static void
a_model_without_instances_starts_and_stops(void **state)
{
    (void) state;
    inf_runner_t *runner = start(0, true);
    assert_int_equal(inf_runner_pending(runner), 0);
    stop();
    inf_runner_free(NULL);
}

static void *
open_later(void *arg)
{
    usleep(*(useconds_t *) arg);
    open_gate();
    return NULL;
}

static void
long_executions_are_not_called_quick(void **state)
{
    (void) state;
    static job_t job;
    useconds_t delay = 2000;
    pthread_t thread;
    inf_runner_t *runner = start(1, false);

    assert_false(inf_runner_is_quick(runner));      /* nothing is known yet  */
    job_init(&job, 0);
    assert_null(inf_runner_submit(runner, &job.request, 0));
    wait_entered(1);
    pthread_create(&thread, NULL, open_later, &delay);
    pthread_join(thread, NULL);
    wait_pending(runner, 0);
    assert_false(inf_runner_is_quick(runner));
    stop();
}

/* ---- leaders ------------------------------------------------------------- */

/* The role; its poll has no eventfd: the leader sleeps on its own waiter. */
typedef struct {
    _Atomic bool     taken;
    _Atomic uint32_t leads, rejected, leaves, given_back;
    bool             give_back;     /* false from lead though not rejected   */
} role_t;

static bool
role_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    role_t *role = userp;

    (void) runner;
    if (atomic_exchange(&role->taken, true)) {
        atomic_fetch_add(&role->rejected, 1);
        return false;
    }
    atomic_fetch_add(&role->leads, 1);
    bool work = true;
    if (role->give_back && atomic_load(&role->leads) % 3 == 0) {
        atomic_fetch_add(&role->given_back, 1);
        work = false;
    } else {
        while (!inf_waiter_woken(waiter) && (until_ns == INF_NEVER
            || inf_clock_ns() < until_ns))
        {
            sched_yield();
        }
    }
    atomic_store(&role->taken, false);
    return work;
}

static void
role_leave(void *userp, inf_runner_t *runner)
{
    (void) runner;
    atomic_fetch_add(&((role_t *) userp)->leaves, 1);
}

static const inf_idle_ops_t role_ops = {
    .lead = role_lead,
    .leave = role_leave
};

/* ---- many requests from many threads ------------------------------------- */

enum { SENDERS = 3, ROUNDS = 270, WINDOW = 200 };

typedef struct {
    pthread_t     thread;
    inf_runner_t *runner;
    job_t         jobs[WINDOW];
    uint32_t      executed;
    uint32_t      cancelled;
    unsigned      seed;
} sender_t;

/* Sends a window, waits for all of it; cancels some on the way. */
static void *
sender_main(void *arg)
{
    sender_t *s = arg;

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t window = round % 3 == 0 ? 1 : WINDOW;

        for (uint32_t i = 0; i < window; i++) {
            job_t *job = &s->jobs[i];
            job_init(job, i);
            inf_err_t *err = inf_runner_submit(s->runner, &job->request, 1);
            if (err != NULL) {
                abort();
            }
            if (rand_r(&s->seed) % 16 == 0) {
                job = &s->jobs[(uint32_t) rand_r(&s->seed) % (i + 1)];
                if (inf_runner_cancel(s->runner, &job->request)) {
                    s->cancelled++;
                    inf_request_release(&job->request, 1);
                }
            }
        }
        for (uint32_t i = 0; i < window; i++) {
            job_t *job = &s->jobs[i];
            while (atomic_load(&job->released) == 0) {
                sched_yield();
            }
            s->executed += atomic_load(&job->executing);
        }
    }
    return NULL;
}

static void
storm(const inf_runner_options_t *options)
{
    static sender_t senders[SENDERS];
    uint32_t executed = 0, cancelled = 0;
    uint32_t total = SENDERS * (ROUNDS / 3 + ROUNDS * 2 / 3 * WINDOW);
    inf_runner_t *runner = start_with(INSTANCES, true, options);

    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i].runner = runner;
        senders[i].executed = 0;
        senders[i].cancelled = 0;
        senders[i].seed = 100 + i;
        assert_int_equal(pthread_create(&senders[i].thread, NULL, sender_main,
            &senders[i]), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(senders[i].thread, NULL);
        executed += senders[i].executed;
        cancelled += senders[i].cancelled;
    }
    wait_pending(runner, 0);
    assert_int_equal(executed + cancelled, total);
    assert_int_equal(b->entered, executed);
    assert_int_equal(b->per_instance[0] + b->per_instance[1]
        + b->per_instance[2], executed);
    stop();
}

static void
no_wake_up_is_lost_when_threads_sleep(void **state)
{
    (void) state;
    const inf_runner_options_t options = { .executor = &executor };
    storm(&options);
}

static void
no_wake_up_is_lost_when_threads_spin(void **state)
{
    (void) state;
    const inf_runner_options_t options = {
        .executor = &executor, .spin_ns = 5000
    };
    storm(&options);
}

static void
no_wake_up_is_lost_when_a_thread_leads(void **state)
{
    (void) state;
    role_t role = { 0 };
    const inf_runner_options_t options = {
        .executor = &executor, .idle = &role_ops, .idle_userp = &role
    };

    storm(&options);
    assert_true(role.leads > 0);
    assert_true(role.leaves > 0);
    assert_false(role.taken);

    role.give_back = true;
    storm(&options);
    assert_true(role.given_back > 0);
    assert_false(role.taken);
}

int
main(void)
{
    alarm(540);                         /* a lost wake-up ends here          */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_instance_runs_requests_one_by_one_in_order),
        cmocka_unit_test(
            three_instances_run_three_at_once_and_the_fourth_waits),
        cmocka_unit_test(
            executions_beyond_the_limit_are_counted_and_none_without_it),
        cmocka_unit_test(instances_of_a_stuck_thread_are_stuck_with_it),
        cmocka_unit_test(passive_instances_never_execute),
        cmocka_unit_test(
            blocked_gpu_instances_take_turns_on_the_thread_of_their_device),
        cmocka_unit_test(
            instances_are_prepared_on_their_threads_one_after_another),
        cmocka_unit_test(an_instance_that_is_not_prepared_fails_the_start),
        cmocka_unit_test(
            a_queued_request_can_be_cancelled_and_a_running_one_not),
        cmocka_unit_test(a_closed_runner_rejects_and_finishes_what_it_has),
        cmocka_unit_test(an_instance_goes_on_while_a_stream_is_open),
        cmocka_unit_test(a_model_without_instances_starts_and_stops),
        cmocka_unit_test(long_executions_are_not_called_quick),
        cmocka_unit_test(no_wake_up_is_lost_when_threads_sleep),
        cmocka_unit_test(no_wake_up_is_lost_when_threads_spin),
        cmocka_unit_test(no_wake_up_is_lost_when_a_thread_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
