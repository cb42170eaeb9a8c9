/*
 * runtime.h - the threads around a model's policy: one per instance, or per
 *             device where the backend says that executions there block it.
 *
 * Owner    The model owns its runner; the runner owns queued requests and
 *          answers those that time out.
 * Thread   submit, cancel: any; add, admit, remove: a loader; stop: the thread
 *          that destroys the model, never an instance thread.
 * Units    ns.
 * Errors   INF_ERR_UNAVAILABLE: queue full, or the model is stopping.
 * Route    service -> [runner] -> policy -> instance thread -> executor.
 *
 * Where rates are limited, a thread that sees a payload asks for a rate permit
 * first and takes the payload afterwards; until then the payload grows, or
 * goes to another thread.
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
 * of sleeping and take what workers submit (leader and followers).  The
 * service fills them in.
 */
typedef struct {
    /*
     * Holds the role if nobody does.  true: waiter was woken or until_ns (at
     * most INF_NEVER) has come, there may be work for this thread.  false:
     * the role is taken, or was given back for others to take.
     */
    bool (*lead)(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
        uint64_t until_ns);

    /* The thread is about to execute: perhaps nobody holds the role now. */
    void (*leave)(void *userp, inf_runner_t *runner);

    /* A thread that executes is about to sleep for long; may be NULL. */
    void (*sleeps)(void *userp);
} inf_idle_ops_t;

typedef struct {
    const inf_executor_t *executor;
    uint64_t              spin_ns;      /* before an idle thread sleeps      */
    const inf_idle_ops_t *idle;         /* NULL: threads just sleep          */
    void                 *idle_userp;

    /* GPU instances on one device share a thread and take turns on it. */
    bool                  device_blocking;

    /* Called on the instance's thread before it takes any request; NULL:
       nothing to prepare.  One instance after another unless parallel. */
    inf_err_t          *(*prepare)(void *userp, inf_instance_t *instance);
    void                 *prepare_userp;
    bool                  parallel;
    inf_timekeeper_t     *timekeeper;   /* NULL: requests do not time out
                                           while all instances are busy      */
    inf_rate_gate_t      *rate_gate;    /* NULL: nothing is limited          */
    const inf_stuck_limit_t *stuck_limit;   /* NULL: none is ever stuck      */
} inf_runner_options_t;

/* Starts the threads of instances that aren't passive and waits until they
   are prepared; the first failure is returned.  model->sched.runner is set. */
INF_CHECK inf_err_t *inf_runner_start(inf_model_t *model,
    const inf_runner_options_t *options);

/*
 * Threads for more instances of the model: prepared, but they take nothing
 * yet; of options, prepare, parallel and device_blocking count.  On error none
 * of them is left.  Changes to a runner, its stop among them, come one at a
 * time; only collect may run beside others.
 */
INF_CHECK inf_err_t *inf_runner_add(inf_runner_t *runner,
    inf_instance_t *const *instances, uint32_t count,
    const inf_runner_options_t *options);

/* The added instances serve from now on. */
void inf_runner_admit(inf_runner_t *runner);

/* Instances take no further batches; collect returns when their executions have
   ended.  Instances that share a thread go together. */
void inf_runner_dismiss(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count);
void inf_runner_collect(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count);

/* Takes req on success; on error the caller still owns it.  now_ns: when it
   arrived; what waited elsewhere meanwhile is that much older. */
INF_CHECK inf_err_t *inf_runner_submit(inf_runner_t *runner,
    inf_request_t *req, uint64_t now_ns);

/* Of an iterative sequence: req, which executes, is queued once more.  On
   error nothing has changed: its sequence is over. */
INF_CHECK inf_err_t *inf_runner_reschedule(inf_runner_t *runner,
    inf_request_t *req);

/* Unlinks a queued request; true: the caller answers it.  false: it runs, or
   the runner answers it. */
bool inf_runner_cancel(inf_runner_t *runner, inf_request_t *req);

/* When req, which arrived at now_ns and isn't queued here yet, has waited too
   long; INF_NEVER: it may wait on. */
uint64_t inf_runner_rejects_at(const inf_runner_t *runner,
    const inf_request_t *req, uint64_t now_ns);

/* Whether its executions are so short that nobody needs to be woken to watch
   the rings meanwhile. */
bool inf_runner_is_quick(const inf_runner_t *runner);

/* Sequences under way that more requests may come of. */
uint32_t inf_runner_sequences(inf_runner_t *runner);

/* Requests queued or running now; those alone that have not run yet (one that
   has another step to do counts as running). */
uint32_t inf_runner_pending(inf_runner_t *runner);
uint32_t inf_runner_queued(inf_runner_t *runner);

/* Counts the runner's sequences and the slots of its instances. */
inf_sequence_counts_t inf_runner_slots(inf_runner_t *runner);

/* Which of its instances serve, and which of these have executed for longer
   than the limit. */
inf_stuck_t inf_runner_stuck(inf_runner_t *runner);

/* Rejects new requests from now on; what waits for company goes at once. */
void inf_runner_close(inf_runner_t *runner);
bool inf_runner_is_closed(inf_runner_t *runner);

/* The same, but what ensembles have begun goes on. */
void inf_runner_close_to_clients(inf_runner_t *runner);

/* Clients find the model no more: nothing waits for company that doesn't come,
   and sequences that say nothing give way to those that wait. */
void inf_runner_leave(inf_runner_t *runner);

/* The same while no client can send anything more; nothing of a model that has
   left is taken back. */
void inf_runner_attend(inf_runner_t *runner, bool attended);

/* The model whose instance this thread is; NULL: it is none's. */
const inf_model_t *inf_runner_of_thread(void);

/* Whether its executions hold resources that others may need. */
bool inf_runner_is_limited(const inf_runner_t *runner);

/* This thread, which may be an instance's, sleeps within an execution. */
void inf_runner_sleeps(void);

/* Of a closed runner: the next queued request, which is the caller's then;
   NULL: none is left. */
inf_request_t *inf_runner_take_queued(inf_runner_t *runner);

/* Closes, lets queued and running work finish and joins the threads.  Once
   more does nothing. */
void inf_runner_stop(inf_runner_t *runner);

/* Stops and frees. */
void inf_runner_free(inf_runner_t *runner);

#endif /* INF_SCHED_RUNTIME_H */
