/* cublas_v2.h - what examples/cuda/gemm uses of cuBLAS, declared by ourselves
   for machines without the toolkit. */

#ifndef T_CUBLAS_V2_H
#define T_CUBLAS_V2_H

typedef struct cublas_s *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;

typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0 } cublasOperation_t;

const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const float *alpha,
    const float *a, int lda, const float *b, int ldb, const float *beta,
    float *c, int ldc);

#endif /* T_CUBLAS_V2_H */
