/*
 * load_settings.h - the part of the configuration that loads of models go by.
 *
 * Owner    One reference for the caller; it holds a copy of what it needs, the
 *          lifecycle's options only point to it.
 * Thread   any; constant.
 * Units    none.
 * Errors   INVALID_ARG: a host policy that can't be.
 * Route    core configuration -> [load settings] -> lifecycle's terms
 */

#ifndef INF_SERVICE_LOAD_SETTINGS_H
#define INF_SERVICE_LOAD_SETTINGS_H

#include "core/repository/lifecycle.h"
#include "core_config.pb-c.h"

typedef struct inf_load_settings_s inf_load_settings_t;

INF_CHECK inf_err_t *inf_load_settings_new(
    const NginxInference__CoreConfig *config, inf_load_settings_t **out);

/* userp may be NULL. */
void inf_load_settings_free(void *userp);

/* Sets the options that may change while the server runs; they borrow s. */
void inf_load_settings_fill(const inf_load_settings_t *s,
    inf_lifecycle_options_t *options);

#endif /* INF_SERVICE_LOAD_SETTINGS_H */
