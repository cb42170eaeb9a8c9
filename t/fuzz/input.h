/*
 * input.h - a fuzzer's input, which decides step by step what happens next.
 *
 * Owner    the fuzzer; the bytes are libFuzzer's.
 * Thread   one.
 * Units    bytes.
 * Errors   none: an input that has ended goes on with zeros.
 * Route    libFuzzer -> [input] -> fuzzer
 */

#ifndef T_FUZZ_INPUT_H
#define T_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *data;
    size_t         size;
} input_t;

/* The next 8 bytes at most, as a number. */
static inline uint64_t
input_next(input_t *in, size_t bytes)
{
    uint64_t v = 0;

    bytes = bytes < in->size ? bytes : in->size;
    memcpy(&v, in->data, bytes);
    in->data += bytes;
    in->size -= bytes;
    return v;
}

#endif /* T_FUZZ_INPUT_H */
