/*
 * core_config.h - reads the core's configuration: the supervisor's message, or
 *                 its text form.
 *
 * Owner    The caller gets a reference.
 * Thread   any.
 * Units    none.
 * Errors   The text names the file and the fault.
 * Route    core_main -> [core_config] -> server
 */

#ifndef INF_SERVER_CORE_CONFIG_H
#define INF_SERVER_CORE_CONFIG_H

#include "core/base/error.h"
#include "core/proto/core_config.h"

/* Reads a serialised CoreConfig from fd, a sealed memfd, from offset 0 to its
   end. */
INF_CHECK inf_err_t *inf_core_config_from_fd(int fd, inf_core_config_t **out);

/* Reads a text file. */
INF_CHECK inf_err_t *inf_core_config_from_file(const char *path,
    inf_core_config_t **out);

/* Applies the log levels and the log format to the process. */
void inf_core_config_apply_log(const inf_core_config_t *config);

/* Whether the two differ in a setting that apply_log applies. */
bool inf_core_config_log_differs(const inf_core_config_t *a,
    const inf_core_config_t *b);

#endif /* INF_SERVER_CORE_CONFIG_H */
