/*
 * control.h - the threads that run calls of workers, and parse long generate
 *             requests.
 *
 * Owner    The control object owns its threads and the queued calls.  The
 *          lifecycle owns running loads.
 * Thread   submit, configure: the intake role.  Calls run on the control
 *          threads; loads and unloads are answered by loader threads.
 * Units    bytes.
 * Errors   answered on the channel: status and text.
 * Route    intake -> [control] -> calls -> channel
 *          intake -> [control] -> infer
 */

#ifndef INF_SERVICE_CONTROL_H
#define INF_SERVICE_CONTROL_H

#include "core/server/server.h"
#include "core/service/session.h"

typedef struct inf_control_s inf_control_t;

/* Starts the threads; server outlives them. */
INF_CHECK inf_err_t *inf_control_new(inf_server_t *server,
    inf_control_t **out);

/* Answers or drops queued calls and ends the threads; loads go on. */
void inf_control_free(inf_control_t *control);

/* Queues the call; large ones stay in the arena until their turn. */
void inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission);

/* Applies a reload's configuration to the settings that clients may change
   (server/client_settings.h); log: it has changed those of the log.  Returns at
   once. */
void inf_control_configure(inf_control_t *control, inf_core_config_t *config,
    bool log);

/* Queues a request for inf_infer_read, which parses its JSON. */
void inf_control_read(inf_control_t *control, inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_CONTROL_H */
