/*
 * abi.c - what one inference costs a program that embeds the core: identity,
 *         64 bytes, several numbers of requests in flight.
 *
 * Prints CPU time of the whole process and wall time per request (medians of
 * interleaved rounds), heap allocations per request, and the ratio to a bare
 * futex ping-pong between two threads, measured between the rounds.  A missed
 * target is said, not an error: the machine may be busy.
 *
 * Allocations are counted by functions of this program that stand in for the
 * C library's; those that the backend's own code asks for are counted apart.
 *
 *   bench_abi REQUESTS SCRAPES [METRICS-SETTING=VALUE ...]
 *
 * does only that and prints the CPU time of each; metrics.py counts
 * instructions so.
 */

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "triton/core/tritonserver.h"

#define ROUNDS        7
#define FLOATS        16
#define MAX_IN_FLIGHT 64
#define RING          256           /* of finished requests; a power of two  */
#define COUNT         (sizeof(depths) / sizeof(depths[0]))

#define TARGET_CPU_US    3.0        /* at 64 in flight                       */
#define TARGET_PING_PONG 1.2        /* times it, at 1                        */

typedef struct {
    double cpu_us;
    double wall_us;
    double allocations;
    double backend_allocations;
} sample_t;

typedef struct {
    TRITONSERVER_InferenceRequest  *request;
    TRITONSERVER_InferenceResponse *response;
    _Atomic int                     parts;      /* response, release: 2      */
    float                           in[FLOATS];
    float                           out[FLOATS];
} shot_t;

static const uint32_t depths[] = { 1, 8, MAX_IN_FLIGHT };

static TRITONSERVER_Server *server;
static shot_t shots[MAX_IN_FLIGHT];

/* Finished requests: callbacks put, the client takes and may sleep. */
static _Atomic(shot_t *) ring[RING];
static _Atomic uint32_t ring_tail;
static _Atomic uint32_t sleeping;

static _Atomic uint64_t allocations;
static _Atomic uint64_t backend_allocations;
static uintptr_t backend_start, backend_end;

static void check(TRITONSERVER_Error *err, const char *what);
static void make_repository(char *dir);
static void start_server(const char *program, const char *repository,
    char *const *settings);
static void scrape(uint64_t times);
static int find_backend(struct dl_phdr_info *info, size_t size, void *userp);
static void make_shot(shot_t *shot, TRITONSERVER_ResponseAllocator *a);
static TRITONSERVER_Error *on_alloc(TRITONSERVER_ResponseAllocator *allocator,
    const char *name, size_t size, TRITONSERVER_MemoryType type, int64_t id,
    void *userp, void **buffer, void **buffer_userp,
    TRITONSERVER_MemoryType *actual, int64_t *actual_id);
static TRITONSERVER_Error *on_free(TRITONSERVER_ResponseAllocator *allocator,
    void *buffer, void *buffer_userp, size_t size,
    TRITONSERVER_MemoryType type, int64_t id);
static void on_response(TRITONSERVER_InferenceResponse *response,
    const uint32_t flags, void *userp);
static void on_release(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp);
static void part_done(shot_t *shot);
static shot_t *wait_for_one(uint32_t *head);
static sample_t measure(uint32_t depth, uint64_t count);
static sample_t ping_pong(uint64_t count);
static void *pong_main(void *arg);
static uint64_t now_ns(clockid_t clock);
static sample_t median(const sample_t *samples);
static int by_value(const void *a, const void *b);
static void report(const sample_t *at, const sample_t *bare);

/* ---- allocations */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

static inline void
count_allocation(const void *caller)
{
    uintptr_t at = (uintptr_t) caller;

    atomic_fetch_add_explicit(at >= backend_start && at < backend_end
        ? &backend_allocations : &allocations, 1, memory_order_relaxed);
}

void *
malloc(size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_calloc(count, size);
}

void *
realloc(void *p, size_t size)
{
    count_allocation(__builtin_return_address(0));
    return __libc_realloc(p, size);
}

