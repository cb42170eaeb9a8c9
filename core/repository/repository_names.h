/*
 * repository_names.h - the names of all models that lie in repositories.
 *
 * Owner    Names are in the caller's arena.
 * Thread   any.
 * Units    none.
 * Errors   Out of memory, or a repository that can't be listed.
 * Route    repositories -> [names] -> inventory, index
 */

#ifndef INF_REPOSITORY_REPOSITORY_NAMES_H
#define INF_REPOSITORY_REPOSITORY_NAMES_H

#include "core/repository/repositories.h"

typedef struct {
    inf_model_id_t id;
    size_t         repository;      /* index into the list                   */
    bool           duplicate;       /* in two or more of them                */
    const char    *problem;         /* why it can be no model now; NULL: it
                                       is one                                */
    bool           unsure;          /* a problem that may pass               */
    bool           remote;          /* in a remote repository, too           */
    bool           polled;          /* in the one that was polled            */
} inf_repository_name_t;

/*
 * The ids of all models that lie there now, sorted, in arena memory (the
 * namespaces are the list's); among them, as they can be printed, those of
 * entries that can be no model.  A repository that can't be listed is an
 * error, unless failed (a bool for each of them) is there to take note of it:
 * its models are then those of its last listing.
 */
INF_CHECK inf_err_t *inf_repositories_names(const inf_repository_list_t *list,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count);

/* The same, but remote repositories are as they were when they were listed
   last.  polled (or NULL): the one that has just been. */
INF_CHECK inf_err_t *inf_repositories_names_seen(
    const inf_repository_list_t *list, const inf_repository_t *polled,
    inf_arena_t *arena, bool *failed, inf_repository_name_t **names,
    size_t *count);

#endif /* INF_REPOSITORY_REPOSITORY_NAMES_H */
