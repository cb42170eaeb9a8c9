/*
 * calls.h - everything a worker can ask that is not an inference: a protobuf
 *           message of the gRPC service, answered by one.
 *
 * Owner    The control object owns its threads and the queued calls.  A load
 *          on its way is the lifecycle's.
 * Thread   submit: the intake role.  Calls run on the control thread; loads
 *          and unloads are answered by loader threads.
 * Units    bytes.
 * Errors   answered on the channel: status and text.
 * Route    intake -> [calls] -> server, registry -> channel
 */

#ifndef INF_SERVICE_CALLS_H
#define INF_SERVICE_CALLS_H

#include "core/service/server.h"
#include "core/service/session.h"

typedef struct inf_control_s inf_control_t;

INF_CHECK inf_err_t *inf_control_new(inf_server_t *server,
    inf_control_t **out);

/* Answers or drops what is queued, ends the threads; loads go on. */
void inf_control_free(inf_control_t *control);

/* Queues the call; large ones stay in the arena until their turn. */
void inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission);

/* The call itself, on the caller's thread: appends the answer, packed or as
   REST body.  Not of methods that ready_calls.h or model_control.h answers. */
INF_CHECK inf_err_t *inf_call(inf_server_t *server,
    inf_registry_reader_t *models, uint16_t method, inf_slice_t request,
    bool rest, inf_buf_t *answer);

/* As a call names it: version "" is the newest.  A reference. */
INF_CHECK inf_err_t *inf_call_find_model(inf_registry_reader_t *models,
    const char *name, const char *version, inf_model_t **out);

#endif /* INF_SERVICE_CALLS_H */
