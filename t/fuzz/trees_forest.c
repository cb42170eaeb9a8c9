/* Any bytes as the arrays of a model that treelite has read: those that become
   a forest can be walked with any numbers, to a leaf of each tree. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/trees/forest.c"
#include "backends/trees/forest_header.c"
#include "backends/trees/forest_tree.c"
#include "backends/trees/postprocess.c"
#include "backends/trees/source.c"
#include "backends/trees/test.c"
#include "backends/trees/walk.c"
#include "check.h"
#include "input.h"

#define ROWS 9                          /* both ways of walking              */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t header_sizes[] = {
#define SIZE(field, name, size) size,
    TREES_HEADER_FIELDS(SIZE)
};

static const size_t tree_sizes[] = {
    TREES_TREE_FIELDS(SIZE)
#undef SIZE
};

/* A count, and so many elements of what is left. */
static trees_array_t
next_array(input_t *in, size_t size)
{
    size_t count = input_next(in, 1);
    trees_array_t a = { .name = "array", .size = size };

    a.count = count < in->size / size ? count : in->size / size;
    a.data = in->data;
    in->data += a.count * size;
    in->size -= a.count * size;
    return a;
}

static void
walk(const trees_forest_t *f)
{
    static const float numbers[] = {
        0, 1, -1, 0.5f, 3e38f, -INFINITY, NAN, 16777216, 7
    };
    size_t n = (size_t) f->features * ROWS;
    float *rows = malloc(n * sizeof(*rows));
    void *sums = malloc((size_t) f->columns * ROWS * sizeof(double));
    uint32_t *nodes = malloc(((size_t) f->tree_count * ROWS + 1)
        * sizeof(*nodes));

    check(rows != NULL && sums != NULL && nodes != NULL);
    for (size_t i = 0; i < n; i++) {
        rows[i] = numbers[(i * 7 + i / f->features) % 9];
    }

    trees_walk_sums(f, rows, ROWS, sums);
    trees_postprocess(f, ROWS, sums);
    trees_walk_leaves(f, rows, ROWS, nodes);
    for (size_t i = 0; i < (size_t) f->tree_count * ROWS; i++) {
        const trees_node_t *leaf = &f->nodes[nodes[i]];

        check(leaf->child + 1 == nodes[i]);
        check(leaf->value < f->leaf_count);
    }

    free(rows);
    free(sums);
    free(nodes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = { data, size };
    trees_header_t header;
    trees_forest_t *f = NULL;

    for (int i = 0; i < TREES_HEADER_COUNT; i++) {
        header.arrays[i] = next_array(&in, header_sizes[i]);
    }

    TRITONSERVER_Error *err = trees_forest_new(&f, &header);
    if (err == NULL && (f->features > 1000 || f->columns > 1000
        || f->tree_count > 100))
    {
        trees_forest_free(f);
        return 0;
    }

    for (uint32_t i = 0; err == NULL && i < f->tree_count; i++) {
        trees_source_tree_t tree;

        for (int k = 0; k < TREES_TREE_COUNT; k++) {
            size_t wide = tree_sizes[k] != 0 ? tree_sizes[k]
                : f->doubles ? sizeof(double) : sizeof(float);
            tree.arrays[k] = next_array(&in, wide);
        }
        err = trees_forest_add(f, i, &header, &tree);
        if (err != NULL) {
            trees_forest_free(f);
        }
    }

    if (err != NULL) {
        check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
        TRITONSERVER_ErrorDelete(err);
        return 0;
    }

    trees_forest_finish(f);
    walk(f);
    trees_forest_free(f);
    return 0;
}
