/*
 * check_main.h - "inference-core --check": prints a line for each problem of
 *                the models, the cache and the host policies, without loading
 *                models.
 *
 * Owner    -
 * Thread   the program's only one.
 * Units    -
 * Errors   The exit status: 0 no problems, 1 problems, 2 the check was not
 *          possible.
 * Route    core_main -> [check] -> repository check, cache plug-in, host
 *          check -> stdout
 *
 * A line is "error: TEXT" or "warn: TEXT"; unprintable bytes are printed as
 * "?".
 */

#ifndef INF_SERVICE_CHECK_MAIN_H
#define INF_SERVICE_CHECK_MAIN_H

/* Runs the check.  file: the configuration in text form; NULL: in serialised
   form, from the descriptor of a supervised core. */
int inf_check_main(const char *file);

#endif /* INF_SERVICE_CHECK_MAIN_H */
