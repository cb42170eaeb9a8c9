/*
 * host_policy_json.h - a host policy in the format of
 *                      TRITONBACKEND_ModelInstanceHostPolicy.
 *
 * Owner    The caller owns the text.
 * Thread   any.
 * Units    none.
 * Errors   those of the text's buffer.
 * Route    host policies -> [host policy json] -> backend
 */

#ifndef INF_ABI_HOST_POLICY_JSON_H
#define INF_ABI_HOST_POLICY_JSON_H

#include "core/base/buf.h"
#include "core/base/os/host_policy.h"

/* Writes {"<policy>":{"<key>":"<value>",...}}, in the order of the settings. */
void inf_host_policy_json(const inf_host_policies_t *policies,
    const char *policy, inf_buf_t *out);

#endif /* INF_ABI_HOST_POLICY_JSON_H */