int
main(int argc, char **argv)
{
    char repository[] = "/tmp/inf-bench-abi-XXXXXX";
    char command[64];
    uint64_t count = getenv("QUICK") != NULL ? 20000 : 100000;
    sample_t samples[COUNT][ROUNDS], bare[ROUNDS], at[COUNT];
    TRITONSERVER_ResponseAllocator *allocator;

    make_repository(repository);
    start_server(argv[0], repository, argc > 2 ? argv + 3 : NULL);
    check(TRITONSERVER_ResponseAllocatorNew(&allocator, on_alloc, on_free,
        NULL), "allocator");
    for (int i = 0; i < MAX_IN_FLIGHT; i++) {
        make_shot(&shots[i], allocator);
    }
    if (argc > 2) {
        uint64_t scrapes = strtoull(argv[2], NULL, 10);
        double request_us = measure(MAX_IN_FLIGHT,
            strtoull(argv[1], NULL, 10)).cpu_us;
        uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        scrape(scrapes);
        cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("%.4f %.4f\n", request_us, scrapes > 0
            ? (double) cpu / 1e3 / (double) scrapes : 0);
    } else {
        measure(MAX_IN_FLIGHT, 20000);          /* warms up                  */
    }

    for (int k = 0; k < ROUNDS && argc <= 2; k++) {
        bare[k] = ping_pong(count / 2);
        for (size_t i = 0; i < COUNT; i++) {
            samples[i][k] = measure(depths[i], depths[i] == 1 ? count / 2
                : count);
        }
    }

    for (int i = 0; i < MAX_IN_FLIGHT; i++) {
        check(TRITONSERVER_InferenceRequestDelete(shots[i].request),
            "delete");
    }
    check(TRITONSERVER_ServerDelete(server), "end");
    check(TRITONSERVER_ResponseAllocatorDelete(allocator), "allocator");
    snprintf(command, sizeof(command), "rm -rf %s", repository);
    if (system(command) != 0) {
        fprintf(stderr, "cannot remove %s\n", repository);
    }
    if (argc > 2) {
        return 0;
    }

    for (size_t i = 0; i < COUNT; i++) {
        at[i] = median(samples[i]);
    }
    sample_t pong = median(bare);
    report(at, &pong);
    return 0;
}

static void
check(TRITONSERVER_Error *err, const char *what)
{
    if (err != NULL) {
        fprintf(stderr, "%s: %s\n", what, TRITONSERVER_ErrorMessage(err));
        exit(2);
    }
}

static void
make_repository(char *dir)
{
    static const char config[] = "backend: 'identity'\n"
        "input { name: 'IN' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }\n"
        "instance_group { kind: KIND_CPU count: 1 }\n";
    char path[128];
    FILE *f = NULL;

    if (mkdtemp(dir) != NULL) {
        snprintf(path, sizeof(path), "%s/echo", dir);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/echo/1", dir);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/echo/config.pbtxt", dir);
        f = fopen(path, "w");
    }
    if (f == NULL || fputs(config, f) < 0 || fclose(f) != 0) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        exit(2);
    }
}

static void
start_server(const char *program, const char *repository,
    char *const *settings)
{
    TRITONSERVER_ServerOptions *o;
    char backends[512];
    const char *slash = strrchr(program, '/');

    snprintf(backends, sizeof(backends), "%.*s/backends", slash != NULL
        ? (int) (slash - program) : 1, slash != NULL ? program : ".");
    check(TRITONSERVER_ServerOptionsNew(&o), "options");
    check(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, repository),
        "repository");
    check(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends),
        "backends");
    check(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE), "control");
    check(TRITONSERVER_ServerOptionsSetLogInfo(o, false), "log");
    for (; settings != NULL && *settings != NULL; settings++) {
        char setting[64];
        size_t len = strcspn(*settings, "=");
        snprintf(setting, sizeof(setting), "%.*s", (int) len, *settings);
        check(TRITONSERVER_ServerOptionsSetMetricsConfig(o, NULL, setting,
            *settings + len + ((*settings)[len] == '=')), "metrics");
    }
    check(TRITONSERVER_ServerNew(&server, o), "start");
    check(TRITONSERVER_ServerOptionsDelete(o), "options");
    dl_iterate_phdr(find_backend, NULL);
}

