/* engine.c - see engine.h */

#include "engine.h"

#include <stdlib.h>

bool
pt_signature_init(pt_signature_t *s, uint32_t parameter_count,
    uint32_t output_count)
{
    *s = (pt_signature_t) {
        .parameters = calloc((size_t) parameter_count + 1,
            sizeof(*s->parameters)),
        .parameter_count = parameter_count,
        .outputs = calloc((size_t) output_count + 1, sizeof(*s->outputs)),
        .output_count = output_count
    };

    return s->parameters != NULL && s->outputs != NULL;
}

void
pt_engine_free(pt_engine_t *engine)
{
    if (engine == NULL) {
        return;
    }

    pt_signature_t *s = &engine->signature;

    if (engine->self != NULL) {
        engine->functions->free(engine->self);
    }
    for (uint32_t i = 0; s->parameters != NULL && i < s->parameter_count; i++)
    {
        free(s->parameters[i].name);
    }
    for (uint32_t i = 0; s->outputs != NULL && i < s->output_count; i++) {
        free(s->outputs[i]);
    }
    free(s->parameters);
    free(s->outputs);
    free(engine);
}
