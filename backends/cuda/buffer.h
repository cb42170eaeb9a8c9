/*
 * buffer.h - device memory of a model besides its tensors.
 *
 * Owner    The caller's struct owns the expression until gpu_buffer_fini; names
 *          point into the configuration.
 * Thread   read-only after reading.
 * Units    bytes.
 * Errors   INVALID_ARG naming the parameter.
 * Route    program -> [buffer] -> kernel, batch memory
 */

#ifndef GPU_BUFFER_H
#define GPU_BUFFER_H

#include "expression.h"

typedef struct gpu_buffer_s {
    const char      *name;
    const char      *file;          /* of its contents; NULL: scratch memory */
    int64_t          file_bytes;    /* set by the caller                     */
    gpu_expression_t bytes;         /* of scratch memory                     */
} gpu_buffer_t;

/* text is the file's name, or the size of scratch memory; NULL: the parameter
 * is no text.  After an error there is nothing to free. */
BK_CHECK TRITONSERVER_Error *gpu_buffer_read(gpu_buffer_t *b,
    const char *parameter, const char *name, bool is_file, const char *text,
    const gpu_names_t *names);
void gpu_buffer_fini(gpu_buffer_t *b);

/* The index of the buffer of that name, or buffer_count. */
uint32_t gpu_buffer_find(const gpu_names_t *names, gpu_word_t name);

#endif /* GPU_BUFFER_H */
