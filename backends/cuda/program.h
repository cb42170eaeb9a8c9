/*
 * program.h - the kernels, tensors and buffers of a model's configuration.
 *
 * Owner    the caller's struct owns its parts until gpu_program_fini; names
 *          and dims are the configuration's, which outlives it.
 * Thread   read-only after loading.
 * Units    bytes, rows, milliseconds.
 * Errors   INVALID_ARG naming the parameter or tensor.
 * Route    model -> [program] -> launch, batch
 */

#ifndef GPU_PROGRAM_H
#define GPU_PROGRAM_H

#include "common/model_config.h"
#include "kernel.h"
#include "model_file.h"
#include "requirement.h"
#include "rule.h"

typedef struct {
    gpu_tensor_t *tensors;          /* inputs, controls and states among
                                     * them, then outputs                    */
    uint32_t      input_count;
    uint32_t      tensor_count;
    gpu_rule_t   *rules;            /* one for each output                   */
    gpu_requirement_t *requirements;    /* of the inputs                    */
    uint32_t      requirement_count;
    gpu_buffer_t *buffers;
    uint32_t      buffer_count;
    gpu_kernel_t *kernels;          /* none: for model.so                    */
    uint32_t      kernel_count;

    int64_t       rows_most;        /* 0: no batching                        */
    const char   *compile_options;  /* "": none                              */
    int64_t       timeout_ms;       /* of a batch; 0: none                   */
    bool          writes_inputs;    /* inputs are then always copied         */
    int64_t       memory_most;      /* of an instance; 0: not configured     */
    int64_t       graphs_most;      /* kept; 0: none                         */
} gpu_program_t;

/* Weights are in the directory of file.  On error the caller still calls
 * gpu_program_fini. */
BK_CHECK TRITONSERVER_Error *gpu_program_load(gpu_program_t *p,
    const bk_model_config_t *config, const gpu_model_file_t *file);
void gpu_program_fini(gpu_program_t *p);

/* Completes tensors, of which the inputs have dims or are absent.  INVALID_ARG:
 * shapes that the model rejects. */
BK_CHECK TRITONSERVER_Error *gpu_program_shape(const gpu_program_t *p,
    int64_t batch, gpu_shape_t *tensors);

#endif /* GPU_PROGRAM_H */
