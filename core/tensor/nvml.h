/*
 * nvml.h - values from a GPU's management library: load, memory, power.
 *
 * Owner    The GPU metrics open one library and read its devices.
 * Thread   open, close: one; read: any, one thread per device at a time.
 * Units    see inf_nvml_field_t.
 * Errors   NOT_FOUND: no such library, or no device of that UUID; otherwise
 *          the library's error.
 * Route    gpu_metrics.c -> [management library] -> libnvidia-ml.so.1
 *
 * The core is not linked to the library and does not need its header.
 */

#ifndef INF_TENSOR_NVML_H
#define INF_TENSOR_NVML_H

#include <stdbool.h>

#include "core/base/error.h"

#define INF_NVML_LIBRARY "libnvidia-ml.so.1"

/* Environment variable with the library to open; empty: none. */
#define INF_NVML_ENV "INFERENCE_NVML"

/* The values, in the order of reading. */
typedef enum {
    INF_NVML_UTILIZATION,       /* 0 to 1: share of time with work           */
    INF_NVML_MEMORY_TOTAL,      /* bytes                                     */
    INF_NVML_MEMORY_USED,       /* bytes                                     */
    INF_NVML_POWER_USAGE,       /* W                                         */
    INF_NVML_POWER_LIMIT,       /* W                                         */
    INF_NVML_ENERGY,            /* J since the driver was loaded             */
    INF_NVML_FIELDS
} inf_nvml_field_t;

typedef struct inf_nvml_s inf_nvml_t;

/* Loads and initializes the management library. */
INF_CHECK inf_err_t *inf_nvml_open(const char *library, inf_nvml_t **out);

/* The library stays loaded.  nvml may be NULL. */
void inf_nvml_close(inf_nvml_t *nvml);

/* uuid: "GPU-...", from the driver.  *out is valid until close. */
INF_CHECK inf_err_t *inf_nvml_device(const inf_nvml_t *nvml, const char *uuid,
    void **out);

/* INTERNAL: the device does not have the value; the text has the reason. */
INF_CHECK inf_err_t *inf_nvml_read(const inf_nvml_t *nvml, void *device,
    inf_nvml_field_t field, double *out);

#endif /* INF_TENSOR_NVML_H */