static void
scrape(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        TRITONSERVER_Metrics *metrics;
        const char *text;
        size_t size;

        check(TRITONSERVER_ServerMetrics(server, &metrics), "metrics");
        check(TRITONSERVER_MetricsFormatted(metrics,
            TRITONSERVER_METRIC_PROMETHEUS, &text, &size), "metrics");
        check(TRITONSERVER_MetricsDelete(metrics), "metrics");
    }
}

static int
find_backend(struct dl_phdr_info *info, size_t size, void *userp)
{
    (void) size;
    (void) userp;
    if (strstr(info->dlpi_name, "libtriton_identity.so") == NULL) {
        return 0;
    }

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            backend_start = info->dlpi_addr + p->p_vaddr;
            backend_end = backend_start + p->p_memsz;
        }
    }
    return 1;
}

static void
make_shot(shot_t *shot, TRITONSERVER_ResponseAllocator *a)
{
    const int64_t shape[1] = { FLOATS };

    for (int i = 0; i < FLOATS; i++) {
        shot->in[i] = (float) i + 0.5f;
    }
    check(TRITONSERVER_InferenceRequestNew(&shot->request, server, "echo",
        -1), "request");
    check(TRITONSERVER_InferenceRequestAddInput(shot->request, "IN",
        TRITONSERVER_TYPE_FP32, shape, 1), "input");
    check(TRITONSERVER_InferenceRequestAppendInputData(shot->request, "IN",
        shot->in, sizeof(shot->in), TRITONSERVER_MEMORY_CPU, 0), "data");
    check(TRITONSERVER_InferenceRequestSetReleaseCallback(shot->request,
        on_release, shot), "callback");
    check(TRITONSERVER_InferenceRequestSetResponseCallback(shot->request, a,
        shot, on_response, shot), "callback");
}

static TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id)
{
    shot_t *shot = userp;
    (void) allocator;
    (void) name;
    (void) type;
    (void) id;

    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer_userp = shot;
    *buffer = size <= sizeof(shot->out) ? shot->out : NULL;
    return NULL;
}

static TRITONSERVER_Error *
on_free(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    (void) buffer;
    (void) buffer_userp;
    (void) size;
    (void) type;
    (void) id;
    return NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;

    shot->response = response;
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) {
        part_done(shot);
    }
}

static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    (void) request;
    (void) flags;
    part_done(userp);
}

