/*
 * instance_array.h - a model's list over instances that lie in a test's array.
 *
 * Owner    the test, before its model is freed: unlisted.
 * Thread   one.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_MODEL_INSTANCE_ARRAY_H
#define INF_T_MODEL_INSTANCE_ARRAY_H

#include <stdlib.h>

#include "core/model/model.h"

static inline void
instances_listed(inf_model_t *model, inf_instance_t *items, uint32_t count)
{
    model->instances = calloc(count + 1, sizeof(*model->instances));
    assert_non_null(model->instances);
    model->instance_count = count;
    for (uint32_t i = 0; i < count; i++) {
        items[i].model = model;
        model->instances[i] = &items[i];
    }
}

static inline void
instances_unlisted(inf_model_t *model)
{
    free(model->instances);
    model->instances = NULL;
    model->instance_count = 0;
}

#endif /* INF_T_MODEL_INSTANCE_ARRAY_H */
