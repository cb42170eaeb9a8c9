/*
 * check_main.h - "inference-core --check": what is wrong with the models, the
 *                cache and the host policies, a line each, without loading
 *                any.
 *
 * Owner    -
 * Thread   the program's only one.
 * Units    -
 * Errors   the exit status: 0 nothing is wrong, 1 something is, 2 it could
 *          not be looked at.
 * Route    core_main -> [check] -> repository check, cache plug-in, host
 *          check -> stdout
 *
 * A line is "error: TEXT" or "warn: TEXT"; bytes that don't print are shown
 * as "?".
 */

#ifndef INF_SERVICE_CHECK_MAIN_H
#define INF_SERVICE_CHECK_MAIN_H

/* file: the configuration's text form; NULL: its serialised form, from the
   descriptor where a supervised core finds it. */
int inf_check_main(const char *file);

#endif /* INF_SERVICE_CHECK_MAIN_H */
