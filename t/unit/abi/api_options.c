/* Options that a program may set, and their effect on the server. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/abi/api.h"
#include "core/base/log.h"
#include "core/base/log_stream.h"
#include "core/proto/message.h"

static char root[64];
static char backends[512];
static TRITONSERVER_ServerOptions *o;

static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    if (TRITONSERVER_ErrorCode(err) != code
        || strstr(TRITONSERVER_ErrorMessage(err), text) == NULL)
    {
        fail_msg("got %d: %s", (int) TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static void
write_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
make_dir(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

#define TENSORS "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }"      \
    " output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }"

static int
setup(void **state)
{
    (void) state;
    char exe[400];
    char models[128];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    inf_log_set_levels(false, false, false, 0);
    assert_true(n > 0);
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(backends, sizeof(backends), "%s/backends", exe);

    strcpy(root, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(root));
    make_dir("models");
    make_dir("models/m");
    make_dir("models/m/1");
    make_dir("models/m/configs");
    write_file("models/m/config.pbtxt", "backend: 'identity' " TENSORS);
    write_file("models/m/configs/wide.pbtxt", "backend: 'identity'"
        " max_batch_size: 32 " TENSORS);

    snprintf(models, sizeof(models), "%s/models", root);
    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, models));
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    char command[128];

    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

/* The configuration of a server made with the options; until the next call. */
static const NginxInference__CoreConfig *
config(void)
{
    static inf_core_config_t *c;

    inf_core_config_unref(c);
    succeeds(inf_api_options_config(o, &c));
    return c->values;
}

static void
defaults_are_the_originals(void **state)
{
    (void) state;
    const NginxInference__CoreConfig *c = config();

    assert_true(c->strict_readiness);
    assert_int_equal(c->drain_ms, 30000);
    assert_int_equal(c->load_threads, 4);
    assert_int_equal(c->pinned_pool_bytes, 1 << 28);
    assert_string_equal(c->model_config_name, "");
    assert_int_equal(c->load_retries, 0);
    assert_false(c->model_namespacing);
    assert_int_equal(c->rate_limit, 0);
    assert_int_equal(c->n_host_policies, 0);
    assert_true(o->exit_on_error);
    assert_true(c->metrics->enabled && c->metrics->cpu && c->metrics->gpu
        && c->metrics->counters);
    assert_false(c->metrics->histograms || c->metrics->summaries);
    assert_int_equal(c->metrics->interval_ms, 2000);
}

static void
what_is_set_is_what_the_server_reads(void **state)
{
    (void) state;

    succeeds(TRITONSERVER_ServerOptionsSetStrictReadiness(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetExitTimeout(o, 7));
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetCpuMetrics(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetGpuMetrics(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsInterval(o, 500));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "",
        "counter_latencies", "false"));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "",
        "histogram_latencies", "true"));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "",
        "summary_latencies", "true"));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "",
        "summary_quantiles", "0.5:0.05"));
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "", "unheard_of",
        "true"));
    succeeds(TRITONSERVER_ServerOptionsSetModelConfigName(o, "wide"));
    succeeds(TRITONSERVER_ServerOptionsSetModelNamespacing(o, true));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(o, 2));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadRetryCount(o, 3));
    succeeds(TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(o, 4));
    succeeds(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(o,
        7.5));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_GPU, 2, 0.5));

    const NginxInference__CoreConfig *c = config();
    assert_false(c->strict_readiness);
    assert_int_equal(c->drain_ms, 7000);
    assert_false(o->exit_on_error);
    assert_non_null(c->metrics);
    assert_true(c->metrics->enabled);
    assert_false(c->metrics->cpu || c->metrics->gpu || c->metrics->counters);
    assert_true(c->metrics->histograms && c->metrics->summaries);
    assert_int_equal(c->metrics->interval_ms, 500);
    assert_string_equal(c->metrics->quantiles, "0.5:0.05");
    assert_string_equal(c->model_config_name, "wide");
    assert_true(c->model_namespacing);
    assert_int_equal(c->load_threads, 2);
    assert_int_equal(c->load_retries, 3);
    assert_int_equal(c->n_backend_settings, 2);
    assert_string_equal(c->backend_settings[0]->key,
        "model-load-gpu-limit-device-2");
    assert_string_equal(c->backend_settings[0]->value, "0.500000");
    assert_string_equal(c->backend_settings[1]->key,
        "min-compute-capability");
    assert_string_equal(c->backend_settings[1]->value, "7.500000");

    succeeds(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(o,
        -1));
    assert_string_equal(config()->backend_settings[1]->value, "0.000000");

    /* bools match "true" exactly */
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, "",
        "summary_latencies", "True"));
    assert_false(o->config->values->metrics->summaries);
}

