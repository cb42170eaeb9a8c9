/*
 * model_id.h - the identity of a model: its name and, with namespacing, its
 *              repository.
 *
 * Owner    The texts belong to others and outlive the id.
 * Thread   any; a value.
 * Units    none.
 * Errors   print: NULL, out of memory.
 * Route    repositories -> [model id] -> lifecycle, registry
 */

#ifndef INF_REPOSITORY_MODEL_ID_H
#define INF_REPOSITORY_MODEL_ID_H

#include <stdbool.h>

typedef struct {
    const char *space;      /* the repository's address.  "": no namespacing,
                               or files of a request                         */
    const char *name;
} inf_model_id_t;

/* The id of a model without a namespace. */
inf_model_id_t inf_model_id(const char *name);

/* Order by namespace, then by name, as in the repository index. */
int inf_model_id_compare(const inf_model_id_t *a, const inf_model_id_t *b);
bool inf_model_id_equal(const inf_model_id_t *a, const inf_model_id_t *b);

/* "space::name", or the name alone; malloc'ed. */
char *inf_model_id_print(const inf_model_id_t *id);

#endif /* INF_REPOSITORY_MODEL_ID_H */
