/*
 * shim.h - the functions of PyTorch's C interface that aoti.c calls, and those
 *          that a compiled model exports.
 *
 * Owner    A tensor's handle is its receiver's, who deletes it; the handles of
 *          a run's inputs are taken by the run.
 * Thread   any; a container runs as many calls at a time as it has models.
 * Units    sizes and strides in elements.
 * Errors   0 is success.  A tensor function that fails logs why; a compiled
 *          model's last error is asked for.
 * Route    aoti -> [shim] -> libtorch_cpu.so, the package's library
 *
 * PyTorch's own header of these functions is C++.  It promises that they do
 * not change.
 */

#ifndef PT_SHIM_H
#define PT_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct AtenTensorOpaque *pt_tensor_t;
typedef struct AOTInductorModelContainerOpaque *pt_container_t;

/* libtorch_cpu.so */
int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t dims_count,
    const int64_t *sizes, const int64_t *strides, int64_t storage_offset,
    int32_t type, int32_t device_type, int32_t device, pt_tensor_t *out);
int32_t aoti_torch_empty_strided(int64_t dims_count, const int64_t *sizes,
    const int64_t *strides, int32_t type, int32_t device_type, int32_t device,
    pt_tensor_t *out);
int32_t aoti_torch_copy_(pt_tensor_t to, pt_tensor_t from,
    int32_t non_blocking);
int32_t aoti_torch_delete_tensor_object(pt_tensor_t tensor);
int32_t aoti_torch_get_data_ptr(pt_tensor_t tensor, void **data);
int32_t aoti_torch_get_dim(pt_tensor_t tensor, int64_t *dims_count);
int32_t aoti_torch_get_sizes(pt_tensor_t tensor, int64_t **sizes);
int32_t aoti_torch_get_numel(pt_tensor_t tensor, int64_t *elements);
int32_t aoti_torch_get_dtype(pt_tensor_t tensor, int32_t *type);
int32_t aoti_torch_get_device_type(pt_tensor_t tensor, int32_t *device_type);
int32_t aoti_torch_is_contiguous(pt_tensor_t tensor, bool *contiguous);
int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_device_type_cuda(void);
size_t aoti_torch_dtype_element_size(int32_t type);
void aoti_torch_grad_mode_set_enabled(bool enabled);

/* A compiled model's library, where each is called AOTInductor<name>. */
typedef struct {
    int32_t (*ModelContainerCreateWithDevice)(pt_container_t *out,
        size_t models, const char *device, const char *cubin_directory);
    int32_t (*ModelContainerDelete)(pt_container_t container);
    int32_t (*ModelContainerRun)(pt_container_t container,
        pt_tensor_t *inputs, size_t input_count, pt_tensor_t *outputs,
        size_t output_count, void *stream, void *proxy);
    int32_t (*ModelContainerGetNumInputs)(pt_container_t container,
        size_t *count);
    int32_t (*ModelContainerGetNumOutputs)(pt_container_t container,
        size_t *count);
    int32_t (*ModelContainerGetCallSpec)(pt_container_t container,
        const char **in, const char **out);
    int32_t (*GetLastError)(const char **text);     /* NULL in older ones    */
} pt_library_t;

#endif /* PT_SHIM_H */
