/*
 * reader.h - reads the words and signs of a parameter's text.
 *
 * Owner    The caller's text outlives the reader; names point into the text.
 * Thread   one reader, one thread.
 * Units    characters.
 * Errors   INVALID_ARG naming parameter and position, the text there and the
 *          expected one.
 * Route    config.pbtxt -> program -> [reader] -> expression, kernel
 */

#ifndef GPU_READER_H
#define GPU_READER_H

#include "common/error.h"

typedef struct {
    const char *parameter;      /* its key, for errors                       */
    const char *text;           /* ends with a zero                          */
    size_t      at;
} gpu_reader_t;

typedef struct {
    const char *text;           /* no zero at its end                        */
    size_t      len;
} gpu_word_t;

/* Reads the sign, if it is next. */
bool gpu_reader_take(gpu_reader_t *r, const char *sign);

/* Reads the sign; an error if something else is next. */
BK_CHECK TRITONSERVER_Error *gpu_reader_expect(gpu_reader_t *r,
    const char *sign);

/* Reads a name of C, or a text in single quotes; false: none is next. */
bool gpu_reader_word(gpu_reader_t *r, gpu_word_t *word);

/* Reads digits; false: none is next.  *fits: the number fits int64_t. */
bool gpu_reader_number(gpu_reader_t *r, int64_t *number, bool *fits);

/* Reads a number with fraction, sign and exponent; false: none is next. */
bool gpu_reader_real(gpu_reader_t *r, double *number);

/* Whether only blanks are left. */
bool gpu_reader_at_end(gpu_reader_t *r);

/* Whether the word is text. */
bool gpu_word_is(gpu_word_t word, const char *text);

/* An error with the present position. */
BK_CHECK TRITONSERVER_Error *gpu_reader_error(const gpu_reader_t *r,
    const char *fmt, ...) BK_PRINTF(2, 3);

#endif /* GPU_READER_H */
