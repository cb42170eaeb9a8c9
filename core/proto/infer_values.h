/*
 * infer_values.h - a tensor's elements as the inside of a JSON array, written
 *                  into the room there is.
 *
 * Owner    the caller's memory.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INTERNAL: a BYTES length that leads out of the tensor.
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
    uint8_t     pending_pos;    /* text that found no room                   */
    uint8_t     pending_len;
    char        pending[INF_VALUES_PENDING];
} inf_values_t;

/* datatype is none of FP16, BF16; data need not be aligned. */
void inf_values_init(inf_values_t *v, uint32_t datatype, const void *data,
    uint64_t len);

/* AGAIN: buf is full. */
INF_CHECK inf_codec_t inf_values_write(inf_values_t *v, char *buf, size_t cap,
    size_t *written, inf_err_t **err);

/* Elements of a shape; [] counts as one if there is data. */
uint64_t inf_values_count(uint32_t dim_count, const int64_t *shape,
    uint64_t data_len);

/* c's escape; gives its length. */
size_t inf_values_escape(char c, char *dst);

#endif /* INF_PROTO_INFER_VALUES_H */
