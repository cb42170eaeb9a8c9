/*
 * ensemble_check.h - whether ensembles fit their composing models, as far as
 *                    configurations tell.
 *
 * Owner    The check keeps a reference to each draft (model_validate.h).
 * Thread   one.
 * Units    none.
 * Errors   out of memory; what is wrong is a finding.
 * Route    check -> [ensemble check] -> ensemble graph, ensemble -> findings
 */

#ifndef INF_REPOSITORY_ENSEMBLE_CHECK_H
#define INF_REPOSITORY_ENSEMBLE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/config_findings.h"
#include "core/model/model.h"
#include "core/repository/model_id.h"

typedef struct inf_ensemble_check_s inf_ensemble_check_t;

/* whole: no repository has a model that isn't added. */
INF_CHECK inf_err_t *inf_ensemble_check_new(bool whole,
    inf_ensemble_check_t **out);

/* check may be NULL. */
void inf_ensemble_check_free(inf_ensemble_check_t *check);

/* A model of the repositories, with the versions that would serve (copied).
   draft NULL: what it will be is not known. */
INF_CHECK inf_err_t *inf_ensemble_check_add(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_model_t *draft, const int64_t *versions,
    size_t count);

/* Once all models are added: what is wrong with id, of which *config is the
   configuration if anything is. */
INF_CHECK inf_err_t *inf_ensemble_check_find(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_findings_t *f,
    const inf_model_config_t **config);

#endif /* INF_REPOSITORY_ENSEMBLE_CHECK_H */
