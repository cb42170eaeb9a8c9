/*
 * config_json.h - a model's configuration as JSON, in the form of Triton's
 *                 backends and clients.
 *
 * Owner    The caller frees the configuration with inf_message_free.
 * Thread   any.
 * Units    none.
 * Errors   as in message_json.h.
 * Route    repository and abi write it for backends and for GET .../config;
 *          load overrides and backends' completed configurations are read from
 *          it.
 */

#ifndef INF_PROTO_CONFIG_JSON_H
#define INF_PROTO_CONFIG_JSON_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message.h"

#include "model_config.pb-c.h"

/* Appends config; a config without any setting appends nothing. */
INF_CHECK inf_err_t *inf_model_config_to_json(
    const Inference__ModelConfig *config, inf_buf_t *out);

/* Reads a new message, which the caller frees. */
INF_CHECK inf_err_t *inf_model_config_from_json(inf_slice_t text,
    Inference__ModelConfig **out);

#endif /* INF_PROTO_CONFIG_JSON_H */
