#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/server/gpu_metrics.h"
#include "core/tensor/nvml.h"
#include "fake_cuda.h"
#include "fake_nvml.h"

#define INTERVAL  UINT64_C(2000)        /* a reading is used for 1000        */
#define FIELDS    INF_NVML_FIELDS
#define UTILIZATION                                                          \
    "nv_gpu_utilization{gpu_uuid=\"GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\"}"
#define ENERGY                                                               \
    "nv_energy_consumption{gpu_uuid="                                        \
    "\"GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0\"}"

static inf_memory_t *memory;

static void
succeeds(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

/* One GPU (the other is too old). */
static int
setup(void **state)
{
    (void) state;
    fake_cuda_reset();
    fake_nvml_calls();
    setenv(INF_NVML_ENV, FAKE_NVML_LIBRARY, 1);
    unsetenv("TRITON_SERVER_CPU_ONLY");
    succeeds(inf_memory_new(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = 6.0 }, &memory));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_memory_free(memory);
    fake_nvml_fail(NULL);
    assert_int_equal(fake_nvml_open(), 0);
    assert_int_equal(fake_cuda_live(), 0);
    return 0;
}

static inf_gpu_metrics_t *
open_metrics(void)
{
    inf_gpu_metrics_t *g;
    succeeds(inf_gpu_metrics_new(memory, INTERVAL, &g));
    assert_non_null(g);
    return g;
}

/* The text at that time; valid until the next call. */
static const char *
text_at(inf_gpu_metrics_t *g, uint64_t now_ns)
{
    static char text[8192];
    inf_buf_t out;

    inf_buf_init(&out);
    inf_gpu_metrics_write(g, now_ns, &out);
    inf_slice_t all = inf_buf_slice(&out);
    assert_true(all.len < sizeof(text));
    memcpy(text, all.data, all.len);
    text[all.len] = '\0';
    inf_buf_fini(&out);
    return text;
}

static void
has_line(const char *text, const char *line)
{
    if (strstr(text, line) == NULL) {
        fail_msg("no \"%s\" in:\n%s", line, text);
    }
}

static double
energy_in(const char *text)
{
    const char *at = strstr(text, ENERGY);
    assert_non_null(at);
    return strtod(at + strlen(ENERGY), NULL);
}

static void
every_family_has_its_row(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = open_metrics();
    const char *text = text_at(g, 5000);

    has_line(text, "# TYPE nv_gpu_utilization gauge\n" UTILIZATION " 0.37\n");
    has_line(text, "# TYPE nv_gpu_memory_total_bytes gauge\n"
        "nv_gpu_memory_total_bytes{gpu_uuid=");
    has_line(text, "} 1073741824\n");
    has_line(text, "# TYPE nv_gpu_memory_used_bytes gauge\n");
    has_line(text, "} 268435456\n");
    has_line(text, "# TYPE nv_gpu_power_usage gauge\n");
    has_line(text, "} 75.5\n");
    has_line(text, "# TYPE nv_gpu_power_limit gauge\n");
    has_line(text, "} 250\n");
    has_line(text, "# TYPE nv_energy_consumption counter\n" ENERGY);
    assert_null(strstr(text, "GPU-a1"));
    inf_gpu_metrics_free(g);
}

static void
each_of_eight_gpus_has_its_row(void **state)
{
    (void) state;
    static const char *const families[] = { "nv_gpu_utilization",
        "nv_gpu_memory_total_bytes", "nv_gpu_memory_used_bytes",
        "nv_gpu_power_usage", "nv_gpu_power_limit", "nv_energy_consumption" };

    inf_memory_free(memory);
    fake_cuda_set_devices(8);
    succeeds(inf_memory_new(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = 5.0 }, &memory));
    inf_gpu_metrics_t *g = open_metrics();
    const char *text = text_at(g, 5000);

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        for (int gpu = 0; gpu < 8; gpu++) {
            char row[128];
            snprintf(row, sizeof(row), "\n%s{gpu_uuid=\"GPU-a%da%da%da%d-",
                families[i], gpu, gpu, gpu, gpu);
            has_line(text, row);
        }
    }
    inf_gpu_metrics_free(g);
}

