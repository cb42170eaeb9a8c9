/*
 * policy.h - decides which requests of a model run together, and when.
 *
 * Owner    The model's runner owns its policy.  The policy owns the requests
 *          that are queued in it.
 * Thread   any, with the runner's lock held, except ask, add_controls,
 *          rejects_at and free.
 * Units    ns on the monotonic clock.
 * Errors   push: why the request is rejected; INVALID_ARG: the request breaks
 *          a rule of sequences.  attach: out of memory.  add_controls: why a
 *          request cannot run.
 * Route    runner -> [policy] -> payload -> instance thread.
 *
 * A policy is passive: events and the time go in, decisions come out.  A policy
 * has no clock, thread or lock.
 *
 * Instances pull: an idle instance asks for the next payload, and requests that
 * arrive before that question may join.  The runner numbers the instances.
 *
 * Order for an instance: attach, open, (ready, next)*, retire, detach.  For a
 * request: push, next, then (without the lock) add_controls, later done and
 * released or again.
 */

#ifndef INF_SCHED_POLICY_H
#define INF_SCHED_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/model.h"
#include "core/tensor/request.h"

#define INF_NEVER UINT64_MAX

/* Adds by_ns (or us) to at_ns; at most INF_NEVER. */
static inline uint64_t
inf_later(uint64_t at_ns, uint64_t by_ns)
{
    return by_ns < INF_NEVER - at_ns ? at_ns + by_ns : INF_NEVER;
}

static inline uint64_t
inf_us_to_ns(uint64_t us)
{
    return us <= INF_NEVER / 1000 ? us * 1000 : INF_NEVER;
}

typedef struct inf_policy_s inf_policy_t;

/* A formed batch for an instance. */
typedef struct {
    inf_link_t requests;            /* linked in order                       */
    uint32_t   count;
    uint32_t   slots;               /* rows of a sequence model, of which empty
                                       ones are filled; 0: only requests     */
} inf_payload_t;

static inline void
inf_payload_init(inf_payload_t *p)
{
    inf_link_init(&p->requests);
    p->count = 0;
    p->slots = 0;
}

/* Counts of a model's sequences; all 0 for a model without sequences. */
typedef struct {
    uint32_t sequences;         /* known by id                               */
    uint32_t slots;             /* with a sequence, or its rest              */
    uint32_t free;              /* in instances open to new ones             */
    uint32_t backlog;           /* sequences without a slot                  */
} inf_sequence_counts_t;

/* The next action of an idle instance. */
typedef enum {
    INF_NEXT_NOTHING,               /* wait for an event                     */
    INF_NEXT_WAIT,                  /* wait for an event or until_ns         */
    INF_NEXT_PAYLOAD,               /* run the payload                       */
    INF_NEXT_ASK                    /* ask without the lock, then call next
                                       again for the same instance           */
} inf_next_t;

