/* Instance groups that change while their model is loaded. */

#include "repository/lifecycle_world.h"

#include <pthread.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/instances.h"
#include "core/proto/config_json.h"


/* The model m on a machine with two GPUs. */
static lifecycle_world_t w;
static const int32_t gpu_ids[] = { 0, 1 };

static int
setup(void **state)
{
    static const char *const places[] = { "repo", NULL };

    (void) state;
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    w.options.gpus = (inf_gpus_t) {
        .ids = gpu_ids, .count = 2, .min_capability = 6
    };
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    lifecycle_world_end(&w);
    return 0;
}

static void
write_groups(const char *groups)
{
    char text[1024];

    snprintf(text, sizeof(text), "backend: 'x' input { name: 'A' data_type:"
        " TYPE_FP32 dims: 1 } output { name: 'B' data_type: TYPE_FP32 dims: 1"
        " } version_policy { all {} } %s", groups);
    tree_file(w.tree, "repo/m/config.pbtxt", text);
}

static inf_err_t *
load(const char *groups)
{
    write_groups(groups);
    return inf_lifecycle_load(w.lc, "m", NULL);
}

static inf_model_t *
find(int64_t version)
{
    inf_registry_reader_t reader;
    inf_model_t *model = NULL;

    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_find(&reader, INF_SLICE("m"), version, &model));
    inf_registry_reader_fini(&reader);
    return model;
}

/* "m_0_0:0 m_0_1:1": names and devices of a version's instances. */
static const char *
instances_of(int64_t version)
{
    static char text[1024];
    inf_model_t *model = find(version);
    inf_instance_t *i = NULL;
    size_t len = 0;

    text[0] = '\0';
    while ((i = inf_instance_visit_next(model, i)) != NULL) {
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s:%d",
            len > 0 ? " " : "", i->spec->name, i->spec->device_id);
    }
    inf_model_unref(model);
    return text;
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

/* From now on. */
static void
forget_calls(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.trace[0] = '\0';
    pthread_mutex_unlock(&fake.lock);
}

/* An instance that goes is ended by a thread of its own. */
static void
expect_calls(const char *calls)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    bool same = false;

    while (!same) {
        pthread_mutex_lock(&fake.lock);
        same = strcmp(fake.trace, calls) == 0;
        if (!same && inf_clock_ns() > until) {
            assert_string_equal(fake.trace, calls);
        }
        pthread_mutex_unlock(&fake.lock);
        usleep(1000);
    }
}

static void
wait_count(const char *call, int count)
{
    while (fake_count(call) < count) {
        usleep(1000);
    }
    assert_int_equal(fake_count(call), count);
}

#define CPU(count) "instance_group { kind: KIND_CPU count: " #count " }"
#define GPU(count, gpus) "instance_group { kind: KIND_GPU count: " #count    \
    " gpus: [ " gpus " ] }"

static void
only_what_is_missing_is_made(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(CPU(2)));
    inf_model_t *model = find(1);

    forget_calls();
    assert_ok(load(CPU(4)));
    expect_calls("iinit m_0_2/1;iinit m_0_3/1;");
    forget_calls();
    assert_ok(load(CPU(1)));
    wait_count("ifini m_0_1/1", 1);         /* each when it is idle          */
    wait_count("ifini m_0_2/1", 1);
    wait_count("ifini m_0_3/1", 1);
    forget_calls();
    assert_ok(load(CPU(1)));                /* the file is another           */
    expect_calls("");
    assert_string_equal(instances_of(1), "m_0_0:0");

    inf_model_t *still = find(1);
    assert_ptr_equal(model, still);
    inf_model_unref(still);
    inf_model_unref(model);
    assert_string_equal(rows(), "m/1 READY \n");
}

static void
devices_come_and_go(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(GPU(1, "0") CPU(1)));
    assert_string_equal(instances_of(1), "m_0_0:0 m_1_0:0");

    forget_calls();
    assert_ok(load(GPU(1, "0") CPU(1) GPU(2, "1")));
    expect_calls("iinit m_2_0/1;iinit m_2_1/1;");
    assert_string_equal(instances_of(1), "m_0_0:0 m_1_0:0 m_2_0:1 m_2_1:1");

    forget_calls();
    assert_ok(load(GPU(1, "1")));           /* one of those stays            */
    wait_count("ifini m_0_0/1", 1);
    wait_count("ifini m_1_0/1", 1);
    wait_count("ifini m_2_1/1", 1);
    assert_string_equal(instances_of(1), "m_2_0:1");

    forget_calls();
    assert_error(load(GPU(1, "1, 7")), INF_ERR_INVALID_ARG,
        "load failed for model 'm': version 1 is at READY state: Invalid"
        " argument: ");
    expect_calls("");
    assert_non_null(strstr(rows(), "m/1 READY Invalid argument: "));
    assert_non_null(strstr(rows(), "specifies invalid or unsupported gpu id"
        " 7. GPUs with at least the minimum required CUDA compute"
        " compatibility of 6.000000 are: 0 1"));
    assert_string_equal(instances_of(1), "m_2_0:1");
    assert_ok(load(GPU(1, "1")));
    assert_string_equal(rows(), "m/1 READY \n");
}

