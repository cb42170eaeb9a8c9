/*
 * functions.h - the functions of OpenVINO's C library that this backend calls.
 *
 * Owner    nothing is owned; the library is never unloaded.
 * Thread   any: the table is written once.
 * Units    none.
 * Errors   a function that a library lacks is named when it is opened.
 * Route    runtime -> [functions] -> the library
 */

#ifndef VINO_FUNCTIONS_H
#define VINO_FUNCTIONS_H

#include <openvino/c/openvino.h>

#define VINO_FUNCTIONS(X)                                                    \
    X(ov_available_devices_free)                                             \
    X(ov_compiled_model_create_infer_request)                                \
    X(ov_compiled_model_free)                                                \
    X(ov_compiled_model_get_property)                                        \
    X(ov_core_add_extension)                                                 \
    X(ov_core_compile_model_props)                                           \
    X(ov_core_create)                                                        \
    X(ov_core_free)                                                          \
    X(ov_core_get_available_devices)                                         \
    X(ov_core_get_property)                                                  \
    X(ov_core_read_model)                                                    \
    X(ov_free)                                                               \
    X(ov_get_error_info)                                                     \
    X(ov_get_last_err_msg)                                                   \
    X(ov_get_openvino_version)                                               \
    X(ov_infer_request_cancel)                                               \
    X(ov_infer_request_free)                                                 \
    X(ov_infer_request_get_output_tensor_by_index)                           \
    X(ov_infer_request_set_input_tensor_by_index)                            \
    X(ov_infer_request_set_output_tensor_by_index)                           \
    X(ov_infer_request_start_async)                                          \
    X(ov_infer_request_wait)                                                 \
    X(ov_infer_request_wait_for)                                             \
    X(ov_model_const_input_by_index)                                         \
    X(ov_model_const_input_by_name)                                          \
    X(ov_model_const_output_by_index)                                        \
    X(ov_model_const_output_by_name)                                         \
    X(ov_model_free)                                                         \
    X(ov_model_inputs_size)                                                  \
    X(ov_model_outputs_size)                                                 \
    X(ov_model_reshape_by_port_indexes)                                      \
    X(ov_output_const_port_free)                                             \
    X(ov_partial_shape_create)                                               \
    X(ov_partial_shape_free)                                                 \
    X(ov_port_get_any_name)                                                  \
    X(ov_port_get_element_type)                                              \
    X(ov_port_get_partial_shape)                                             \
    X(ov_preprocess_input_info_free)                                         \
    X(ov_preprocess_input_info_get_tensor_info)                              \
    X(ov_preprocess_input_tensor_info_free)                                  \
    X(ov_preprocess_input_tensor_info_set_element_type)                      \
    X(ov_preprocess_output_info_free)                                        \
    X(ov_preprocess_output_info_get_tensor_info)                             \
    X(ov_preprocess_output_set_element_type)                                 \
    X(ov_preprocess_output_tensor_info_free)                                 \
    X(ov_preprocess_prepostprocessor_build)                                  \
    X(ov_preprocess_prepostprocessor_create)                                 \
    X(ov_preprocess_prepostprocessor_free)                                   \
    X(ov_preprocess_prepostprocessor_get_input_info_by_index)                \
    X(ov_preprocess_prepostprocessor_get_output_info_by_index)               \
    X(ov_rank_is_dynamic)                                                    \
    X(ov_shape_free)                                                         \
    X(ov_tensor_create)                                                      \
    X(ov_tensor_create_from_host_ptr)                                        \
    X(ov_tensor_data)                                                        \
    X(ov_tensor_free)                                                        \
    X(ov_tensor_get_element_type)                                            \
    X(ov_tensor_get_shape)                                                   \
    X(ov_version_free)

typedef struct {
#define VINO_POINTER(name) __typeof__(name) *name;
    VINO_FUNCTIONS(VINO_POINTER)
#undef VINO_POINTER
} vino_functions_t;

#endif /* VINO_FUNCTIONS_H */
