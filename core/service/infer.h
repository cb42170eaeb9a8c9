/*
 * infer.h - from a record to a running request, and back.
 *
 * Owner    A submission becomes a request in flight of its session; it always
 *          ends by completions on the channel.
 * Thread   submit, go_on, cancel: the intake role; read: a control thread;
 *          responses: any thread.
 * Units    ns.
 * Errors   answered on the channel as a response with a status.
 * Route    intake -> [infer] -> runtime ... sink -> [infer] -> channel
 *          A long JSON of generate: intake -> control -> [infer] -> runtime
 */

#ifndef INF_SERVICE_INFER_H
#define INF_SERVICE_INFER_H

#include "core/repository/registry.h"
#include "core/sched/runtime.h"
#include "core/server/server.h"
#include "core/service/session.h"

/* The destination of a request; runner is only compared, as it may be freed. */
typedef struct {
    const inf_runner_t *runner;     /* NULL: rejected, in the response cache or
                                       an ensemble, or a suspect that waits  */
    bool                quick;      /* the runner's executions are short     */
    inf_in_flight_t    *unread;     /* not NULL: its JSON is long, and a
                                       control thread parses it              */
} inf_infer_fed_t;

/* Takes the submission: the request runs, is queued, waits as a suspect, or is
   rejected on the channel. */
inf_infer_fed_t inf_infer_submit(inf_session_t *session,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *server, uint64_t now_ns);

/* The same for a suspect that may run now. */
inf_infer_fed_t inf_infer_go_on(inf_in_flight_t *in_flight, uint64_t now_ns);

/* Parses the JSON of a generate request and submits it; or rejects it with err,
   if not NULL (taken). */
void inf_infer_read(inf_in_flight_t *in_flight, inf_err_t *err);

/* Unlinks a queued request, or tells the backend of the cancel. */
void inf_infer_cancel(inf_session_t *session, uint32_t slot,
    uint32_t generation);

/* Cancels all requests of the session. */
void inf_infer_cancel_all(inf_session_t *session);

/*
 * When the core ends: removes requests that have not begun from their queues
 * without an answer, and marks their slots, so that the worker submits them to
 * the next core.  Returns the number of requests that remain.
 */
uint32_t inf_infer_withdraw(inf_session_t *session);

/* Whether the response belongs to such a request, and is not sent. */
bool inf_infer_is_withdrawn(const inf_in_flight_t *in_flight,
    const inf_response_t *response);

#endif /* INF_SERVICE_INFER_H */
