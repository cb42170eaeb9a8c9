/*
 * comparison.h - a poll: compares the files of models with what is loaded, has
 *                those loaded that are new or have changed, and unloaded those
 *                that have gone.
 *
 * Owner    The caller's memory; it borrows the lifecycle.
 * Thread   one at a time.
 * Units    none.
 * Errors   out of memory.  A repository that can't be listed now says nothing
 *          about its models: they stay.
 * Route    poll -> [comparison] -> inventory, lifecycle
 */

#ifndef INF_REPOSITORY_COMPARISON_H
#define INF_REPOSITORY_COMPARISON_H

#include "core/repository/last_attempts.h"
#include "core/repository/lifecycle.h"

typedef struct inf_difference_s inf_difference_t;

typedef struct {
    /* the caller's; the pointers but lc may be NULL */
    inf_lifecycle_t       *lc;
    inf_repository_t      *remote;      /* has just been listed; else the
                                           local ones                        */
    inf_last_attempts_t   *attempts;    /* NULL: what failed is tried again  */
    bool                   early;       /* else only if it has changed       */
    inf_lifecycle_done_fn  done;        /* of each operation                 */
    void                  *done_userp;

    size_t                 queued;      /* operations                        */
    inf_inventory_t       *inventory;
    inf_difference_t      *differences; /* models to be loaded               */
    size_t                 count;
} inf_comparison_t;

/* Lists local repositories and finds the models that differ.  The caller's
   fields are set, the others zero. */
INF_CHECK inf_err_t *inf_comparison_find(inf_comparison_t *c,
    const inf_repositories_t *repositories);
void inf_comparison_fini(inf_comparison_t *c);

/* Unloads models that lie nowhere any more, or in two repositories. */
INF_CHECK inf_err_t *inf_comparison_unload(inf_comparison_t *c);

/* Compares again what differs, and loads what has held still since the last
   time; the others remain. */
void inf_comparison_load(inf_comparison_t *c);

#endif /* INF_REPOSITORY_COMPARISON_H */
