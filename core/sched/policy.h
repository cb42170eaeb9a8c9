/*
 * policy.h - what decides which requests of a model run together, and when:
 *            events and the time in, decisions out.
 *
 * Owner    The model's runner owns its policy; the policy owns the requests
 *          queued in it.
 * Thread   any, with the runner's lock held, except ask and free.  A policy
 *          has no clock, thread or lock of its own.
 * Units    ns on the monotonic clock.
 * Errors   push alone: why the request is rejected.
 * Route    runner -> [policy] -> payload -> instance thread.
 *
 * Pull: an idle instance asks for the next payload.  Until it does, whatever
 * arrives may still join.
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
typedef struct inf_bound_ops_s inf_bound_ops_t;     /* bound_policy.h        */

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

    /* Takes req on success; on error the caller still owns it. */
    inf_err_t *(*push)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);

    /* For the idle instance of that number.  Requests that must not run any
       more go to gone (as from expire). */
    inf_next_t (*next)(inf_policy_t *p, uint32_t instance, uint64_t now_ns,
        inf_payload_t *out, inf_link_t *gone, uint64_t *until_ns);

    /* The same answer as next's; takes nothing. */
    inf_next_t (*ready)(inf_policy_t *p, uint64_t now_ns, uint64_t *until_ns);

    /* Calls a plug-in without the runner's lock: after INF_NEXT_ASK, by the
       thread that got it.  May be NULL. */
    void (*ask)(inf_policy_t *p);

    /* Unlinks req, state REJECTED; false: it is not queued, or a plug-in is
       looking at it and it goes to gone afterwards. */
    bool (*cancel)(inf_policy_t *p, inf_request_t *req);

    /* Unlinks the first request that no plug-in looks at, state REJECTED;
       NULL: there is none. */
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

    /* Nothing is queued any more; no lock is held. */
    void (*free)(inf_policy_t *p);
} inf_policy_ops_t;

/* First member of every policy. */
struct inf_policy_s {
    const inf_policy_ops_t *ops;
    const inf_bound_ops_t  *bound;          /* NULL: any instance serves any
                                               request                       */
    bool                    closing;        /* what is queued goes at once   */
    uint32_t                queued;
    uint32_t                again;          /* of these, those that have run
                                               and have one more step to do  */
    uint32_t                live;           /* sequences under way           */
    uint64_t                deadline_ns;    /* first timeout of a queued
                                               request, or of a sequence;
                                               INF_NEVER: none               */
};

/* As model's configuration says. */
INF_CHECK inf_err_t *inf_policy_new(inf_model_t *model, inf_policy_t **out);

/* Whether its responses leave in the order in which requests were taken. */
bool inf_policy_keeps_order(const inf_model_t *model);

#endif /* INF_SCHED_POLICY_H */
