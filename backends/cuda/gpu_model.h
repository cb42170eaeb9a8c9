/*
 * gpu_model.h - what a model.so exports, for those who bring a library of
 *               their own (cuBLAS, cuDNN) in place of kernels.
 *
 * Owner    Pointers that a function is given are the caller's and end with
 *          the call; *state is the model's from init to fini.
 * Thread   One instance, one thread at a time; instances run beside each
 *          other.  The device's primary context is current in every call, so
 *          the CUDA runtime and its libraries use that device.
 * Units    bytes; shapes with the batch dimension, where the model batches.
 * Errors   0: done.  Anything else: a text is in error, which has error_size
 *          bytes; the text goes to the client, or is the reason of the load.
 * Route    instance -> [model.so] -> the instance's stream
 *
 * The header stands alone: C or C++, and nothing else of this project.
 */

#ifndef GPU_MODEL_H
#define GPU_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The answer of gpu_model_version; another number is not loaded. */
#define GPU_MODEL_VERSION 1

typedef struct {
    const char    *name;
    const char    *datatype;        /* as in requests: "FP32"                */
    const int64_t *shape;
    uint32_t       dims_count;
    uint64_t       bytes;
    void          *data;            /* on the device, at a multiple of 16;
                                     * NULL: an optional input left out      */
} gpu_model_tensor_t;

typedef struct {
    const char *name;               /* of the model                          */
    const char *directory;          /* of the version                        */
    const char *config;             /* the model's configuration in JSON     */
    int         device;
    int64_t     rows_most;          /* of a batch; 0: no batching            */
    void       *stream;             /* a CUstream, which lives until fini    */
} gpu_model_options_t;

uint32_t gpu_model_version(void);

/* Once for each instance. */
int gpu_model_init(void **state, const gpu_model_options_t *options,
    char *error, size_t error_size);

/* Puts the work for one batch into the stream and does not wait for it.
   Inputs must not be written to.  Controls and states of sequences come behind
   the other inputs, next states behind the other outputs. */
int gpu_model_execute(void *state, const gpu_model_tensor_t *inputs,
    uint32_t input_count, const gpu_model_tensor_t *outputs,
    uint32_t output_count, void *stream, char *error, size_t error_size);

void gpu_model_fini(void *state);

#ifdef __cplusplus
}
#endif

#endif /* GPU_MODEL_H */