/* scheduling reference, section 2: never for shared-thread instances */
static void
instances_that_block_their_device_are_made_anew(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    fake.execution_policy = INF_BACKEND_DEVICE_BLOCKING;
    assert_ok(load(GPU(1, "0") CPU(1)));

    forget_calls();
    assert_ok(load(GPU(2, "0") CPU(1)));
    expect_calls("iinit m_0_0/1;iinit m_0_1/1;ifini m_0_0/1;");
    assert_string_equal(instances_of(1), "m_1_0:0 m_0_0:0 m_0_1:0");

    inf_model_t *model = find(1);           /* a thread for both             */
    assert_ptr_equal(model->instances[1]->sched.thread,
        model->instances[2]->sched.thread);
    assert_ptr_not_equal(model->instances[0]->sched.thread,
        model->instances[1]->sched.thread);
    inf_model_unref(model);
}

/* All versions change, or none. */
static void
what_one_version_cannot_have_no_version_gets(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    tree_dir(w.tree, "repo/m/2");
    assert_ok(load(CPU(1)));

    forget_calls();
    fake.fail = "iinit m_0_2/2";
    assert_error(load(CPU(3)), INF_ERR_INVALID_ARG, "load failed for model"
        " 'm': version 2 is at READY state: Unavailable: no room"
        " (instance 'm_0_2'); not reloaded, 2 versions go on serving\n");
    assert_int_equal(fake_count("iinit m_0_1/1"), 1);
    assert_int_equal(fake_count("ifini m_0_1/1"), 1);
    assert_int_equal(fake_count("ifini m_0_2/1"), 1);
    assert_int_equal(fake_count("ifini m_0_1/2"), 1);
    assert_int_equal(fake_count("ifini m_0_2/2"), 1);   /* by itself         */
    assert_string_equal(instances_of(1), "m_0_0:0");
    assert_string_equal(instances_of(2), "m_0_0:0");
    assert_string_equal(rows(),
        "m/1 READY \nm/2 READY Unavailable: no room (instance 'm_0_2')\n");

    fake.fail = NULL;
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));     /* tried again       */
    assert_string_equal(instances_of(2), "m_0_0:0 m_0_1:0 m_0_2:0");
    assert_string_equal(rows(), "m/1 READY \nm/2 READY \n");

    forget_calls();                         /* a new version can't be built  */
    tree_dir(w.tree, "repo/m/3");
    fake.fail = "init m/3";
    assert_error(load(CPU(4)), INF_ERR_INVALID_ARG, "version 3 is at"
        " UNAVAILABLE state: Unsupported: told to fail; not reloaded");
    assert_int_equal(fake_count("iinit m_0_3/1"), 1);
    assert_int_equal(fake_count("ifini m_0_3/1"), 1);
    assert_string_equal(instances_of(1), "m_0_0:0 m_0_1:0 m_0_2:0");

    fake.fail = NULL;
    forget_calls();
    assert_ok(load(CPU(2)));
    assert_int_equal(fake_count("init m/3"), 1);
    assert_int_equal(fake_count("init m/1"), 0);
    wait_count("ifini m_0_2/2", 1);
    assert_string_equal(instances_of(3), "m_0_0:0 m_0_1:0");
}

static void
what_else_differs_means_a_new_model(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(CPU(1)));

    forget_calls();
    assert_ok(load(CPU(2) " max_batch_size: 2"));
    assert_int_equal(fake_count("init m/1"), 1);
    forget_calls();
    tree_file(w.tree, "repo/m/1/data", "x");
    assert_ok(load(CPU(3) " max_batch_size: 2"));
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("iinit m_0_0/1"), 1);
}

static inf_err_t *
completing_init(inf_model_t *model)
{
    static const char json[] = "{\"max_batch_size\":4}";

    inf_lock(&model->config_lock);
    inf_err_t *err = inf_model_config_merge_json(model->config, json,
        sizeof(json) - 1);
    model->completed = true;
    inf_unlock(&model->config_lock);
    return err != NULL ? err : fake_model_init(model);
}

