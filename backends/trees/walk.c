/* walk.c - see walk.h */

#include "walk.h"

#include <string.h>

#define LANES 8                         /* ways side by side                 */
#define BLOCK 128                        /* rows, or trees, at a time         */
#define STEPS 8                         /* before lanes are asked for leaves */

static void walk_rows(const trees_forest_t *f, const trees_tree_t *tree,
    const float *rows, uint32_t count, uint32_t at[BLOCK]);
static void walk_trees(const trees_forest_t *f, const trees_tree_t *trees,
    uint32_t count, const float *row, uint32_t at[BLOCK]);
static inline void walk_lanes(const trees_forest_t *f, uint32_t at[LANES],
    const float *x, size_t apart, uint32_t depth, const bool special);
static inline uint32_t step(const trees_node_t *node, const float *row);
static uint32_t step_special(const trees_forest_t *f,
    const trees_node_t *node, const float *row);
static bool has_category(const trees_forest_t *f, const trees_list_t *list,
    float value);
static void add(const trees_forest_t *f, const trees_tree_t *tree,
    uint32_t node, void *sums, uint64_t row);

void
trees_walk_sums(const trees_forest_t *f, const float *rows, uint64_t count,
    void *sums)
{
    uint32_t at[BLOCK];
    uint64_t row = 0;

    memset(sums, 0, count * f->columns
        * (f->doubles ? sizeof(double) : sizeof(float)));

    while (count - row >= LANES) {
        uint32_t n = count - row < BLOCK ? (uint32_t) (count - row)
            / LANES * LANES : BLOCK;

        for (uint32_t t = 0; t < f->tree_count; t++) {
            walk_rows(f, &f->trees[t], rows + row * f->features, n, at);
            for (uint32_t i = 0; i < n; i++) {
                add(f, &f->trees[t], at[i], sums, row + i);
            }
        }
        row += n;
    }

    for (; row < count; row++) {
        for (uint32_t t = 0; t < f->tree_count; t += BLOCK) {
            uint32_t n = f->tree_count - t < BLOCK ? f->tree_count - t
                : BLOCK;

            walk_trees(f, &f->trees[t], n, rows + row * f->features, at);
            for (uint32_t i = 0; i < n; i++) {
                add(f, &f->trees[t + i], at[i], sums, row);
            }
        }
    }

    trees_walk_finish(f, count, sums);
}

void
trees_walk_finish(const trees_forest_t *f, uint64_t count, void *sums)
{
    double *wide = sums;
    float *narrow = sums;

    for (uint64_t row = 0; row < count; row++) {
        for (uint32_t i = 0; i < f->columns; i++) {
            uint64_t at = row * f->columns + i;
            bool there = i % f->classes < f->class_counts[i / f->classes];

            if (f->doubles) {
                wide[at] /= f->averages == NULL ? 1 : f->averages[i];
                wide[at] = there ? wide[at] + f->base_scores[i] : 0;
            } else {
                narrow[at] /= f->averages == NULL ? 1
                    : (float) f->averages[i];
                narrow[at] = there ? (float) ((double) narrow[at]
                    + f->base_scores[i]) : 0;
            }
        }
    }
}

void
trees_walk_leaves(const trees_forest_t *f, const float *rows, uint64_t count,
    uint32_t *nodes)
{
    uint32_t at[BLOCK];

    for (uint64_t row = 0; row < count; row++) {
        for (uint32_t t = 0; t < f->tree_count; t += BLOCK) {
            uint32_t n = f->tree_count - t < BLOCK ? f->tree_count - t
                : BLOCK;

            walk_trees(f, &f->trees[t], n, rows + row * f->features, at);
            memcpy(nodes + row * f->tree_count + t, at, n * sizeof(*at));
        }
    }
}

/* count is a multiple of LANES */
static void
walk_rows(const trees_forest_t *f, const trees_tree_t *tree,
    const float *rows, uint32_t count, uint32_t at[BLOCK])
{
    for (uint32_t i = 0; i < count; i += LANES) {
        const float *x = rows + (size_t) i * f->features;

        for (uint32_t k = 0; k < LANES; k++) {
            at[i + k] = tree->root;
        }

        if (tree->special) {
            walk_lanes(f, at + i, x, f->features, tree->depth, true);
        } else {
            walk_lanes(f, at + i, x, f->features, tree->depth, false);
        }
    }
}

