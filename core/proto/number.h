/*
 * number.h - numbers as text, both ways, correctly rounded and without locale.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    none.
 * Errors   none: what is no number has length 0, what does not fit says so.
 * Route    data decoder, response writer, text format and JSON of messages.
 */

#ifndef INF_PROTO_NUMBER_H
#define INF_PROTO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/slice.h"

#define INF_NUMBER_MAX_TEXT  32u    /* room that any writer below needs      */
#define INF_NUMBER_MAX_INPUT 4096u  /* longer texts are no numbers here      */

/* A number as read: (-1)^negative * mantissa * 10^exponent. */
typedef struct {
    uint64_t    mantissa;       /* the first 19 significant digits           */
    int32_t     exponent;
    bool        negative;
    bool        integer;        /* written without '.' and exponent          */
    bool        inexact;        /* there were more than 19 digits            */
    const char *text;           /* where it stands                           */
    uint32_t    len;
} inf_number_t;

/* Reads the JSON number at p; returns its length, 0 if there is none or it is
   longer than INF_NUMBER_MAX_INPUT. */
size_t inf_number_read(const char *p, const char *end, inf_number_t *out);

/* NaN, Infinity or Inf, the last two with a minus or without; returns the
   length, 0 if there is none of them. */
size_t inf_number_read_nonfinite(const char *p, const char *end, double *out);

/* All of s as a decimal number: '-' may stand before it, zeros too many at its
   begin, and nothing on one side of its point.  Overflows to infinity. */
bool inf_number_parse_double(inf_slice_t s, double *out);

/* Digits of base 8, 10 or 16 only; false when empty or above UINT64_MAX. */
bool inf_number_parse_digits(inf_slice_t s, unsigned base, uint64_t *out);

/* The short way for what is most often read: 1 to 19 digits and nothing else.
   False says no more than that the text is none. */
static inline bool
inf_number_parse_short(inf_slice_t s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len - 1 >= 19) {
        return false;
    }

    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char) s.data[i] - '0';
        if (digit > 9) {
            return false;
        }

        v = v * 10 + digit;
    }

    *out = v;
    return true;
}

/* Correctly rounded (to even), overflowing to infinity. */
double inf_number_double(const inf_number_t *n);
float inf_number_float(const inf_number_t *n);

/* False: not written as an integer, or out of range. */
bool inf_number_int64(const inf_number_t *n, int64_t *out);
bool inf_number_uint64(const inf_number_t *n, uint64_t *out);

/*
 * Write at most INF_NUMBER_MAX_TEXT bytes, no NUL; return how many.  Reals
 * are the shortest text that reads back as the same value of that type,
 * integral ones end in ".0"; NaN, Infinity, -Infinity are bare words.
 */
size_t inf_number_write_double(char *dst, double v);
size_t inf_number_write_float(char *dst, float v);
size_t inf_number_write_int64(char *dst, int64_t v);
size_t inf_number_write_uint64(char *dst, uint64_t v);

/* Append; reals are finite and look as printf's %g has them: no ".0", an
   exponent from as many digits as the type always keeps. */
void inf_number_put_double(inf_buf_t *b, double v);
void inf_number_put_float(inf_buf_t *b, float v);
void inf_number_put_int(inf_buf_t *b, int64_t v);
void inf_number_put_uint(inf_buf_t *b, uint64_t v);

#endif /* INF_PROTO_NUMBER_H */
