/*
 * infer_values.h - writes a tensor's elements as the inside of a JSON array,
 *                  piece by piece.
 *
 * Owner    The caller's memory.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INTERNAL: a BYTES length beyond the end of the tensor.
 * Route    response writer only.
 */

#ifndef INF_PROTO_INFER_VALUES_H
#define INF_PROTO_INFER_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/proto/infer_codec.h"

#define INF_VALUES_ESCAPE  8u       /* room for one escape                   */
#define INF_VALUES_PENDING 40u      /* a comma and a number                  */

typedef struct {
    const char *data;
    uint64_t    len;
    uint64_t    pos;
    uint32_t    datatype;
    uint32_t    string_left;    /* bytes of the open string                  */
    bool        in_string;
    uint8_t     pending_pos;    /* text that did not fit                     */
    uint8_t     pending_len;
    char        pending[INF_VALUES_PENDING];
} inf_values_t;

/* datatype is not FP16 or BF16; data need not be aligned. */
void inf_values_init(inf_values_t *v, uint32_t datatype, const void *data,
    uint64_t len);

/* AGAIN: buf is full. */
INF_CHECK inf_codec_t inf_values_write(inf_values_t *v, char *buf, size_t cap,
    size_t *written, inf_err_t **err);

/* The number of elements of a shape; [] is one element if there is data. */
uint64_t inf_values_count(uint32_t dim_count, const int64_t *shape,
    uint64_t data_len);

/* Writes c's escape and returns its length. */
size_t inf_values_escape(char c, char *dst);

#endif /* INF_PROTO_INFER_VALUES_H */
