/*
 * config_edit.h - sets fields of a configuration's messages by name.
 *
 * Owner    The message owns its values; texts are copied.
 * Thread   as the message.
 * Units    none.
 * Errors   out of memory.
 * Route    inference of backends, normalisation, instance groups
 *
 * Names are those of the .proto file and part of the code: a wrong one is a
 * bug, not an error.
 */

#ifndef INF_MODEL_CONFIG_EDIT_H
#define INF_MODEL_CONFIG_EDIT_H

#include <stdint.h>

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* Set a singular field, or append to a repeated one. */
INF_CHECK inf_err_t *inf_config_put_text(ProtobufCMessage *m,
    const char *field, const char *value);
INF_CHECK inf_err_t *inf_config_put_int(ProtobufCMessage *m,
    const char *field, int64_t value);

/* Adds a new, empty message; *child (if not NULL) points to it. */
INF_CHECK inf_err_t *inf_config_put_message(ProtobufCMessage *m,
    const char *field, void *child);

#endif /* INF_MODEL_CONFIG_EDIT_H */
