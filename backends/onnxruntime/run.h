/*
 * run.h - ONNX Runtime as a runtime of the kit (common/runtime.h).
 *
 * Owner    The instance owns ort_run_t; the library's values live from run to
 *          done.
 * Thread   its instance's.
 * Units    none.
 * Errors   the library's messages, with the tensor's name.
 * Route    common/runner -> [run] -> the library
 */

#ifndef ORT_RUN_H
#define ORT_RUN_H

#include "session.h"

#include "common/runtime.h"

/* The tables that the library gets, with room for all tensors. */
typedef struct {
    const ort_session_t *session;
    const char         **input_names;
    OrtValue           **inputs;
    uint32_t             input_count;
    const char         **output_names;
    OrtValue           **outputs;       /* NULL: the run allocates it        */
    uint32_t             output_count;
} ort_run_t;

/* Takes an ort_run_t as self. */
extern const bk_runtime_t ort_run_functions;

/* Allocates the tables for all tensors of the session. */
BK_CHECK TRITONSERVER_Error *ort_run_init(ort_run_t *r,
    const ort_session_t *session);
void ort_run_fini(ort_run_t *r);

#endif /* ORT_RUN_H */
