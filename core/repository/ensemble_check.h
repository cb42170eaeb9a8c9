/*
 * ensemble_check.h - checks whether ensembles fit their composing models, by
 *                    configurations.
 *
 * Owner    The check keeps a reference to each draft (model_validate.h).
 * Thread   one.
 * Units    none.
 * Errors   out of memory; problems are findings.
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

/* whole: every model of the repositories is added. */
INF_CHECK inf_err_t *inf_ensemble_check_new(bool whole,
    inf_ensemble_check_t **out);

/* check may be NULL. */
void inf_ensemble_check_free(inf_ensemble_check_t *check);

/* Adds a model with the versions (taken) that would serve; the texts of id
   outlive check.  draft NULL: its configuration is not known. */
INF_CHECK inf_err_t *inf_ensemble_check_add(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_model_t *draft, int64_t *versions,
    size_t count);

/* Called after all models are added: adds the findings for id; *config is its
   configuration if there are findings. */
INF_CHECK inf_err_t *inf_ensemble_check_find(inf_ensemble_check_t *check,
    const inf_model_id_t *id, inf_findings_t *f,
    const inf_model_config_t **config);

#endif /* INF_REPOSITORY_ENSEMBLE_CHECK_H */
