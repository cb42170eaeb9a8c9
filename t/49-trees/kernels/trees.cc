/* The kernels of backends/trees compiled for the host, for the fake driver: a
   launch is a loop over its threads, which share nothing. */

#include <cstddef>

extern "C" {
#include "t/cuda-fake/fake_kernels.h"
}

#define __global__
#define __device__

struct host_index_t {
    unsigned x;
};

static thread_local host_index_t threadIdx, blockIdx, blockDim;

#include "backends/trees/kernels.cu"

template <typename F>
static void
host_launch(const fake_cuda_launch_t *l, F body)
{
    blockDim.x = l->block[0];
    for (blockIdx.x = 0; blockIdx.x < l->grid[0]; blockIdx.x++) {
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) {
            body();
        }
    }
}

/* Argument i: count elements on the device, at least; fewer are a fault. */
template <typename T>
static T *
host_pointer(const fake_cuda_launch_t *l, int i, size_t count)
{
    size_t left = 0;
    void *bytes = fake_cuda_range(*(void *const *) l->arguments[i], &left);

    if (bytes == nullptr || left < count * sizeof(T)) {
        fake_cuda_fault(700);
        return nullptr;
    }
    return (T *) bytes;
}

static size_t
number(const fake_cuda_launch_t *l, int i)
{
    return (size_t) *(const int *) l->arguments[i];
}

extern "C" const char fake_kernel_trees_walk_arguments[] = "ppppppiii";

extern "C" void
fake_kernel_trees_walk(const fake_cuda_launch_t *l)
{
    size_t trees = number(l, 6), features = number(l, 7), count = number(l, 8);
    auto n = host_pointer<const node_t>(l, 0, 1);
    auto t = host_pointer<const tree_t>(l, 1, trees);
    auto lists = host_pointer<const list_t>(l, 2, 1);
    auto categories = host_pointer<const unsigned>(l, 3, 1);
    auto rows = host_pointer<const float>(l, 4, count * features);
    auto leaves = host_pointer<unsigned>(l, 5, count * trees);

    if (n && t && lists && categories && rows && leaves) {
        host_launch(l, [=] {
            trees_walk(n, t, lists, categories, rows, leaves, (int) trees,
                (int) features, (int) count);
        });
    }
}

template <typename T, typename F>
static void
host_sum(const fake_cuda_launch_t *l, F kernel)
{
    size_t trees = number(l, 5), columns = number(l, 6), count = number(l, 7);
    auto n = host_pointer<const node_t>(l, 0, 1);
    auto t = host_pointer<const tree_t>(l, 1, trees);
    auto values = host_pointer<const T>(l, 2, 1);
    auto leaves = host_pointer<const unsigned>(l, 3, count * trees);
    auto sums = host_pointer<T>(l, 4, count * columns);

    if (n && t && values && leaves && sums) {
        host_launch(l, [=] {
            kernel(n, t, values, leaves, sums, (int) trees, (int) columns,
                (int) count);
        });
    }
}

extern "C" const char fake_kernel_trees_sum_floats_arguments[] = "pppppiii";

extern "C" void
fake_kernel_trees_sum_floats(const fake_cuda_launch_t *l)
{
    host_sum<float>(l, trees_sum_floats);
}

extern "C" const char fake_kernel_trees_sum_doubles_arguments[] = "pppppiii";

extern "C" void
fake_kernel_trees_sum_doubles(const fake_cuda_launch_t *l)
{
    host_sum<double>(l, trees_sum_doubles);
}
