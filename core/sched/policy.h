/*
 * policy.h - what decides which requests of a model run together, and when:
 *            events and the time in, decisions out.
 *
 * Owner    The model's runner owns its policy; the policy owns the requests
 *          queued in it.
 * Thread   any, with the runner's lock held, except ask, add_controls,
 *          rejects_at and free.  A policy has no clock, thread or lock of its
 *          own.
 * Units    ns on the monotonic clock.
 * Errors   push: why the request is rejected, INVALID_ARG for what breaks a
 *          rule of sequences.  attach: out of memory.  add_controls: why a
 *          request can't run.
 * Route    runner -> [policy] -> payload -> instance thread.
 *
 * Pull: an idle instance asks for the next payload.  Until it does, requests
 * that arrive may still join.  Instances have the numbers that the runner gives
 * them.
 */

#ifndef INF_SCHED_POLICY_H
#define INF_SCHED_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/model/model.h"
#include "core/tensor/request.h"

#define INF_NEVER UINT64_MAX

/* Both INF_NEVER at most: the time by_ns after at_ns; so many us. */
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

/* A formed batch on its way to an instance. */
typedef struct {
    inf_link_t requests;            /* by their link, in order               */
    uint32_t   count;
    uint32_t   slots;               /* of a sequence model: rows of which
                                       those without a request are filled;
                                       0: requests is all                    */
} inf_payload_t;

static inline void
inf_payload_init(inf_payload_t *p)
{
    inf_link_init(&p->requests);
    p->count = 0;
    p->slots = 0;
}

/* Sequences of one model.  All zero: it has none. */
typedef struct {
    uint32_t sequences;         /* known by their id                         */
    uint32_t slots;             /* with a sequence, or what is left of one   */
    uint32_t free;              /* of instances that take new ones           */
    uint32_t backlog;           /* sequences that wait for a slot            */
} inf_sequence_counts_t;

/* The next thing that an idle instance does. */
typedef enum {
    INF_NEXT_NOTHING,               /* until an event makes a difference     */
    INF_NEXT_WAIT,                  /* the same, but look again at until_ns  */
    INF_NEXT_PAYLOAD,               /* run it                                */
    INF_NEXT_ASK                    /* ask without the lock, then next again
                                       for the same instance                 */
} inf_next_t;

