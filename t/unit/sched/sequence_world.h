/*
 * sequence_world.h - one sequence batcher, instances and requests by number,
 *                    time in ms.
 *
 * Owner    the test: sequences_open, sequences_close.
 * Thread   one.
 * Units    ms, as the scheduling reference tells its scenarios.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_SCHED_SEQUENCE_WORLD_H
#define INF_T_SCHED_SEQUENCE_WORLD_H

#include "model/config_text.h"

#include <stdio.h>

#include "core/include/channel.h"
#include "core/sched/sequence_batcher.h"

#define MS UINT64_C(1000000)
#define WORLD_REQUESTS  128
#define WORLD_INSTANCES 8

typedef struct {
    inf_policy_t  *policy;
    inf_request_t  requests[WORLD_REQUESTS];
    int            owners[WORLD_INSTANCES];
    char           text[1024];
    char           told[256];       /* by the last call                      */
    char           gone[1024];      /* from the last cancel or expire        */
} sequences_t;

/* "1 3": the owners that were told, each once. */
static inline void
hear(sequences_t *w)
{
    int *owner;

    w->told[0] = '\0';
    while ((owner = w->policy->ops->touched(w->policy)) != NULL) {
        size_t len = strlen(w->told);
        assert_true(owner >= w->owners
            && owner < w->owners + WORLD_INSTANCES);
        assert_true(len < sizeof(w->told) - 4);
        snprintf(w->told + len, sizeof(w->told) - len, "%s%d",
            len > 0 ? " " : "", (int) (owner - w->owners));
    }
}

static inline void
attach(sequences_t *w, uint32_t number)
{
    assert_ok(w->policy->ops->attach(w->policy, number,
        (inf_instance_t *) (void *) &w->owners[number],
        &w->owners[number]));
    hear(w);
}

static inline void
open_instance(sequences_t *w, uint32_t number)
{
    w->policy->ops->open(w->policy, number);
    hear(w);
}

/* Instances from 1. */
static inline void
add(sequences_t *w, uint32_t count)
{
    for (uint32_t n = 1; n <= count; n++) {
        attach(w, n);
        open_instance(w, n);
        assert_string_equal(w->told, "");
    }
}

/* With instances from 1 on.  The defaults of a test: direct, an idle limit of
   a second. */
static inline void
sequences_open(sequences_t *w, inf_sequence_batcher_options_t options,
    uint32_t instances)
{
    memset(w, 0, sizeof(*w));
    options.model = options.model != NULL ? options.model : "M";
    options.idle_us = options.idle_us > 0 ? options.idle_us : 1000000;
    options.slots = options.slots > 0 ? options.slots
        : options.limit > 0 ? options.limit : 1;
    assert_ok(inf_sequence_batcher_new(&options, &w->policy));
    assert_true(w->policy->ops->binds);
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        inf_request_init(&w->requests[i]);
    }
    add(w, instances);
}

static inline inf_sequence_batcher_options_t
direct(uint32_t limit)
{
    return (inf_sequence_batcher_options_t) { .limit = limit };
}

static inline inf_sequence_batcher_options_t
oldest(uint32_t candidates, uint32_t limit)
{
    return (inf_sequence_batcher_options_t) {
        .oldest = true, .slots = candidates, .limit = limit
    };
}

static inline inf_sequence_batcher_options_t
either(bool oldest_first, uint32_t limit)
{
    return oldest_first ? oldest(limit, limit) : direct(limit);
}

static inline void
sequences_close(sequences_t *w)
{
    w->policy->ops->free(w->policy);
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        inf_request_fini(&w->requests[i]);
    }
}

static inline void
retire(sequences_t *w, uint32_t number)
{
    w->policy->ops->retire(w->policy, number);
    hear(w);
}

static inline void
detach(sequences_t *w, uint32_t number)
{
    w->policy->ops->detach(w->policy, number);
    hear(w);
}

/* The message to be logged of the last push; "": nothing. */
static inline const char *
notice(sequences_t *w)
{
    bool any = w->policy->ops->notice(w->policy, w->text, sizeof(w->text));

    if (!any) {
        w->text[0] = '\0';
    }
    return w->text;
}

static inline void
leave(sequences_t *w)
{
    w->policy->ops->leave(w->policy, true);
    hear(w);
}

static inline bool
occupied(const sequences_t *w, uint32_t number)
{
    return w->policy->ops->occupied(w->policy, number);
}

