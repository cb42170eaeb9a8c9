/*
 * simulated.h - the frame of a simulation, its chance and its checks: what
 *               fails names the seed of its round and the virtual time; the
 *               same seed fails again.
 *
 * Owner    the program that includes it; its sim has seed and now.
 * Thread   one.
 * Units    virtual ns.
 * Errors   the program ends at once.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_SIMULATED_H
#define INF_T_SCHED_SIMULATED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/log.h"

#define check(condition, ...)                                                \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fail_round(__FILE__, __LINE__, sim.seed, sim.now, #condition,    \
                __VA_ARGS__);                                                \
        }                                                                    \
    } while (0)

__attribute__((format(printf, 6, 7), noreturn)) static inline void
fail_round(const char *file, int line, uint64_t seed, uint64_t now,
    const char *condition, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s:%d: seed %llu, now %llu: %s: ", file, line,
        (unsigned long long) seed, (unsigned long long) now, condition);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

static uint64_t chance_state;           /* the seed to begin with            */

static inline uint64_t
chance(uint64_t below)
{
    uint64_t z = chance_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return below == 0 ? 0 : (z ^ (z >> 31)) % below;
}

static inline bool
one_in(uint64_t n)
{
    return chance(n) == 0;
}

static inline uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

typedef struct {
    CMFixtureFunction        setup;     /* of all that is run                */
    CMFixtureFunction        teardown;
    const struct CMUnitTest *tests;     /* short runs of every kind          */
    size_t                   test_count;
    void                   (*run_long)(uint64_t requests, uint64_t seed);
    bool                   (*run_costs)(void);  /* counted.h; false: dear  */
} simulation_t;

/* With REQUESTS [SEED] a long run, else the tests; costs instead of both in a
   program that counts them. */
static inline int
simulation_main(const simulation_t *s, int argc, char **argv)
{
    inf_log_set_levels(false, false, false, 0);
    if (s->run_costs == NULL && argc == 1) {
        return _cmocka_run_group_tests("tests", s->tests, s->test_count,
            s->setup, s->teardown);
    }

    bool good = true;
    if (s->setup(NULL) != 0) {
        return 1;
    }
    if (s->run_costs != NULL) {
        good = s->run_costs();
    } else {
        s->run_long(strtoull(argv[1], NULL, 10), argc > 2
            ? strtoull(argv[2], NULL, 10) : 1);
    }
    s->teardown(NULL);
    return good ? 0 : 1;
}

#endif /* INF_T_SCHED_SIMULATED_H */
