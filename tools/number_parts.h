/*
 * number_parts.h - numbers within the values of options: text behind a number
 *                  is left out, as Triton leaves it out.
 *
 * Owner    Returned values belong to the program until it ends; parts point
 *          into the value.
 * Thread   one.
 * Units    those of the options.
 * Errors   die.
 * Route    options -> [number parts] -> nginx.conf
 */

#ifndef TOOLS_NUMBER_PARTS_H
#define TOOLS_NUMBER_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/* Values of options, used by option_table: they are checked and returned with
   numbers that nothing follows. */
const char *normal_gpu_bytes(const char *name, const char *value);
const char *normal_gpu_limit(const char *name, const char *value);
const char *normal_rate_resource(const char *name, const char *value);
const char *normal_capability(const char *name, const char *value);
const char *normal_port_range(const char *name, const char *value);

/* Reads the number that text begins with; false: none, or not from min to
   max. */
bool number_read(const char *text, long min, long max, long *out);

/* The bytes of a size in nginx's format; -1: it is none, or too large. */
long size_read(const char *text);

/* A formatted text. */
const char *number_text(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* The part of a normal value after its GPU's number. */
const char *after_gpu(const char *value, long *gpu);

/* Whether a later entry of the list is for the same GPU, which then counts. */
bool later_for_gpu(const list_t *list, size_t at);

#endif /* TOOLS_NUMBER_PARTS_H */
