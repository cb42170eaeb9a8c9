/*
 * fail_each.h - a piece of work that is done again and again, each time with
 *               another allocation that fails.
 *
 * Owner    the program, which includes scarce_memory.h first of all.
 * Thread   one.
 * Units    allocations.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_FAIL_EACH_H
#define INF_T_FAIL_EACH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/error.h"
#include "scarce_memory.h"

static inline bool
fail_each_told(const inf_err_t *err)
{
    const char *text = err != NULL ? inf_err_msg(err) : "";
    return strstr(text, "out of memory") != NULL
        || strstr(text, "cannot allocate") != NULL;
}

static inline void
fail_in_turn(inf_err_t *(*use)(void), long at_least, bool whole)
{
    assert_null(use());         /* what stays for good is there afterwards   */

    long n = 1;
    for ( ; OWN_MALLOC; n++) {
        long before = live;
        countdown = n;
        inf_err_t *err = use();
        bool reached = countdown == 0;
        countdown = 0;

        if (!reached) {
            assert_null(err);
            break;
        }
        if (!fail_each_told(err) && (err != NULL || !whole)) {
            fail_msg("allocation %ld failed: \"%s\"", n,
                err == NULL ? "no error" : inf_err_msg(err));
        }
        inf_err_free(err);
        if (live != before) {
            fail_msg("allocation %ld failed and left %ld behind", n,
                live - before);
        }
    }

    assert_true(!OWN_MALLOC || n > at_least);
}

/* Each time there is an error that says so, and nothing is left behind; there
   are more allocations than at_least. */
static inline void
fail_each(inf_err_t *(*use)(void), long at_least)
{
    fail_in_turn(use, at_least, false);
}

/* The same, or no error: use compares the result, and finds it whole (asprintf
   has a second way to get its memory). */
static inline void
fail_each_or_whole(inf_err_t *(*use)(void), long at_least)
{
    fail_in_turn(use, at_least, true);
}

#endif /* INF_T_FAIL_EACH_H */
