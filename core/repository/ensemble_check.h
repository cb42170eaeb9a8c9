/*
 * ensemble_check.h - whether ensembles fit the models that they name, as far
 *                    as configurations tell.
 *
 * Owner    The check keeps a reference of each configuration.
 * Thread   one.
 * Units    none.
 * Errors   out of memory; what is wrong is a finding.
 * Route    check -> [ensemble check] -> ensemble graph, plan -> findings
 */

#ifndef INF_REPOSITORY_ENSEMBLE_CHECK_H
#define INF_REPOSITORY_ENSEMBLE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/config_shared.h"
#include "core/model/config_findings.h"
#include "core/repository/model_id.h"

typedef struct inf_ensemble_check_s inf_ensemble_check_t;

/* whole: a model that isn't added is nowhere. */
INF_CHECK inf_err_t *inf_ensemble_check_new(bool whole,
    inf_ensemble_check_t **out);

/* check may be NULL. */
void inf_ensemble_check_free(inf_ensemble_check_t *check);

/*
 * A model that there is: its configuration and the versions that would serve
 * (both copied or referred to).  config NULL: nobody can tell.
 */
INF_CHECK inf_err_t *inf_ensemble_check_add(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_model_config_t *config,
    const int64_t *versions, size_t count);

/* What is wrong with *config, added as id, once all models are. */
INF_CHECK inf_err_t *inf_ensemble_check_find(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_findings_t *f, inf_model_config_t **config);

#endif /* INF_REPOSITORY_ENSEMBLE_CHECK_H */
