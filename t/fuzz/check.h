/*
 * check.h - what a fuzzer insists on.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    none.
 * Errors   a broken rule ends the fuzzer, which keeps the input.
 * Route    fuzzer -> [check] -> abort
 */

#ifndef T_FUZZ_CHECK_H
#define T_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(rule) ((rule) ? (void) 0 : check_failed(#rule, __LINE__))

static inline void
check_failed(const char *rule, int line)
{
    fprintf(stderr, "line %d: %s\n", line, rule);
    abort();
}

#endif /* T_FUZZ_CHECK_H */
