/*
 * intake_parts.h - declarations shared by intake.c, intake_open.c,
 *                  intake_events.c, intake_sessions.c and intake_leave.c: the
 *                  intake and its sessions.
 *
 * Owner    see intake.h.  The intake owns a session's entry.
 * Thread   the thread with the intake role; new, attach and close: the main
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

/* Kinds of epoll events.  An event's data is the address of such a value in the
   object of the event. */
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
    INF_INTAKE_TO_LEAVE,            /* requested by any thread               */
    INF_INTAKE_LEAVES               /* set by the thread with the role       */
} inf_intake_leave_t;

typedef struct {
    inf_peer_t            peer;     /* in->sessions, later in->ended         */
    inf_session_t        *session;  /* a reference                           */
    inf_intake_source_t   eventfd;
    inf_intake_source_t   control;
    const char           *over;     /* reason to end after the next poll; NULL:
                                       none                                  */
} inf_intake_session_t;

struct inf_intake_s {
    inf_intake_options_t  options;
    inf_intake_state_t    state;        /* of the main thread                */
    inf_server_t         *server;
    inf_control_t        *control;
    inf_admission_t      *admission;
    inf_arena_pinner_t   *pinner;       /* NULL: no GPU                      */
    inf_ignored_models_t *ignored;      /* NULL: not requested, or no inotify */
    inf_registry_reader_t models;
    int                   epoll_fd;
    int                   wake_fd;
    inf_intake_source_t   wake;
    inf_intake_source_t   registration;
    inf_intake_source_t   configure;
    inf_intake_source_t   ignoring;
    inf_link_t            sessions;     /* inf_intake_session_t              */
    bool                  orphaned;     /* no master, no supervisor          */
    uint64_t              leave_until_ns;   /* end of the core's drain time  */
    uint64_t              leave_poll_ns;    /* time of the next count of
                                               executions                    */
    uint64_t              upkeep_ns;    /* time of the last upkeep           */
    inf_suspect_queue_t   suspects;
    bool                  suspect_told; /* sessions were told that a suspect
                                           executes                          */
    uint64_t              unattended_ns;    /* time since which all workers are
                                               leaving; 0: some worker stays */
    inf_infer_fed_t       fed;          /* runner that got this poll's
                                           requests                          */
    bool                  fed_several;

    inf_intake_role_t     role;         /* the fields above belong to the thread
                                           that has it                       */
    _Atomic(inf_intake_leave_t) leave;  /* relaxed: an eventfd follows       */
};

/* ---- intake_events.c ----------------------------------------------------- */

/* Waits for events of the descriptors and handles them, except for the rings,
   which the next poll drains.  -1: without a timeout. */
void inf_intake_wait(inf_intake_t *in, int timeout_ms);

/* Likewise until until_ns, at most the intake's longest sleep. */
void inf_intake_wait_until(inf_intake_t *in, uint64_t until_ns);

/* ---- intake_leave.c ------------------------------------------------------ */

/* In a leaving core: checks at intervals whether all work has ended. */
void inf_intake_poll_leaving(inf_intake_t *in);

/* Limited, so that idle memory is released regularly. */
uint64_t inf_intake_longest_sleep(const inf_intake_t *in);

/* ---- intake_sessions.c --------------------------------------------------- */

/* Adds the session of an admitted worker; userp is the intake.  Takes the
   channel. */
INF_CHECK inf_err_t *inf_intake_add_session(void *userp,
    inf_channel_t *channel, uint32_t pid);

/* Cancels the worker's submissions and frees the entry; not called while events
   are handled, which may refer to it. */
void inf_intake_end_session(inf_intake_t *in, inf_intake_session_t *is,
    const char *why);

/* Tells all workers whether a suspect executes. */
void inf_intake_tell_suspect(inf_intake_t *in, bool under_way);

/* Counts, for metrics, the bytes in all response arenas, and their limit. */
void inf_intake_count_responses(const inf_intake_t *in);

/* Stops the core after master and supervisor are gone and the last worker,
   which may outlive them, has ended. */
void inf_intake_stop_if_alone(inf_intake_t *in);

/* Once a second: releases memory that was unused for that time, and checks
   whether all workers are leaving. */
void inf_intake_upkeep(inf_intake_t *in);

/* Whether the thread with the role has begun to leave. */
static inline bool
inf_intake_is_leaving(const inf_intake_t *in)
{
    return atomic_load_explicit(&in->leave, memory_order_relaxed)
        == INF_INTAKE_LEAVES;
}

#endif /* INF_SERVICE_INTAKE_PARTS_H */
