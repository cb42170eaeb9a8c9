/*
 * live_scaling.c - instances of a runner come and go while requests are
 *                  submitted, cancelled and time out, under every policy.
 */

#include "model/config_text.h"
#include "model/instance_array.h"
#include "sched/idle_role.h"
#include "sched/plug_in_of_three.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

enum { MOST = 8, SENDERS = 3, ROUNDS = 50, WINDOW = 60, LIMIT = 8,
    DEVICES = 2 };

typedef enum { COMES, SERVES, GOES } stage_t;

/* An instance of its own on the heap: who touches it too late is caught. */
typedef struct {
    inf_instance_t      instance;
    inf_instance_spec_t spec;
    _Atomic stage_t     stage;
    _Atomic bool        busy;
    char                name[16];
} member_t;

typedef struct {
    pthread_t        thread;
    unsigned         seed;
    job_t            jobs[WINDOW];
    uint64_t         sent;
} sender_t;

/* How the storm is to be. */
typedef struct {
    const char           *scheduling;
    unsigned              senders;
    bool                  leads, strategy, limits, order, blocking, prepares;
    const inf_idle_ops_t *idle;         /* instead of leads                  */
} storm_t;

static storm_t how;
static inf_model_t *model;
static inf_rate_gate_t *gate;
static inf_timekeeper_t timekeeper;
static Inference__ModelInstanceGroup *needs[3];
static inf_runner_options_t options;
static member_t *members[MOST];
static uint32_t member_count;
static sender_t senders[SENDERS];
static _Atomic uint32_t done;           /* senders that are                  */
static _Atomic uint32_t on_device[DEVICES];
static _Atomic uint64_t answered;       /* in order                          */
static _Atomic uint32_t fails;          /* so many instances come to naught  */
static _Atomic uint64_t executed, rejected;
static uint64_t changes, aborted;

/* ---- requests ------------------------------------------------------------ */

static void
count_rejection(const inf_err_t *err)
{
    (void) err;
    atomic_fetch_add(&rejected, 1);
}

static void
check_order(const job_t *job)
{
    must(!how.order || job->number == atomic_fetch_add(&answered, 1));
}

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    member_t *m = (member_t *) (void *) instance;
    uint32_t device = (uint32_t) m->spec.device_id;

    must(atomic_load(&m->stage) != COMES);
    must(!atomic_exchange(&m->busy, true));
    must(atomic_fetch_add(&on_device[device], 1) == 0 || !how.blocking);
    if (atomic_fetch_add(&executed, count) % 16 == 0) {
        usleep(200);
    }
    for (uint32_t i = 0; i < count; i++) {
        job_execute(requests[i]);
    }
    atomic_fetch_sub(&on_device[device], 1);
    atomic_store(&m->busy, false);
}

static const inf_executor_t executor = { .execute = execute };

static void
job_submit(sender_t *s, job_t *job)
{
    inf_request_t *r = job_reset(job, model);

    job->number = s->sent++;
    r->batch_size = 1 + (uint32_t) rand_r(&s->seed) % 3;
    must(inf_runner_submit(model->sched.runner, r, inf_clock_ns()) == NULL);
}

static void *
sender_main(void *arg)
{
    sender_t *s = arg;

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t window = round % 3 == 0 ? 1 : WINDOW;

        for (uint32_t i = 0; i < window; i++) {
            job_submit(s, &s->jobs[i]);
            if (!how.order && rand_r(&s->seed) % 8 == 0) {
                job_cancel(model->sched.runner,
                    &s->jobs[(uint32_t) rand_r(&s->seed) % (i + 1)]);
            }
        }
        for (uint32_t i = 0; i < window; i++) {
            job_wait(&s->jobs[i]);
        }
    }
    atomic_fetch_add(&done, 1);
    return NULL;
}

static void
yield_inside(bool includes)
{
    if (includes) {
        sched_yield();
    }
}

/* ---- instances come and go ----------------------------------------------- */

static void
remove_instances(inf_instance_t *const *list, uint32_t count)
{
    inf_runner_dismiss(model->sched.runner, list, count);
    inf_runner_collect(model->sched.runner, list, count);
}

static inf_err_t *
prepare(void *userp, inf_instance_t *instance)
{
    (void) userp;
    (void) instance;
    uint32_t left = atomic_load(&fails);
    if (left == 0) {
        return NULL;
    }
    atomic_store(&fails, left - 1);
    return inf_err_new(INF_ERR_UNAVAILABLE, "cold");
}

static member_t *
member_new(uint64_t number, bool passive)
{
    member_t *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    snprintf(m->name, sizeof(m->name), "m_%llu", (unsigned long long) number);
    m->instance.model = model;
    m->instance.spec = &m->spec;
    m->spec.name = m->name;
    m->spec.passive = passive;
    m->spec.settings = needs[number % 3];
    m->spec.device_id = (int32_t) (number % DEVICES);
    m->spec.kind = how.blocking ? INF_INSTANCE_GPU : INF_INSTANCE_CPU;
    return m;
}

