/*
 * check.h - looks over repositories without loading anything: what would keep
 *           a model from being served, as far as files tell.
 *
 * Owner    Texts given to the reporter live as long as its call.
 * Thread   any; a check shares nothing.
 * Units    none.
 * Errors   Only out of memory; everything else is reported.
 * Route    addresses -> [check] -> reporter
 *
 * Nothing is dlopen'd and no network is used: an address that is not a local
 * one is skipped, and so is what only a backend can tell (missing tensors,
 * the devices there are).  Of a model that goes through repository agents
 * only their libraries are looked for: what it will be they decide.
 */

#ifndef INF_REPOSITORY_CHECK_H
#define INF_REPOSITORY_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/sched/rate_limiter.h"

typedef struct {
    const char *const *repositories;
    size_t             repository_count;
    const char *const *backend_dirs;
    size_t             backend_dir_count;
    const char *const *agent_dirs;
    size_t             agent_dir_count;
    bool               auto_complete;
    bool               namespacing;     /* equal names are no problem        */
    const char        *config_name;     /* configs/<name>.pbtxt first; NULL,
                                           "": none                          */
    bool               rates_limited;
    const inf_rate_resource_t *rate_resources;
    size_t             rate_resource_count;
} inf_check_t;

/* ERROR: a model or repository can't be used.  WARN: something is odd.  text
   is whole: file, line, column and key, and what is wrong. */
typedef void (*inf_check_fn)(void *userp, inf_log_level_t level,
    const char *text);

INF_CHECK inf_err_t *inf_repository_check(const inf_check_t *what,
    inf_check_fn fn, void *userp);

#endif /* INF_REPOSITORY_CHECK_H */
