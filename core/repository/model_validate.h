/*
 * model_validate.h - the stage of a load that opens nothing: what a version's
 *                    configuration and files say of it.  nginx -t runs this
 *                    stage alone.
 *
 * Owner    The caller gets one reference to a draft.
 * Thread   a loader's, or the check's.
 * Units    none.
 * Errors   why the version can't serve.
 * Route    model source, check -> [model validate] -> model load -> plug-ins
 *
 * A draft is a version of which nothing is initialized; inf_model_unload ends
 * one that is not loaded, too.
 */

#ifndef INF_REPOSITORY_MODEL_VALIDATE_H
#define INF_REPOSITORY_MODEL_VALIDATE_H

#include "core/repository/backend_search.h"
#include "core/repository/model_load.h"

/* Takes err; further checks follow. */
typedef void (*inf_model_problem_fn)(void *userp, inf_err_t *err);

/* With a copy of what->config. */
INF_CHECK inf_err_t *inf_model_draft(const inf_model_load_t *what,
    inf_model_t **out);

/* Where the library is that runs it. */
INF_CHECK inf_err_t *inf_model_find_backend(const inf_model_load_t *what,
    const inf_model_t *model, inf_backend_location_t *out);

/* model->built is the configuration from now on.  A backend may set another
   one later: that changes what is reported, not what was built. */
INF_CHECK inf_err_t *inf_model_fix_config(inf_model_t *model);

/*
 * Makes what requests need: tensors, labels, the inputs of sequences.  fn
 * NULL: the first error is returned; else fn gets each error of a part that
 * others do not need.
 */
INF_CHECK inf_err_t *inf_model_make_tables(const inf_model_load_t *what,
    inf_model_t *model, inf_model_problem_fn fn, void *userp);

/* A batch strategy library; *library NULL: there is none. */
INF_CHECK inf_err_t *inf_model_find_strategy(const inf_model_load_t *what,
    const inf_model_t *model, char **library);

#endif /* INF_REPOSITORY_MODEL_VALIDATE_H */
