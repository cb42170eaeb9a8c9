/*
 * number_powers.h - 128-bit powers of ten for reading and writing reals
 *                   without big integers.
 *
 * Owner    none; constants.
 * Thread   any.
 * Units    Entry q is 10^q scaled by a power of two to 2^127 <= x < 2^128:
 *          rounded down for q >= 0 (exact up to q = 55), up for q < 0.
 * Errors   none.
 * Route    number_read.c and number_write.c only.
 */

#ifndef INF_PROTO_NUMBER_POWERS_H
#define INF_PROTO_NUMBER_POWERS_H

#include <stdint.h>

#define INF_POWER_MIN   (-342)
#define INF_POWER_MAX   324
#define INF_POWER_EXACT 55      /* largest q whose entry is exact            */

typedef struct {
    uint64_t high;
    uint64_t low;
} inf_power_t;

extern const inf_power_t inf_powers_of_ten[INF_POWER_MAX - INF_POWER_MIN + 1];

#endif /* INF_PROTO_NUMBER_POWERS_H */
