/*
 * ort_gpu.h - what the fake CUDA provider has seen.
 *
 * Owner    the caller's struct; the library fills it in.
 * Thread   any.
 * Units    calls since the process began.
 * Errors   none.
 * Route    tests only
 */

#ifndef T_ORT_GPU_H
#define T_ORT_GPU_H

#include <stdint.h>

typedef struct {
    uint64_t inputs;        /* tensors of device memory bound as inputs      */
    uint64_t outputs;       /* and as outputs                                */
    uint64_t runs;          /* by an I/O binding                             */
    int      device;        /* of the last session; -1: none was on a GPU    */
    char     options[1024]; /* of its provider, "key=value "                 */
} ort_gpu_seen_t;

void ort_gpu_seen(ort_gpu_seen_t *out);

#endif /* T_ORT_GPU_H */
