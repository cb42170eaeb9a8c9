/*
 * check.h - reports why models of repositories could not be served, as far as
 *           files show: the stage of their loads that opens nothing
 *           (model_validate.h), for nginx -t.
 *
 * Owner    Texts given to the reporter live as long as its call.
 * Thread   any; a check shares nothing.
 * Units    none.
 * Errors   Only out of memory; everything else is reported.
 * Route    addresses -> [check] -> scan, model validate -> reporter
 *
 * The check opens no library and uses no network: it skips remote addresses,
 * and what depends on a backend (missing tensors) or on GPUs.  Models named by
 * directives are searched in local repositories, and reported only if no remote
 * one may have them.  Of a model with repository agents only the agents'
 * libraries are checked, because agents can change the model.
 */

#ifndef INF_REPOSITORY_CHECK_H
#define INF_REPOSITORY_CHECK_H

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/proto/core_config.h"

/* Reports a problem.  ERROR: a model or repository cannot be used.  WARN:
   something is unusual.  text is complete: file, line, column, key and
   problem. */
typedef void (*inf_check_fn)(void *userp, inf_log_level_t level,
    const char *text);

/* Checks the repositories of config; calls fn for each problem, on the calling
   thread. */
INF_CHECK inf_err_t *inf_repository_check(const inf_core_config_t *config,
    inf_check_fn fn, void *userp);

#endif /* INF_REPOSITORY_CHECK_H */
