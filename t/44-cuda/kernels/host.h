/*
 * host.h - CUDA C compiled for the host: a block is a group of threads, the
 *          blocks of a launch run one after the other.
 *
 * Owner    a launch owns its threads until it ends.
 * Thread   any; launches of this library wait for each other, since shared
 *          memory is one static object for all blocks.
 * Units    as CUDA's.
 * Errors   an argument whose memory is too short is a fault, as on a GPU.
 * Route    fake driver -> [host.h] -> kernel
 *
 * A source is included behind this header; shared memory of a size that comes
 * with the launch is an array there (t/lib/cuda.py).
 */

#ifndef T_CUDA_HOST_H
#define T_CUDA_HOST_H

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <pthread.h>

extern "C" {
#include "t/cuda-fake/fake_kernels.h"
}

#define __global__
#define __device__
#define __shared__ static
#define __syncthreads() pthread_barrier_wait(&host_barrier)

struct host_index_t {
    unsigned x, y, z;
};

static thread_local host_index_t threadIdx, blockIdx;
static host_index_t blockDim, gridDim;
static pthread_barrier_t host_barrier;
static std::mutex host_lock;            /* guards the four above             */

/* body is one thread's work, told by threadIdx and blockIdx. */
template <typename F>
static void
host_launch(const fake_cuda_launch_t *l, F body)
{
    std::lock_guard<std::mutex> hold(host_lock);
    unsigned count = l->block[0] * l->block[1] * l->block[2];

    blockDim = { l->block[0], l->block[1], l->block[2] };
    gridDim = { l->grid[0], l->grid[1], l->grid[2] };
    pthread_barrier_init(&host_barrier, nullptr, count);

    /* threads stay for all blocks, which they take in step */
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < count; t++) {
        threads.emplace_back([=] {
            unsigned b = l->block[0];
            threadIdx = { t % b, t / b % l->block[1], t / b / l->block[1] };
            for (unsigned z = 0; z < gridDim.z; z++) {
                for (unsigned y = 0; y < gridDim.y; y++) {
                    for (unsigned x = 0; x < gridDim.x; x++) {
                        blockIdx = { x, y, z };
                        body();
                        pthread_barrier_wait(&host_barrier);
                    }
                }
            }
        });
    }
    for (auto &t : threads) {
        t.join();
    }
    pthread_barrier_destroy(&host_barrier);
}

/* Argument i: count elements on the device.  NULL: there are fewer. */
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

template <typename T>
static T
host_value(const fake_cuda_launch_t *l, int i)
{
    return *(const T *) l->arguments[i];
}

#endif /* T_CUDA_HOST_H */
