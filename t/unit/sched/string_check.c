/* Malformed strings are found by the thread that takes the payload: what is
   with them there, and behind them in their sequence. */

#include "model/config_text.h"
#include "model/instance_array.h"
#include "sched/job.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/include/channel.h"
#include "core/model/normalize.h"
#include "core/sched/batch_strategy.h"
#include "core/sched/sequence_inputs.h"

enum { JOBS = 6 };

static inf_model_t *model;
static inf_instance_t instance;
static inf_instance_spec_t spec;
static inf_timekeeper_t timekeeper;
static job_t jobs[JOBS];
static char rows[256];              /* what was executed, payloads by '|'    */
static char errors[1024];           /* in order, by '|'                      */
static char shown[64];              /* to the strategy                       */
static inf_batch_strategy_t *plug_in;   /* NULL: none                        */
static _Atomic bool inside;         /* an execution has begun                */
static _Atomic bool gate_open = true;   /* until then it lasts               */

static const char word[] = "\3\0\0\0abc";
static const char broken[] = "\4\0\0\0abc";

static void
note(char *list, size_t cap, const char *text)
{
    size_t len = strlen(list);
    must(len + strlen(text) < cap);
    strcpy(list + len, text);
}

static void
execute(inf_instance_t *on, inf_request_t **requests, uint32_t count)
{
    char name[16];

    (void) on;
    atomic_store(&inside, true);
    while (!atomic_load(&gate_open)) {
        sched_yield();
    }
    for (uint32_t i = 0; i < count; i++) {
        inf_request_t *r = requests[i];
        if (r->padding) {
            note(rows, sizeof(rows), "-");
            job_answer(r);
            inf_request_release(r, 1);
            continue;
        }
        job_t *job = r->userp;
        snprintf(name, sizeof(name), "%u", (unsigned) job->number);
        note(rows, sizeof(rows), name);
        job_execute(r);
    }
    note(rows, sizeof(rows), "|");
}

static const inf_executor_t executor = { .execute = execute };

static void
on_rejected(const inf_err_t *err)
{
    must(inf_err_code(err) == INF_ERR_INVALID_ARG);
    note(errors, sizeof(errors), inf_err_msg(err));
    note(errors, sizeof(errors), "|");
}

static void
open_model(const char *scheduling)
{
    char text[1024];
    const inf_runner_options_t options = {
        .executor = &executor, .timekeeper = &timekeeper
    };

    snprintf(text, sizeof(text), "name: 'm' backend: 'x' max_batch_size: 4"
        " input { name: 'S' data_type: TYPE_STRING dims: 1 }"
        " output { name: 'O' data_type: TYPE_INT32 dims: 1 }"
        " instance_group { kind: KIND_CPU } %s", scheduling);
    model = inf_model_new("m", 1, "/m");
    assert_non_null(model);
    model->built = config_parse_normal(text);
    assert_ok(inf_config_tensors_new(model->built, &model->tensors));
    assert_ok(inf_sequence_inputs_new(NULL, "/m", model,
        &model->sched.sequence_inputs));
    memset(&instance, 0, sizeof(instance));
    instances_listed(model, &instance, 1);
    spec.name = "m";
    spec.settings = model->built->instance_group[0];
    instance.spec = &spec;
    inf_timekeeper_init(&timekeeper);
    model->sched.strategy = plug_in;
    model->private_inputs = plug_in != NULL;
    rows[0] = errors[0] = shown[0] = '\0';
    atomic_store(&inside, false);
    job_rejected = on_rejected;
    for (int i = 0; i < JOBS; i++) {
        job_init(&jobs[i]);
    }
    assert_ok(inf_runner_start(model, &options));
}

static void
close_model(void)
{
    inf_runner_free(model->sched.runner);
    model->sched.runner = NULL;
    inf_timekeeper_fini(&timekeeper);
    instances_unlisted(model);
    inf_sequence_inputs_free(model->sched.sequence_inputs);
    model->sched.sequence_inputs = NULL;
    model->sched.strategy = NULL;
    inf_model_free(model);
    for (int i = 0; i < JOBS; i++) {
        job_fini(&jobs[i]);
    }
}

static inf_request_t *
make(uint32_t number, bool good, uint64_t sequence, uint32_t flags)
{
    static const int64_t shape[2] = { 1, 1 };
    inf_request_t *r = job_reset(&jobs[number], model);

    jobs[number].number = number;
    r->correlation_id = sequence;
    r->flags = flags;
    inf_input_t *in = inf_request_add_input(r, "S", 1, INF_TYPE_BYTES, shape,
        2);
    must(in != NULL && inf_request_add_data(r, in, &(inf_buffer_t) {
        .base = good ? word : broken, .size = 7 }) == NULL);
    must(inf_request_normalize(model, r) == NULL);
    return r;
}

