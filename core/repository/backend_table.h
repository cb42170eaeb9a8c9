/*
 * backend_table.h - backends in memory: one object per library, opened once.
 *
 * Owner    The lifecycle owns the table, the table its backends.
 * Thread   get: any loader; opening is serialised, as backends expect.
 *          compare: any.
 * Units    none.
 * Errors   The error of opening; the next model that needs a failed backend
 *          tries again.
 * Route    model load -> [backend table] -> plug-in operations
 */

#ifndef INF_REPOSITORY_BACKEND_TABLE_H
#define INF_REPOSITORY_BACKEND_TABLE_H

#include "core/repository/backend_search.h"
#include "core/repository/lifecycle.h"

typedef struct inf_backend_table_s inf_backend_table_t;

/* plugins opens and closes the libraries, and outlives the table. */
INF_CHECK inf_err_t *inf_backend_table_new(
    const inf_plugin_ops_t *plugins, inf_backend_table_t **out);

/* Closes all backends; no model uses one. */
void inf_backend_table_free(inf_backend_table_t *t);

/* Gets the backend of a library path, opened with config's settings if it is
   not open.  It belongs to the table. */
INF_CHECK inf_err_t *inf_backend_table_get(inf_backend_table_t *t,
    const NginxInference__CoreConfig *config, const char *name,
    const inf_backend_location_t *where, inf_backend_t **out);

/* Logs each open backend whose settings in config differ from those it was
   opened with. */
void inf_backend_table_compare(inf_backend_table_t *t,
    const NginxInference__CoreConfig *config);

#endif /* INF_REPOSITORY_BACKEND_TABLE_H */
