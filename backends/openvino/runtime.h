/*
 * runtime.h - OpenVINO's C library: its functions, its core object and its
 *             words for errors and types.
 *
 * Owner    The backend object owns the runtime from Initialize to Finalize;
 *          models and instances borrow it.  The library stays loaded until
 *          the process ends: its threads may still run in it.
 * Thread   written by open and close, read by anyone between.
 * Units    none.
 * Errors   UNAVAILABLE: no library, with the package to install.  vino_err
 *          turns a status into an error with the library's own message.
 * Route    Initialize -> [runtime] -> network, instance
 */

#ifndef VINO_RUNTIME_H
#define VINO_RUNTIME_H

#include "functions.h"

#include "common/error.h"

typedef struct {
    vino_functions_t  f;
    ov_core_t        *core;             /* of models without an extension    */
    int64_t           default_max_batch_size;
} vino_runtime_t;

/* Reads the backend's settings, opens the library. */
BK_CHECK TRITONSERVER_Error *vino_runtime_open(vino_runtime_t **out,
    TRITONBACKEND_Backend *backend);
void vino_runtime_close(vino_runtime_t *rt);

/* NULL for OK.  The text is "<what>: <why>", in one line. */
BK_CHECK TRITONSERVER_Error *vino_err(const vino_runtime_t *rt,
    ov_status_e status, const char *fmt, ...) BK_PRINTF(3, 4);

/* INVALID for types that no request can carry. */
TRITONSERVER_DataType vino_datatype(ov_element_type_e type);

/* DYNAMIC for INVALID. */
ov_element_type_e vino_element_type(TRITONSERVER_DataType datatype);

#endif /* VINO_RUNTIME_H */
