/*
 * response_record.h - a response as the flat record sent to a worker: written
 *                     by the core, checked by the worker.
 *
 * Owner    A description's slices belong to the caller during writing.
 * Thread   any.
 * Units    bytes; tables as in channel.h.
 * Errors   writing: INVALID_ARG, the record would exceed INF_RECORD_MAX.
 *          checking: INTERNAL, the record is malformed.
 * Route    response -> [size, write] -> completion ring -> [check] -> writer
 *          of JSON or of protobuf
 */

#ifndef INF_WIRE_RESPONSE_RECORD_H
#define INF_WIRE_RESPONSE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"

/* ---- writing, in the core ------------------------------------------------ */

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
    bool         kv_reported;
    double       kv_utilization;
    uint64_t     kv_max_tokens;
    uint32_t     output_count;
    uint32_t     parameter_count;
    const inf_response_output_desc_t    *outputs;
    const inf_response_parameter_desc_t *parameters;
} inf_response_builder_t;

/* Computes the record's size; INVALID_ARG over INF_RECORD_MAX. */
INF_CHECK inf_err_t *inf_response_builder_size(
    const inf_response_builder_t *b, uint64_t *size);

/* dst: 8-byte aligned, of the size computed. */
void inf_response_builder_write(const inf_response_builder_t *b, void *dst,
    uint64_t size);

/* ---- checking, in the worker --------------------------------------------- */

/*
 * Checks every offset, count and length of a record against its len bytes and
 * the arena's size.  record must be 8-byte aligned and private memory.
 */
INF_CHECK inf_err_t *inf_response_record_check(const void *record, size_t len,
    uint64_t arena_size);

#endif /* INF_WIRE_RESPONSE_RECORD_H */
