/*
 * model_config.h - one model's configuration, and where it was read.
 *
 * Owner    The loader, then its model; it owns the message.
 * Thread   The message is changed by the loader alone, until the model is
 *          published; after that it is read by anyone.
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
    char                   *file;       /* where it was read; NULL: no file */
    char                   *origin;     /* for texts: the file, or a word
                                           such as "config override"       */
} inf_model_config_t;

/* Takes msg on success; file may be NULL; both texts are copied. */
INF_CHECK inf_err_t *inf_model_config_new(Inference__ModelConfig *msg,
    const char *file, const char *origin, inf_model_config_t **out);

/* c may be NULL. */
void inf_model_config_free(inf_model_config_t *c);

/* Whether the platform is "ensemble". */
bool inf_config_is_ensemble(const Inference__ModelConfig *msg);

#endif /* INF_MODEL_MODEL_CONFIG_H */
