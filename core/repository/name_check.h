/*
 * name_check.h - reports models named by directives of nginx.conf that no
 *                repository has.
 *
 * Owner    The caller; arguments are borrowed.
 * Thread   any.
 * Units    versions from 1 on; 0 is any.
 * Errors   Only out of memory; findings go to the reporter.
 * Route    check -> [name check] -> reporter
 */

#ifndef INF_REPOSITORY_NAME_CHECK_H
#define INF_REPOSITORY_NAME_CHECK_H

#include "core/proto/core_config.h"
#include "core/repository/check.h"
#include "core/repository/scan.h"

typedef struct {
    const NginxInference__CoreConfig *config;
    inf_check_fn                      fn;
    void                             *userp;
} inf_name_check_t;

/* Reports names that no model of the scan, which covers all repositories,
   has. */
INF_CHECK inf_err_t *inf_name_check_unknown(const inf_name_check_t *c,
    const inf_scan_t *scan);

/* Reports versions named for m that are not in served. */
INF_CHECK inf_err_t *inf_name_check_versions(const inf_name_check_t *c,
    const inf_scan_model_t *m, const int64_t *served, size_t count);

#endif /* INF_REPOSITORY_NAME_CHECK_H */
