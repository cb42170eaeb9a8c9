/*
 * model.h - a model of the backend image: the form of its output, from its
 *           configuration alone.
 *
 * Owner    the core's model object, from model_new to model_free.
 * Thread   read-only after image_model_new.
 * Units    as picture.h.
 * Errors   INVALID_ARG naming the tensor or parameter that is wrong.
 * Route    ModelInitialize -> [model] -> instance
 */

#ifndef IMAGE_MODEL_H
#define IMAGE_MODEL_H

#include "common/tensors.h"
#include "picture.h"

typedef struct {
    bk_model_config_t config;
    bk_tensors_t      tensors;      /* one input, one output                 */
    picture_form_t    form;
} image_model_t;

/* Functions of common/entry.h. */
TRITONSERVER_Error *image_model_new(void **out, TRITONBACKEND_Model *handle,
    void *runtime);
void image_model_free(void *model);

#endif /* IMAGE_MODEL_H */
