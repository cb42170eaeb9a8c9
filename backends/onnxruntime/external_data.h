/*
 * external_data.h - whether a model file names other files that it may read.
 *
 * Owner    nobody: it looks at bytes that others own.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the file is broken, nested too deeply, or a tensor's
 *          data lies elsewhere than beside it; the message names the tensor
 *          and the place.  NOT_FOUND, INTERNAL: it can't be read.
 * Route    model -> [external data] -> session
 *
 * An ONNX file may keep tensors' data in files of their own, which the library
 * opens wherever they are said to lie.  The format has them relative to the
 * model file, and so they must be: below the model file's directory.  The file
 * is walked as packed messages; only tags, lengths and external data are read.
 */

#ifndef ORT_EXTERNAL_DATA_H
#define ORT_EXTERNAL_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/*
 * *format is what the file is by its first bytes, as the library's option
 * session.load_model_format has it: "ONNX", or "ORT", whose tensors have no
 * external data and which isn't walked.
 */
BK_CHECK TRITONSERVER_Error *ort_external_data_check_file(const char *path,
    const char **format);

/* The same for an ONNX file's content. */
BK_CHECK TRITONSERVER_Error *ort_external_data_check(const void *data,
    size_t len);

#endif /* ORT_EXTERNAL_DATA_H */
