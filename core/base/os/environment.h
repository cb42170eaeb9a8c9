/*
 * environment.h - variables of the process's environment.
 *
 * Owner    The text belongs to the environment.
 * Thread   any; nothing of ours changes the environment after the start.
 * Units    none.
 * Errors   none.
 * Route    storage, traces -> [environment]
 */

#ifndef INF_BASE_OS_ENVIRONMENT_H
#define INF_BASE_OS_ENVIRONMENT_H

/* NULL: not set.  An empty variable counts as not set. */
const char *inf_environment(const char *name);

#endif /* INF_BASE_OS_ENVIRONMENT_H */
