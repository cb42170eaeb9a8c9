/*
 * metrics.c - what the core counts for one request, in a loop of its own: ns
 *             without and with all that can be switched on.
 *
 * The times it counts are spread as those of real requests are, so that their
 * slots lie in different cache lines.  The clock that a first response is
 * taken from is read in any case where nginx is served; it is not part of it.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/model/latencies.h"
#include "core/model/statistics.h"

#define REQUESTS 200000
#define ROUNDS   41

static inf_statistics_t  statistics;
static inf_latencies_t  *latencies;

static uint64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static double
measure(const inf_latencies_t *on)
{
    uint32_t random = 1;
    uint64_t begin = now();
    uint64_t at = begin;

    for (uint32_t i = 0; i < REQUESTS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t r = random >> 8;
        const uint64_t stamps[4] = {
            at + 20000 + (r & 0x3fff), at + 40000 + (r & 0x1fff),
            at + 50000 + (r & 0x7fff), at + 85000 + (r & 0xffff)
        };
        uint64_t end = at + 160000;

        inf_statistics_success(&statistics, 1, at, at + 10000, stamps, end);
        inf_statistics_batch(&statistics, 1 + (r & 7), stamps, at / 1000000);
        if (on != NULL) {
            inf_latencies_first_response(latencies, at, end);
            inf_statistics_observe(&statistics, at + 10000, stamps);
            inf_latencies_success(latencies, at, at + 10000, stamps, end);
        }
        at += 1000;
    }

    return (double) (now() - begin) / REQUESTS;
}

/* bench_metrics [off|on]: that round alone, for who counts instructions. */
int
main(int argc, char **argv)
{
    const inf_latencies_options_t options = {
        .summaries = true, .histogram = true
    };
    Inference__ModelConfig config = INFERENCE__MODEL_CONFIG__INIT;
    double off = 1e9;
    double on = 1e9;

    inf_err_t *err = inf_latencies_new(&config, &options, &latencies);
    if (err != NULL) {
        fprintf(stderr, "%s\n", inf_err_msg(err));
        return 2;
    }

    if (argc > 1) {
        (void) measure(strcmp(argv[1], "on") == 0 ? latencies : NULL);
        printf("%d\n", REQUESTS);
        return 0;
    }

    for (int i = 0; i < ROUNDS; i++) {
        double a = measure(NULL);
        double b = measure(latencies);
        off = a < off ? a : off;
        on = b < on ? b : on;
    }

    printf("%.1f %.1f\n", off, on);
    inf_latencies_free(latencies);
    inf_statistics_fini(&statistics);
    return 0;
}
