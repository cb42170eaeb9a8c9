/*
 * model_validate.h - the stage of a load that opens nothing: checks a version's
 *                    configuration and files.  nginx -t runs this stage alone.
 *
 * Owner    The caller gets one reference to a draft.
 * Thread   a loader's, or the check's.
 * Units    none.
 * Errors   why the version cannot serve.
 * Route    model source, check -> [model validate] -> model load -> plug-ins
 *
 * A draft is a version without initialized parts; inf_model_unload also frees a
 * draft.
 */

#ifndef INF_REPOSITORY_MODEL_VALIDATE_H
#define INF_REPOSITORY_MODEL_VALIDATE_H

#include "core/repository/backend_search.h"
#include "core/repository/model_load.h"

/* Receives an error (taken); checks continue. */
typedef void (*inf_model_problem_fn)(void *userp, inf_err_t *err);

/* Creates a draft with a copy of what->config. */
INF_CHECK inf_err_t *inf_model_draft(const inf_model_load_t *what,
    inf_model_t **out);

/* Finds the library of the model's backend. */
INF_CHECK inf_err_t *inf_model_find_backend(const inf_model_load_t *what,
    const inf_model_t *model, inf_backend_location_t *out);

/* Sets model->built to the configuration.  A later change by the backend
   changes only what is reported. */
INF_CHECK inf_err_t *inf_model_fix_config(inf_model_t *model);

/*
 * Makes tensors, labels and the inputs of sequences.  fn NULL: returns the
 * first error; otherwise fn gets each error of a part that others do not need.
 */
INF_CHECK inf_err_t *inf_model_make_tables(const inf_model_load_t *what,
    inf_model_t *model, inf_model_problem_fn fn, void *userp);

#endif /* INF_REPOSITORY_MODEL_VALIDATE_H */
