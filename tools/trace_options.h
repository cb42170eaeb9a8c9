/*
 * trace_options.h - --trace-config and the deprecated --trace-*, written as
 *                   the directive "inference_trace".
 *
 * Owner    Texts belong to the command line.
 * Thread   one.
 * Units    those of the options.
 * Errors   die.
 * Route    options -> [trace options] -> nginx.conf
 */

#ifndef TOOLS_TRACE_OPTIONS_H
#define TOOLS_TRACE_OPTIONS_H

#include <stdio.h>

#include "options.h"

/* Checks of one value, used by option_table; normal_*: return it with numbers
   that nothing follows. */
const char *normal_trace_config(const char *name, const char *value);
void check_trace_level(const char *name, const char *value);
const char *normal_trace_rate(const char *name, const char *value);
const char *normal_trace_count(const char *name, const char *value);
const char *normal_trace_frequency(const char *name, const char *value);

/* Ends the program if the options contradict each other. */
void trace_options_check(const options_t *o);

/* Writes the directive, if any of the options is given. */
void trace_options_write(FILE *f, const options_t *o);

#endif /* TOOLS_TRACE_OPTIONS_H */
