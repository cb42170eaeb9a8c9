/*
 * record.h - flat records as the core reads and writes them.
 *
 * Owner    A checked record is a private copy in the caller's inf_arena_t;
 *          texts and tables are views into it.  A description's slices stay
 *          the caller's while it is written.
 * Thread   any.
 * Units    bytes; tables as in channel.h.
 * Errors   INVALID_ARG naming the field; out of memory.
 * Route    submission -> [copy, check] -> request; response -> [size, write]
 *          -> completion
 */

#ifndef INF_CHANNEL_RECORD_H
#define INF_CHANNEL_RECORD_H

#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"

/* ---- reading a request --------------------------------------------------- */

/*
 * Copies [offset, offset + length) of the shared request arena (base, size)
 * first and checks the copy: every count, offset, alignment, text, type, and
 * that each input's bytes lie inside the arena.  Names hold no NUL, and tables
 * and texts together are no longer than the record.  The meaning of the shape
 * is not judged here, nor whether its size fits the data.
 */
INF_CHECK inf_err_t *inf_infer_record_copy_check(const void *arena_base,
    uint64_t arena_size, uint64_t offset, uint64_t length, inf_arena_t *mem,
    const inf_infer_record_t **out);

/* Of a checked record only.  A table without entries may give any pointer. */
const inf_record_input_t *inf_infer_record_inputs(
    const inf_infer_record_t *r);
const inf_record_output_t *inf_infer_record_outputs(
    const inf_infer_record_t *r);
const inf_record_parameter_t *inf_infer_record_parameters(
    const inf_infer_record_t *r);
const int64_t *inf_infer_record_shape(const inf_infer_record_t *r,
    const inf_record_input_t *input);
inf_slice_t inf_infer_record_text(const inf_infer_record_t *r, inf_ref_t ref);


/* ---- writing a response -------------------------------------------------- */

typedef struct {
    inf_slice_t          name;
    inf_parameter_type_t type;
    inf_slice_t          text;      /* STRING, BYTES                       */
    int64_t              i;         /* INT, BOOL                           */
    double               d;         /* DOUBLE                              */
} inf_response_parameter_desc_t;

typedef struct {
    inf_slice_t        name;
    uint32_t           datatype;
    uint32_t           dim_count;
    const int64_t     *shape;
    const inf_slice_t *labels;      /* of the classes, if classified       */
    uint32_t           label_count;
    uint32_t           data_kind;   /* inf_data_kind_t                     */
    uint64_t           data_offset;
    uint64_t           data_length;
} inf_response_output_desc_t;

/* The fields of a response record; the texts may be empty. */
typedef struct {
    inf_status_t status;
    inf_slice_t  error;
    inf_slice_t  model_name;
    int64_t      model_version;
    inf_slice_t  id;
    inf_slice_t  backend;
    inf_slice_t  instance;
    uint32_t     batch_dim;
    uint32_t     ranked;
    uint32_t     output_count;
    uint32_t     parameter_count;
    const inf_response_output_desc_t    *outputs;
    const inf_response_parameter_desc_t *parameters;
} inf_response_builder_t;

/* The record's size; INVALID_ARG when it would be over INF_RECORD_MAX. */
INF_CHECK inf_err_t *inf_response_builder_size(
    const inf_response_builder_t *b, uint64_t *size);

/* dst: 8-byte aligned, of the size computed. */
void inf_response_builder_write(const inf_response_builder_t *b, void *dst,
    uint64_t size);

#endif /* INF_CHANNEL_RECORD_H */
