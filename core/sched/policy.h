/*
 * policy.h - decides which requests of a model run together, and when: events
 *            and the time in, decisions out.
 *
 * Owner    The model's runner owns its policy; the policy owns the requests
 *          queued in it.
 * Thread   any, with the runner's lock held, except ask, add_controls,
 *          rejects_at and free.  A policy has no clock, thread or lock of its
 *          own.
 * Units    ns on the monotonic clock.
 * Errors   push: why the request is rejected; INVALID_ARG: it breaks a rule of
 *          sequences.  attach: out of memory.  add_controls: why a request
 *          cannot run.
 * Route    runner -> [policy] -> payload -> instance thread.
 *
 * Instances pull: an idle instance asks for the next payload, and requests that
 * arrive before that may join.  The runner numbers the instances.
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

/* Counts of a model's sequences; all zero for other models. */
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
    /* Requests may share a payload, so waking one thread is enough; next and
       ready need the time, which otherwise is 0. */
    bool gathers;

    /* Requests belong to one instance (sequences keep theirs), and touched
       names the threads to wake; otherwise any idle instance may take a
       request, and the runner chooses. */
    bool binds;

    /* Takes req on success; on error the caller still owns it. */
    inf_err_t *(*push)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* Called after push under the same lock: a text to log, without the lock.
       false: none.  May be NULL. */
    bool (*notice)(inf_policy_t *p, char *text, size_t cap);

    /* The next payload for the idle instance of that number.  Requests that
       must not run go to gone (as from expire). */
    inf_next_t (*next)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns);

    /* The answer that next would give; takes nothing. */
    inf_next_t (*ready)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        uint64_t *until_ns);

    /* Calls a plug-in without the runner's lock, after INF_NEXT_ASK, in the
       same thread.  May be NULL. */
    void (*ask)(inf_policy_t *p);

    /*
     * Called without the lock by the thread that took the payload: adds control
     * inputs and states to its requests, and padding requests for empty slots.
     * Requests that cannot be prepared move from the payload to failed; the
     * error applies to all of them.  May be NULL.
     */
    inf_err_t *(*add_controls)(inf_policy_t *p, inf_payload_t *out,
        inf_link_t *failed);

    /*
     * Unlinks req, which is queued, and moves the requests behind it in its
     * sequence to gone.  All become REJECTED.  false: req is not queued, or a
     * plug-in reads it and it goes to gone later.
     */
    bool (*cancel)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* Unlinks the first request that no plug-in reads, as REJECTED; NULL:
       none. */
    inf_request_t *(*drop)(inf_policy_t *p);

    /* Moves requests whose time is over to gone, as REJECTED.  They have timed
       out unless their factory is cancelled.  May be NULL. */
    void (*expire)(inf_policy_t *p, uint64_t now_ns, inf_link_t *gone);

    /* The time when req, which arrived at now_ns, will be rejected for waiting
       too long; INF_NEVER: no limit.  Needs no lock.  NULL: no limit for any
       request. */
    uint64_t (*rejects_at)(const inf_policy_t *p, const inf_request_t *req,
        uint64_t now_ns);

    /* Called after the execution of a payload.  May be NULL. */
    void (*done)(inf_policy_t *p, uint32_t count, uint64_t now_ns);

    /* Called before req, which was taken, is released.  If req was to begin a
       sequence and was rejected, the requests queued behind it go to gone as
       REJECTED.  May be NULL. */
    void (*released)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* The same for a request of an iterative sequence that runs again: it is
       queued.  On error (its sequence has ended) nothing changes.  NULL if
       released is. */
    inf_err_t *(*again)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* leaves: no more requests come, so queued ones run at once, and a sequence
       without queued or running requests ends when the backlog needs its slot.
       leaves false reverts that. */
    void (*leave)(inf_policy_t *p, bool leaves);

    /* Counts the sequences; NULL: the policy has none. */
    void (*count)(const inf_policy_t *p, inf_sequence_counts_t *out);

    /* Frees the policy; nothing is queued and no lock is held. */
    void (*free)(inf_policy_t *p);

    /* ---- instances: INF_POLICY_ANY_INSTANCE, unless it binds ------------- */

    /* Adds an instance with a new number, which gets nothing yet; instance and
       owner (returned by touched, never NULL) are kept. */
    inf_err_t *(*attach)(inf_policy_t *p, uint32_t number,
        inf_instance_t *instance, void *owner);

    /* Lets the instance get requests; a repetition does nothing. */
    void (*open)(inf_policy_t *p, uint32_t number);

    /* Gives the instance no new sequences; present ones go on. */
    void (*retire)(inf_policy_t *p, uint32_t number);

    /* Whether the instance has a sequence, or a request queued for it alone. */
    bool (*occupied)(const inf_policy_t *p, uint32_t number);

    /* Removes the instance, which has nothing and no longer asks. */
    void (*detach)(inf_policy_t *p, uint32_t number);

    /* The owner of an instance to wake, once each; NULL: no more.  Called after
       every other call until NULL.  Always NULL unless it binds. */
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

/* A leave that only sets p->leaving. */
void inf_policy_leave(inf_policy_t *p, bool leaves);

/* Creates the policy of the model's configuration. */
INF_CHECK inf_err_t *inf_policy_new(inf_model_t *model, inf_policy_t **out);

/* Whether the model's responses are sent in the order in which requests were
   taken. */
bool inf_policy_keeps_order(const inf_model_t *model);

#endif /* INF_SCHED_POLICY_H */