static void
send_job(uint32_t number, bool good, uint64_t sequence, uint32_t flags)
{
    inf_request_t *r = make(number, good, sequence, flags);
    must(inf_runner_submit(model->sched.runner, r, inf_clock_ns()) == NULL);
}

static void
wait_for(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        job_wait(&jobs[i]);
    }
    while (inf_runner_pending(model->sched.runner) > 0) {
        sched_yield();
    }
}

#define MALFORMED "[request id: <id_unknown>] incomplete string data for"     \
    " inference input 'S' for model 'm', 1 more bytes expected|"
#define NO_START "inference request for sequence 7 to model 'm' must specify" \
    " the START flag on the first request of the sequence|"

static void
the_others_of_a_payload_run_together(void **state)
{
    (void) state;
    open_model("dynamic_batching { preferred_batch_size: 3"
        " max_queue_delay_microseconds: 100000000 }");
    send_job(0, true, 0, 0);
    send_job(1, false, 0, 0);
    send_job(2, true, 0, 0);
    wait_for(3);
    assert_string_equal(rows, "02|");
    assert_string_equal(errors, MALFORMED);
    assert_int_equal((int) model->statistics.fail.count, 0);

    send_job(0, false, 0, 0);           /* none is left: nothing runs        */
    send_job(1, false, 0, 0);
    send_job(2, false, 0, 0);
    wait_for(3);
    assert_string_equal(rows, "02|");
    close_model();
}

static void
a_model_without_batching_finds_them_too(void **state)
{
    (void) state;
    open_model("");
    send_job(0, false, 0, 0);
    send_job(1, true, 0, 0);
    wait_for(2);
    assert_string_equal(rows, "1|");
    assert_string_equal(errors, MALFORMED);
    close_model();
}

#define SEQUENCES(strategy) "sequence_batching { " strategy                   \
    " control_input { name: 'READY' control {"                                \
    "  kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }"           \
    " control_input { name: 'START' control {"                                \
    "  kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }"

/* Sequence 6 has slot 0, sequence 7 slot 1, 8 slot 2; one payload. */
static void
its_slot_has_an_empty_row_instead(void **state)
{
    (void) state;
    open_model(SEQUENCES("direct { max_queue_delay_microseconds: 100000000"
        " minimum_slot_utilization: 0.75 }"));
    send_job(0, true, 6, INF_REQUEST_SEQUENCE_START);
    send_job(1, true, 7, INF_REQUEST_SEQUENCE_START);
    send_job(2, true, 8, INF_REQUEST_SEQUENCE_START);
    wait_for(3);
    assert_string_equal(rows, "012|");

    send_job(0, true, 6, 0);            /* in the middle it is as if it had  */
    send_job(1, false, 7, 0);           /* never been sent                   */
    send_job(2, true, 8, 0);
    wait_for(3);
    assert_string_equal(rows, "012|0-2|");
    assert_string_equal(errors, MALFORMED);

    send_job(0, true, 6, INF_REQUEST_SEQUENCE_END);
    send_job(1, true, 7, INF_REQUEST_SEQUENCE_END);
    send_job(2, true, 8, INF_REQUEST_SEQUENCE_END);
    wait_for(3);
    assert_string_equal(rows, "012|0-2|012|");
    assert_string_equal(errors, MALFORMED);
    close_model();
}

/* A job of another sequence keeps the thread until all are queued. */
static void
hold_thread(uint32_t number)
{
    atomic_store(&inside, false);
    atomic_store(&gate_open, false);
    send_job(number, true, 5, INF_REQUEST_SEQUENCE_START);
    while (!atomic_load(&inside)) {
        sched_yield();
    }
}

static void
queue_behind(const char *strategy)
{
    open_model(strategy);
    hold_thread(0);
}

static const char *const strategies[] = {
    SEQUENCES("direct { }"), SEQUENCES("oldest { }")
};

/* Nothing of it may run on what the slot's last sequence has left. */
static void
a_malformed_start_begins_no_sequence(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        queue_behind(strategies[i]);
        send_job(1, false, 7, INF_REQUEST_SEQUENCE_START);
        send_job(2, true, 7, 0);
        send_job(3, true, 7, INF_REQUEST_SEQUENCE_END);
        atomic_store(&gate_open, true);
        wait_for(4);
        assert_string_equal(rows, "0|");
        assert_string_equal(errors, MALFORMED NO_START NO_START);

        inf_request_t *late = make(4, true, 7, 0);
        inf_err_t *err = inf_runner_submit(model->sched.runner, late,
            inf_clock_ns());
        assert_error(err, INF_ERR_INVALID_ARG, "must specify the START flag");
        inf_factory_unref(&jobs[4].factory);
        assert_int_equal(inf_runner_sequences(model->sched.runner), 1);
        close_model();
    }
}

