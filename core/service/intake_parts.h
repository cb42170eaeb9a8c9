/*
 * intake_parts.h - what intake.c, intake_open.c, intake_events.c,
 *                  intake_sessions.c and intake_leave.c share: the intake and
 *                  its sessions.
 *
 * Owner    see intake.h.  A session's entry is the intake's.
 * Thread   the one that has the intake role; new, attach and close: the main
 *          thread.
 * Units    ns.
 * Errors   see intake.h.
 * Route    open -> intake -> [events -> sessions -> leave]
 */

#ifndef INF_SERVICE_INTAKE_PARTS_H
#define INF_SERVICE_INTAKE_PARTS_H

#include "core/repository/ignored_models.h"
#include "core/service/admission.h"
#include "core/service/arena_pinner.h"
#include "core/service/infer.h"
#include "core/service/intake.h"
#include "core/service/intake_role.h"
#include "core/service/suspect_queue.h"

/* Kinds of epoll events.  An event's data is the address of such a value, in
   the object that the event concerns. */
typedef enum {
    INF_INTAKE_WAKE,
    INF_INTAKE_ADMISSION,
    INF_INTAKE_CONFIGURE,
    INF_INTAKE_IGNORED,
    INF_INTAKE_EVENTFD,
    INF_INTAKE_CONTROL
} inf_intake_source_t;

typedef enum {
    INF_INTAKE_NEW,                 /* without a server                      */
    INF_INTAKE_ATTACHED,
    INF_INTAKE_CLOSED
} inf_intake_state_t;

typedef enum {
    INF_INTAKE_STAYS,
    INF_INTAKE_TO_LEAVE,            /* asked by any thread                   */
    INF_INTAKE_LEAVES               /* by the thread with the role           */
} inf_intake_leave_t;

typedef struct {
    inf_peer_t            peer;     /* in->sessions, later in->ended         */
    inf_session_t        *session;  /* a reference                           */
    inf_intake_source_t   eventfd;
    inf_intake_source_t   control;
    const char           *over;     /* why it ends after the next poll;
                                       NULL: it goes on                      */
} inf_intake_session_t;

struct inf_intake_s {
    inf_intake_options_t  options;
    inf_intake_state_t    state;        /* the main thread's                 */
    inf_server_t         *server;
    inf_control_t        *control;
    inf_admission_t      *admission;
    inf_arena_pinner_t   *pinner;       /* NULL: there is no GPU             */
    inf_ignored_models_t *ignored;      /* NULL: it was never wanted, or
                                           there is no inotify               */
    inf_registry_reader_t models;
    int                   epoll_fd;
    int                   wake_fd;
    inf_intake_source_t   wake;
    inf_intake_source_t   registration;
    inf_intake_source_t   configure;
    inf_intake_source_t   ignoring;
    inf_link_t            sessions;     /* inf_intake_session_t              */
    bool                  orphaned;     /* no master, no supervisor          */
    uint64_t              leave_until_ns;   /* the core's drain time ends    */
    uint64_t              leave_poll_ns;    /* what is under way is counted
                                               next                          */
    uint64_t              upkeep_ns;    /* of the last one                   */
    inf_suspect_queue_t   suspects;
    bool                  suspect_told; /* to all sessions: one is under way */
    uint64_t              unattended_ns;    /* since when all workers leave;
                                               0: some worker stays          */
    inf_infer_fed_t       fed;          /* where this poll's requests went   */
    bool                  fed_several;

    inf_intake_role_t     role;         /* all above belongs to the thread
                                           that has it                       */
    _Atomic(inf_intake_leave_t) leave;  /* relaxed: an eventfd follows       */
};

/* ---- intake_events.c ----------------------------------------------------- */

/* Waits for events of the descriptors, and handles all but the rings', which
   the next poll drains.  -1: without a timeout. */
void inf_intake_wait(inf_intake_t *in, int timeout_ms);

/* The same until until_ns, or for as long as the intake sleeps at most. */
void inf_intake_wait_until(inf_intake_t *in, uint64_t until_ns);

/* ---- intake_leave.c ------------------------------------------------------ */

/* A core that leaves: whether all that is under way has ended, now and then. */
void inf_intake_poll_leaving(inf_intake_t *in);

/* Idle memory is given back in the meantime. */
uint64_t inf_intake_longest_sleep(const inf_intake_t *in);

/* ---- intake_sessions.c --------------------------------------------------- */

/* A worker is admitted; userp is the intake.  Takes the channel. */
INF_CHECK inf_err_t *inf_intake_add_session(void *userp,
    inf_channel_t *channel, uint32_t pid);

/* Cancels what the worker has submitted, and frees the entry; not while
   events are handled, which may name it. */
void inf_intake_end_session(inf_intake_t *in, inf_intake_session_t *is,
    const char *why);

/* All workers know whether a suspect is under way. */
void inf_intake_tell_suspect(inf_intake_t *in, bool under_way);

/* For the metrics: the bytes in all response arenas, and their bound. */
void inf_intake_count_responses(const inf_intake_t *in);

/* The core stops once master and supervisor are gone, and with them the last
   of the workers, which may outlive them. */
void inf_intake_stop_if_alone(inf_intake_t *in);

/* Once a second: gives memory back that nobody has used for so long, and sees
   whether all workers leave. */
void inf_intake_upkeep(inf_intake_t *in);

/* The thread with the role has begun to leave. */
static inline bool
inf_intake_is_leaving(const inf_intake_t *in)
{
    return atomic_load_explicit(&in->leave, memory_order_relaxed)
        == INF_INTAKE_LEAVES;
}

#endif /* INF_SERVICE_INTAKE_PARTS_H */
