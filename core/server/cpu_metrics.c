#include "core/server/cpu_metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/server/metric_registry.h"

#define CPU_METRICS_RANK 72
#define CPU_TEXT_MAX     4096

static void refresh(inf_cpu_metrics_t *m, uint64_t now_ns);
static bool read_text(const char *path, char text[CPU_TEXT_MAX]);
static bool memory_row(const char *text, const char *name, uint64_t *bytes);

void
inf_cpu_metrics_init(inf_cpu_metrics_t *m, uint64_t now_ns)
{
    memset(m, 0, sizeof(*m));
    inf_lock_init(&m->lock, CPU_METRICS_RANK);
    refresh(m, now_ns);
}

void
inf_cpu_metrics_fini(inf_cpu_metrics_t *m)
{
    inf_lock_fini(&m->lock);
}

void
inf_cpu_metrics_text(inf_cpu_metrics_t *m, uint64_t now_ns, uint64_t age_ns,
    inf_buf_t *out)
{
    inf_lock(&m->lock);

    if (!m->has_busy || now_ns - m->read_ns >= age_ns) {
        refresh(m, now_ns);
    }
    bool has_busy = m->has_busy;
    bool has_memory = m->has_memory;
    double busy = m->busy;
    inf_cpu_memory_t memory = m->memory;

    inf_unlock(&m->lock);

    if (has_busy) {
        inf_metric_put_one(out, "nv_cpu_utilization",
            "busy share of all CPUs", "gauge", busy);
    }
    if (has_memory) {
        inf_metric_put_one(out, "nv_cpu_memory_total_bytes",
            "memory of the machine", "gauge", (double) memory.total);
        inf_metric_put_one(out, "nv_cpu_memory_used_bytes",
            "memory in use", "gauge", (double) memory.used);
    }
}

bool
inf_cpu_time_parse(const char *text, inf_cpu_time_t *out)
{
    uint64_t user, nice, system, idle, wait, irq, soft, steal;

    if (sscanf(text, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %"
            SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &user, &nice, &system,
            &idle, &wait, &irq, &soft, &steal) != 8)
    {
        return false;
    }

    out->idle = idle + wait;
    out->total = user + nice + system + out->idle + irq + soft + steal;
    return true;
}

bool
inf_cpu_memory_parse(const char *text, inf_cpu_memory_t *out)
{
    uint64_t available;

    if (!memory_row(text, "MemTotal:", &out->total)
        || !memory_row(text, "MemAvailable:", &available))
    {
        return false;
    }

    out->used = out->total > available ? out->total - available : 0;
    return true;
}

double
inf_cpu_busy(const inf_cpu_time_t *from, const inf_cpu_time_t *to)
{
    if (to->total <= from->total || to->idle < from->idle) {
        return 0;
    }

    double total = (double) (to->total - from->total);
    double idle = (double) (to->idle - from->idle);
    return idle >= total ? 0 : (total - idle) / total;
}

/* Reads both again; two times without a jiffy between them leave the old
   share. */
static void
refresh(inf_cpu_metrics_t *m, uint64_t now_ns)
{
    char text[CPU_TEXT_MAX];
    inf_cpu_time_t time;

    m->read_ns = now_ns;
    if (read_text("/proc/stat", text) && inf_cpu_time_parse(text, &time)
        && (!m->has_time || time.total > m->time.total))
    {
        m->busy = m->has_time ? inf_cpu_busy(&m->time, &time) : 0;
        m->has_busy = m->has_time;
        m->time = time;
        m->has_time = true;
    }

    m->has_memory = read_text("/proc/meminfo", text)
        && inf_cpu_memory_parse(text, &m->memory);
}

static bool
read_text(const char *path, char text[CPU_TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }

    ssize_t n = read(fd, text, CPU_TEXT_MAX - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool
memory_row(const char *text, const char *name, uint64_t *bytes)
{
    const char *row = strstr(text, name);
    uint64_t kib;

    if (row == NULL || sscanf(row + strlen(name), " %" SCNu64 " kB", &kib) != 1)
    {
        return false;
    }

    *bytes = kib * 1024;
    return true;
}
