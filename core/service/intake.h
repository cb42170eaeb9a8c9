/*
 * intake.h - takes entries, cancels and disconnections of workers.
 *
 * Owner    core_main owns the intake; the intake owns its sessions.
 * Thread   run: the main thread.  The intake role (poll the rings, sleep on
 *          their eventfds) is held by one thread at a time: an idle instance
 *          thread if there is one (inf_intake_host's idle operations), else
 *          the main thread, which also checks every ms whether the rings were
 *          left unattended for too long.  wake, leave and stop: any thread and
 *          signal handlers.
 * Units    ns.
 * Errors   Invalid entries of a worker end that worker's session only.
 * Route    rings, admission -> [intake] -> infer, control
 *
 * A thread with the role that takes work of its own instance executes it
 * without waking another thread, if its executions are known to be short;
 * otherwise it first wakes the main thread.
 */

#ifndef INF_SERVICE_INTAKE_H
#define INF_SERVICE_INTAKE_H

#include <sys/types.h>

#include "core/server/server.h"
#include "core/service/control.h"

typedef struct inf_intake_s inf_intake_t;

typedef struct {
    int      registration_fd;   /* core's end of the pair; -1: none          */
    int      configure_fd;      /* core's end of the supervisor's; -1: none  */
    int      listen_fd;         /* external mode; -1: none                   */
    const uid_t *users;         /* allowed to connect there, besides our own and
                                   root                                      */
    size_t   user_count;
    uint64_t response_bound;    /* bytes per worker                          */
    uint64_t pinned_bytes;      /* at the start of each arena of a worker    */
    uint64_t spin_ns;
    uint64_t response_wait_ns;  /* for a client that takes no responses      */
    uint64_t generation;        /* of the current configuration              */

    /* A configuration was received on configure_fd; takes the fd. */
    void   (*configure)(void *userp, int fd, uint64_t generation);

    /* The supervisor checks that the core is alive. */
    void   (*beat)(void *userp);

    /* The core is leaving; returns the time limit of executions from now on,
       ns. */
    uint64_t (*leaves)(void *userp);
    void    *userp;
} inf_intake_options_t;

/* Copies the options; free calls close if it was not called. */
INF_CHECK inf_err_t *inf_intake_new(const inf_intake_options_t *options,
    inf_intake_t **out);
void inf_intake_free(inf_intake_t *intake);

/* Called once, before run: the intake exists first, because models wake it. */
INF_CHECK inf_err_t *inf_intake_attach(inf_intake_t *intake,
    inf_server_t *server);

/* Returns after a stop, or when no nginx process is left. */
void inf_intake_run(inf_intake_t *intake);

/* Ends all sessions and the control thread; called after run. */
void inf_intake_close(inf_intake_t *intake);

/* Implements options->configure; called by control.h. */
void inf_intake_configure(inf_intake_t *intake, inf_core_config_t *config,
    bool log);

/* Checks for changed models soon; async-signal-safe like leave and stop. */
void inf_intake_wake(inf_intake_t *intake);

/*
 * Prepares for a core that replaces this one: no worker is admitted and no
 * request begins; run returns when requests that have begun, and calls, are
 * answered, or after a bounded time.
 */
void inf_intake_leave(inf_intake_t *intake);
void inf_intake_stop(inf_intake_t *intake);

/* For inf_server_start; userp is the intake. */
extern const inf_server_host_t inf_intake_host;

#endif /* INF_SERVICE_INTAKE_H */
