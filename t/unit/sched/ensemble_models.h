/* ensemble_models.h - models made of the text of their configuration, for the
   tests of ensembles. */

#ifndef T_ENSEMBLE_MODELS_H
#define T_ENSEMBLE_MODELS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/proto/text_format.h"

static void
no_last_unref(inf_model_t *model)
{
    (void) model;
}

static const inf_model_ops_t test_model_ops = { .last_unref = no_last_unref };

/* Aborts where anything fails: a test of its own would be lost here. */
static inf_model_t *
test_model(const char *name, const char *text)
{
    ProtobufCMessage *built;
    inf_model_t *model = inf_model_new(name, 1, "/nowhere");

    if (model == NULL) {
        abort();
    }
    inf_err_t *err = inf_text_parse(&inference__model_config__descriptor,
        inf_slice_str(text), name, &built);
    if (err == NULL) {
        model->built = (Inference__ModelConfig *) (void *) built;
        err = inf_config_tensors_new(model->built, &model->tensors);
    }
    if (err != NULL) {
        fprintf(stderr, "%s: %s\n%s\n", name, inf_err_msg(err), text);
        abort();
    }
    model->ops = &test_model_ops;
    model->decoupled = model->built->model_transaction_policy != NULL
        && model->built->model_transaction_policy->decoupled;
    return model;
}

#endif /* T_ENSEMBLE_MODELS_H */
