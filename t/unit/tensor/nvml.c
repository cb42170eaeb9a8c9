#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/tensor/nvml.h"
#include "fake_nvml.h"

#define FIRST "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"

static int
teardown(void **state)
{
    (void) state;
    fake_nvml_fail(NULL);
    assert_int_equal(fake_nvml_open(), 0);
    return 0;
}

static void
succeeds(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

static void
fails(inf_err_t *err, inf_err_code_t code, const char *text)
{
    assert_non_null(err);
    if (inf_err_code(err) != code || strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("got %d: %s", (int) inf_err_code(err), inf_err_msg(err));
    }
    inf_err_free(err);
}

static void
a_library_that_can_not_be_used_says_why(void **state)
{
    (void) state;
    inf_nvml_t *nvml;

    fails(inf_nvml_open("/nowhere/libnvidia-ml.so.1", &nvml),
        INF_ERR_NOT_FOUND, "/nowhere/libnvidia-ml.so.1");
    assert_null(nvml);
    fails(inf_nvml_open("libm.so.6", &nvml), INF_ERR_UNSUPPORTED,
        "nvmlInit_v2");
    fake_nvml_fail("nvmlInit_v2");
    fails(inf_nvml_open(FAKE_NVML_LIBRARY, &nvml), INF_ERR_INTERNAL,
        "cannot start: Unknown Error (999)");
    assert_null(nvml);
    inf_nvml_close(NULL);
}

static void
a_device_is_found_by_its_uuid(void **state)
{
    (void) state;
    inf_nvml_t *nvml;
    void *device;

    succeeds(inf_nvml_open(FAKE_NVML_LIBRARY, &nvml));
    succeeds(inf_nvml_device(nvml, FIRST, &device));
    assert_non_null(device);
    fails(inf_nvml_device(nvml, "GPU-0", &device), INF_ERR_NOT_FOUND,
        "GPU-0: the GPU's management library: no such device: Not Found");
    inf_nvml_close(nvml);
}

static void
fields_are_read_in_their_units(void **state)
{
    (void) state;
    static const double values[] = {
        0.37, 1073741824.0, 268435456.0, 75.5, 250.0
    };
    static const char *const functions[] = {
        "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetTotalEnergyConsumption"
    };
    inf_nvml_t *nvml;
    void *device;
    double value, next;

    succeeds(inf_nvml_open(FAKE_NVML_LIBRARY, &nvml));
    succeeds(inf_nvml_device(nvml, FIRST, &device));
    for (int i = 0; i < INF_NVML_ENERGY; i++) {
        succeeds(inf_nvml_read(nvml, device, (inf_nvml_field_t) i, &value));
        assert_true(value == values[i]);
    }
    succeeds(inf_nvml_read(nvml, device, INF_NVML_ENERGY, &value));
    succeeds(inf_nvml_read(nvml, device, INF_NVML_ENERGY, &next));
    assert_true(next - value == 1.5);

    for (int i = 0; i < INF_NVML_FIELDS; i++) {
        fake_nvml_fail(functions[i]);
        fails(inf_nvml_read(nvml, device, (inf_nvml_field_t) i, &value),
            INF_ERR_INTERNAL, "cannot read: Unknown Error (999)");
    }
    fails(inf_nvml_read(nvml, device, INF_NVML_FIELDS, &value),
        INF_ERR_INVALID_ARG, "field");
    inf_nvml_close(nvml);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_library_that_can_not_be_used_says_why,
            teardown),
        cmocka_unit_test_teardown(a_device_is_found_by_its_uuid, teardown),
        cmocka_unit_test_teardown(fields_are_read_in_their_units, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