static void
members_free(member_t **gone, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(!gone[i]->busy && gone[i]->instance.sched.thread == NULL);
        free(gone[i]);
    }
}

static void
set_stage(member_t **list, uint32_t count, stage_t stage)
{
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&list[i]->stage, stage);
    }
}

/* One change, as the lifecycle does it. */
static void
change(unsigned *seed)
{
    member_t *comes[MOST], *goes[MOST], *stay[MOST];
    uint32_t come = (uint32_t) rand_r(seed) % (MOST - 1) + 1, go = 0, n = 0;
    inf_instance_t **in = (inf_instance_t **) (void *) comes;
    inf_instance_t **out = (inf_instance_t **) (void *) goes;

    for (uint32_t i = 0; i < member_count; i++) {
        bool leaves = how.blocking || rand_r(seed) % 2 == 0
            || come + n >= MOST;
        *(leaves ? &goes[go++] : &stay[n++]) = members[i];
    }
    for (uint32_t i = 0; i < come; i++) {
        comes[i] = member_new(++changes, i > 0 && rand_r(seed) % 4 == 0);
    }

    bool bad = how.prepares && rand_r(seed) % 4 == 0;
    atomic_store(&fails, bad ? 1 : 0);
    inf_err_t *err = inf_runner_add(model->sched.runner, in, come, &options);
    must(err == NULL || bad);
    if (err != NULL || rand_r(seed) % 8 == 0) {     /* or another failed     */
        inf_err_free(err);
        remove_instances(in, come);
        members_free(comes, come);
        aborted++;
        return;
    }

    set_stage(comes, come, SERVES);
    set_stage(goes, go, GOES);
    if (how.blocking) {
        remove_instances(out, go);
        inf_runner_admit(model->sched.runner);
    } else {
        inf_runner_admit(model->sched.runner);
        remove_instances(out, go);
    }
    members_free(goes, go);
    memcpy(members, stay, n * sizeof(stay[0]));
    memcpy(members + n, comes, come * sizeof(comes[0]));
    member_count = n + come;
}

/* ---- storms -------------------------------------------------------------- */

static void
open_model(void)
{
    char text[1024];

    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: %d"
        " input { name: 'IN' data_type: TYPE_INT32 dims: 4 }"
        " output { name: 'OUT' data_type: TYPE_INT32 dims: -1 }"
        " instance_group { kind: KIND_CPU rate_limiter { priority: 2"
        "  resources { name: 'R' count: 1 } } }"
        " instance_group { kind: KIND_CPU rate_limiter {"
        "  resources { name: 'R' count: 3 } resources { name: 'S' global: true"
        "   count: 1 } } }"
        " instance_group { kind: KIND_CPU } %s", LIMIT, how.scheduling);
    model = inf_model_new("m", 1, "/m");
    assert_non_null(model);
    model->built = config_parse_normal(text);
    model->sched.strategy = how.strategy ? &plug_in : NULL;
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    for (int i = 0; i < 3; i++) {
        needs[i] = model->built->instance_group[i];
    }

    gate = NULL;
    if (how.limits) {
        assert_ok(inf_rate_gate_new(NULL, 0, &gate));
    }
    inf_timekeeper_init(&timekeeper);
    options = (inf_runner_options_t) {
        .executor = &executor, .timekeeper = &timekeeper, .rate_gate = gate,
        .idle = how.leads ? &role_ops : how.idle,
        .device_blocking = how.blocking,
        .prepare = how.prepares ? prepare : NULL, .parallel = how.limits
    };

    executed = rejected = answered = 0;
    changes = aborted = 0;
    done = 0;
    member_count = 1;
    members[0] = member_new(0, false);
    atomic_store(&members[0]->stage, SERVES);
    model->instances = calloc(1, sizeof(*model->instances));
    model->instances[0] = &members[0]->instance;
    model->instance_count = 1;
    assert_ok(inf_runner_start(model, &options));
}

static void
close_model(void)
{
    inf_runner_free(model->sched.runner);
    model->sched.runner = NULL;
    inf_timekeeper_fini(&timekeeper);
    members_free(members, member_count);
    instances_unlisted(model);
    inf_model_free(model);
    inf_rate_gate_free(gate);           /* aborts if anybody is left         */
    assert_false(atomic_load(&role_held));
}

static void
storm(storm_t kind)
{
    unsigned seed = 7;
    uint64_t sent = 0;

    how = kind;
    how.senders = how.order ? 1 : SENDERS;
    open_model();
    for (unsigned i = 0; i < how.senders; i++) {
        sender_t *s = &senders[i];
        s->seed = i + 1;
        s->sent = 0;
        for (int k = 0; k < WINDOW; k++) {
            job_init(&s->jobs[k]);
        }
        assert_int_equal(pthread_create(&s->thread, NULL, sender_main, s), 0);
    }
    while (atomic_load(&done) < how.senders || changes < 20
        || (how.prepares && aborted == 0))
    {
        change(&seed);
    }
    for (unsigned i = 0; i < how.senders; i++) {
        pthread_join(senders[i].thread, NULL);
        sent += senders[i].sent;
    }
    while (inf_runner_pending(model->sched.runner) > 0) {
        sched_yield();
    }

    close_model();
    assert_int_equal(executed + rejected, sent);
    for (unsigned i = 0; i < how.senders; i++) {
        for (int k = 0; k < WINDOW; k++) {
            job_fini(&senders[i].jobs[k]);
        }
    }
}