/* Lanes without a tree follow the first one. */
static void
walk_trees(const trees_forest_t *f, const trees_tree_t *trees,
    uint32_t count, const float *row, uint32_t at[BLOCK])
{
    for (uint32_t i = 0; i < count; i += LANES) {
        uint32_t depth = 0;
        bool special = false;

        for (uint32_t k = 0; k < LANES; k++) {
            const trees_tree_t *t = &trees[i + k < count ? i + k : i];

            at[i + k] = t->root;
            depth = t->depth > depth ? t->depth : depth;
            special = special || t->special;
        }

        if (special) {
            walk_lanes(f, at + i, row, 0, depth, true);
        } else {
            walk_lanes(f, at + i, row, 0, depth, false);
        }
    }
}

/* Takes depth steps from where each lane is at, or fewer when all are at
 * leaves; the row of a lane is apart behind that of the lane before. */
static inline __attribute__((always_inline)) void
walk_lanes(const trees_forest_t *f, uint32_t at[LANES], const float *x,
    size_t apart, uint32_t depth, const bool special)
{
    const trees_node_t *nodes = f->nodes;
    uint32_t now[LANES];

#pragma GCC unroll 8
    for (uint32_t k = 0; k < LANES; k++) {
        now[k] = at[k];
    }

    while (depth != 0) {
        uint32_t steps = depth < STEPS ? depth : STEPS;
        uint32_t inner = 0;

        depth -= steps;
        for (; steps != 0; steps--) {
#pragma GCC unroll 8
            for (uint32_t k = 0; k < LANES; k++) {
                now[k] = special
                    ? step_special(f, &nodes[now[k]], x + k * apart)
                    : step(&nodes[now[k]], x + k * apart);
            }
        }

        for (uint32_t k = 0; k < LANES && depth != 0; k++) {
            inner |= (nodes[now[k]].child + 1) ^ now[k];
        }
        depth = inner == 0 ? 0 : depth;
    }

#pragma GCC unroll 8
    for (uint32_t k = 0; k < LANES; k++) {
        at[k] = now[k];
    }
}

/* No branch: which way a row takes cannot be foreseen. */
static inline uint32_t
step(const trees_node_t *node, const float *row)
{
    float value = row[node->feature & TREES_FEATURE];
    uint32_t left = (uint32_t) (value < node->threshold)
        | ((uint32_t) (value != value) & node->feature >> 31);

    return node->child + 1 - left;
}

static uint32_t
step_special(const trees_forest_t *f, const trees_node_t *node,
    const float *row)
{
    float value = row[node->feature & TREES_FEATURE];

    if ((node->feature & TREES_SPECIAL) == 0 || value != value) {
        return step(node, row);
    }

    bool left = node->value == TREES_EQUALITY ? value == node->threshold
        : has_category(f, &f->lists[node->value], value);
    return node->child + (left ? 0 : 1);
}

/* A category is the whole part of a number up to 2^24, up to which FP32 has
 * all whole numbers. */
static bool
has_category(const trees_forest_t *f, const trees_list_t *list, float value)
{
    const uint32_t *categories = f->categories + list->begin;
    uint32_t low = 0, high = list->count;

    if (!(value >= 0 && value <= 16777216.0f)) {
        return false;
    }

    uint32_t category = (uint32_t) value;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (categories[middle] < category) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    return low < list->count && categories[low] == category;
}

static inline void
add(const trees_forest_t *f, const trees_tree_t *tree, uint32_t node,
    void *sums, uint64_t row)
{
    uint32_t value = f->nodes[node].value;
    uint64_t column = row * f->columns + tree->column;

    if (f->doubles) {
        const double *leaf = (const double *) f->leaves + value;
        double *to = (double *) sums + column;

        for (uint32_t i = 0; i < tree->values; i++) {
            to[i * tree->stride] += leaf[i];
        }

    } else {
        const float *leaf = (const float *) f->leaves + value;
        float *to = (float *) sums + column;

        for (uint32_t i = 0; i < tree->values; i++) {
            to[i * tree->stride] += leaf[i];
        }
    }
}
