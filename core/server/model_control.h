/*
 * model_control.h - loads and unloads by request: whether they are allowed,
 *                   and their parameters.
 *
 * Owner    The caller owns the request; bytes of it are copied.
 * Thread   any.
 * Units    bytes.
 * Errors   UNAVAILABLE: the control mode forbids it.  INVALID_ARG: name or
 *          parameter.  Otherwise the lifecycle's error.
 * Route    control, api_server -> [model control] -> lifecycle
 */

#ifndef INF_SERVER_MODEL_CONTROL_H
#define INF_SERVER_MODEL_CONTROL_H

#include "core/server/server.h"
#include "grpc_service.pb-c.h"

/* Whether models may be loaded and unloaded by request; the second with the
   error if not. */
bool inf_model_control_is_explicit(const inf_server_t *server);
INF_CHECK inf_err_t *inf_model_control_allowed(const inf_server_t *server);

/* Rejects a repository name other than "", which means all. */
INF_CHECK inf_err_t *inf_model_control_repository(const char *name);

/* Rejects names that no model can have. */
INF_CHECK inf_err_t *inf_model_control_name(const char *name);

/* Reads the parameters of a load request; *out is NULL without any. */
INF_CHECK inf_err_t *inf_model_control_override(
    const Inference__RepositoryModelLoadRequest *q,
    inf_override_t **out);

/* The reverse: parameter i, files first, then the configuration.  value borrows
   from override, *key is malloc'ed; false: out of memory. */
bool inf_model_control_parameter(const inf_override_t *override, size_t i,
    Inference__ModelRepositoryParameter *value, char **key);

/* Whether the method of a call (channel.h) takes time and is answered by
   inf_model_control_call. */
bool inf_model_control_is_call(uint16_t method);

/* Runs a packed message of the gRPC service, or with rest its REST form; done
   is always called.  again: a previous core had the call. */
void inf_model_control_call(inf_server_t *server, uint16_t method, bool rest,
    bool again, inf_slice_t request, inf_lifecycle_done_fn done, void *userp);

#endif /* INF_SERVER_MODEL_CONTROL_H */
