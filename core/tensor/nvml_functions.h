/*
 * nvml_functions.h - types and functions of NVIDIA's management library,
 *                    declared here because its header may be missing.
 *
 * Owner    none; declarations.
 * Thread   none.
 * Units    those of the library: percent, bytes, mW, mJ.
 * Errors   none.
 * Route    nvml.c looks up the functions by these rows; the fake library in t
 *          defines them.
 */

#ifndef INF_TENSOR_NVML_FUNCTIONS_H
#define INF_TENSOR_NVML_FUNCTIONS_H

typedef int   inf_nvml_result_t;
typedef void *inf_nvml_device_t;

typedef struct {
    unsigned gpu;                       /* percent of time, like memory      */
    unsigned memory;
} inf_nvml_utilization_t;

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} inf_nvml_memory_t;

enum {
    INF_NVML_SUCCESS   = 0,
    INF_NVML_NOT_FOUND = 6
};

/* field, exported name, parameters; every one returns inf_nvml_result_t */
#define INF_NVML_FUNCTIONS(ROW)                                              \
    ROW(init, nvmlInit_v2, (void))                                           \
    ROW(shutdown, nvmlShutdown, (void))                                      \
    ROW(device_by_uuid, nvmlDeviceGetHandleByUUID, (const char *uuid,        \
        inf_nvml_device_t *device))                                          \
    ROW(utilization, nvmlDeviceGetUtilizationRates,                          \
        (inf_nvml_device_t device, inf_nvml_utilization_t *rates))           \
    ROW(memory, nvmlDeviceGetMemoryInfo, (inf_nvml_device_t device,          \
        inf_nvml_memory_t *memory))                                          \
    ROW(power_usage, nvmlDeviceGetPowerUsage, (inf_nvml_device_t device,     \
        unsigned *mw))                                                       \
    ROW(power_limit, nvmlDeviceGetEnforcedPowerLimit,                        \
        (inf_nvml_device_t device, unsigned *mw))                            \
    ROW(energy, nvmlDeviceGetTotalEnergyConsumption,                         \
        (inf_nvml_device_t device, unsigned long long *mj))

typedef struct {
#define INF_NVML_FIELD(field, symbol, parameters)                            \
    inf_nvml_result_t (*field) parameters;
    INF_NVML_FUNCTIONS(INF_NVML_FIELD)
#undef INF_NVML_FIELD
    const char *(*error_string)(inf_nvml_result_t rc);
} inf_nvml_functions_t;

#endif /* INF_TENSOR_NVML_FUNCTIONS_H */