#define DELAY "dynamic_batching { max_queue_delay_microseconds: 300"         \
    " preferred_batch_size: [ 4, 8 ] }"

static void
every_request_alone(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "" });
    storm((storm_t) { .scheduling = "", .leads = true, .prepares = true });
}

static void
batches_with_a_delay_that_somebody_watches(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = DELAY, .prepares = true });
    storm((storm_t) { .scheduling = DELAY, .leads = true });
}

static void
a_plug_in_that_waits_for_its_thread(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "dynamic_batching {"
        " max_queue_delay_microseconds: 200 default_queue_policy {"
        " default_timeout_microseconds: 2000 } }", .strategy = true });
    storm((storm_t) { .scheduling = "dynamic_batching { }", .strategy = true,
        .leads = true, .prepares = true });
}

static void
order_is_kept(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "dynamic_batching {"
        " preserve_ordering: true max_queue_delay_microseconds: 100 }",
        .order = true, .leads = true });
}

/* Copies are as many as the neediest wants that is there. */
static void
resources_are_shared_by_whoever_is_there(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "", .limits = true, .prepares = true });
    storm((storm_t) { .scheduling = DELAY, .limits = true, .leads = true });
    storm((storm_t) { .scheduling = DELAY, .limits = true, .strategy = true });
}

/* section 2, scenario 5, while they change */
static void
instances_that_block_their_device_never_overlap(void **state)
{
    (void) state;
    storm((storm_t) { .scheduling = "", .blocking = true });
    storm((storm_t) { .scheduling = DELAY, .blocking = true, .limits = true,
        .leads = true });
}

/* ---- one request, and who it was meant for goes -------------------------- */

static _Atomic bool leads, let_go;
static _Atomic uint32_t others;         /* that would have led               */

/* The first leader does not look up before it is let go. */
static bool
stubborn_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    (void) userp;
    (void) runner;
    (void) waiter;
    (void) until_ns;
    if (atomic_load(&let_go) || atomic_exchange(&leads, true)) {
        atomic_fetch_add(&others, 1);
        return false;
    }
    while (!atomic_load(&let_go)) {
        sched_yield();
    }
    return true;
}

static void
stubborn_leave(void *userp, inf_runner_t *runner)
{
    (void) userp;
    (void) runner;
}

/* Nothing else would wake the other one. */
static void
a_call_to_a_thread_that_goes_reaches_another(void **state)
{
    (void) state;
    static const inf_idle_ops_t stubborn = {
        .lead = stubborn_lead, .leave = stubborn_leave
    };
    job_t *job = &senders[0].jobs[0];

    how = (storm_t) { .scheduling = "", .idle = &stubborn };
    open_model();
    member_t *goes = members[0];
    member_t *stays = member_new(1, false);
    inf_instance_t *out = &goes->instance;
    inf_instance_t *in = &stays->instance;
    while (!atomic_load(&leads)) {
        sched_yield();
    }
    assert_ok(inf_runner_add(model->sched.runner, &in, 1, &options));
    set_stage(&stays, 1, SERVES);
    inf_runner_admit(model->sched.runner);
    while (atomic_load(&others) == 0) {     /* it is idle, behind the leader */
        sched_yield();
    }

    job_init(job);
    job_submit(&senders[0], job);           /* calls the leader              */
    inf_runner_dismiss(model->sched.runner, &out, 1);
    atomic_store(&let_go, true);
    job_wait(job);
    inf_runner_collect(model->sched.runner, &out, 1);
    assert_int_equal(executed, 1);
    members_free(&goes, 1);
    members[0] = stays;
    close_model();
    job_fini(job);
}

/* A lost wake-up ends after so many seconds. */
int
main(int argc, char **argv)
{
    alarm(argc > 1 ? (unsigned) atoi(argv[1]) : 540);
    inf_log_set_levels(false, false, true, 0);
    job_rejected = count_rejection;
    job_final = check_order;
    plug_in_called = yield_inside;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_to_a_thread_that_goes_reaches_another),
        cmocka_unit_test(every_request_alone),
        cmocka_unit_test(batches_with_a_delay_that_somebody_watches),
        cmocka_unit_test(a_plug_in_that_waits_for_its_thread),
        cmocka_unit_test(order_is_kept),
        cmocka_unit_test(resources_are_shared_by_whoever_is_there),
        cmocka_unit_test(instances_that_block_their_device_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
