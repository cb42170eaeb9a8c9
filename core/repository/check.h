/*
 * check.h - reports what would keep the models of repositories from being
 *           served, as far as files tell: the stage of their loads that opens
 *           nothing (model_validate.h), for nginx -t.
 *
 * Owner    Texts given to the reporter live as long as its call.
 * Thread   any; a check shares nothing.
 * Units    none.
 * Errors   Only out of memory; everything else is reported.
 * Route    addresses -> [check] -> scan, model validate -> reporter
 *
 * No library is opened and no network is used: an address that is not a local
 * one is skipped, and so is what depends on a backend (missing tensors) or on
 * the GPUs.  Models that directives name are looked for in local repositories,
 * and missed only where no remote one may hold them.  Of a model that goes through repository agents only their
 * libraries are searched for: the agents decide what the model will be.
 */

#ifndef INF_REPOSITORY_CHECK_H
#define INF_REPOSITORY_CHECK_H

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/proto/core_config.h"

/* ERROR: a model or repository can't be used.  WARN: something is odd.  text
   is whole: file, line, column and key, and what is wrong. */
typedef void (*inf_check_fn)(void *userp, inf_log_level_t level,
    const char *text);

/* Checks the repositories that config names; fn is called for each problem,
   on the calling thread, before this returns. */
INF_CHECK inf_err_t *inf_repository_check(const inf_core_config_t *config,
    inf_check_fn fn, void *userp);

#endif /* INF_REPOSITORY_CHECK_H */
