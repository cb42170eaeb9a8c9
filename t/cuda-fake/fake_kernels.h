/*
 * fake_kernels.h - host functions that stand for kernels on the fake driver.
 *
 * Owner    the fake's library copies what is registered.
 * Thread   any; a kernel runs on the thread that waits for its stream, without
 *          a lock of the fake.
 * Units    bytes.
 * Errors   fake_cuda_fault breaks the device as a faulting kernel does.
 * Route    tests; or a library whose path is FAKE_CUDA_KERNELS, opened when
 *          the first function of a module is looked up
 *
 * Such a library exports fake_kernel_NAME, a fake_cuda_kernel_pt, and
 * fake_kernel_NAME_arguments, a const char[] with a letter for each argument:
 * p pointer (8 bytes), i (4), l (8), f (4), d (8).  It needs no linking to the
 * fake: the functions below are found when it is opened.
 */

#ifndef INF_T_FAKE_KERNELS_H
#define INF_T_FAKE_KERNELS_H

#include <stddef.h>

typedef struct {
    unsigned     grid[3], block[3], shared_bytes;
    void *const *arguments;     /* each to the value when it was queued      */
} fake_cuda_launch_t;

typedef void (*fake_cuda_kernel_pt)(const fake_cuda_launch_t *launch);

/* Kernels of that name run fn from now on; fn NULL: they do nothing. */
void fake_cuda_register(const char *name, fake_cuda_kernel_pt fn,
    const size_t *argument_sizes, size_t count);

/* The bytes behind an address on a device; NULL: none allocated. */
void *fake_cuda_bytes(const void *address);

/* As fake_cuda_bytes, with the number of bytes from there to the end of the
   memory; 0 with NULL. */
void *fake_cuda_range(const void *address, size_t *bytes_left);

/* From inside of a kernel: it ends with that error, which is sticky. */
void fake_cuda_fault(int rc);

#endif /* INF_T_FAKE_KERNELS_H */
