/*
 * channel.c - what the channel costs: a worker and a core in two processes
 *             exchange requests of 64 bytes that do nothing.
 *
 * Prints, for several numbers of requests in flight, requests per second and
 * CPU time of each side per request (median of the rounds), system calls and
 * arena work included.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/wire/client.h"
#include "core/wire/server.h"
#include "core/wire/sockets.h"

#define ROUNDS       5
#define MAX_IN_FLIGHT 256
#define REQUEST_SIZE 64

typedef struct {
    inf_slot_id_t id;
    inf_region_t *region;
    bool          done;
} request_t;

typedef struct {
    double rate;
    double worker_us;
    double core_us;
} sample_t;

static inf_client_t *client;

static void die(const char *what, inf_err_t *err);
static void core_process(int registration);
static void core_serve(inf_channel_t *ch);
static void worker_connect(int registration);
static sample_t measure(clockid_t core_clock, uint32_t depth, uint64_t count);
static void submit(request_t *q);
static void on_completion(const inf_completion_t *cpl, void *userp);
static uint64_t cpu_ns(clockid_t clock);
static double median(double *values);

int
main(void)
{
    static const uint32_t depths[] = { 1, 16, 64, MAX_IN_FLIGHT };
    int pair[2];
    clockid_t core_clock;

    die("pair", inf_socket_pair(pair));
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        core_process(pair[1]);
    }

    close(pair[1]);
    worker_connect(pair[0]);
    if (clock_getcpuclockid(pid, &core_clock) != 0) {
        fprintf(stderr, "no CPU clock of process %d\n", (int) pid);
        return 1;
    }

    printf("in flight   requests/s   worker us   core us   (CPU, median of"
        " %d)\n", ROUNDS);
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        double rate[ROUNDS], worker_us[ROUNDS], core_us[ROUNDS];
        uint64_t count = depths[i] == 1 ? 20000 : 300000;

        for (int k = 0; k < ROUNDS; k++) {
            sample_t s = measure(core_clock, depths[i], count);
            rate[k] = s.rate;
            worker_us[k] = s.worker_us;
            core_us[k] = s.core_us;
        }
        printf("%9u %12.0f %11.2f %9.2f\n", depths[i], median(rate),
            median(worker_us), median(core_us));
        fflush(stdout);
    }

    inf_client_free(client);
    waitpid(pid, NULL, 0);
    return 0;
}

static void
die(const char *what, inf_err_t *err)
{
    if (err != NULL) {
        fprintf(stderr, "%s: %s\n", what, inf_err_msg(err));
        exit(1);
    }
}

static void
core_process(int registration)
{
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len, fd_count;
    inf_socket_result_t result;
    inf_channel_t *ch;
    const inf_channel_conf_t conf = { .response_bound = 64 << 20 };
    struct pollfd p = { .fd = registration, .events = POLLIN };

    (void) poll(&p, 1, -1);
    die("receive", inf_socket_recv(registration, &hello, sizeof(hello), &len,
        fds, INF_SOCKET_MAX_FDS, &fd_count, &result));
    die("accept", inf_channel_accept(&hello, len, fds, fd_count, &conf, &ch));
    core_serve(ch);
    inf_channel_dead(ch);
    inf_channel_unref(ch);
    exit(0);
}

static void
core_serve(inf_channel_t *ch)
{
    struct pollfd p[] = {
        { .fd = inf_channel_event_fd(ch), .events = POLLIN },
        { .fd = inf_channel_control_fd(ch), .events = POLLIN }
    };

    for ( ;; ) {
        inf_submission_t s;
        inf_channel_result_t rc = inf_channel_pop(ch, &s);

        if (rc == INF_CHANNEL_BROKEN) {
            return;
        }

        if (rc == INF_CHANNEL_EMPTY && inf_channel_sleep(ch)) {
            (void) poll(p, 2, -1);
            if (p[1].revents != 0) {
                return;
            }
            inf_eventfd_clear(p[0].fd);
        }

        if (rc != INF_CHANNEL_ENTRY) {
            continue;
        }

        const void *in = inf_channel_request(ch, s.offset, s.length);
        inf_channel_region_t *out = inf_channel_alloc(ch, s.length);
        if (out != NULL) {
            memcpy(inf_channel_region_data(out), in, s.length);
        }
        inf_channel_set_slot(ch, s.slot, INF_SLOT_ANSWERED);
        inf_channel_complete(ch, &(inf_completion_t) {
            .flags = INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED,
            .slot = s.slot, .generation = s.generation }, out,
            out != NULL ? s.length : 0);
    }
}

static void
worker_connect(int registration)
{
    const inf_client_conf_t conf = { .arena_bound = 64 << 20 };
    bool again = true;

    die("client", inf_client_new(&conf, &client));
    die("hello", inf_client_hello(client, registration, &again));

    struct pollfd p = { .fd = inf_client_control_fd(client),
        .events = POLLIN };
    (void) poll(&p, 1, -1);
    die("welcome", inf_client_welcome(client, &again));
}

static sample_t
measure(clockid_t core_clock, uint32_t depth, uint64_t count)
{
    static request_t requests[MAX_IN_FLIGHT];
    struct pollfd p = { .fd = inf_client_event_fd(client), .events = POLLIN };
    uint64_t left = count, flying = 0;

    uint64_t start = inf_clock_ns();
    uint64_t worker = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t core = cpu_ns(core_clock);

    for (uint32_t i = 0; i < depth; i++) {
        submit(&requests[i]);
        flying++;
        left--;
    }

    while (flying > 0) {
        inf_client_result_t rc = inf_client_drain(client, 64, on_completion);
        if (rc == INF_CLIENT_BROKEN) {
            fprintf(stderr, "the channel broke\n");
            exit(1);
        }

        for (uint32_t i = 0; i < depth; i++) {
            if (requests[i].done) {
                requests[i].done = false;
                flying--;
                if (left > 0) {
                    submit(&requests[i]);
                    flying++;
                    left--;
                }
            }
        }

        if (rc == INF_CLIENT_OK && flying > 0 && inf_client_arm(client)) {
            (void) poll(&p, 1, -1);
            inf_eventfd_watch_clear(inf_client_event_fd(client));
        }
    }

    double n = (double) count;
    return (sample_t) {
        .rate = n * 1e9 / (double) (inf_clock_ns() - start),
        .worker_us = (double) (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - worker)
            / n / 1000,
        .core_us = (double) (cpu_ns(core_clock) - core) / n / 1000
    };
}

static void
submit(request_t *q)
{
    q->region = inf_client_alloc(client, REQUEST_SIZE);
    if (q->region == NULL || !inf_client_take(client, q, &q->id)) {
        fprintf(stderr, "out of arena or slots\n");
        exit(1);
    }

    memset(inf_client_data(client, q->region), 1, REQUEST_SIZE);
    const inf_submission_t s = { .op = INF_SUBMIT_CALL,
        .method = INF_METHOD_SERVER_LIVE, .slot = q->id.slot,
        .generation = q->id.generation, .offset = q->region->offset,
        .length = REQUEST_SIZE };
    if (inf_client_submit(client, &s) != INF_CLIENT_OK) {
        fprintf(stderr, "the ring is full\n");
        exit(1);
    }
}

static void
on_completion(const inf_completion_t *cpl, void *userp)
{
    request_t *q = userp;

    if (cpl->length > 0) {
        inf_client_release(client, cpl->offset);
    }
    inf_client_free_region(client, q->region);
    inf_client_give(client, q->id);
    q->done = true;
}

static uint64_t
cpu_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

static double
median(double *values)
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = i + 1; k < ROUNDS; k++) {
            if (values[k] < values[i]) {
                double v = values[i];
                values[i] = values[k];
                values[k] = v;
            }
        }
    }

    return values[ROUNDS / 2];
}
