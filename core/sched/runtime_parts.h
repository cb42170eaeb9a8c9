/*
 * runtime_parts.h - shared by runtime.c, runtime_leave.c, runtime_life.c,
 *                   runtime_load.c and instance_threads.c: a runner and its
 *                   threads.
 *
 * Owner    The runner owns its threads.  An ended thread's memory is reused for
 *          a new one, because a caller may still be waking it.
 * Thread   As each field says.  "Changes": start, add, admit, dismiss and stop,
 *          one at a time.
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
    INF_THREAD_HELD,            /* prepares, then waits                      */
    INF_THREAD_SERVES,
    INF_THREAD_LEAVES,          /* ends after its present work               */
    INF_THREAD_ENDED
} inf_thread_state_t;

/* Thread states that the runner counts. */
typedef enum {
    INF_THREAD_UNMARKED,        /* executes, looks for work, or sleeps until
                                   called                                    */
    INF_THREAD_WATCHES,         /* sleeps until runner's watch_ns            */
    INF_THREAD_ASKS,            /* asks for its permit                       */
    INF_THREAD_CALLED           /* woken, has not looked yet                 */
} inf_thread_rest_t;

/* Threads whose instances have equal needs of the rate limiter. */
typedef struct {
    inf_link_t  link;           /* in runner->classes                        */
    const void *id;
    uint32_t    threads;
    uint32_t    asking;         /* number that ask                           */
} inf_resource_class_t;

struct inf_new_threads_s;

typedef struct inf_instance_thread_s {
    inf_link_t         link;    /* in runner->threads, spares or a change's own
                                   list                                      */
    inf_link_t         idle;    /* in runner->idle while idle                */
    inf_thread_state_t state;   /* runner's lock                             */
    inf_thread_rest_t  rest;    /* runner's lock; changed by rest_locked
                                   alone                                     */
    inf_resource_class_t  *class;        /* NULL: no limits; changes          */
    uint32_t           number;      /* its number in the policy              */
    struct inf_new_threads_s *fresh;    /* its preparation; NULL: none
                                           needed                            */
    inf_runner_t      *runner;
    inf_instance_t    *instance;    /* whose turn it is; thread's own        */
    uint32_t           instances;   /* sharing the thread; changes           */
    _Atomic uint64_t   begun_ns;    /* start of the execution, 0: none;
                                       relaxed                               */
    inf_waiter_t       waiter;
    inf_rate_permit_t  permit;      /* thread's own                          */
    pthread_t          thread;
    bool               started;     /* changes, then who joins it            */
    _Atomic bool       leading;     /* relaxed: a hint whom to wake          */
    inf_request_t    **requests;    /* of its payload; grows                 */
    uint32_t           cap;
    inf_request_t     *one;         /* the usual array                       */
} inf_instance_thread_t;

struct inf_runner_s {
    inf_lock_t               lock;      /* rank 30; guards down to spares    */
    inf_policy_t            *policy;
    inf_link_t               idle;      /* last idle thread first            */
    uint32_t                 called;    /* woken, have not looked            */
    uint32_t                 asking;    /* threads asking for permits        */
    uint64_t                 watch_ns;  /* an idle thread looks then         */
    uint64_t                 armed_ns;  /* the timekeeper ticks then         */
    uint32_t                 running;   /* requests taken, not returned      */
    bool                     closed;    /* rejects new requests              */
    bool                     serves;    /* closed, except to ensembles       */
    bool                     stopping;  /* idle threads end                  */
    inf_cond_t               moved;     /* a thread is prepared, or a held one
                                           may go on                         */
    uint32_t                 class_count;
    inf_link_t               classes;

    inf_link_t               threads;
    inf_link_t               spares;    /* ended threads                     */

    uint32_t                 last_number;   /* changes                       */

    inf_model_t             *model;     /* set in start(), then constant     */
    const inf_executor_t    *executor;
    uint64_t                 spin_ns;
    const inf_idle_ops_t    *idle_ops;
    void                    *idle_userp;
    inf_rate_gate_t         *rate_gate;     /* or NULL: no limits            */
    const inf_stuck_limit_t *stuck_limit;   /* or NULL: none                 */
    inf_response_order_t    *order;         /* or NULL: any order            */
    inf_timekeeper_t        *timekeeper;    /* or NULL                       */
    inf_timer_t              timer;         /* timekeeper's                  */
    _Atomic uint64_t         mean_ns;   /* relaxed: mean execution; a hint   */
};

/* ---- runtime.c ----------------------------------------------------------- */

/*
 * The idle thread to wake, without the lock; NULL: none.
 */
inf_instance_thread_t *inf_runner_call_idle_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);

/* Marks the idle thread t as called before it is woken. */
void inf_runner_call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
    INF_NEEDS(runner->lock);

/* Wakes a thread; NULL: none. */
void inf_instance_thread_wake(inf_instance_thread_t *t);

/* Wakes the threads that touched names, where the policy binds requests. */
void inf_runner_call_touched(inf_runner_t *runner);

/* The next touched thread, marked as called; NULL: none.  A request touches at
   most one thread, so a submitter needs no second call, for which runner might
   be freed. */
inf_instance_thread_t *inf_runner_call_touched_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);

/* arm_locked: the new time for the timekeeper; INF_NEVER: unchanged.  arm: sets
   that time, without the lock. */
uint64_t inf_runner_arm_locked(inf_runner_t *runner) INF_NEEDS(runner->lock);
void inf_runner_arm(inf_runner_t *runner, uint64_t at_ns);

/* Thread function: takes and executes payloads until the thread ends. */
void *inf_instance_thread_main(void *thread);

/* ---- runtime_leave.c ----------------------------------------------------- */

/* Handles the release of req, which an instance had, in any thread. */
void inf_runner_released(inf_request_t *req);

/* The timekeeper's callback: rejects requests of the runner (userp) that have
   waited too long. */
void inf_runner_tick(void *userp);

/* ---- instance_threads.c -------------------------------------------------- */

/* Prepares a new thread; false: it must end. */
bool inf_instance_thread_begin(inf_instance_thread_t *t);

/* Says that the thread, which ends, has no more work. */
void inf_instance_thread_end(inf_instance_thread_t *t);

/* Joins the threads, which were told to end. */
void inf_runner_end_threads(inf_runner_t *runner, inf_link_t *threads);

/* Frees the threads kept by end_threads. */
void inf_runner_free_threads(inf_runner_t *runner);

#endif /* INF_SCHED_RUNTIME_PARTS_H */