/* With what the model says of itself, and count other instances. */
static inf_err_t *
load_own_configuration(int count)
{
    inf_override_t *override;
    inf_model_t *model = find(1);
    inf_buf_t json;
    char *text, *at;

    inf_buf_init(&json);
    assert_ok(inf_model_config_to_json(model->config->msg, &json));
    inf_model_unref(model);
    text = inf_buf_give(&json, NULL);
    at = strstr(text, "\"count\":");
    assert_non_null(at);
    at[strlen("\"count\":")] = (char) ('0' + count);
    assert_ok(inf_override_new(&override));
    assert_ok(inf_override_set_config(override, inf_slice_str(text)));
    free(text);
    return inf_lifecycle_load(w.lc, "m", override);
}

/* It may be sent back, and the file may go on from there. */
static void
a_completed_configuration_is_the_one_that_was_completed(void **state)
{
    (void) state;
    inf_plugin_ops_t ops = fake_ops;
    tree_dir(w.tree, "repo/m/1");
    ops.model_init = completing_init;
    w.options.plugins = &ops;
    lifecycle_world_restart(&w);
    assert_ok(load(CPU(1)));

    forget_calls();
    assert_ok(load_own_configuration(3));
    expect_calls("iinit m_0_1/1;iinit m_0_2/1;");
    forget_calls();
    assert_ok(load_own_configuration(2));
    expect_calls("ifini m_0_2/1;");
    forget_calls();
    assert_ok(load(CPU(3)));
    expect_calls("iinit m_0_2/1;");
    forget_calls();
    assert_ok(load(CPU(3) " max_batch_size: 8"));
    assert_int_equal(fake_count("init m/1"), 1);

    w.options.plugins = &fake_ops;
    lifecycle_world_restart(&w);           /* ops ends here                 */
}

static void
a_change_is_tried_as_often_as_a_load(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    w.core_config->values->load_retries = 2;
    lifecycle_world_restart(&w);
    assert_ok(load(CPU(1)));

    fake.fail = "iinit m_0_1/1";
    assert_error(load(CPU(2)), INF_ERR_INVALID_ARG, "no room");
    assert_int_equal(fake_count("iinit m_0_1/1"), 3);
    assert_int_equal(fake_count("ifini m_0_1/1"), 3);
}

static void
on_released(void *userp, inf_request_t *r, uint32_t flags)
{
    (void) r;
    (void) flags;
    atomic_store((_Atomic bool *) userp, true);
}

/* One request through the runner of version 1. */
static void
run_one(void)
{
    static const inf_request_ops_t ops = { .released = on_released };
    _Atomic bool released = false;
    inf_request_t r;
    inf_model_t *model = find(1);

    inf_request_init(&r);
    r.ops = &ops;
    r.userp = &released;
    assert_ok(inf_runner_submit(model->sched.runner, &r, inf_clock_ns()));
    while (!atomic_load(&released)) {
        usleep(100);
    }
    while (inf_runner_pending(model->sched.runner) > 0) {
        usleep(100);
    }
    inf_request_fini(&r);
    inf_model_unref(model);
}

static void *
load_three(void *unused)
{
    (void) unused;
    return load(CPU(3));
}

static void
requests_go_on_while_an_instance_is_made_and_ended(void **state)
{
    (void) state;
    pthread_t loader;
    void *err;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(CPU(1)));

    fake.hold = "iinit m_0_2/1";
    assert_int_equal(pthread_create(&loader, NULL, load_three, NULL), 0);
    fake_wait_held(1);
    run_one();
    assert_string_equal(rows(), "m/1 READY \n");
    assert_string_equal(instances_of(1), "m_0_0:0");
    fake_release();
    pthread_join(loader, &err);
    assert_null(err);
    assert_string_equal(instances_of(1), "m_0_0:0 m_0_1:0 m_0_2:0");

    write_groups(CPU(1));
    fake.hold = "ifini m_0_1/1";
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));     /* doesn't wait      */
    fake_wait_held(1);
    for (int i = 0; i < 10; i++) {
        run_one();
    }
    assert_string_equal(instances_of(1), "m_0_0:0");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_non_null(strstr(rows(), "m/1 UNLOADING"));   /* that does         */
    assert_int_equal(fake_count("fini m/1"), 0);
    fake_release();
    index_rows_wait(&w.index, w.lc, "m/1 UNAVAILABLE unloaded\n");
    assert_int_equal(fake_count("iinit m_0_0/1"), 1);
    assert_int_equal(fake_count("ifini m_0_0/1"), 1);
    assert_int_equal(fake_count("ifini m_0_2/1"), 1);
}

