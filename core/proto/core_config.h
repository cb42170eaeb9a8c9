/*
 * core_config.h - the core's configuration as a shared object, the only copy
 *                 of all options.
 *
 * Owner    Reference counted; the values belong to the object and are
 *          constant.
 * Thread   any.
 * Units    as the fields' names say.
 * Errors   INVALID_ARG: an invalid host policy.  Out of memory.
 * Route    supervisor, file, C API -> [core config] -> server, lifecycle,
 *          loads
 *
 * A reload creates another object.  Options that a running core cannot apply
 * keep their values of the start in it, so that readers need not distinguish
 * them (core_options.h).
 */

#ifndef INF_PROTO_CORE_CONFIG_H
#define INF_PROTO_CORE_CONFIG_H

#include <stdatomic.h>

#include "core/base/error.h"
#include "core/base/os/host_policy.h"
#include "core/proto/core_options.h"
#include "core_config.pb-c.h"

typedef struct {
    NginxInference__CoreConfig *values;     /* its messages are not NULL     */
    inf_host_policies_t         host_policies;      /* built from values     */
    inf_host_setting_t         *host_settings;
    _Atomic uint32_t            refs;               /* up seq_cst, down
                                                       acq_rel               */
} inf_core_config_t;

/* Sets the has_ flag of each value that is not the default, and copies these
   values. */
INF_CHECK inf_err_t *inf_core_config_new(NginxInference__CoreConfig *values,
    inf_core_config_t **out);

/* Returns c. */
inf_core_config_t *inf_core_config_ref(inf_core_config_t *c);

/* c may be NULL. */
void inf_core_config_unref(inf_core_config_t *c);

/* Creates the configuration in force after a running core has received
   wanted. */
INF_CHECK inf_err_t *inf_core_config_reload(const inf_core_config_t *now,
    const inf_core_config_t *wanted, inf_core_config_t **out);

/* Writes the names, as in the log, of the options that a reload applies in that
   way and that differ; "" if none do. */
void inf_core_config_differences(const inf_core_config_t *a,
    const inf_core_config_t *b, inf_option_reload_t reload, char *text,
    size_t cap);

/* The last value of a setting of that backend ("": of all), or NULL. */
const char *inf_core_config_setting(const NginxInference__CoreConfig *values,
    const char *backend, const char *key);

/* An option's field, and the message that contains it: values, or one in it. */
const ProtobufCFieldDescriptor *inf_core_option_field(
    const inf_core_option_t *option, NginxInference__CoreConfig *values,
    ProtobufCMessage **in);

#endif /* INF_PROTO_CORE_CONFIG_H */
