/*
 * backend_search.h - finds the library that runs a model.
 *
 * Owner    The result belongs to the caller (fini).
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: not found (the text lists the searched places), or a
 *          name that leaves its directory.
 * Route    loader -> [search] -> dlopen
 *
 * Order: <model>/<version>, <model>, then <backends>/<backend> of each global
 * directory; the first match is used.  Without a library, a
 * <backends>/<backend>/model.py is a backend written in Python, run by the
 * library of backend "python".
 */

#ifndef INF_REPOSITORY_BACKEND_SEARCH_H
#define INF_REPOSITORY_BACKEND_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct {
    const char        *model_name;
    const char        *model_dir;       /* on local disk                   */
    int64_t            version;
    const char        *backend;
    const char        *runtime;         /* "" or NULL: the default name    */
    const char *const *global_dirs;
    size_t             global_count;
} inf_backend_query_t;

typedef struct {
    char *library;          /* full path, for dlopen                       */
    char *dir;              /* directory of the backend's files: of the
                               library, or of model.py                     */
    bool  python_based;     /* runtime is then "model.py"                  */
    char *environment;      /* archive beside model.py, or NULL            */
} inf_backend_location_t;

/* Finds the library of a backend.  On success out has texts to be freed by
   fini; after an error it is empty. */
INF_CHECK inf_err_t *inf_backend_search(const inf_backend_query_t *q,
    inf_backend_location_t *out);
void inf_backend_location_fini(inf_backend_location_t *l);

#endif /* INF_REPOSITORY_BACKEND_SEARCH_H */
