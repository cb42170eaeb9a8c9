/*
 * core_config.h - reads the core's configuration: what the supervisor sent,
 *                 or the text form of the same message.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   any.
 * Units    none.
 * Errors   names the file and what is wrong.
 * Route    core_main -> [core_config] -> server
 */

#ifndef INF_SERVICE_CORE_CONFIG_H
#define INF_SERVICE_CORE_CONFIG_H

#include "core/base/error.h"
#include "core_config.pb-c.h"

/* A serialised CoreConfig from offset 0 of fd to its end. */
INF_CHECK inf_err_t *inf_core_config_from_fd(int fd,
    NginxInference__CoreConfig **out);

/* A text file. */
INF_CHECK inf_err_t *inf_core_config_from_file(const char *path,
    NginxInference__CoreConfig **out);

/* Applies what can change in a living core. */
void inf_core_config_apply_log(const NginxInference__CoreConfig *config);

/* Names the settings that differ and need a new core; "" if there is none. */
void inf_core_config_differences(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap);

#endif /* INF_SERVICE_CORE_CONFIG_H */
