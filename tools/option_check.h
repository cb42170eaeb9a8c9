/*
 * option_check.h - checks the values of options, and what goes together.
 *
 * Owner    Parts point into the value.
 * Thread   one.
 * Units    none.
 * Errors   die; a value that was checked before has none.
 * Route    options -> [option check] -> nginx.conf
 */

#ifndef TOOLS_OPTION_CHECK_H
#define TOOLS_OPTION_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/* Ends the program if options contradict each other. */
void options_check(const options_t *o);

/* Checks of one value, used by option_table; name is the option's. */
void check_repository(const char *name, const char *value);
void check_host_policy(const char *name, const char *value);
void check_metrics_config(const char *name, const char *value);
void check_restricted(const char *name, const char *value);
void check_backend_config(const char *name, const char *value);
void check_request_memory(const char *name, const char *value);
void check_control_from(const char *name, const char *value);

/* The parameter of inference_metrics for a metrics-config, and its value; NULL:
   no effect. */
const char *metrics_setting(const char *text, const char **value);

#endif /* TOOLS_OPTION_CHECK_H */