/* A request sent before it still runs; one after it needs a START. */
static void
a_malformed_start_ends_a_living_sequence(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        open_model(strategies[i]);
        send_job(0, true, 7, INF_REQUEST_SEQUENCE_START);
        wait_for(1);
        hold_thread(1);
        send_job(2, true, 7, 0);
        send_job(3, false, 7, INF_REQUEST_SEQUENCE_START);
        send_job(4, true, 7, 0);
        atomic_store(&gate_open, true);
        wait_for(5);
        assert_string_equal(rows, i == 0 ? "0|-1|2|" : "0|1|2|");
        assert_string_equal(errors, MALFORMED NO_START);
        assert_int_equal(inf_runner_sequences(model->sched.runner), 1);

        inf_request_t *late = make(5, true, 7, 0);
        inf_err_t *err = inf_runner_submit(model->sched.runner, late,
            inf_clock_ns());
        assert_error(err, INF_ERR_INVALID_ARG, "must specify the START flag");
        inf_factory_unref(&jobs[5].factory);

        send_job(0, true, 7, INF_REQUEST_SEQUENCE_START);
        wait_for(1);
        assert_string_equal(rows, i == 0 ? "0|-1|2|0|" : "0|1|2|0|");
        assert_int_equal(inf_runner_sequences(model->sched.runner), 2);
        close_model();
    }
}

static void
another_start_behind_it_begins_one(void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        queue_behind(strategies[i]);
        send_job(1, false, 7, INF_REQUEST_SEQUENCE_START);
        send_job(2, true, 7, 0);
        send_job(3, true, 7, INF_REQUEST_SEQUENCE_START);
        send_job(4, true, 7, 0);
        atomic_store(&gate_open, true);
        wait_for(5);
        assert_string_equal(rows, i == 0 ? "0|-3|-4|" : "0|3|4|");
        assert_string_equal(errors, MALFORMED NO_START);
        send_job(5, true, 7, INF_REQUEST_SEQUENCE_END);
        wait_for(6);
        assert_int_equal(inf_runner_sequences(model->sched.runner), 1);
        close_model();
    }
}

static inf_err_t *
strategy_begin(inf_batch_strategy_t *s, void **batch)
{
    (void) s;
    *batch = NULL;
    return NULL;
}

static inf_err_t *
strategy_include(inf_batch_strategy_t *s, void *batch, inf_request_t *req,
    bool *joins)
{
    const job_t *job = req->userp;
    const char name[] = { (char) ('0' + job->number), '\0' };

    (void) s;
    (void) batch;
    must(req->inputs_state == INF_INPUTS_PRIVATE
        && req->inputs[0].buffers[0].base != word);
    note(shown, sizeof(shown), name);
    *joins = true;
    return NULL;
}

static inf_err_t *
strategy_end(inf_batch_strategy_t *s, void *batch)
{
    (void) s;
    (void) batch;
    return NULL;
}

/* Its batch ends before one that is not shown to it. */
static void
a_strategy_sees_copies_and_nothing_malformed(void **state)
{
    (void) state;
    static const inf_batch_strategy_ops_t ops = {
        .begin = strategy_begin,
        .include = strategy_include,
        .end = strategy_end
    };
    inf_batch_strategy_t strategy = { .ops = &ops };

    plug_in = &strategy;
    queue_behind("dynamic_batching { }");
    send_job(1, true, 0, 0);
    send_job(2, false, 0, 0);
    send_job(3, true, 0, 0);
    atomic_store(&gate_open, true);
    wait_for(4);
    assert_string_equal(rows, "0|1|3|");
    assert_string_equal(errors, MALFORMED);
    assert_string_equal(shown, "013");
    close_model();
    plug_in = NULL;
}

int
main(void)
{
    alarm(120);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_of_a_payload_run_together),
        cmocka_unit_test(a_model_without_batching_finds_them_too),
        cmocka_unit_test(its_slot_has_an_empty_row_instead),
        cmocka_unit_test(a_malformed_start_begins_no_sequence),
        cmocka_unit_test(a_malformed_start_ends_a_living_sequence),
        cmocka_unit_test(another_start_behind_it_begins_one),
        cmocka_unit_test(a_strategy_sees_copies_and_nothing_malformed)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