/* The requests of an instance that the backend has kept come back first. */
static void
an_instance_stays_until_its_requests_are_back(void **state)
{
    (void) state;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(CPU(2)));
    inf_model_t *model = find(1);
    inf_instance_t *second = model->instances[1];

    atomic_store(&second->kept, 2);
    assert_ok(load(CPU(1)));
    assert_string_equal(instances_of(1), "m_0_0:0");
    atomic_fetch_add(&second->returned, 1);
    usleep(20000);
    assert_int_equal(fake_count("ifini m_0_1/1"), 0);

    assert_ok(load(CPU(3)));                /* it is not taken back          */
    assert_string_equal(instances_of(1), "m_0_0:0 m_0_1:0 m_0_2:0");
    assert_int_equal(fake_count("iinit m_0_1/1"), 2);
    run_one();
    atomic_fetch_add(&second->returned, 1);
    wait_count("ifini m_0_1/1", 1);
    inf_model_unref(model);
}

/* Counted in an instance that goes: batches, failures and responses. */
static void
what_was_counted_stays(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 10, 20, 40, 80 };
    const inf_batch_stat_t *batches[4];
    inf_statistics_t sum = { 0 };
    inf_response_stat_t responses;
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(CPU(2)));
    inf_model_t *model = find(1);

    for (uint32_t i = 0; i < 2; i++) {
        inf_statistics_t *s = &model->instances[i]->statistics;
        inf_statistics_success(s, 3, 1, 5, stamps, 100);
        inf_statistics_batch(s, 3 + i, stamps, 77 + i);
        inf_statistics_failure_for(s, INF_FAILURE_BACKEND, 1, 2);
        for (uint32_t k = 0; k < 100 * (i + 1); k++) {
            assert_ok(inf_statistics_response(s, k, INF_RESPONSE_SUCCESS, 1,
                2, 4));
        }
    }
    assert_ok(load(CPU(1)));
    wait_count("ifini m_0_1/1", 1);

    inf_model_sum_statistics(model, &sum);
    assert_int_equal(sum.inference_count, 6);
    assert_int_equal(sum.execution_count, 2);
    assert_int_equal(sum.success.count, 2);
    assert_int_equal(sum.queue.ns, 10);
    assert_int_equal(sum.last_inference_ms, 78);
    assert_int_equal(sum.failures[INF_FAILURE_BACKEND], 2);
    assert_int_equal(inf_statistics_batches(&sum, batches, 4), 2);
    assert_int_equal(batches[0]->batch_size, 3);
    assert_int_equal(batches[1]->batch_size, 4);
    assert_true(inf_model_sum_responses(model, 99, &responses));
    assert_int_equal(responses.success.count, 2);
    assert_true(inf_model_sum_responses(model, 199, &responses));
    assert_int_equal(responses.success.count, 1);
    assert_int_equal(responses.success.ns, 3);
    assert_false(inf_model_sum_responses(model, 200, &responses));
    inf_statistics_fini(&sum);
    inf_model_unref(model);
}

/* As long as it has an instance, its row in the metrics has them. */
static void
counters_of_a_gpu_do_not_go_back(void **state)
{
    (void) state;
    const uint64_t stamps[4] = { 10, 20, 40, 80 };
    tree_dir(w.tree, "repo/m/1");
    assert_ok(load(GPU(1, "0") GPU(2, "1")));
    inf_model_t *model = find(1);

    inf_instance_t *first = model->instances[0];
    inf_instance_t *second = model->instances[1];
    for (uint32_t i = 0; i < 3; i++) {
        inf_statistics_success(&model->instances[i]->statistics, 1 + i, 1, 5,
            stamps, 100);
    }
    assert_ok(load(GPU(1, "0") GPU(1, "1")));
    wait_count("ifini m_1_1/1", 1);
    while (second->statistics.inference_count != 5) {
        usleep(1000);
    }
    assert_int_equal(first->statistics.inference_count, 1);
    assert_ok(load(GPU(1, "0")));
    wait_count("ifini m_1_0/1", 1);
    while (model->statistics.inference_count != 5) {
        usleep(1000);
    }
    assert_int_equal(first->statistics.inference_count, 1);
    inf_model_unref(model);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        T(only_what_is_missing_is_made),
        T(devices_come_and_go),
        T(instances_that_block_their_device_are_made_anew),
        T(what_one_version_cannot_have_no_version_gets),
        T(what_else_differs_means_a_new_model),
        T(a_completed_configuration_is_the_one_that_was_completed),
        T(a_change_is_tried_as_often_as_a_load),
        T(requests_go_on_while_an_instance_is_made_and_ended),
        T(an_instance_stays_until_its_requests_are_back),
        T(what_was_counted_stays),
        T(counters_of_a_gpu_do_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
