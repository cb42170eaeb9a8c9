/*
 * bound_policy.h - what a policy does in addition whose requests belong to
 *                  instances: a sequence stays where its first request went.
 *
 * Owner    As policy.h.  An instance that is attached is the runner's.
 * Thread   As policy.h: with the runner's lock held, except dress.
 * Units    ns on the monotonic clock.
 * Errors   attach: out of memory.  dress: why a request can't run.
 * Route    runner -> [bound policy] -> payload -> instance thread.
 *
 * Of policy.h, such a policy has push, next, drop, expire and free; push says
 * INVALID_ARG for what breaks a rule of sequences.  Instances have the numbers
 * that the runner gives them; next is asked for one of them.
 */

#ifndef INF_SCHED_BOUND_POLICY_H
#define INF_SCHED_BOUND_POLICY_H

#include "core/sched/policy.h"

struct inf_bound_ops_s {
    /* number is new and gets nothing yet; instance and owner (who is told of
       work, never NULL) are kept. */
    inf_err_t *(*attach)(inf_policy_t *p, uint32_t number,
        inf_instance_t *instance, void *owner);

    /* From now on it gets requests; once more does nothing. */
    void (*open)(inf_policy_t *p, uint32_t number);

    /* It gets no new sequences; those that it has go on. */
    void (*retire)(inf_policy_t *p, uint32_t number);

    /* Clients find the model no more.  From now on a sequence of which nothing
       is queued or runs ends when one that waits needs its slot, and what is
       queued goes at once. */
    void (*leave)(inf_policy_t *p);

    /* Whether a sequence is on it, or a request is queued for it. */
    bool (*occupied)(const inf_policy_t *p, uint32_t number);

    /* Nobody asks for it any more; what it had is dropped by then. */
    void (*detach)(inf_policy_t *p, uint32_t number);

    /* The owner of an instance that should look (again), each once; NULL: no
       other.  To be called until it says NULL after every other call. */
    void *(*touched)(inf_policy_t *p);

    /* After push, under the same lock: what there is to log of it, without the
       lock.  false: nothing. */
    bool (*notice)(inf_policy_t *p, char *text, size_t cap);

    /* The same answer as next's; takes nothing. */
    inf_next_t (*ready)(inf_policy_t *p, uint32_t number, uint64_t now_ns,
        uint64_t *until_ns);

    /*
     * Unlinks req, which is queued, and with it what is queued behind it in
     * its sequence, which goes to gone.  All are REJECTED.  false: it is not
     * queued.
     */
    bool (*cancel)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /*
     * Without the lock, by the thread that took the payload: gives its
     * requests what their clients don't send, and puts requests between them
     * that fill empty slots.  Requests that can't be made ready go from the
     * payload to failed; the error is for all of those.
     */
    inf_err_t *(*dress)(inf_policy_t *p, inf_payload_t *out,
        inf_link_t *failed);

    /* req, which was taken, is about to be released.  If it was to begin a
       sequence and was rejected, what is queued behind it goes to gone,
       REJECTED. */
    void (*released)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns,
        inf_link_t *gone);

    /* The same for one that shall run once more (iterative sequences): it is
       queued again.  On error (its sequence is gone) nothing has changed. */
    inf_err_t *(*again)(inf_policy_t *p, inf_request_t *req, uint64_t now_ns);
};

#endif /* INF_SCHED_BOUND_POLICY_H */
