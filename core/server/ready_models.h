/*
 * ready_models.h - a list of every model version that serves now.
 *
 * Owner    The list holds a reference of each model until fini.
 * Thread   any.
 * Units    none.
 * Errors   out of memory.
 * Route    registry -> [ready models] -> statistics, metrics
 */

#ifndef INF_SERVER_READY_MODELS_H
#define INF_SERVER_READY_MODELS_H

#include "core/server/server.h"

typedef struct {
    inf_model_t **models;       /* by id, versions ascending                 */
    size_t        count;
} inf_ready_models_t;

/* On error the list is empty. */
INF_CHECK inf_err_t *inf_ready_models_init(inf_ready_models_t *list,
    inf_server_t *server);
void inf_ready_models_fini(inf_ready_models_t *list);

/* Asks whether every instance of all models is ready: calls fn once, possibly
   before returning; on error fn is not called. */
INF_CHECK inf_err_t *inf_ready_models_ask(inf_server_t *server,
    inf_readiness_fn fn, void *userp);

#endif /* INF_SERVER_READY_MODELS_H */
