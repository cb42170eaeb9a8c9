/*
 * rest_settings.h - messages for REST bodies of the trace and logging
 *                   extensions.
 *
 * Owner    The message owns the added fields; the caller frees it, also after
 *          an error.
 * Thread   any.
 * Units    none.
 * Errors   Triton's errors where REST and gRPC differ: INTERNAL, a value of
 *          the wrong kind; UNAVAILABLE, an unknown log format; UNSUPPORTED, a
 *          path.
 * Route    REST request -> [REST settings] -> trace message, log message
 */

#ifndef INF_SERVER_REST_SETTINGS_H
#define INF_SERVER_REST_SETTINGS_H

#include "core/proto/json_doc.h"
#include "grpc_service.pb-c.h"

/* Fill q from root, which is an object. */
INF_CHECK inf_err_t *inf_rest_trace(Inference__TraceSettingRequest *q,
    const json_t *root);
INF_CHECK inf_err_t *inf_rest_log(Inference__LogSettingsRequest *q,
    const json_t *root);

#endif /* INF_SERVER_REST_SETTINGS_H */
