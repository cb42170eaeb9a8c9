/*
 * fake_nvml.h - what tests tell the fake management library.
 *
 * Owner    the fake's library, loaded once a process.
 * Thread   any.
 * Units    calls.
 * Errors   none.
 * Route    unit tests only
 *
 * Its devices are those of the fake driver: 37 % busy, 1 GiB with 256 MiB in
 * use, 75.5 W of 250 W; each reading of the energy adds 1.5 J.
 */

#ifndef INF_T_FAKE_NVML_H
#define INF_T_FAKE_NVML_H

#include <stddef.h>

/* Every call of that function fails; NULL: none does. */
void fake_nvml_fail(const char *function);

/* Calls since the last time this was asked. */
size_t fake_nvml_calls(void);

/* Inits that no shutdown has followed. */
int fake_nvml_open(void);

#endif /* INF_T_FAKE_NVML_H */