static void
host_policies_are_checked_when_they_are_set(void **state)
{
    (void) state;

    succeeds(TRITONSERVER_ServerOptionsSetHostPolicy(o, "cpu", "cpu-cores",
        "0-8191"));
    succeeds(TRITONSERVER_ServerOptionsSetHostPolicy(o, "gpu_0", "numa-node",
        "0"));
    fails(TRITONSERVER_ServerOptionsSetHostPolicy(o, "cpu", "colour", "red"),
        TRITONSERVER_ERROR_UNSUPPORTED, "colour");
    fails(TRITONSERVER_ServerOptionsSetHostPolicy(o, "cpu", "cpu-cores",
        "3-"), TRITONSERVER_ERROR_INVALID_ARG, "Got '3-'");
    fails(TRITONSERVER_ServerOptionsSetHostPolicy(o, "cpu", "numa-node",
        "one"), TRITONSERVER_ERROR_INVALID_ARG, "Got 'one'");

    const NginxInference__CoreConfig *c = config();
    assert_int_equal(c->n_host_policies, 2);
    assert_string_equal(c->host_policies[1]->policy, "gpu_0");
    assert_string_equal(c->host_policies[1]->key, "numa-node");
    assert_string_equal(c->host_policies[0]->value, "0-8191");
}

static void
a_rate_limit_is_kept_and_the_server_starts_with_it(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;

    fails(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, 9),
        TRITONSERVER_ERROR_INVALID_ARG, "rate limit mode");
    succeeds(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "R1", 8,
        -1));
    succeeds(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "R1", 4,
        -1));
    succeeds(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "R1", 6,
        -1));
    succeeds(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "R1", 9, 0));

    const NginxInference__CoreConfig *c = config();
    assert_int_equal(c->n_rate_limit_resources, 2);
    assert_int_equal(c->rate_limit_resources[0]->count, 4);
    assert_int_equal(c->rate_limit_resources[1]->count, 9);
    assert_int_equal(c->rate_limit_resources[1]->device, 0);

    succeeds(TRITONSERVER_ServerOptionsSetRateLimiterMode(o,
        TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerDelete(s));
}

/* scheduling.md 5.3 and 5.9 */
static void
a_model_that_asks_for_too_much_is_not_loaded(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;
    const char *json;
    size_t size;
    static const char limiter[] = " instance_group { kind: KIND_CPU"
        " rate_limiter { resources { name: 'resource1' count: 4 } } }";
    char text[1024];

    snprintf(text, sizeof(text), "backend: 'identity' %s%s", TENSORS,
        limiter);
    make_dir("models/hungry");
    make_dir("models/hungry/1");
    write_file("models/hungry/config.pbtxt", text);
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "resource1",
        1, -1));
    succeeds(TRITONSERVER_ServerNew(&s, o));    /* off: it doesn't matter    */
    succeeds(TRITONSERVER_ServerModelIndex(s, 0, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &size));
    assert_null(strstr(json, "UNAVAILABLE"));
    succeeds(TRITONSERVER_MessageDelete(m));
    succeeds(TRITONSERVER_ServerDelete(s));

    succeeds(TRITONSERVER_ServerOptionsSetRateLimiterMode(o,
        TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerModelIndex(s, 0, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &size));
    assert_non_null(strstr(json, "\"reason\":\"Invalid argument: Resource"
        " count for \\\"resource1\\\" is limited to 1 which will prevent"
        " scheduling of one or more model instances, the minimum required count is 4\""));
    succeeds(TRITONSERVER_MessageDelete(m));
    succeeds(TRITONSERVER_ServerDelete(s));
}

