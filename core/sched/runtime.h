/*
 * runtime.h - the threads around a model's policy: one per instance, or per
 *             device if the backend says that executions block the device.
 *
 * Owner    The model owns its runner; the runner owns queued requests and
 *          answers those that time out.
 * Thread   submit, cancel: any; add, admit, remove: a loader; stop: the thread
 *          that destroys the model, never an instance thread.
 * Units    ns.
 * Errors   INF_ERR_UNAVAILABLE: queue full, or the model is stopping.
 * Route    service -> [runner] -> policy -> instance thread -> executor.
 *
 * If rates are limited, a thread that sees a payload first asks for a rate
 * permit and then takes the payload; meanwhile the payload grows, or another
 * thread takes it.
 */

#ifndef INF_SCHED_RUNTIME_H
#define INF_SCHED_RUNTIME_H

#include "core/sched/executor.h"
#include "core/sched/policy.h"
#include "core/sched/rate_gate.h"
#include "core/sched/stuck.h"
#include "core/sched/timekeeper.h"
#include "core/sched/waiter.h"
#include "core/tensor/request.h"

typedef struct inf_runner_s inf_runner_t;

/*
 * Callbacks of an idle instance thread, which may hold the intake role instead
 * of sleeping and take submissions of workers (leader and followers).  Set by
 * the service.
 */
typedef struct {
    /*
     * Holds the role if it is free.  true: waiter was woken or until_ns (at
     * most INF_NEVER) has come, so look for work.  false: the role is taken, or
     * was given back.
     */
    bool (*lead)(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
        uint64_t until_ns);

    /* Called before a thread executes: the role may be free now. */
    void (*leave)(void *userp, inf_runner_t *runner);

    /* Called when an executing thread is about to sleep long; may be NULL. */
    void (*sleeps)(void *userp);
} inf_idle_ops_t;

typedef struct {
    const inf_executor_t *executor;
    uint64_t              spin_ns;      /* before an idle thread sleeps      */
    const inf_idle_ops_t *idle;         /* NULL: threads sleep               */
    void                 *idle_userp;

    /* GPU instances of one device share a thread and take turns. */
    bool                  device_blocking;

    /* Called on the instance's thread before its first request, for one
       instance at a time unless parallel; NULL: none. */
    inf_err_t          *(*prepare)(void *userp, inf_instance_t *instance);
    void                 *prepare_userp;
    bool                  parallel;
    inf_timekeeper_t     *timekeeper;   /* NULL: no timeouts while all
                                           instances are busy                */
    inf_rate_gate_t      *rate_gate;    /* NULL: no limits                   */
    const inf_stuck_limit_t *stuck_limit;   /* NULL: no stuck instances      */
} inf_runner_options_t;

/* Sets model->sched.runner, starts the threads of all instances except passive
   ones and waits until they are prepared; returns the first failure. */
INF_CHECK inf_err_t *inf_runner_start(inf_model_t *model,
    const inf_runner_options_t *options);

/*
 * Adds threads for more instances: prepared, but without requests until admit.
 * Of options, prepare, parallel and device_blocking are used.  On error none is
 * left.  Changes to a runner, including its stop, come one at a time; only
 * collect and collect_next may run beside others.
 */
INF_CHECK inf_err_t *inf_runner_add(inf_runner_t *runner,
    inf_instance_t *const *instances, uint32_t count,
    const inf_runner_options_t *options);

/* Lets the added instances take requests. */
void inf_runner_admit(inf_runner_t *runner);

/* dismiss: the instances take no more batches; instances of one thread must
   leave together.  collect: waits until their executions have ended.
   collect_next: waits until those of one have, whose place it returns. */
void inf_runner_dismiss(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count);
void inf_runner_collect(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count);
uint32_t inf_runner_collect_next(inf_runner_t *runner,
    inf_instance_t *const *instances, uint32_t count);

/* Takes req on success; on error the caller still owns it.  now_ns is the
   arrival time, which includes time spent waiting elsewhere. */
INF_CHECK inf_err_t *inf_runner_submit(inf_runner_t *runner,
    inf_request_t *req, uint64_t now_ns);

/* Queues req, which executes, again (iterative sequences).  On error nothing
   changes: its sequence has ended. */
INF_CHECK inf_err_t *inf_runner_reschedule(inf_runner_t *runner,
    inf_request_t *req);

/* Unlinks a queued request; true: the caller answers it.  false: it runs, or
   the runner answers it. */
bool inf_runner_cancel(inf_runner_t *runner, inf_request_t *req);

/* The time when req, which arrived at now_ns and is not queued here yet, will
   be rejected for waiting; INF_NEVER: no limit. */
uint64_t inf_runner_rejects_at(const inf_runner_t *runner,
    const inf_request_t *req, uint64_t now_ns);

/* Whether executions are so short that no other thread needs to watch the rings
   meanwhile. */
bool inf_runner_is_quick(const inf_runner_t *runner);

/* Number of live sequences. */
uint32_t inf_runner_sequences(inf_runner_t *runner);

/* Requests queued or running; and only those that have not run yet (a request
   with another step counts as running). */
uint32_t inf_runner_pending(inf_runner_t *runner);
uint32_t inf_runner_queued(inf_runner_t *runner);

/* Counts the runner's sequences and its instances' slots. */
inf_sequence_counts_t inf_runner_slots(inf_runner_t *runner);

/* Counts serving instances, and those that have executed longer than the
   limit. */
inf_stuck_t inf_runner_stuck(inf_runner_t *runner);

/* Rejects new requests from now on; queued ones do not wait for a batch. */
void inf_runner_close(inf_runner_t *runner);
bool inf_runner_is_closed(inf_runner_t *runner);

/* The same, but requests of running ensemble requests are accepted. */
void inf_runner_close_to_clients(inf_runner_t *runner);

/* Clients cannot find the model any more: queued requests do not wait for a
   batch, and silent sequences yield their slots to the backlog. */
void inf_runner_leave(inf_runner_t *runner);

/* The same while no client is connected (attended false).  Does not revert
   inf_runner_leave. */
void inf_runner_attend(inf_runner_t *runner, bool attended);

/* The model whose instance thread this is; NULL: none. */
const inf_model_t *inf_runner_of_thread(void);

/* Whether executions hold resources of the rate limiter. */
bool inf_runner_is_limited(const inf_runner_t *runner);

/* Called when this thread, perhaps an instance's, sleeps within an
   execution. */
void inf_runner_sleeps(void);

/* Takes the next queued request of a closed runner; NULL: none is left. */
inf_request_t *inf_runner_take_queued(inf_runner_t *runner);

/* Closes the runner, lets queued and running work finish and joins the threads.
   A repetition does nothing. */
void inf_runner_stop(inf_runner_t *runner);

/* Stops and frees the runner. */
void inf_runner_free(inf_runner_t *runner);

#endif /* INF_SCHED_RUNTIME_H */
