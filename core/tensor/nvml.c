#include "core/tensor/nvml.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/os/library.h"
#include "core/tensor/nvml_functions.h"

struct inf_nvml_s {
    inf_nvml_functions_t f;
};

static inf_err_t *load(inf_nvml_t *nvml, const char *library);
static inf_err_t *failed(const inf_nvml_t *nvml, inf_nvml_result_t rc,
    const char *what);

inf_err_t *
inf_nvml_open(const char *library, inf_nvml_t **out)
{
    inf_nvml_t *nvml = calloc(1, sizeof(*nvml));
    *out = NULL;
    if (nvml == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = load(nvml, library);
    if (err == NULL) {
        inf_nvml_result_t rc = nvml->f.init();
        if (rc != INF_NVML_SUCCESS) {
            err = failed(nvml, rc, "cannot start");
        }
    }
    if (err != NULL) {
        free(nvml);
        return err;
    }

    *out = nvml;
    return NULL;
}

void
inf_nvml_close(inf_nvml_t *nvml)
{
    if (nvml == NULL) {
        return;
    }

    inf_nvml_result_t rc = nvml->f.shutdown();
    if (rc != INF_NVML_SUCCESS) {
        inf_err_log(failed(nvml, rc, "cannot shut down"));
    }
    free(nvml);
}

inf_err_t *
inf_nvml_device(const inf_nvml_t *nvml, const char *uuid, void **out)
{
    *out = NULL;
    inf_nvml_result_t rc = nvml->f.device_by_uuid(uuid, out);
    return rc == INF_NVML_SUCCESS ? NULL : inf_err_add(failed(nvml, rc,
        "no such device"), "%s", uuid);
}

inf_err_t *
inf_nvml_read(const inf_nvml_t *nvml, void *device, inf_nvml_field_t field,
    double *out)
{
    const inf_nvml_functions_t *f = &nvml->f;
    inf_nvml_result_t rc = INF_NVML_SUCCESS;
    inf_nvml_utilization_t rates = { 0, 0 };
    inf_nvml_memory_t memory = { 0, 0, 0 };
    unsigned mw = 0;
    unsigned long long mj = 0;

    switch (field) {
    case INF_NVML_UTILIZATION:
        rc = f->utilization(device, &rates);
        *out = rates.gpu / 100.0;
        break;
    case INF_NVML_MEMORY_TOTAL:
        rc = f->memory(device, &memory);
        *out = (double) memory.total;
        break;
    case INF_NVML_MEMORY_USED:
        rc = f->memory(device, &memory);
        *out = (double) memory.used;
        break;
    case INF_NVML_POWER_USAGE:
        rc = f->power_usage(device, &mw);
        *out = mw / 1000.0;
        break;
    case INF_NVML_POWER_LIMIT:
        rc = f->power_limit(device, &mw);
        *out = mw / 1000.0;
        break;
    case INF_NVML_ENERGY:
        rc = f->energy(device, &mj);
        *out = (double) mj / 1000.0;
        break;
    case INF_NVML_FIELDS:
        return inf_err_new(INF_ERR_INVALID_ARG, "no such field");
    }

    return rc == INF_NVML_SUCCESS ? NULL : failed(nvml, rc, "cannot read");
}

static inf_err_t *
load(inf_nvml_t *nvml, const char *library)
{
    static const inf_library_row_t rows[] = {
#define INF_NVML_ROW(field, name, parameters)                                \
        { #name, offsetof(inf_nvml_functions_t, field) },
        INF_NVML_FUNCTIONS(INF_NVML_ROW)
#undef INF_NVML_ROW
        { "nvmlErrorString", offsetof(inf_nvml_functions_t, error_string) }
    };

    return inf_library_open(library, rows, sizeof(rows) / sizeof(rows[0]),
        "", &nvml->f);
}

static inf_err_t *
failed(const inf_nvml_t *nvml, inf_nvml_result_t rc, const char *what)
{
    const char *text = nvml->f.error_string(rc);

    return inf_err_new(rc == INF_NVML_NOT_FOUND ? INF_ERR_NOT_FOUND
        : INF_ERR_INTERNAL, "the GPU's management library: %s: %s (%d)", what,
        text != NULL ? text : "no text", rc);
}