/* The second part finishes it. */
static void
part_done(shot_t *shot)
{
    if (atomic_fetch_add(&shot->parts, 1) == 0) {
        return;
    }

    uint32_t at = atomic_fetch_add(&ring_tail, 1);

    atomic_store(&ring[at % RING], shot);
    if (atomic_load(&sleeping) && atomic_exchange(&sleeping, 0)) {
        syscall(SYS_futex, &sleeping, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static shot_t *
wait_for_one(uint32_t *head)
{
    _Atomic(shot_t *) *place = &ring[(*head)++ % RING];
    shot_t *shot;

    while ((shot = atomic_exchange(place, NULL)) == NULL) {
        atomic_store(&sleeping, 1);
        if (atomic_load(place) == NULL) {
            syscall(SYS_futex, &sleeping, FUTEX_WAIT_PRIVATE, 1, NULL, NULL,
                0);
        }
        atomic_store(&sleeping, 0);
    }
    return shot;
}

static sample_t
measure(uint32_t depth, uint64_t count)
{
    static uint32_t head;
    uint64_t sent = 0;

    uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t wall = now_ns(CLOCK_MONOTONIC);
    uint64_t heap = atomic_load(&allocations);
    uint64_t backend_heap = atomic_load(&backend_allocations);

    for (; sent < depth; sent++) {
        atomic_store(&shots[sent].parts, 0);
        check(TRITONSERVER_ServerInferAsync(server, shots[sent].request,
            NULL), "infer");
    }
    for (uint64_t done = 0; done < count; done++) {
        shot_t *shot = wait_for_one(&head);

        check(TRITONSERVER_InferenceResponseError(shot->response), "answer");
        check(TRITONSERVER_InferenceResponseDelete(shot->response), "delete");
        if (memcmp(shot->in, shot->out, sizeof(shot->in)) != 0) {
            fprintf(stderr, "other numbers came back\n");
            exit(2);
        }
        if (sent < count) {
            sent++;
            shot->in[0] = (float) sent;
            shot->out[0] = -1.0f;
            atomic_store(&shot->parts, 0);
            check(TRITONSERVER_ServerInferAsync(server, shot->request, NULL),
                "infer");
        }
    }

    double n = (double) count;
    return (sample_t) {
        .cpu_us = (double) (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3 / n,
        .wall_us = (double) (now_ns(CLOCK_MONOTONIC) - wall) / 1e3 / n,
        .allocations = (double) (atomic_load(&allocations) - heap) / n,
        .backend_allocations = (double) (atomic_load(&backend_allocations)
            - backend_heap) / n
    };
}

/* ---- the yardstick: one thread wakes the other, which wakes it back */

static _Atomic uint32_t words[2];
static uint64_t ping_count;

static void
sleep_on(_Atomic uint32_t *word)
{
    while (atomic_exchange(word, 0) == 0) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
}

static void
wake_up(_Atomic uint32_t *word)
{
    atomic_store(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static sample_t
ping_pong(uint64_t count)
{
    pthread_t thread;

    ping_count = count;
    if (pthread_create(&thread, NULL, pong_main, NULL) != 0) {
        fprintf(stderr, "no thread\n");
        exit(2);
    }

    uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t wall = now_ns(CLOCK_MONOTONIC);

    for (uint64_t i = 0; i < count; i++) {
        wake_up(&words[0]);
        sleep_on(&words[1]);
    }

    sample_t s = {
        .cpu_us = (double) (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e3
            / (double) count,
        .wall_us = (double) (now_ns(CLOCK_MONOTONIC) - wall) / 1e3
            / (double) count
    };
    pthread_join(thread, NULL);
    return s;
}

static void *
pong_main(void *arg)
{
    (void) arg;
    for (uint64_t i = 0; i < ping_count; i++) {
        sleep_on(&words[0]);
        wake_up(&words[1]);
    }
    return NULL;
}

static uint64_t
now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static sample_t
median(const sample_t *samples)
{
    double cpu[ROUNDS], wall[ROUNDS], heap[ROUNDS], backend[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        cpu[i] = samples[i].cpu_us;
        wall[i] = samples[i].wall_us;
        heap[i] = samples[i].allocations;
        backend[i] = samples[i].backend_allocations;
    }
    qsort(cpu, ROUNDS, sizeof(*cpu), by_value);
    qsort(wall, ROUNDS, sizeof(*wall), by_value);
    qsort(heap, ROUNDS, sizeof(*heap), by_value);
    qsort(backend, ROUNDS, sizeof(*backend), by_value);
    return (sample_t) {
        cpu[ROUNDS / 2], wall[ROUNDS / 2], heap[ROUNDS / 2],
        backend[ROUNDS / 2]
    };
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

static void
report(const sample_t *at, const sample_t *bare)
{
    printf("in-process inference of identity, 64 bytes (medians of %d"
        " rounds)\n", ROUNDS);
    printf("in flight   CPU us  /ping-pong   wall us  /ping-pong"
        "   allocations  (backend's)\n");
    printf("ping-pong %8.2f %12s %9.2f\n", bare->cpu_us, "", bare->wall_us);
    for (size_t i = 0; i < COUNT; i++) {
        printf("%9u %8.2f %11.2fx %9.2f %11.2fx %13.4f %12.4f\n", depths[i],
            at[i].cpu_us, at[i].cpu_us / bare->cpu_us, at[i].wall_us,
            at[i].wall_us / bare->wall_us, at[i].allocations,
            at[i].backend_allocations);
    }

    bool met = at[0].cpu_us <= TARGET_PING_PONG * bare->cpu_us
        && at[COUNT - 1].cpu_us <= TARGET_CPU_US;

    for (size_t i = 0; i < COUNT; i++) {
        met = met && at[i].allocations < 0.5 / 1000;
    }
    printf("targets: at most %.1f us CPU at %u in flight, %.1f ping-pongs at"
        " 1, no allocations: %s\n", TARGET_CPU_US, depths[COUNT - 1],
        TARGET_PING_PONG, met ? "met" : "MISSED");
}