typedef struct {
    /* Requests may share a payload, so that waking one thread is enough.  next
       and ready get the time; without gathers they get 0. */
    bool gathers;

    /* A request belongs to one instance (a sequence keeps its instance), and
       touched names the threads to wake.  Without binds any idle instance may
       take a request, and the runner chooses. */
    bool binds;

    /* Takes req on success; on error the caller still owns it. */
    inf_err_t *(*push)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* Called after push without releasing the lock.  true: text is to be logged
       once the lock is released.  May be NULL. */
    bool (*notice)(inf_policy_t *p, char *text, size_t cap);

    /* The next payload for the idle instance of that number.  Requests that
       must not run go to gone, as from expire. */
    inf_next_t (*next)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns);

    /* The answer that next would give; takes nothing. */
    inf_next_t (*ready)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        uint64_t *until_ns);

    /* Calls a plug-in.  Called after INF_NEXT_ASK on the same thread, without
       the runner's lock.  May be NULL. */
    void (*ask)(inf_policy_t *p);

    /*
     * Adds control inputs and states to the requests of a payload, and padding
     * requests for empty slots.  Called without the lock by the thread that
     * took the payload.  Requests that cannot be prepared move to failed, and
     * the error is theirs.  May be
     NULL. */
    inf_err_t *(*add_controls)(inf_policy_t *p, inf_payload_t *out,
        inf_link_t *failed);

    /*
     * Unlinks req, and moves the requests behind req in its sequence to gone.
     * All of them become REJECTED.  false: req is not queued, or a plug-in
     * reads req, which goes to gone after
     that. */
    bool (*cancel)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* Unlinks the first request that no plug-in reads; the request becomes
       REJECTED.  NULL: there is none. */
    inf_request_t *(*drop)(inf_policy_t *p);

    /* Moves the requests whose time is over to gone; they become REJECTED.  A
       request has timed out unless its factory is cancelled.  May be NULL. */
    void (*expire)(inf_policy_t *p, uint64_t now_ns, inf_link_t *gone);

    /* When req, which arrives at now_ns, will be rejected for waiting too long;
       INF_NEVER: never.  Called without the lock.  NULL: the policy has no such
       limit. */
    uint64_t (*rejects_at)(const inf_policy_t *p, const inf_request_t *req,
        uint64_t now_ns);

    /* Called after the execution of a payload.  May be NULL. */
    void (*done)(inf_policy_t *p, uint32_t count, uint64_t now_ns);

    /* Called before a taken request is released.  If req was to begin a
       sequence and was rejected, the requests behind req become REJECTED and go
       to gone.  May be NULL. */
    void (*released)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* Called instead of released for a request of an iterative sequence that
       runs again: queues req.  On error (the sequence has ended) nothing
       changes.  NULL if released is NULL. */
    inf_err_t *(*again)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* leaves true: no more requests come.  Queued requests run at once, and a
       sequence without queued or running requests ends when the backlog needs
       its slot.  leaves false: requests come again. */
    void (*leave)(inf_policy_t *p, bool leaves);

    /* Counts the sequences.  NULL: the policy has no sequences. */
    void (*count)(const inf_policy_t *p, inf_sequence_counts_t *out);

    /* Frees the policy, in which nothing is queued.  Called without the
       lock. */
    void (*free)(inf_policy_t *p);

    /* ---- instances: INF_POLICY_ANY_INSTANCE, unless it binds ------------- */

    /* Adds an instance with a new number; the instance gets nothing before
       open.  The policy keeps instance and owner; touched returns owner, which
       is not NULL. */
    inf_err_t *(*attach)(inf_policy_t *p, uint32_t number,
        inf_instance_t *instance, void *owner);

    /* Lets the instance get requests; a repetition does nothing. */
    void (*open)(inf_policy_t *p, uint32_t number);

    /* Gives the instance no new sequences; those that have a slot go on. */
    void (*retire)(inf_policy_t *p, uint32_t number);

    /* Whether the instance has a sequence, or a request that no other instance
       may take. */
    bool (*occupied)(const inf_policy_t *p, uint32_t number);

    /* Removes an instance that is not occupied and asks no more. */
    void (*detach)(inf_policy_t *p, uint32_t number);

    /* The owner of the next instance to wake; each is returned once.  The
       runner calls touched after every other call, until NULL.  Always NULL
       without binds. */
    void *(*touched)(inf_policy_t *p);
} inf_policy_ops_t;

/* First member of every policy. */
struct inf_policy_s {
    const inf_policy_ops_t *ops;
    bool                    closing;        /* queued requests run at once   */
    bool                    leaving;        /* the same while leave is set   */
    uint32_t                queued;
    uint32_t                again;          /* those that have run, with one
                                               more step                     */
    uint32_t                live;           /* live sequences                */
    uint64_t                deadline_ns;    /* next timeout of a request or
                                               sequence; INF_NEVER: none     */
};

/* Functions of a policy that does not bind requests to instances. */
#define INF_POLICY_ANY_INSTANCE                                               \
    .attach = inf_policy_attach_any,                                          \
    .open = inf_policy_instance_any,                                          \
    .retire = inf_policy_instance_any,                                        \
    .occupied = inf_policy_occupied_none,                                     \
    .detach = inf_policy_instance_any

/* Empty functions for policies without a state for each instance. */
inf_err_t *inf_policy_attach_any(inf_policy_t *p, uint32_t number,
    inf_instance_t *instance, void *owner);
void inf_policy_instance_any(inf_policy_t *p, uint32_t number);
bool inf_policy_occupied_none(const inf_policy_t *p, uint32_t number);

/* The number in an environment variable; 0: none. */
uint32_t inf_policy_hold(const char *variable);

/* The leave of a policy without sequences: sets p->leaving. */
void inf_policy_leave(inf_policy_t *p, bool leaves);

/* Creates the policy of the model's configuration. */
INF_CHECK inf_err_t *inf_policy_new(inf_model_t *model, inf_policy_t **out);

/* Whether the model's responses are sent in the order in which requests were
   taken. */
bool inf_policy_keeps_order(const inf_model_t *model);

#endif /* INF_SCHED_POLICY_H */
