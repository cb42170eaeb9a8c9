#include "core/server/gpu_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/server/metric_registry.h"
#include "core/tensor/nvml.h"

#define METRICS_RANK 66u
#define GIVE_UP      3u             /* failures in a row                     */

typedef struct {
    double   value;
    bool     known;                 /* was read at least once                */
    uint32_t failures;              /* in a row                              */
} reading_t;

typedef struct {
    char      uuid[48];
    void     *device;               /* handle of the library                 */
    double    energy_start;         /* first value read                      */
    reading_t readings[INF_NVML_FIELDS];    /* under the lock, except for the
                                               reading thread, which copies
                                               them                          */
} gpu_t;

struct inf_gpu_metrics_s {
    inf_nvml_t *nvml;               /* these are set in new()                */
    uint64_t    keep_ns;
    size_t      count;

    inf_lock_t  lock;               /* rank 66; guards the rest              */
    bool        reading;            /* a thread reads the GPUs               */
    uint64_t    read_ns;            /* 0: never                              */
    gpu_t       gpus[];
};

static inf_err_t *open_library(inf_nvml_t **out);
static void add_gpus(inf_gpu_metrics_t *g, const inf_memory_t *memory,
    const int32_t *ids, size_t count);
static void store_locked(gpu_t *gpu, const reading_t *readings);
static void refresh(inf_gpu_metrics_t *g, uint64_t now_ns);
static void read_gpu(const inf_gpu_metrics_t *g, const gpu_t *gpu,
    reading_t *readings);
static void write_family(inf_gpu_metrics_t *g, inf_nvml_field_t field,
    inf_buf_t *out);

static const struct {
    const char *name;
    const char *type;
    const char *help;
} families[INF_NVML_FIELDS] = {
    [INF_NVML_UTILIZATION] = { "nv_gpu_utilization", "gauge",
        "share of time in which the GPU works, 0 to 1" },
    [INF_NVML_MEMORY_TOTAL] = { "nv_gpu_memory_total_bytes", "gauge",
        "memory of the GPU" },
    [INF_NVML_MEMORY_USED] = { "nv_gpu_memory_used_bytes", "gauge",
        "memory of the GPU in use" },
    [INF_NVML_POWER_USAGE] = { "nv_gpu_power_usage", "gauge",
        "power that the GPU takes, watts" },
    [INF_NVML_POWER_LIMIT] = { "nv_gpu_power_limit", "gauge",
        "power that the GPU may take, watts" },
    [INF_NVML_ENERGY] = { "nv_energy_consumption", "counter",
        "energy that the GPU took since the server started, joules" }
};

inf_err_t *
inf_gpu_metrics_new(const inf_memory_t *memory, uint64_t interval_ns,
    inf_gpu_metrics_t **out)
{
    size_t count;
    const int32_t *ids = inf_memory_gpus(memory, &count);
    inf_nvml_t *nvml = NULL;

    *out = NULL;
    if (count == 0 || getenv("TRITON_SERVER_CPU_ONLY") != NULL) {
        return NULL;
    }

    inf_err_t *err = open_library(&nvml);
    if (err != NULL) {
        inf_log(INF_LOG_WARN, "no GPU metrics: %s", inf_err_msg(err));
        inf_err_free(err);
        return NULL;
    }

    inf_gpu_metrics_t *g = calloc(1, sizeof(*g) + count * sizeof(gpu_t));
    if (g == NULL) {
        inf_nvml_close(nvml);
        return inf_err_nomem();
    }

    g->nvml = nvml;
    g->keep_ns = interval_ns / 2;
    inf_lock_init(&g->lock, METRICS_RANK);
    add_gpus(g, memory, ids, count);
    *out = g;
    return NULL;
}

void
inf_gpu_metrics_free(inf_gpu_metrics_t *g)
{
    if (g == NULL) {
        return;
    }

    inf_nvml_close(g->nvml);
    inf_lock_fini(&g->lock);
    free(g);
}

void
inf_gpu_metrics_write(inf_gpu_metrics_t *g, uint64_t now_ns, inf_buf_t *out)
{
    if (g == NULL || g->count == 0) {
        return;
    }

    inf_lock(&g->lock);
    bool read = !g->reading && (g->read_ns == 0
        || now_ns - g->read_ns >= g->keep_ns);
    if (read) {
        g->reading = true;
    }
    inf_unlock(&g->lock);

    if (read) {
        refresh(g, now_ns);
    }
    for (int field = 0; field < INF_NVML_FIELDS; field++) {
        write_family(g, (inf_nvml_field_t) field, out);
    }
}