/* flags: "S", "E", "SE" or "". */
static inline inf_err_t *
try_push(sequences_t *w, int i, uint64_t id, const char *flags,
    uint64_t at_ms)
{
    inf_request_t *r = &w->requests[i];

    if (r->state == INF_REQUEST_RELEASED) {
        inf_request_move(r, INF_REQUEST_IDLE);
    }
    r->correlation_id = id;
    r->flags = (strchr(flags, 'S') != NULL ? INF_REQUEST_SEQUENCE_START : 0u)
        | (strchr(flags, 'E') != NULL ? INF_REQUEST_SEQUENCE_END : 0u);
    uint32_t queued = w->policy->queued;
    inf_err_t *err = w->policy->ops->push(w->policy, r, at_ms * MS);
    assert_int_equal(w->policy->queued, queued + (err == NULL));
    assert_int_equal(r->state, err == NULL ? INF_REQUEST_PENDING
        : INF_REQUEST_IDLE);
    if (err == NULL) {
        assert_int_equal(r->queue_ns, at_ms * MS);
    }
    hear(w);
    return err;
}

static inline void
push(sequences_t *w, int i, uint64_t id, const char *flags, uint64_t at_ms)
{
    assert_ok(try_push(w, i, id, flags, at_ms));
}

static inline void
push_text(sequences_t *w, int i, const char *id, const char *flags,
    uint64_t at_ms)
{
    w->requests[i].correlation_text = id;
    push(w, i, 0, flags, at_ms);
}

static inline void
push_fails(sequences_t *w, int i, uint64_t id, const char *flags,
    uint64_t at_ms, inf_err_code_t code, const char *text)
{
    assert_error(try_push(w, i, id, flags, at_ms), code, text);
    assert_string_equal(w->told, "");
}

static inline void
push_unknown(sequences_t *w, int i, uint64_t id, const char *flags,
    uint64_t at_ms)
{
    char text[160];
    snprintf(text, sizeof(text), "inference request for sequence %llu to"
        " model 'M' must specify the START flag on the first request of the"
        " sequence", (unsigned long long) id);
    push_fails(w, i, id, flags, at_ms, INF_ERR_INVALID_ARG, text);
}

/* n requests from i on with START in front and END behind, all at once. */
static inline void
push_sequence(sequences_t *w, int i, int n, uint64_t id, uint64_t at_ms)
{
    for (int k = 0; k < n; k++) {
        push(w, i + k, id, n == 1 ? "SE" : k == 0 ? "S" : k == n - 1 ? "E"
            : "", at_ms);
    }
}

static inline size_t
put_number(sequences_t *w, const inf_request_t *r)
{
    size_t len = strlen(w->text);
    snprintf(w->text + len, sizeof(w->text) - len, "%s%d",
        len > 0 ? " " : "", (int) (r - w->requests));
    return len;
}

/*
 * The answer to an idle instance: "0 2/3" (direct: requests 0 and 2 and three
 * rows), "0 2" (oldest), "wait 30", "nothing".  The payload that it takes
 * executes.
 */
static inline const char *
next_of(sequences_t *w, uint32_t number, uint64_t at_ms)
{
    inf_policy_t *p = w->policy;
    inf_payload_t payload;
    inf_link_t gone, *link;
    uint64_t until = 0, until_ready = 0;
    uint32_t queued = p->queued;

    inf_payload_init(&payload);
    inf_link_init(&gone);
    inf_next_t ready = p->ops->ready(p, number, at_ms * MS, &until_ready);
    inf_next_t next = p->ops->next(p, number, at_ms * MS, &payload, &gone,
        &until);
    assert_int_equal(ready, next);
    assert_true(inf_list_empty(&gone));
    w->text[0] = '\0';
    switch (next) {
    case INF_NEXT_NOTHING:
        strcpy(w->text, "nothing");
        break;
    case INF_NEXT_WAIT:
        assert_int_equal(until, until_ready);
        snprintf(w->text, sizeof(w->text), "wait %llu",
            (unsigned long long) (until / MS));
        break;
    case INF_NEXT_ASK:
        fail_msg("nobody is to be asked");
        break;
    case INF_NEXT_PAYLOAD:
        queued -= payload.count;
        while ((link = inf_list_pop_front(&payload.requests)) != NULL) {
            inf_request_t *r = inf_link_entry(link, inf_request_t, link);
            assert_int_equal(r->state, INF_REQUEST_PENDING);
            inf_request_move(r, INF_REQUEST_EXECUTING);
            put_number(w, r);
            payload.count--;
        }
        assert_int_equal(payload.count, 0);
        if (payload.slots > 0) {
            size_t len = strlen(w->text);
            snprintf(w->text + len, sizeof(w->text) - len, "/%u",
                payload.slots);
        }
        break;
    }
    assert_int_equal(p->queued, queued);
    hear(w);
    return w->text;
}

