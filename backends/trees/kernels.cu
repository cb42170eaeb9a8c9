/* The walk of walk.c on a device.  Compiled by NVRTC when an instance loads.
   Nodes and lists are those of forest.h, trees those of device.c; bits and the
   largest category are repeated below and must be the same. */

struct node_t {
    float    threshold;
    unsigned feature;
    unsigned child;
    unsigned value;
};

struct list_t {
    unsigned begin;
    unsigned count;
};

struct tree_t {
    unsigned root;
    unsigned depth;
    unsigned column;
    unsigned stride;
    unsigned values;
    unsigned special;
};

#define DEFAULT_LEFT 0x80000000u
#define SPECIAL      0x40000000u
#define FEATURE      0x3fffffffu
#define EQUALITY     0xffffffffu

static __device__ bool
has_category(const list_t *list, const unsigned *categories, float value)
{
    unsigned low = 0, high = list->count;

    if (!(value >= 0 && value <= 16777216.0f)) {
        return false;
    }

    categories += list->begin;
    unsigned category = (unsigned) value;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (categories[middle] < category) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    return low < list->count && categories[low] == category;
}

/* A thread for each tree of each row: the node of its leaf. */
extern "C" __global__ void
trees_walk(const node_t *nodes, const tree_t *trees, const list_t *lists,
    const unsigned *categories, const float *rows, unsigned *leaves,
    int tree_count, int features, int count)
{
    long long at = (long long) blockIdx.x * blockDim.x + threadIdx.x;

    if (at >= (long long) count * tree_count) {
        return;
    }

    const tree_t *tree = &trees[at % tree_count];
    const float *row = rows + at / tree_count * features;
    unsigned now = tree->root;

    for (unsigned d = 0; d < tree->depth; d++) {
        const node_t node = nodes[now];
        float value = row[node.feature & FEATURE];
        bool left = value < node.threshold;

        if (value != value) {
            left = (node.feature & DEFAULT_LEFT) != 0;
        } else if ((node.feature & SPECIAL) != 0) {
            left = node.value == EQUALITY ? value == node.threshold
                : has_category(&lists[node.value], categories, value);
        }
        now = node.child + (left ? 0 : 1);
    }

    leaves[at] = now;
}

/* A thread for each column of each row: the sum of its leaves, in the order of
   the trees. */
template <typename T>
static __device__ void
sum(const node_t *nodes, const tree_t *trees, const T *values,
    const unsigned *leaves, T *sums, int tree_count, int columns, int count)
{
    long long at = (long long) blockIdx.x * blockDim.x + threadIdx.x;

    if (at >= (long long) count * columns) {
        return;
    }

    const unsigned *row = leaves + at / columns * tree_count;
    unsigned column = (unsigned) (at % columns);
    T total = 0;

    for (int t = 0; t < tree_count; t++) {
        const tree_t *tree = &trees[t];
        unsigned behind = column - tree->column;

        if (column >= tree->column && behind % tree->stride == 0
            && behind / tree->stride < tree->values)
        {
            total += values[nodes[row[t]].value + behind / tree->stride];
        }
    }

    sums[at] = total;
}

extern "C" __global__ void
trees_sum_floats(const node_t *nodes, const tree_t *trees,
    const float *values, const unsigned *leaves, float *sums, int tree_count,
    int columns, int count)
{
    sum(nodes, trees, values, leaves, sums, tree_count, columns, count);
}

extern "C" __global__ void
trees_sum_doubles(const node_t *nodes, const tree_t *trees,
    const double *values, const unsigned *leaves, double *sums,
    int tree_count, int columns, int count)
{
    sum(nodes, trees, values, leaves, sums, tree_count, columns, count);
}