static inf_err_t *
open_library(inf_nvml_t **out)
{
    const char *library = getenv(INF_NVML_ENV);

    if (library != NULL && library[0] == '\0') {
        return inf_err_new(INF_ERR_NOT_FOUND, "the management library is"
            " switched off by an empty %s", INF_NVML_ENV);
    }
    return inf_nvml_open(library != NULL ? library : INF_NVML_LIBRARY, out);
}

/* Adds the GPUs; one that the library does not know has no rows. */
static void
add_gpus(inf_gpu_metrics_t *g, const inf_memory_t *memory, const int32_t *ids,
    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gpu_t *gpu = &g->gpus[g->count];
        const inf_cuda_device_t *about = inf_cuda_device(
            inf_memory_driver(memory), ids[i]);

        inf_err_t *err = inf_nvml_device(g->nvml, about->uuid, &gpu->device);
        if (err != NULL) {
            inf_log(INF_LOG_WARN, "no metrics of GPU %d: %s", (int) ids[i],
                inf_err_msg(err));
            inf_err_free(err);
            continue;
        }

        reading_t readings[INF_NVML_FIELDS] = { 0 };
        memcpy(gpu->uuid, about->uuid, sizeof(gpu->uuid));
        read_gpu(g, gpu, readings);
        store_locked(gpu, readings);        /* no other thread has it yet    */
        g->count++;
    }
}

/* Called by the one thread that has set g->reading; only it writes readings. */
static void
refresh(inf_gpu_metrics_t *g, uint64_t now_ns)
{
    for (size_t i = 0; i < g->count; i++) {
        reading_t readings[INF_NVML_FIELDS];

        inf_lock(&g->lock);
        memcpy(readings, g->gpus[i].readings, sizeof(readings));
        inf_unlock(&g->lock);

        read_gpu(g, &g->gpus[i], readings);

        inf_lock(&g->lock);
        store_locked(&g->gpus[i], readings);
        inf_unlock(&g->lock);
    }

    inf_lock(&g->lock);
    g->read_ns = now_ns;
    g->reading = false;
    inf_unlock(&g->lock);
}

static void
store_locked(gpu_t *gpu, const reading_t *readings)
{
    const reading_t *energy = &readings[INF_NVML_ENERGY];

    if (energy->known && !gpu->readings[INF_NVML_ENERGY].known) {
        gpu->energy_start = energy->value;
    }
    memcpy(gpu->readings, readings, sizeof(gpu->readings));
}

static void
read_gpu(const inf_gpu_metrics_t *g, const gpu_t *gpu, reading_t *readings)
{
    for (int field = 0; field < INF_NVML_FIELDS; field++) {
        reading_t *r = &readings[field];
        double value;

        if (r->failures >= GIVE_UP) {
            continue;
        }

        inf_err_t *err = inf_nvml_read(g->nvml, gpu->device,
            (inf_nvml_field_t) field, &value);
        if (err == NULL) {
            *r = (reading_t) { value, true, 0 };
            continue;
        }

        r->failures++;
        if (r->failures == GIVE_UP) {
            inf_log(INF_LOG_WARN, "gpu metric %s of device %s disabled: %s",
                families[field].name, gpu->uuid, inf_err_msg(err));
        }
        inf_err_free(err);
    }
}

static void
write_family(inf_gpu_metrics_t *g, inf_nvml_field_t field, inf_buf_t *out)
{
    bool first = true;

    for (size_t i = 0; i < g->count; i++) {
        const gpu_t *gpu = &g->gpus[i];

        inf_lock(&g->lock);
        reading_t r = gpu->readings[field];
        inf_unlock(&g->lock);

        if (!r.known) {
            continue;
        }
        if (field == INF_NVML_ENERGY) {
            r.value -= gpu->energy_start;
        }
        if (first) {
            inf_metric_put_head(out, families[field].name,
                families[field].help, families[field].type);
            first = false;
        }
        inf_buf_printf(out, "%s{gpu_uuid=\"%s\"} %.16g\n",
            families[field].name, gpu->uuid, r.value);
    }
}
