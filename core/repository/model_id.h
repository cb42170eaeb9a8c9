/*
 * model_id.h - which model is meant: its name and, with namespacing, the
 *              repository that it comes from.
 *
 * Owner    The texts are somebody else's and outlive the id.
 * Thread   any; a value.
 * Units    none.
 * Errors   print: NULL, out of memory.
 * Route    repositories -> [model id] -> lifecycle, registry
 */

#ifndef INF_REPOSITORY_MODEL_ID_H
#define INF_REPOSITORY_MODEL_ID_H

#include <stdbool.h>

typedef struct {
    const char *space;      /* the repository's address.  "": there is no
                               namespacing, or a request brought the files   */
    const char *name;
} inf_model_id_t;

/* A model of no namespace. */
inf_model_id_t inf_model_id(const char *name);

/* By namespace, then by name: the order of the repository index. */
int inf_model_id_compare(const inf_model_id_t *a, const inf_model_id_t *b);
bool inf_model_id_equal(const inf_model_id_t *a, const inf_model_id_t *b);

/* "space::name", or the name alone; malloc'ed. */
char *inf_model_id_print(const inf_model_id_t *id);

#endif /* INF_REPOSITORY_MODEL_ID_H */
