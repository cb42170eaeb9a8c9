/*
 * trace_options.h - --trace-config and the older --trace-*, as the directive
 *                   "inference_trace".
 *
 * Owner    Texts are the command line's.
 * Thread   one.
 * Units    as the options'.
 * Errors   die.
 * Route    options -> [trace options] -> nginx.conf
 */

#ifndef TOOLS_TRACE_OPTIONS_H
#define TOOLS_TRACE_OPTIONS_H

#include <stdio.h>

#include "options.h"

/* Of one value, as option_table has them. */
void check_trace_config(const char *name, const char *value);
void check_trace_level(const char *name, const char *value);
void check_trace_rate(const char *name, const char *value);
void check_trace_count(const char *name, const char *value);
void check_trace_frequency(const char *name, const char *value);

/* Ends the program where they do not go together. */
void trace_options_check(const options_t *o);

/* The directive, if any of them is given. */
void trace_options_write(FILE *f, const options_t *o);

#endif /* TOOLS_TRACE_OPTIONS_H */
