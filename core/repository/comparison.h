/*
 * comparison.h - the comparison of a poll: loads new and changed models, and
 *                unloads missing ones.
 *
 * Owner    The caller's memory; it borrows the lifecycle.
 * Thread   one at a time.
 * Units    none.
 * Errors   out of memory; a failed model whose attempt is not noted is tried
 *          once more.  Models of a repository that cannot be listed now, or
 *          that is listed once, are left as they are.
 * Route    poll -> [comparison] -> inventory, lifecycle
 */

#ifndef INF_REPOSITORY_COMPARISON_H
#define INF_REPOSITORY_COMPARISON_H

#include "core/repository/lifecycle.h"

typedef struct inf_difference_s inf_difference_t;

/* The last loads queued by polls: an early poll does not try failed models
   again whose files have not changed.  Zeroed memory is empty. */
typedef struct {
    struct inf_attempt_s *items;
    size_t                count;
} inf_last_attempts_t;

typedef struct {
    /* set by the caller; pointers except lc may be NULL */
    inf_lifecycle_t       *lc;
    inf_repository_t      *remote;      /* repository just listed; NULL: local
                                           ones                              */
    inf_last_attempts_t   *attempts;    /* NULL: failed models are tried
                                           again                             */
    bool                   early;       /* otherwise changes only            */
    inf_lifecycle_done_fn  done;        /* of each operation                 */
    void                  *done_userp;

    size_t                 queued;      /* number of operations              */
    inf_inventory_t       *inventory;
    inf_difference_t      *differences; /* models to load                    */
    size_t                 count;
} inf_comparison_t;

/* Lists local repositories and finds the models that differ.  The caller's
   fields are set, all others are zero. */
INF_CHECK inf_err_t *inf_comparison_find(inf_comparison_t *c,
    const inf_repositories_t *repositories);
void inf_comparison_fini(inf_comparison_t *c);

/* Unloads models that are in no repository, or in two. */
INF_CHECK inf_err_t *inf_comparison_unload(inf_comparison_t *c);

/* Compares again, and loads models whose files were the same twice; others
   remain. */
void inf_comparison_load(inf_comparison_t *c);

/* Frees all attempts. */
void inf_last_attempts_fini(inf_last_attempts_t *a);

#endif /* INF_REPOSITORY_COMPARISON_H */
