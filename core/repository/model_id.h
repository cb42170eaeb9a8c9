/*
 * model_id.h - the identity of a model: its name and, with namespacing, its
 *              repository.
 *
 * Owner    The texts of an id belong to others and outlive it; a list of ids
 *          owns its texts.
 * Thread   any; a value.
 * Units    none.
 * Errors   Out of memory; print: NULL.
 * Route    repositories -> [model id] -> lifecycle, registry
 */

#ifndef INF_REPOSITORY_MODEL_ID_H
#define INF_REPOSITORY_MODEL_ID_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

typedef struct {
    const char *space;      /* the repository's address.  "": no namespacing,
                               or files of a request                         */
    const char *name;
} inf_model_id_t;

/* A list of ids; zeroed memory is an empty one. */
typedef struct {
    inf_model_id_t *items;
    size_t          count;
} inf_model_ids_t;

/* The id of a model without a namespace. */
inf_model_id_t inf_model_id(const char *name);

/* Order by namespace, then by name, as in the repository index. */
int inf_model_id_compare(const inf_model_id_t *a, const inf_model_id_t *b);
bool inf_model_id_equal(const inf_model_id_t *a, const inf_model_id_t *b);

/* "space::name", or the name alone; malloc'ed. */
char *inf_model_id_print(const inf_model_id_t *id);

/* Copies count ids to ids, which is empty; fini empties it. */
INF_CHECK inf_err_t *inf_model_ids_copy(inf_model_ids_t *ids,
    const inf_model_id_t *from, size_t count);
void inf_model_ids_fini(inf_model_ids_t *ids);

/* Whether id is in the list. */
bool inf_model_ids_has(const inf_model_ids_t *ids, const inf_model_id_t *id);

#endif /* INF_REPOSITORY_MODEL_ID_H */
