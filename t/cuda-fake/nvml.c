/* nvml.c - a management library without a GPU. */

#include "fake_nvml.h"

#include <stdatomic.h>
#include <string.h>

#include "core/tensor/nvml_functions.h"

#define EXPORTED __attribute__((visibility("default")))

typedef inf_nvml_result_t result_t;

static const char *_Atomic failing;
static _Atomic size_t calls;
static _Atomic int opened;
static _Atomic unsigned long long energy;
static char devices[8];

EXPORTED void
fake_nvml_fail(const char *function)
{
    failing = function;
}

EXPORTED size_t
fake_nvml_calls(void)
{
    return atomic_exchange(&calls, 0);
}

EXPORTED int
fake_nvml_open(void)
{
    return opened;
}

static result_t
call(const char *function)
{
    const char *f = failing;

    calls++;
    return f != NULL && strcmp(f, function) == 0 ? 999 : INF_NVML_SUCCESS;
}

/* As the core declares them: what differs does not compile. */
#define DECLARE(field, symbol, parameters) EXPORTED result_t symbol parameters;
INF_NVML_FUNCTIONS(DECLARE)
EXPORTED const char *nvmlErrorString(result_t rc);

result_t
nvmlInit_v2(void)
{
    result_t rc = call(__func__);
    opened += rc == INF_NVML_SUCCESS;
    return rc;
}

result_t
nvmlShutdown(void)
{
    opened--;
    return call(__func__);
}

/* "GPU-a0a0a0a0-...", "GPU-a1a1a1a1-..." as in cuda.c */
result_t
nvmlDeviceGetHandleByUUID(const char *uuid, inf_nvml_device_t *device)
{
    result_t rc = call(__func__);

    if (strlen(uuid) != 40 || strncmp(uuid, "GPU-a", 5) != 0
        || uuid[5] < '0' || uuid[5] > '7')
    {
        return INF_NVML_NOT_FOUND;
    }
    *device = &devices[uuid[5] - '0'];
    return rc;
}

result_t
nvmlDeviceGetUtilizationRates(inf_nvml_device_t device,
    inf_nvml_utilization_t *rates)
{
    (void) device;
    rates->gpu = 37;
    rates->memory = 12;
    return call(__func__);
}

result_t
nvmlDeviceGetMemoryInfo(inf_nvml_device_t device, inf_nvml_memory_t *memory)
{
    (void) device;
    memory->total = 1ull << 30;
    memory->used = 1ull << 28;
    memory->free = memory->total - memory->used;
    return call(__func__);
}

result_t
nvmlDeviceGetPowerUsage(inf_nvml_device_t device, unsigned *mw)
{
    (void) device;
    *mw = 75500;
    return call(__func__);
}

result_t
nvmlDeviceGetEnforcedPowerLimit(inf_nvml_device_t device, unsigned *mw)
{
    (void) device;
    *mw = 250000;
    return call(__func__);
}

result_t
nvmlDeviceGetTotalEnergyConsumption(inf_nvml_device_t device,
    unsigned long long *mj)
{
    (void) device;
    *mj = 1000000 + 1500 + atomic_fetch_add(&energy, 1500);
    return call(__func__);
}

const char *
nvmlErrorString(result_t rc)
{
    return rc == INF_NVML_NOT_FOUND ? "Not Found" : "Unknown Error";
}