static void
a_reading_is_used_for_half_an_interval(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = open_metrics();

    fake_nvml_calls();
    double first = energy_in(text_at(g, 5000));
    assert_int_equal(fake_nvml_calls(), FIELDS);
    assert_true(energy_in(text_at(g, 5999)) == first);
    assert_int_equal(fake_nvml_calls(), 0);
    assert_true(energy_in(text_at(g, 6000)) == first + 1.5);
    assert_int_equal(fake_nvml_calls(), FIELDS);
    inf_gpu_metrics_free(g);
}

static void
energy_counts_from_the_start(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = open_metrics();
    assert_true(energy_in(text_at(g, 5000)) == 1.5);
    inf_gpu_metrics_free(g);

    /* also where it could not be read then */
    fake_nvml_fail("nvmlDeviceGetTotalEnergyConsumption");
    g = open_metrics();
    assert_null(strstr(text_at(g, 5000), "nv_energy_consumption"));
    fake_nvml_fail(NULL);
    assert_true(energy_in(text_at(g, 7000)) == 0);
    assert_true(energy_in(text_at(g, 9000)) == 1.5);
    inf_gpu_metrics_free(g);
}

static void
a_field_that_fails_three_times_is_left_alone(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = open_metrics();

    fake_nvml_fail("nvmlDeviceGetUtilizationRates");
    text_at(g, 2000);
    text_at(g, 4000);
    fake_nvml_fail(NULL);
    text_at(g, 6000);                           /* two are forgiven          */
    fake_nvml_fail("nvmlDeviceGetUtilizationRates");
    text_at(g, 8000);
    text_at(g, 10000);
    fake_nvml_calls();
    text_at(g, 12000);
    assert_int_equal(fake_nvml_calls(), FIELDS);    /* the others are read   */
    fake_nvml_fail(NULL);
    has_line(text_at(g, 14000), UTILIZATION " 0.37\n");
    assert_int_equal(fake_nvml_calls(), FIELDS - 1);
    inf_gpu_metrics_free(g);

    /* one that was never read has no row */
    fake_nvml_fail("nvmlDeviceGetUtilizationRates");
    g = open_metrics();
    assert_null(strstr(text_at(g, 5000), "nv_gpu_utilization"));
    has_line(text_at(g, 5000), "nv_gpu_power_usage");
    inf_gpu_metrics_free(g);
}

static void
where_there_is_nothing_to_read_there_are_none(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = (void *) 1;
    static const char *const libraries[] = { "", "/nowhere/libnvml.so" };

    for (int i = 0; i < 2; i++) {
        setenv(INF_NVML_ENV, libraries[i], 1);
        succeeds(inf_gpu_metrics_new(memory, INTERVAL, &g));
        assert_null(g);
    }

    setenv(INF_NVML_ENV, FAKE_NVML_LIBRARY, 1);
    setenv("TRITON_SERVER_CPU_ONLY", "", 1);
    succeeds(inf_gpu_metrics_new(memory, INTERVAL, &g));
    assert_null(g);
    unsetenv("TRITON_SERVER_CPU_ONLY");

    fake_nvml_fail("nvmlInit_v2");
    succeeds(inf_gpu_metrics_new(memory, INTERVAL, &g));
    assert_null(g);
    fake_nvml_fail(NULL);

    succeeds(inf_gpu_metrics_new(inf_memory_shared(), INTERVAL, &g));
    assert_null(g);
    assert_string_equal(text_at(NULL, 1), "");
    inf_gpu_metrics_free(NULL);

    fake_nvml_fail("nvmlDeviceGetHandleByUUID");    /* a GPU it won't name   */
    g = open_metrics();
    assert_string_equal(text_at(g, 1), "");
    inf_gpu_metrics_free(g);
}

static void *
ask_often(void *arg)
{
    for (uint64_t i = 0; i < 500; i++) {
        inf_buf_t out;
        inf_buf_init(&out);
        inf_gpu_metrics_write(arg, i * 700, &out);
        assert_non_null(strstr(inf_buf_slice(&out).data, UTILIZATION));
        inf_buf_fini(&out);
    }
    return NULL;
}

static void
many_may_ask_at_once(void **state)
{
    (void) state;
    inf_gpu_metrics_t *g = open_metrics();
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, g), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    inf_gpu_metrics_free(g);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_family_has_its_row),
        T(each_of_eight_gpus_has_its_row),
        T(a_reading_is_used_for_half_an_interval),
        T(energy_counts_from_the_start),
        T(a_field_that_fails_three_times_is_left_alone),
        T(where_there_is_nothing_to_read_there_are_none),
        T(many_may_ask_at_once)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
