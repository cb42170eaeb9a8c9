/*
 * simulated.h - chance and checks of a simulation: what fails names the seed
 *               of its round and the virtual time; the same seed fails again.
 *
 * Owner    the program that includes it; its sim has seed and now.
 * Thread   one.
 * Units    virtual ns.
 * Errors   the program ends at once.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_SIMULATED_H
#define INF_T_SCHED_SIMULATED_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

#endif /* INF_T_SCHED_SIMULATED_H */
