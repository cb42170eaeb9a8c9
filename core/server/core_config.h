/*
 * core_config.h - reads the core's configuration: what the supervisor sent,
 *                 or the text form of the same message.
 *
 * Owner    The caller gets a reference.
 * Thread   any.
 * Units    none.
 * Errors   names the file and what is wrong.
 * Route    core_main -> [core_config] -> server
 */

#ifndef INF_SERVER_CORE_CONFIG_H
#define INF_SERVER_CORE_CONFIG_H

#include "core/base/error.h"
#include "core/proto/core_config.h"

/* A serialised CoreConfig from offset 0 of fd, a sealed memfd, to its end. */
INF_CHECK inf_err_t *inf_core_config_from_fd(int fd, inf_core_config_t **out);

/* A text file. */
INF_CHECK inf_err_t *inf_core_config_from_file(const char *path,
    inf_core_config_t **out);

/* Applies the levels and the format of the log, to the process. */
void inf_core_config_apply_log(const inf_core_config_t *config);

/* Whether the two differ in what apply_log applies. */
bool inf_core_config_log_differs(const inf_core_config_t *a,
    const inf_core_config_t *b);

#endif /* INF_SERVER_CORE_CONFIG_H */
