/*
 * runtime_parts.h - what runtime.c, runtime_leave.c, runtime_life.c,
 *                   runtime_load.c and instance_threads.c share: a runner and
 *                   its threads.
 *
 * Owner    The runner owns its threads.  One that has ended is kept for the
 *          next to come: who called it may still be waking it.
 * Thread   as each field says.  "Changes": start, add, admit, dismiss and stop,
 *          of which there is one at a time.
 * Units    ns.
 * Errors   as runtime.h.
 * Route    runtime -> [parts] <- instance threads
 */

#ifndef INF_SCHED_RUNTIME_PARTS_H
#define INF_SCHED_RUNTIME_PARTS_H

#include "core/base/lock.h"
#include "core/sched/runtime.h"
#include "core/tensor/response_order.h"

typedef enum {
    INF_THREAD_HELD,            /* prepares its instances, then waits        */
    INF_THREAD_SERVES,
    INF_THREAD_LEAVES           /* ends with what it has in hand             */
} inf_thread_state_t;

/* The state of a thread that the runner counts. */
typedef enum {
    INF_THREAD_UNMARKED,        /* executes, looks for work, or sleeps until
                                   it is called                              */
    INF_THREAD_WATCHES,         /* sleeps until the runner's watch_ns        */
    INF_THREAD_ASKS,            /* for its permit                            */
    INF_THREAD_CALLED           /* woken, has not looked yet                 */
} inf_thread_rest_t;

/* Threads whose instances need the same of the rate limiter. */
typedef struct {
    inf_link_t  link;           /* in runner->classes                        */
    const void *id;
    uint32_t    threads;
    uint32_t    asking;         /* of them                                   */
} inf_resource_class_t;

struct inf_new_threads_s;

typedef struct inf_instance_thread_s {
    inf_link_t         link;    /* in runner->threads, spares or a change's
                                   own list                                  */
    inf_link_t         idle;    /* in runner->idle while it has no work      */
    inf_thread_state_t state;   /* runner's lock                             */
    inf_thread_rest_t  rest;    /* runner's lock; moved by
                                   rest_locked alone                         */
    inf_resource_class_t  *class;        /* NULL: nothing is limited; changes */
    uint32_t           number;      /* what the policy calls it              */
    struct inf_new_threads_s *fresh;    /* it is prepared with; NULL: it need
                                       not be                                */
    inf_runner_t      *runner;
    inf_instance_t    *instance;    /* whose turn it is; the thread's own    */
    uint32_t           instances;   /* that share it; changes                */
    _Atomic uint64_t   begun_ns;    /* when its execution began, 0: it does
                                       not execute; relaxed                  */
    inf_waiter_t       waiter;
    inf_rate_permit_t  permit;      /* the thread's own                      */
    pthread_t          thread;
    bool               started;     /* changes, then who ends it             */
    _Atomic bool       leading;     /* relaxed: a hint who is woken first    */
    inf_request_t    **requests;    /* of its payload; grows                 */
    uint32_t           cap;
    inf_request_t     *one;         /* the usual array                       */
} inf_instance_thread_t;

struct inf_runner_s {
    inf_lock_t               lock;      /* rank 30; guards down to spares    */
    inf_policy_t            *policy;
    inf_link_t               idle;      /* instance threads, last idle first */
    uint32_t                 called;    /* threads woken, not yet looking    */
    uint32_t                 asking;    /* threads that ask for permits      */
    uint64_t                 watch_ns;  /* an idle thread looks then         */
    uint64_t                 armed_ns;  /* the timekeeper ticks then         */
    uint32_t                 running;   /* requests taken, not yet returned  */
    bool                     closed;    /* rejects new requests              */
    bool                     serves;    /* closed, but not to ensembles      */
    bool                     stopping;  /* idle threads end                  */
    inf_cond_t               moved;     /* a thread is prepared, or one that
                                           is held shall go on               */
    uint32_t                 class_count;
    inf_link_t               classes;

    inf_link_t               threads;
    inf_link_t               spares;    /* have ended                        */

    uint32_t                 last_number;   /* changes                       */

    inf_model_t             *model;     /* set in start(), then constant     */
    const inf_executor_t    *executor;
    uint64_t                 spin_ns;
    const inf_idle_ops_t    *idle_ops;
    void                    *idle_userp;
    inf_rate_gate_t         *rate_gate;     /* or NULL: nothing is limited   */
    const inf_stuck_limit_t *stuck_limit;   /* or NULL: none is ever stuck   */
    inf_response_order_t    *order;         /* or NULL: as they come         */
    inf_timekeeper_t        *timekeeper;    /* or NULL                       */
    inf_timer_t              timer;         /* the timekeeper's              */
    _Atomic uint64_t         mean_ns;   /* relaxed: of an execution; a hint  */
};

/* ---- runtime.c ----------------------------------------------------------- */

/*
 * The idle thread that should look now, NULL: none; to be woken without the
 * lock.
 */
inf_instance_thread_t *inf_runner_call_idle_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);

/* t, which is idle, is about to be woken. */
void inf_runner_call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
    INF_NEEDS(runner->lock);

/* NULL: nobody. */
void inf_instance_thread_wake(inf_instance_thread_t *t);

/* Where requests belong to instances: wakes the threads that should look. */
void inf_runner_call_touched(inf_runner_t *runner);

/* The next that should look, called; NULL: none.  A request touches one at
   most: who submits needs no second call, for which runner might be gone. */
inf_instance_thread_t *inf_runner_call_touched_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);

/* When the timekeeper is to call, if that is news, else INF_NEVER; what
   inf_runner_arm is given then, without the lock. */
uint64_t inf_runner_arm_locked(inf_runner_t *runner) INF_NEEDS(runner->lock);
void inf_runner_arm(inf_runner_t *runner, uint64_t at_ns);

/* Takes payloads and executes them until it is to end. */
void *inf_instance_thread_main(void *thread);

/* ---- runtime_leave.c ----------------------------------------------------- */

/* req, which an instance had, is released, by any thread. */
void inf_runner_released(inf_request_t *req);

/* The timekeeper calls: requests of the runner (userp) have waited too long. */
void inf_runner_tick(void *userp);

/* ---- instance_threads.c -------------------------------------------------- */

/* First thing on the thread; false: it is not to serve. */
bool inf_instance_thread_begin(inf_instance_thread_t *t);

/* All of them: they are joined.  They know that they shall end. */
void inf_runner_end_threads(inf_runner_t *runner, inf_link_t *threads);

/* Frees the threads that end_threads has kept. */
void inf_runner_free_threads(inf_runner_t *runner);

#endif /* INF_SCHED_RUNTIME_PARTS_H */