static void
the_named_configuration_is_read_where_there_is_one(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;
    const char *json;
    size_t size;

    fails(TRITONSERVER_ServerOptionsSetModelConfigName(o, "../m/config"),
        TRITONSERVER_ERROR_INVALID_ARG, "slash");

    const char *const names[] = { "wide", "narrow", "" };
    for (int i = 0; i < 3; i++) {
        succeeds(TRITONSERVER_ServerOptionsSetModelConfigName(o, names[i]));
        succeeds(TRITONSERVER_ServerNew(&s, o));
        succeeds(TRITONSERVER_ServerModelConfig(s, "m", -1, 1, &m));
        succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &size));
        assert_non_null(strstr(json, i == 0 ? "\"max_batch_size\":32"
            : "\"max_batch_size\":0"));
        succeeds(TRITONSERVER_MessageDelete(m));
        succeeds(TRITONSERVER_ServerDelete(s));
    }
}

static void
index_has(TRITONSERVER_Server *s, uint32_t flags, const char *text)
{
    TRITONSERVER_Message *m;
    const char *json;
    size_t size;

    succeeds(TRITONSERVER_ServerModelIndex(s, flags, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &size));
    if (strlen(text) != size || memcmp(json, text, size) != 0) {
        fail_msg("expected %s, the index is %.*s", text, (int) size, json);
    }
    succeeds(TRITONSERVER_MessageDelete(m));
}

#define ROW "{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"}"

static void
with_namespacing_a_name_of_two_models_is_rejected(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;
    TRITONSERVER_InferenceRequest *q;
    char second[128], third[128];
    bool ready;

    make_dir("second");
    make_dir("second/m");
    make_dir("second/m/1");
    write_file("second/m/config.pbtxt", "backend: 'identity' " TENSORS);
    make_dir("third");
    make_dir("third/dir");
    make_dir("third/dir/1");
    write_file("third/dir/config.pbtxt", "backend: 'identity' " TENSORS);
    snprintf(second, sizeof(second), "%s/second", root);
    snprintf(third, sizeof(third), "%s/third", root);

    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, second));
    succeeds(TRITONSERVER_ServerOptionsSetModelNamespacing(o, true));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "m"));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    index_has(s, TRITONSERVER_INDEX_FLAG_READY, "[" ROW "," ROW "]");

    static const char two[] = "There are 2 identifiers of model 'm' in global"
        " map, model namespace must be provided to resolve ambiguity.";
    fails(TRITONSERVER_InferenceRequestNew(&q, s, "m", -1),
        TRITONSERVER_ERROR_INVALID_ARG, two);
    fails(TRITONSERVER_ServerModelMetadata(s, "m", -1, &m),
        TRITONSERVER_ERROR_INVALID_ARG, two);
    fails(TRITONSERVER_ServerModelConfig(s, "m", 1, 1, &m),
        TRITONSERVER_ERROR_INVALID_ARG, two);
    fails(TRITONSERVER_ServerModelIsReady(s, "m", 1, &ready),
        TRITONSERVER_ERROR_INVALID_ARG, two);
    fails(TRITONSERVER_ServerModelStatistics(s, "m", -1, &m),
        TRITONSERVER_ERROR_INVALID_ARG, two);
    fails(TRITONSERVER_InferenceRequestNew(&q, s, "nobody", -1),
        TRITONSERVER_ERROR_INVALID_ARG,
        "Request for unknown model: 'nobody' is not found");

    const TRITONSERVER_Parameter *mapping = TRITONSERVER_ParameterNew("dir",
        TRITONSERVER_PARAMETER_STRING, "m");
    succeeds(TRITONSERVER_ServerRegisterModelRepository(s, third, &mapping,
        1));
    succeeds(TRITONSERVER_ServerLoadModel(s, "m"));
    index_has(s, TRITONSERVER_INDEX_FLAG_READY, "[" ROW "," ROW "," ROW "]");
    fails(TRITONSERVER_InferenceRequestNew(&q, s, "m", 1),
        TRITONSERVER_ERROR_INVALID_ARG, "There are 3 identifiers");
    TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *) mapping);

    succeeds(TRITONSERVER_ServerUnloadModel(s, "m"));
    fails(TRITONSERVER_InferenceRequestNew(&q, s, "m", 1),
        TRITONSERVER_ERROR_INVALID_ARG,
        "Request for unknown model: 'm' is not found");
    succeeds(TRITONSERVER_ServerUnregisterModelRepository(s, third));
    succeeds(TRITONSERVER_ServerUnregisterModelRepository(s, second));
    succeeds(TRITONSERVER_ServerLoadModel(s, "m"));
    succeeds(TRITONSERVER_InferenceRequestNew(&q, s, "m", -1));
    succeeds(TRITONSERVER_InferenceRequestDelete(q));
    succeeds(TRITONSERVER_ServerDelete(s));
}

