/*
 * infer.h - from a flat record to a running request, and back.
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

/* Where a request went; runner is a name to compare, it may be gone. */
typedef struct {
    const inf_runner_t *runner;     /* NULL: nowhere, it was rejected, is the
                                       response cache's or an ensemble's, or
                                       a suspect that waits                  */
    bool                quick;      /* the runner's executions are short     */
    inf_in_flight_t    *unread;     /* not NULL: its JSON is long, and a
                                       control thread reads it               */
} inf_infer_fed_t;

/* Takes the submission: the request runs, is queued, waits for its turn among
   suspects, or is rejected on the channel. */
inf_infer_fed_t inf_infer_submit(inf_session_t *session,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *server, uint64_t now_ns);

/* The same with a suspect whose turn it is. */
inf_infer_fed_t inf_infer_go_on(inf_in_flight_t *in_flight, uint64_t now_ns);

/* Reads the JSON of a request of generate and submits it; or, with an error,
   which is taken, rejects the request. */
void inf_infer_read(inf_in_flight_t *in_flight, inf_err_t *err);

/* Unlinks the request if it is queued, else tells the backend. */
void inf_infer_cancel(inf_session_t *session, uint32_t slot,
    uint32_t generation);

/* Cancels everything the session has under way. */
void inf_infer_cancel_all(inf_session_t *session);

/*
 * The core leaves.  Requests that have not begun leave their queues
 * without an answer, and their slots say so: the worker gives them to the next
 * core.  Returns how many requests are still under way.
 */
uint32_t inf_infer_withdraw(inf_session_t *session);

/* Whether a response is such a request's: it is not sent. */
bool inf_infer_is_withdrawn(const inf_in_flight_t *in_flight,
    const inf_response_t *response);

#endif /* INF_SERVICE_INFER_H */
