/*
 * message_number.h - floating point as text, whatever the process's locale.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    none.
 * Errors   as inf_buf's; a text that is no number gives false.
 * Route    text format and JSON write and read their numbers here.
 */

#ifndef INF_PROTO_MESSAGE_NUMBER_H
#define INF_PROTO_MESSAGE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/slice.h"

/* The shortest decimal form that reads back as v; v is finite. */
void inf_number_put_double(inf_buf_t *b, double v);
void inf_number_put_float(inf_buf_t *b, float v);

void inf_number_put_int(inf_buf_t *b, int64_t v);
void inf_number_put_uint(inf_buf_t *b, uint64_t v);

/* A decimal number with optional '-', point and exponent; no other form.
   Beyond the range of double gives an infinity. */
bool inf_number_parse_double(inf_slice_t s, double *out);

/* Digits of base 8, 10 or 16 only; false when empty or above UINT64_MAX. */
bool inf_number_parse_digits(inf_slice_t s, unsigned base, uint64_t *out);

#endif /* INF_PROTO_MESSAGE_NUMBER_H */
