/* forest.c - see forest.h */

#include "forest.h"

#include "forest_header.h"
#include "forest_tree.h"

#include <inttypes.h>
#include <stdlib.h>

TRITONSERVER_Error *
trees_forest_new(trees_forest_t **out, const trees_header_t *header)
{
    trees_forest_t *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return bk_err_nomem("a forest");
    }

    TRITONSERVER_Error *err = trees_forest_read_header(f, header);
    if (err != NULL) {
        trees_forest_free(f);
        return err;
    }

    *out = f;
    return NULL;
}

TRITONSERVER_Error *
trees_forest_add(trees_forest_t *f, uint32_t index,
    const trees_header_t *header, const trees_source_tree_t *source)
{
    trees_tree_t *tree = &f->trees[index];

    TRITONSERVER_Error *err = trees_forest_read_columns(f, index, header,
        tree);
    if (err == NULL) {
        err = trees_forest_copy_tree(f, tree, source);
    }

    return err == NULL ? NULL : bk_err_add(err, "tree %" PRIu32, index);
}

void
trees_forest_finish(trees_forest_t *f)
{
    size_t size = f->doubles ? sizeof(double) : sizeof(float);
    uint32_t cap = f->node_cap;

    /* smaller never fails in a way that matters: the array stays as it is */
    if (f->node_count != 0 && f->node_count < cap) {
        void *nodes = realloc(f->nodes, f->node_count * sizeof(*f->nodes));
        f->nodes = nodes != NULL ? nodes : f->nodes;
        void *ids = realloc(f->ids, f->node_count * sizeof(*f->ids));
        f->ids = ids != NULL ? ids : f->ids;
    }
    if (f->leaf_count != 0 && f->leaf_count < f->leaf_cap) {
        void *leaves = realloc(f->leaves, f->leaf_count * size);
        f->leaves = leaves != NULL ? leaves : f->leaves;
    }
}

void
trees_forest_free(trees_forest_t *f)
{
    if (f == NULL) {
        return;
    }

    free(f->nodes);
    free(f->ids);
    free(f->trees);
    free(f->leaves);
    free(f->lists);
    free(f->categories);
    free(f->class_counts);
    free(f->base_scores);
    free(f->averages);
    free(f);
}
