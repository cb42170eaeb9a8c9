/*
 * gemm.c - c = a * b by cuBLAS, as the model.so of backend cuda.
 *
 * a [m, k], b [k, n] and c [m, n] are float32 and lie row after row; cuBLAS
 * reads columns, to which they are transposed: c' = b' * a'.
 */

#include "gpu_model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublas_v2.h>

typedef struct {
    cublasHandle_t handle;
} gemm_t;

static int
failed(char *error, size_t error_size, const char *what, cublasStatus_t rc)
{
    if (rc == CUBLAS_STATUS_SUCCESS) {
        return 0;
    }

    snprintf(error, error_size, "%s: %s", what, cublasGetStatusString(rc));
    return -1;
}

uint32_t
gpu_model_version(void)
{
    return GPU_MODEL_VERSION;
}

/* The handle works in the instance's own stream. */
int
gpu_model_init(void **state, const gpu_model_options_t *options, char *error,
    size_t error_size)
{
    gemm_t *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        snprintf(error, error_size, "out of memory");
        return -1;
    }

    int rc = failed(error, error_size, "cublasCreate",
        cublasCreate(&g->handle));
    if (rc != 0) {
        free(g);
        return rc;
    }

    rc = failed(error, error_size, "cublasSetStream",
        cublasSetStream(g->handle, (cudaStream_t) options->stream));
    if (rc != 0) {
        cublasDestroy(g->handle);
        free(g);
        return rc;
    }

    *state = g;
    return 0;
}

/* The configuration has checked the ranks; the sizes are the request's. */
int
gpu_model_execute(void *state, const gpu_model_tensor_t *inputs,
    uint32_t input_count, const gpu_model_tensor_t *outputs,
    uint32_t output_count, void *stream, char *error, size_t error_size)
{
    const gpu_model_tensor_t *a = &inputs[0], *b = &inputs[1];
    const float one = 1, zero = 0;
    gemm_t *g = state;

    (void) stream;
    if (input_count != 2 || output_count != 1 || a->shape[1] != b->shape[0]) {
        snprintf(error, error_size, "a has %lld columns, b %lld rows",
            (long long) a->shape[1], (long long) b->shape[0]);
        return -1;
    }

    if (a->shape[0] > INT_MAX || a->shape[1] > INT_MAX
        || b->shape[1] > INT_MAX)
    {
        snprintf(error, error_size, "a or b has more than %d rows or columns,"
            " which cuBLAS does not count", INT_MAX);
        return -1;
    }

    int m = (int) a->shape[0], k = (int) a->shape[1], n = (int) b->shape[1];
    if (m == 0 || n == 0) {
        return 0;
    }

    return failed(error, error_size, "cublasSgemm", cublasSgemm(g->handle,
        CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b->data, n, a->data,
        k > 0 ? k : 1, &zero, outputs[0].data, n));
}

void
gpu_model_fini(void *state)
{
    gemm_t *g = state;

    cublasDestroy(g->handle);
    free(g);
}
