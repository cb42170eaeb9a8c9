/*
 * repositories.h - the repositories that a server was given, opened.
 *
 * Owner    The server owns the set and closes it last: loaded models use its
 *          storages.
 * Thread   opened by one thread, then read by anyone.
 * Units    none.
 * Errors   One that can't be opened is logged and left out.
 * Route    settings -> [repositories] -> scan, model home, index
 */

#ifndef INF_REPOSITORY_REPOSITORIES_H
#define INF_REPOSITORY_REPOSITORIES_H

#include "core/repository/scan.h"

typedef struct {
    inf_scan_root_t  *roots;        /* for inf_scan                          */
    inf_storage_t   **storages;     /* the same, to load from                */
    size_t            count;
} inf_repositories_t;

INF_CHECK inf_err_t *inf_repositories_open(char *const *addresses,
    size_t count, inf_repositories_t *out);
void inf_repositories_close(inf_repositories_t *r);

typedef struct {
    const char *name;
    size_t      repository;         /* index into the roots                  */
    bool        duplicate;          /* in two or more of them                */
} inf_repository_name_t;

/*
 * The names of all models that lie there now, sorted, in arena memory.  A
 * repository that can't be listed is an error, unless failed (a bool for each
 * of them) is there to take note of it.
 */
INF_CHECK inf_err_t *inf_repositories_names(const inf_repositories_t *r,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count);

#endif /* INF_REPOSITORY_REPOSITORIES_H */
