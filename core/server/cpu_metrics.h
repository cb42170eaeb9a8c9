/*
 * cpu_metrics.h - utilization of the machine's CPUs and memory.
 *
 * Owner    The server.
 * Thread   any: the struct has its own lock.
 * Units    a share from 0 to 1, bytes, ns.
 * Errors   none: values that /proc lacks are left out of the text.
 * Route    /proc -> [CPU metrics] -> metrics text
 */

#ifndef INF_SERVER_CPU_METRICS_H
#define INF_SERVER_CPU_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/lock.h"

/* Jiffies of all CPUs since the machine started. */
typedef struct {
    uint64_t idle;
    uint64_t total;
} inf_cpu_time_t;

typedef struct {
    uint64_t total;
    uint64_t used;
} inf_cpu_memory_t;

typedef struct {
    inf_lock_t       lock;          /* rank 72; guards the rest              */
    uint64_t         read_ns;       /* when time and memory were read        */
    inf_cpu_time_t   time;
    bool             has_time;
    double           busy;
    bool             has_busy;
    inf_cpu_memory_t memory;
    bool             has_memory;
} inf_cpu_metrics_t;

/* Utilization is counted from this call on. */
void inf_cpu_metrics_init(inf_cpu_metrics_t *m, uint64_t now_ns);
void inf_cpu_metrics_fini(inf_cpu_metrics_t *m);

/* Appends the three families; reads values older than age_ns again. */
void inf_cpu_metrics_text(inf_cpu_metrics_t *m, uint64_t now_ns,
    uint64_t age_ns, inf_buf_t *out);

/* Parse the text of /proc/stat and /proc/meminfo; false: a value is missing. */
bool inf_cpu_time_parse(const char *text, inf_cpu_time_t *out);
bool inf_cpu_memory_parse(const char *text, inf_cpu_memory_t *out);

/* The busy share of the time between the two. */
double inf_cpu_busy(const inf_cpu_time_t *from, const inf_cpu_time_t *to);

#endif /* INF_SERVER_CPU_METRICS_H */
