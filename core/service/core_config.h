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

#include <stdbool.h>

#include "core/base/error.h"
#include "core/sched/rate_limiter.h"
#include "core_config.pb-c.h"

/* A serialised CoreConfig from offset 0 of fd, a sealed memfd, to its end. */
INF_CHECK inf_err_t *inf_core_config_from_fd(int fd,
    NginxInference__CoreConfig **out);

/* A text file. */
INF_CHECK inf_err_t *inf_core_config_from_file(const char *path,
    NginxInference__CoreConfig **out);

/* Applies what can change in a living core. */
void inf_core_config_apply_log(const NginxInference__CoreConfig *config);

/* Whether instances wait for leave, and the resources that are said to exist:
   n_rate_limit_resources of them, names are config's, free them with free.
   NULL: out of memory. */
bool inf_core_config_limits_rates(const NginxInference__CoreConfig *config);
inf_rate_resource_t *inf_core_config_rates(
    const NginxInference__CoreConfig *config);

/* Whether loads of models go by the same settings. */
bool inf_core_config_same_loads(const NginxInference__CoreConfig *a,
    const NginxInference__CoreConfig *b);

/* Names those that differ and count for the loads to come; "" if none does. */
void inf_core_config_later(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap);

/* Names the settings that differ and need a new core; "" if there is none. */
void inf_core_config_differences(const NginxInference__CoreConfig *now,
    const NginxInference__CoreConfig *wanted, char *text, size_t cap);

#endif /* INF_SERVICE_CORE_CONFIG_H */