static inline void
release(sequences_t *w, int i, uint64_t at_ms)
{
    inf_link_t gone;
    inf_link_init(&gone);

    w->policy->ops->released(w->policy, &w->requests[i], at_ms * MS, &gone);
    assert_true(inf_list_empty(&gone));
    inf_request_move(&w->requests[i], INF_REQUEST_RELEASED);
    hear(w);
}

/* As the backend that runs it and gives it back in the same ms. */
static inline const char *
run(sequences_t *w, uint32_t number, uint64_t at_ms)
{
    next_of(w, number, at_ms);
    for (int i = 0; i < WORLD_REQUESTS; i++) {
        if (w->requests[i].state == INF_REQUEST_EXECUTING) {
            release(w, i, at_ms);
        }
    }
    return w->text;
}

/* The rows of all payloads of that instance until there is none: "4 4 2", and
   how many requests were in them: "4 4 2: 9". */
static inline const char *
rows_of_all(sequences_t *w, uint32_t number, uint64_t at_ms)
{
    static char rows[512];
    unsigned inferences = 0;

    rows[0] = '\0';
    while (strcmp(run(w, number, at_ms), "nothing") != 0) {
        const char *slots = strchr(w->text, '/');
        unsigned count = 1;
        for (const char *p = w->text; *p != '\0'; p++) {
            count += *p == ' ';
        }
        inferences += count;
        size_t len = strlen(rows);
        assert_true(len < sizeof(rows) - 16);
        snprintf(rows + len, sizeof(rows) - len, "%s%u", len > 0 ? " " : "",
            slots != NULL ? (unsigned) atoi(slots + 1) : count);
    }
    size_t len = strlen(rows);
    snprintf(rows + len, sizeof(rows) - len, ": %u", inferences);
    return rows;
}

static inline void
put_gone(sequences_t *w, inf_link_t *gone, inf_gone_t why)
{
    inf_link_t *link;

    w->text[0] = '\0';
    while ((link = inf_list_pop_front(gone)) != NULL) {
        inf_request_t *r = inf_link_entry(link, inf_request_t, link);
        assert_int_equal(r->state, INF_REQUEST_REJECTED);
        assert_int_equal(r->sched.queued.gone, why);
        inf_request_move(r, INF_REQUEST_RELEASED);
        put_number(w, r);
    }
    strcpy(w->gone, w->text);
}

/* "3 4": what goes with it; NULL: it is not queued. */
static inline const char *
cancel(sequences_t *w, int i, uint64_t at_ms)
{
    inf_request_t *r = &w->requests[i];
    inf_link_t gone;

    inf_link_init(&gone);
    bool was = w->policy->ops->cancel(w->policy, r, at_ms * MS, &gone);
    put_gone(w, &gone, INF_GONE_WITH_SEQUENCE);
    if (was) {
        assert_int_equal(r->state, INF_REQUEST_REJECTED);
        inf_request_move(r, INF_REQUEST_RELEASED);
    } else {
        assert_string_equal(w->gone, "");
    }
    hear(w);
    return was ? w->gone : NULL;
}

/* "3 4": whose time was over. */
static inline const char *
expire(sequences_t *w, uint64_t at_ms)
{
    inf_link_t gone;

    inf_link_init(&gone);
    w->policy->ops->expire(w->policy, at_ms * MS, &gone);
    put_gone(w, &gone, INF_GONE_SEQUENCE_TIMED_OUT);
    hear(w);
    return w->gone;
}

static inline uint64_t
deadline_ms(const sequences_t *w)
{
    uint64_t at = w->policy->deadline_ns;
    return at == INF_NEVER ? INF_NEVER : at / MS;
}

/* "sequences slots free backlog" */
static inline const char *
counts(sequences_t *w)
{
    inf_sequence_counts_t c;
    inf_sequence_batcher_count(w->policy, &c);
    snprintf(w->text, sizeof(w->text), "%u %u %u %u", c.sequences, c.slots,
        c.free, c.backlog);
    return w->text;
}

#endif /* INF_T_SCHED_SEQUENCE_WORLD_H */
