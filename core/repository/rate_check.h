/*
 * rate_check.h - checks models' configurations by the rules of the rate
 *                limiter.
 *
 * Owner    The check owns the rate check and passes one model after another.
 * Thread   one.
 * Units    copies of resources.
 * Errors   out of memory; everything else becomes a finding.
 * Route    configuration -> [rate check] -> findings
 */

#ifndef INF_REPOSITORY_RATE_CHECK_H
#define INF_REPOSITORY_RATE_CHECK_H

#include "core/model/config_findings.h"
#include "core_config.pb-c.h"
#include "model_config.pb-c.h"

typedef struct inf_rate_check_s inf_rate_check_t;

/* Creates a check; *out NULL: config limits no rates. */
INF_CHECK inf_err_t *inf_rate_check_new(
    const NginxInference__CoreConfig *config, inf_rate_check_t **out);

/* May be NULL. */
void inf_rate_check_free(inf_rate_check_t *c);

/* Checks a model.  Its resources count for later models: a resource is global
   for all or for none. */
INF_CHECK inf_err_t *inf_rate_check_model(inf_rate_check_t *c,
    const Inference__ModelConfig *msg, inf_findings_t *f);

#endif /* INF_REPOSITORY_RATE_CHECK_H */
