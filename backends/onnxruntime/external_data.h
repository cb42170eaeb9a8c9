/*
 * external_data.h - checks which other files a model file reads.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the file is invalid, nested too deeply, or names a data
 *          file outside of its directory; the message names tensor and file.
 *          NOT_FOUND, INTERNAL: the file can't be read.
 * Route    model -> [external data] -> session
 *
 * An ONNX file may keep tensors' data in other files, which the library
 * opens at any path.  The format allows paths relative to the model file
 * alone, so the files must be in its directory or below.  The check walks
 * the file's messages and reads tags, lengths and external data only.
 */

#ifndef ORT_EXTERNAL_DATA_H
#define ORT_EXTERNAL_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/*
 * Checks the file, and sets *format by its first bytes to a value of the
 * library's option session.load_model_format: "ONNX", or "ORT", a format
 * without external data that is not walked.
 */
BK_CHECK TRITONSERVER_Error *ort_external_data_check_file(const char *path,
    const char **format);

/* Checks the contents of an ONNX file. */
BK_CHECK TRITONSERVER_Error *ort_external_data_check(const void *data,
    size_t len);

#endif /* ORT_EXTERNAL_DATA_H */