static void
a_broken_model_is_fatal_or_makes_the_server_unready(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    bool ready;

    make_dir("models/broken");
    make_dir("models/broken/1");
    write_file("models/broken/config.pbtxt", "backend: 'nowhere' " TENSORS);

    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "failed to load all models");
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    for (int strict = 0; strict < 2; strict++) {
        succeeds(TRITONSERVER_ServerOptionsSetStrictReadiness(o, strict == 1));
        succeeds(TRITONSERVER_ServerNew(&s, o));
        succeeds(TRITONSERVER_ServerIsReady(s, &ready));
        assert_int_equal(ready, strict == 0);
        succeeds(TRITONSERVER_ServerDelete(s));
    }
}

static void
metrics_may_be_off(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Metrics *metrics;
    const char *text;
    size_t size;

    for (int on = 0; on < 2; on++) {
        succeeds(TRITONSERVER_ServerOptionsSetMetrics(o, on == 1));
        succeeds(TRITONSERVER_ServerNew(&s, o));
        succeeds(TRITONSERVER_ServerMetrics(s, &metrics));
        succeeds(TRITONSERVER_MetricsFormatted(metrics,
            TRITONSERVER_METRIC_PROMETHEUS, &text, &size));
        assert_int_equal(strstr(text, "nv_inference_count{") != NULL, on);
        assert_int_equal(strstr(text, "nv_cpu_memory_used_bytes") != NULL, on);
        succeeds(TRITONSERVER_MetricsDelete(metrics));
        succeeds(TRITONSERVER_ServerDelete(s));
    }
}

static void
log_file_and_format_are_in_force_at_once(void **state)
{
    (void) state;
    char path[128], line[512];
    unsigned y, mo, d, h, mi, sec;
    int pid, at;

    snprintf(path, sizeof(path), "%s/log", root);
    fails(TRITONSERVER_ServerOptionsSetLogFormat(o, 9),
        TRITONSERVER_ERROR_INVALID_ARG, "log format");
    fails(TRITONSERVER_ServerOptionsSetLogFile(o, root),
        TRITONSERVER_ERROR_INTERNAL, root);

    inf_log_set_levels(true, false, false, 0);
    succeeds(TRITONSERVER_ServerOptionsSetLogFile(o, path));
    succeeds(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "a/b.c", 7,
        "say \"hi\""));
    succeeds(TRITONSERVER_ServerOptionsSetLogFormat(o,
        TRITONSERVER_LOG_ISO8601));
    succeeds(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "b.c", 8, "two"));
    succeeds(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, NULL, 9, NULL));
    succeeds(TRITONSERVER_ServerOptionsSetLogFormat(o,
        TRITONSERVER_LOG_DEFAULT));
    succeeds(TRITONSERVER_ServerOptionsSetLogFile(o, ""));
    inf_log_set_levels(false, false, false, 0);

    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_int_equal(sscanf(line, "I%2u%2u %u:%u:%u.%*6u %d b.c:7] %n", &mo,
        &d, &h, &mi, &sec, &pid, &at), 6);
    assert_int_equal(pid, getpid());
    assert_string_equal(line + at, "\"say \\\"hi\\\"\"\n");
    assert_non_null(fgets(line, sizeof(line), f));
    assert_int_equal(sscanf(line, "%4u-%2u-%2uT%2u:%2u:%2uZ I %d b.c:8] %n",
        &y, &mo, &d, &h, &mi, &sec, &pid, &at), 7);
    assert_string_equal(line + at, "\"two\"\n");
    assert_non_null(fgets(line, sizeof(line), f));
    assert_non_null(strstr(line, " :9] \"\"\n"));
    assert_null(fgets(line, sizeof(line), f));
    fclose(f);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults_are_the_originals),
        T(what_is_set_is_what_the_server_reads),
        T(host_policies_are_checked_when_they_are_set),
        T(a_rate_limit_is_kept_and_the_server_starts_with_it),
        T(a_model_that_asks_for_too_much_is_not_loaded),
        T(the_named_configuration_is_read_where_there_is_one),
        T(with_namespacing_a_name_of_two_models_is_rejected),
        T(a_broken_model_is_fatal_or_makes_the_server_unready),
        T(metrics_may_be_off),
        T(log_file_and_format_are_in_force_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
