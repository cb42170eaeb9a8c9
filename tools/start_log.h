/*
 * start_log.h - what Triton logs when it has started: the tables of models and
 *               options, and a line for each service.
 *
 * Owner    The stream is the caller's.
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

/* index: the repository index, written over; unavailable models are named on
   stderr if failed. */
void start_log_models(FILE *f, const options_t *o, char *index, bool failed);

/* metadata: the server's, written over; NULL: no answer. */
void start_log_options(FILE *f, const options_t *o, char *metadata);

/* A line for each service that is on, if o asks for such lines. */
void start_log_services(FILE *f, const options_t *o);

#endif /* TOOLS_START_LOG_H */
