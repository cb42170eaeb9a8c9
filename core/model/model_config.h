/*
 * model_config.h - one model's configuration, and the file it was read from.
 *
 * Owner    The loader, then its model; the message belongs to it.
 * Thread   The loader alone changes the message, until the model is published;
 *          then any thread reads it.
 * Units    none.
 * Errors   out of memory.
 * Route    reader -> [configuration] -> loader, backend (as JSON), scheduler
 */

#ifndef INF_MODEL_MODEL_CONFIG_H
#define INF_MODEL_MODEL_CONFIG_H

#include <stdbool.h>

#include "core/base/error.h"
#include "model_config.pb-c.h"

typedef struct {
    Inference__ModelConfig *msg;        /* never NULL                      */
    char                   *file;       /* its path; NULL: no file */
    char                   *origin;     /* for texts: the file, or words such
                                           as "config override"            */
} inf_model_config_t;

/* Creates one; takes msg on success; file may be NULL; texts are copied. */
INF_CHECK inf_err_t *inf_model_config_new(Inference__ModelConfig *msg,
    const char *file, const char *origin, inf_model_config_t **out);

/* Creates one of a copy of msg, with file and origin of c. */
INF_CHECK inf_err_t *inf_model_config_copy(const Inference__ModelConfig *msg,
    const inf_model_config_t *c, inf_model_config_t **out);

/* c may be NULL. */
void inf_model_config_free(inf_model_config_t *c);

/* Whether the platform is "ensemble". */
bool inf_config_is_ensemble(const Inference__ModelConfig *msg);

#endif /* INF_MODEL_MODEL_CONFIG_H */
