/*
 * option_check.h - what values options may have, and their parts.
 *
 * Owner    Parts point into the value.
 * Thread   one.
 * Units    none.
 * Errors   die; a value that was checked once has none.
 * Route    options -> [option check] -> nginx.conf
 */

#ifndef TOOLS_OPTION_CHECK_H
#define TOOLS_OPTION_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/* Ends the program where a value is wrong. */
void options_check(const options_t *o);

/* The part of text behind its GPU's number. */
const char *after_gpu(const char *name, const char *text, long *gpu);

/* The last word on a GPU counts. */
bool later_for_gpu(const list_t *list, size_t at);

/* The parameter of inference_metrics, and its value, that a metrics-config
   means. */
const char *metrics_setting(const char *text, const char **value);

#endif /* TOOLS_OPTION_CHECK_H */
