/*
 * rest_request.h - the gRPC message for a REST body of the control API.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   control threads: a body with files takes time, which a worker does
 *          not have.
 * Units    bytes.
 * Errors   INVALID_ARG: the body's fault; for settings the errors of
 *          rest_settings.h.
 * Route    control -> [REST request] -> model control, calls
 */

#ifndef INF_SERVER_REST_REQUEST_H
#define INF_SERVER_REST_REQUEST_H

#include "core/base/slice.h"
#include "core/proto/message.h"
#include "grpc_service.pb-c.h"

/* Begins the name of a load's parameter that brings a file of the model. */
#define INF_FILE_PREFIX "file:"

/* The type of a parameter: BOOL, STRING, BYTES. */
#define INF_PARAMETER_CHOICE(type)                                           \
    INFERENCE__MODEL_REPOSITORY_PARAMETER__PARAMETER_CHOICE_##type##_PARAM

typedef Inference__ModelRepositoryParameter inf_repository_parameter_t;
typedef Inference__RepositoryModelLoadRequest__ParametersEntry
    inf_load_entry_t;
typedef Inference__RepositoryModelUnloadRequest__ParametersEntry
    inf_unload_entry_t;

/* record: in the format of INF_SUBMIT_FLAG_REST (channel.h).  A call without a
   row here gets the body's members (rest_members.h). */
INF_CHECK inf_err_t *inf_rest_request(uint16_t method,
    const ProtobufCMessageDescriptor *desc, inf_slice_t record,
    ProtobufCMessage **out);

#endif /* INF_SERVER_REST_REQUEST_H */
