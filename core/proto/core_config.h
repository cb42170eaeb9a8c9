/*
 * core_config.h - the core's configuration as an object that is shared: the
 *                 one copy of all options.
 *
 * Owner    References; the values are the object's and constant.
 * Thread   any.
 * Units    as the fields' names say.
 * Errors   INVALID_ARG: a host policy that can't be.  Out of memory.
 * Route    supervisor, file, C API -> [core config] -> server, lifecycle,
 *          loads
 *
 * A reload makes another object.  Options that a running core cannot take over
 * have the values of the start there, so a reader need not know which these
 * are (core_options.h).
 */

#ifndef INF_PROTO_CORE_CONFIG_H
#define INF_PROTO_CORE_CONFIG_H

#include <stdatomic.h>

#include "core/base/error.h"
#include "core/base/os/host_policy.h"
#include "core/proto/core_options.h"
#include "core_config.pb-c.h"

typedef struct {
    NginxInference__CoreConfig *values;     /* messages in it are not NULL   */
    inf_host_policies_t         host_policies;      /* its own               */
    inf_host_setting_t         *host_settings;
    _Atomic uint32_t            refs;               /* up seq_cst, down
                                                       acq_rel               */
} inf_core_config_t;

/* Copies values, but for what is the default: their has_ flags are set. */
INF_CHECK inf_err_t *inf_core_config_new(NginxInference__CoreConfig *values,
    inf_core_config_t **out);

/* Returns c. */
inf_core_config_t *inf_core_config_ref(inf_core_config_t *c);

/* c may be NULL. */
void inf_core_config_unref(inf_core_config_t *c);

/* The configuration in force once a running core has received wanted. */
INF_CHECK inf_err_t *inf_core_config_reload(const inf_core_config_t *now,
    const inf_core_config_t *wanted, inf_core_config_t **out);

/* The names of the options that a reload applies in that way and that differ,
   as the log has them; "" if none does. */
void inf_core_config_differences(const inf_core_config_t *a,
    const inf_core_config_t *b, inf_option_reload_t reload, char *text,
    size_t cap);

/* The last value of a setting of that backend ("": of all), or NULL. */
const char *inf_core_config_setting(const NginxInference__CoreConfig *values,
    const char *backend, const char *key);

/* An option's field and the message that has it: values, or one in it. */
const ProtobufCFieldDescriptor *inf_core_option_field(
    const inf_core_option_t *option, NginxInference__CoreConfig *values,
    ProtobufCMessage **in);

#endif /* INF_PROTO_CORE_CONFIG_H */
