/*
 * request_record.h - an inference request as the flat record sent to the core:
 *                    written by the worker, checked by the core.
 *
 * Owner    A written record is the caller's memory.  A checked record is a
 *          private copy in the caller's inf_arena_t; texts and tables point
 *          into it.
 * Thread   any.
 * Units    bytes; offsets inside the record count from its first byte.
 * Errors   writing: INVALID_ARG, the record would exceed INF_RECORD_MAX.
 *          checking: INVALID_ARG naming the field; out of memory.
 * Route    reader -> [size, write] -> submission ring -> [copy, check] ->
 *          request
 */

#ifndef INF_WIRE_REQUEST_RECORD_H
#define INF_WIRE_REQUEST_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"
#include "core/proto/infer_request.h"

/* ---- writing, in the worker ---------------------------------------------- */

/* Target of a request, and location of its bytes. */
typedef struct {
    inf_slice_t     model_name;
    int64_t         model_version;  /* -1: by policy                         */
    uint16_t        protocol;       /* inf_protocol_t                        */
    const uint64_t *data_offsets;   /* request arena, one for each input;
                                       ignored for shared memory and by
                                       inf_infer_record_size                 */
} inf_infer_target_t;

/* Computes the size of the record; an error if it is over INF_RECORD_MAX. */
INF_CHECK inf_err_t *inf_infer_record_size(const inf_infer_request_t *req,
    const inf_infer_target_t *target, size_t *size);

/* dst: 8-byte aligned, of the size from inf_infer_record_size. */
void inf_infer_record_write(const inf_infer_request_t *req,
    const inf_infer_target_t *target, void *dst, size_t size);

/* ---- checking, in the core ----------------------------------------------- */

/*
 * Copies [offset, offset + length) of the shared request arena (base, size)
 * and checks the copy: every count, offset, alignment, text and type, and that
 * each input's bytes lie inside the arena.  Names contain no NUL, and tables
 * and texts together are no longer than the record.  The meaning of the shape,
 * and whether its size fits the data, are not checked.
 */
INF_CHECK inf_err_t *inf_infer_record_copy_check(const void *arena_base,
    uint64_t arena_size, uint64_t offset, uint64_t length, inf_arena_t *mem,
    const inf_infer_record_t **out);

/* The tables and texts of a checked record.  The pointer to an empty table is
   undefined. */
const inf_record_input_t *inf_infer_record_inputs(
    const inf_infer_record_t *r);
const inf_record_output_t *inf_infer_record_outputs(
    const inf_infer_record_t *r);
const inf_record_parameter_t *inf_infer_record_parameters(
    const inf_infer_record_t *r);
const int64_t *inf_infer_record_shape(const inf_infer_record_t *r,
    const inf_record_input_t *input);
inf_slice_t inf_infer_record_text(const inf_infer_record_t *r, inf_ref_t ref);

#endif /* INF_WIRE_REQUEST_RECORD_H */