typedef struct {
    /* Requests may share a payload, so that one woken thread is enough for
       now; next and ready then want the time, else they get 0. */
    bool gathers;

    /* A request belongs to one instance (a sequence stays where its first
       request went), and touched says which should look; else any idle
       instance may take it, and the runner chooses whom it wakes. */
    bool binds;

    /* Takes req on success; on error the caller still owns it. */
    inf_err_t *(*push)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* After push, under the same lock: what there is to log of it, without the
       lock.  false: nothing.  May be NULL. */
    bool (*notice)(inf_policy_t *p, char *text, size_t cap);

    /* For the idle instance of that number.  Requests that must not run any
       more go to gone (as from expire). */
    inf_next_t (*next)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns);

    /* The same answer as next's; takes nothing. */
    inf_next_t (*ready)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        uint64_t *until_ns);

    /* Calls a plug-in without the runner's lock: after INF_NEXT_ASK, by the
       thread that got it.  May be NULL. */
    void (*ask)(inf_policy_t *p);

    /*
     * Without the lock, by the thread that took the payload: gives its
     * requests what their clients don't send, and puts requests between them
     * that fill empty slots.  Requests that can't be made ready go from the
     * payload to failed; the error is for all of those.  May be NULL.
     */
    inf_err_t *(*add_controls)(inf_policy_t *p, inf_payload_t *out,
        inf_link_t *failed);

    /*
     * Unlinks req, which is queued, and with it what is queued behind it in
     * its sequence, which goes to gone.  All are REJECTED.  false: it is not
     * queued, or a plug-in is looking at it and it goes to gone afterwards.
     */
    bool (*cancel)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* Unlinks the first request that no plug-in looks at, state REJECTED; NULL:
       there is none. */
    inf_request_t *(*drop)(inf_policy_t *p);

    /* Moves the requests whose time is over to gone, state REJECTED: those
       whose factory isn't cancelled have timed out.  May be NULL. */
    void (*expire)(inf_policy_t *p, uint64_t now_ns, inf_link_t *gone);

    /* When req, which arrived at now_ns, is to be rejected for having waited
       too long; INF_NEVER: it may wait on.  Needs no lock.  May be NULL: no
       request is. */
    uint64_t (*rejects_at)(const inf_policy_t *p, const inf_request_t *req,
        uint64_t now_ns);

    /* A payload has been executed.  May be NULL. */
    void (*done)(inf_policy_t *p, uint32_t count, uint64_t now_ns);

    /* req, which was taken, is about to be released.  If it was to begin a
       sequence and was rejected, what is queued behind it goes to gone,
       REJECTED.  NULL: nobody needs to know. */
    void (*released)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* The same for one that shall run once more (iterative sequences): it is
       queued again.  On error (its sequence is gone) nothing has changed.
       NULL where released is. */
    inf_err_t *(*again)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* No more requests come, unless it is taken back (leaves is false): what
       is queued goes at once, and a sequence of which nothing is queued or
       runs ends when one that waits needs its slot. */
    void (*leave)(inf_policy_t *p, bool leaves);

    /* May be NULL: it has no sequences. */
    void (*count)(const inf_policy_t *p, inf_sequence_counts_t *out);

    /* Nothing is queued any more; no lock is held. */
    void (*free)(inf_policy_t *p);

    /* ---- instances: INF_POLICY_ANY_INSTANCE, unless it binds ------------- */

    /* number is new and gets nothing yet; instance and owner (who is told of
       work, never NULL) are kept. */
    inf_err_t *(*attach)(inf_policy_t *p, uint32_t number,
        inf_instance_t *instance, void *owner);

    /* From now on it gets requests; once more does nothing. */
    void (*open)(inf_policy_t *p, uint32_t number);

    /* The instance gets no new sequences; its present ones go on. */
    void (*retire)(inf_policy_t *p, uint32_t number);

    /* Whether a sequence is on it, or a request is queued for it alone. */
    bool (*occupied)(const inf_policy_t *p, uint32_t number);

    /* Nobody asks for it any more; what it had is dropped by then. */
    void (*detach)(inf_policy_t *p, uint32_t number);

    /* The owner of an instance that should look (again), each once; NULL: no
       other.  To be called until it says NULL after every other call.  NULL
       unless it binds. */
    void *(*touched)(inf_policy_t *p);
} inf_policy_ops_t;

/* First member of every policy. */
struct inf_policy_s {
    const inf_policy_ops_t *ops;
    bool                    closing;        /* what is queued goes at once   */
    bool                    leaving;        /* so it does while leave says   */
    uint32_t                queued;
    uint32_t                again;          /* of these, those that have run
                                               and have one more step to do  */
    uint32_t                live;           /* sequences under way           */
    uint64_t                deadline_ns;    /* first timeout of a queued
                                               request, or of a sequence;
                                               INF_NEVER: none               */
};

/* Functions of a policy that doesn't bind requests to instances. */
#define INF_POLICY_ANY_INSTANCE                                               \
    .attach = inf_policy_attach_any,                                          \
    .open = inf_policy_instance_any,                                          \
    .retire = inf_policy_instance_any,                                        \
    .occupied = inf_policy_occupied_none,                                     \
    .detach = inf_policy_instance_any

/* Do nothing: for policies without a state for each instance, where no request
   waits for an instance. */
inf_err_t *inf_policy_attach_any(inf_policy_t *p, uint32_t number,
    inf_instance_t *instance, void *owner);
void inf_policy_instance_any(inf_policy_t *p, uint32_t number);
bool inf_policy_occupied_none(const inf_policy_t *p, uint32_t number);

/* The number in that environment variable; 0: none. */
uint32_t inf_policy_hold(const char *variable);

/* For leave: nothing follows from it but that. */
void inf_policy_leave(inf_policy_t *p, bool leaves);

/* As model's configuration says. */
INF_CHECK inf_err_t *inf_policy_new(inf_model_t *model, inf_policy_t **out);

/* Whether its responses leave in the order in which requests were taken. */
bool inf_policy_keeps_order(const inf_model_t *model);

#endif /* INF_SCHED_POLICY_H */
