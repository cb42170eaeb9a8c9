/*
 * kernel.h - one line of the configuration: a kernel, its geometry and its
 *            arguments.
 *
 * Owner    the caller's struct owns its parts until gpu_kernel_fini.
 * Thread   read-only after reading.
 * Units    threads, blocks, bytes of shared memory.
 * Errors   INVALID_ARG with the position in the text.
 * Route    program -> [kernel] -> launch
 *
 *   line      NAME <<< extent, extent [, sum] >>> ( [argument {, argument}] )
 *   extent    sum | dim3(sum [, sum [, sum]])
 *   argument  TENSOR | BUFFER | int(sum) | long(sum)
 *           | float(number) | double(number)
 */

#ifndef GPU_KERNEL_H
#define GPU_KERNEL_H

#include "buffer.h"

#define GPU_ARGUMENTS_MAX 32

typedef enum {
    GPU_ARGUMENT_TENSOR,            /* its address; an optional one that was
                                     * left out: 0                           */
    GPU_ARGUMENT_BUFFER,            /* its address                           */
    GPU_ARGUMENT_INT,
    GPU_ARGUMENT_LONG,
    GPU_ARGUMENT_FLOAT,
    GPU_ARGUMENT_DOUBLE
} gpu_argument_kind_t;

typedef struct {
    gpu_argument_kind_t kind;
    uint32_t            index;
    gpu_expression_t    value;
    double              constant;
} gpu_argument_t;

typedef struct {
    char            *name;
    gpu_expression_t grid[3];       /* without steps: 1                      */
    gpu_expression_t block[3];
    gpu_expression_t shared;        /* without steps: 0                      */
    gpu_argument_t   arguments[GPU_ARGUMENTS_MAX];
    uint32_t         argument_count;
} gpu_kernel_t;

/* On error the caller still calls gpu_kernel_fini. */
BK_CHECK TRITONSERVER_Error *gpu_kernel_read(gpu_kernel_t *k,
    const char *parameter, const char *text, const gpu_names_t *names);
void gpu_kernel_fini(gpu_kernel_t *k);

/* Of a value as the kernel takes it, in bytes. */
uint32_t gpu_argument_size(gpu_argument_kind_t kind);

#endif /* GPU_KERNEL_H */
