/*
 * start_log.h - Triton's log output after the start: tables of models and
 *               options, and a line for each service.
 *
 * Owner    The stream belongs to the caller.
 * Thread   one.
 * Units    none.
 * Errors   A line that cannot be written is lost.
 * Route    own socket, options -> [start log] -> stderr or --log-file
 */

#ifndef TOOLS_START_LOG_H
#define TOOLS_START_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

/* Writes the models; index: the repository index, overwritten. */
void start_log_models(FILE *f, const options_t *o, char *index);

/* Writes the options; metadata: the server's, overwritten; NULL: no answer. */
void start_log_options(FILE *f, const options_t *o, char *metadata);

/* Writes a line for each service that is on, if o enables such lines. */
void start_log_services(FILE *f, const options_t *o);

#endif /* TOOLS_START_LOG_H */
