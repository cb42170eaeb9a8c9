/*
 * std_string.h - elements of the library's string tensors, for which its C
 *             interface has no functions.
 *
 * Owner    array is what ov_tensor_data gives of a tensor of type STRING; it
 *          and its bytes are the tensor's.
 * Thread   one tensor, one thread.
 * Units    bytes, zeros included.
 * Errors   set: false without memory.
 * Route    instance -> [std_string] -> the tensor
 */

#ifndef VINO_STD_STRING_H
#define VINO_STD_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

bool vino_string_set(void *array, uint64_t index, const char *text,
    size_t len);
const char *vino_string_get(const void *array, uint64_t index, size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* VINO_STD_STRING_H */
