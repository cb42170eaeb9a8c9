/*
 * reader.h - the words and signs of a parameter's text, one after the other.
 *
 * Owner    the text is the caller's and outlives the reader; names point into
 *          it.
 * Thread   one reader, one thread.
 * Units    characters.
 * Errors   INVALID_ARG: the parameter, the position, what is there, and what
 *          could be.
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

/* Whether the sign comes next, which is then read. */
bool gpu_reader_take(gpu_reader_t *r, const char *sign);

/* The same where nothing else may come. */
BK_CHECK TRITONSERVER_Error *gpu_reader_expect(gpu_reader_t *r,
    const char *sign);

/* A name as C has them, or any text between single quotes; false: none. */
bool gpu_reader_word(gpu_reader_t *r, gpu_word_t *word);

/* Digits; false: none.  *fits: the number is an int64_t. */
bool gpu_reader_number(gpu_reader_t *r, int64_t *number, bool *fits);

/* A number with a fraction, sign and exponent; false: none. */
bool gpu_reader_real(gpu_reader_t *r, double *number);

bool gpu_reader_at_end(gpu_reader_t *r);
bool gpu_word_is(gpu_word_t word, const char *text);

/* An error at the present position. */
BK_CHECK TRITONSERVER_Error *gpu_reader_error(const gpu_reader_t *r,
    const char *fmt, ...) BK_PRINTF(2, 3);

#endif /* GPU_READER_H */
