/*
 * rate_check.h - what the rate limiter would say of models' configurations.
 *
 * Owner    The check owns the rate check and tells it of one model after
 *          another.
 * Thread   one.
 * Units    copies of resources.
 * Errors   out of memory; everything else becomes a finding.
 * Route    configuration -> [rate check] -> findings
 *
 * Which GPUs there are is not asked: a group that does not name its own may
 * stand on any device the limits know.
 */

#ifndef INF_REPOSITORY_RATE_CHECK_H
#define INF_REPOSITORY_RATE_CHECK_H

#include "core/model/config_findings.h"
#include "core/sched/rate_limiter.h"
#include "model_config.pb-c.h"

typedef struct inf_rate_check_s inf_rate_check_t;

INF_CHECK inf_err_t *inf_rate_check_new(const inf_rate_resource_t *resources,
    size_t count, inf_rate_check_t **out);

/* May be NULL. */
void inf_rate_check_free(inf_rate_check_t *c);

/* What it needs counts for the models that follow: a resource is global for
   all or for none. */
INF_CHECK inf_err_t *inf_rate_check_model(inf_rate_check_t *c,
    const Inference__ModelConfig *msg, inf_findings_t *f);

#endif /* INF_REPOSITORY_RATE_CHECK_H */
