/*
 * intake.h - takes entries, cancels and disconnections of workers.
 *
 * Owner    core_main owns the intake; the intake owns its sessions.
 * Thread   run: the main thread.  wake, leave, stop: any thread and signal
 *          handlers.  One thread at a time has the intake role: this thread
 *          polls the rings and sleeps on their eventfds.  An idle instance
 *          thread has the role if there is one (the idle operations of
 *          inf_intake_host), else the main thread.
 * Units    ns, bytes.
 * Errors   Invalid entries of a worker end the session of that worker alone.
 * Route    rings, admission -> [intake] -> infer, control
 *
 * Order: new, attach, run, close, free.
 *
 * An instance thread that has the role and takes work for its own instance
 * executes that work itself.  If its executions are not known to be short, the
 * thread wakes the main thread first, so that the rings are attended.  The main
 * thread checks every ms whether the rings were left unattended for too long.
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

    /* Called for a configuration received on configure_fd; takes fd. */
    void   (*configure)(void *userp, int fd, uint64_t generation);

    /* Called when the supervisor asks whether the core is alive. */
    void   (*beat)(void *userp);

    /* Called when the core begins to leave.  Returns the limit, from now on, of
       the executions that have begun. */
    uint64_t (*leaves)(void *userp);
    void    *userp;
} inf_intake_options_t;

/* new copies the options.  free closes an intake that is not closed. */
INF_CHECK inf_err_t *inf_intake_new(const inf_intake_options_t *options,
    inf_intake_t **out);
void inf_intake_free(inf_intake_t *intake);

/* Gives the intake its server, once, before run.  The intake exists first,
   because loaded models wake the intake. */
INF_CHECK inf_err_t *inf_intake_attach(inf_intake_t *intake,
    inf_server_t *server);

/* Serves the workers.  Returns after a stop, or when no nginx process is
   left. */
void inf_intake_run(inf_intake_t *intake);

/* Ends all sessions and the control thread; called after run. */
void inf_intake_close(inf_intake_t *intake);

/* Gives the intake and its control thread a new configuration; called by
   options->configure.  log: the settings of the log change. */
void inf_intake_configure(inf_intake_t *intake, inf_core_config_t *config,
    bool log);

/* Makes run check soon for changed models.  wake, leave and stop are
   async-signal-safe. */
void inf_intake_wake(inf_intake_t *intake);

/*
 * leave prepares for the core that replaces this one.  From then on no worker
 * is admitted and no request begins.  run returns when the requests that have
 * begun and all calls are answered, or after a bounded time.  stop: run returns
 * without waiting for them.
 */
void inf_intake_leave(inf_intake_t *intake);
void inf_intake_stop(inf_intake_t *intake);

/* The host operations for inf_server_start; their userp is the intake. */
extern const inf_server_host_t inf_intake_host;

#endif /* INF_SERVICE_INTAKE_H */
