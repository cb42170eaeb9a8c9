/* lifecycle_stuck.c - calls of loads into backends, and loads given up because
   such a call does not return. */

#include "core/repository/lifecycle_parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define CHECK_NS UINT64_C(1000000000)   /* for failed processes              */

/* The reason for giving up a call; allocated before the lock is taken. */
typedef struct {
    uint64_t                  call;
    const inf_model_record_t *record;   /* it stays: it has versions         */
    int64_t                   version;
    inf_err_t                *err;      /* for the caller                    */
    inf_reason_t             *reason;
    inf_edit_t               *rebuild;
    char                      text[256];
} verdict_t;

static inf_load_call_t *find_call_locked(inf_lifecycle_t *lc, uint64_t id)
    INF_NEEDS(lc->lock);
static uint64_t limit_ns(const inf_load_t *l);
static bool find_overdue(inf_lifecycle_t *lc, verdict_t *v);
static bool prepare(inf_lifecycle_t *lc, verdict_t *v);
static void give_up(inf_lifecycle_t *lc, verdict_t *v);
static void stick_locked(inf_lifecycle_t *lc, const inf_edit_t *edit)
    INF_NEEDS(lc->lock);

static inline inf_load_t *
load_of(inf_load_call_t *c)
{
    return inf_link_entry(c, inf_load_t, call);
}

inf_err_t *
inf_load_call_begin(inf_load_t *l, int64_t version, const void *owner)
{
    const inf_lifecycle_options_t *o = &l->lc->options;
    void *mark = NULL;

    inf_err_t *err = o->watch == NULL ? NULL : o->watch->begin(o->watch_userp,
        &(inf_load_attempt_t) {
            .name = l->record->title,
            .version = version,
            .stamp = inf_model_stamp_digest(&l->source->stamp),
            .requested = l->edit->requested
        }, &mark);
    if (err != NULL) {
        return err;
    }

    inf_lifecycle_t *lc = l->lc;
    bool backend = version >= 0 && !l->ensemble;
    inf_lock(&lc->lock);
    l->call.mark = mark;
    l->call.version = version;
    l->call.owner = owner;
    l->call.since_ns = inf_clock_ns();
    if (backend) {
        l->call.id = ++lc->last_call;
        l->call.state = INF_CALL_RUNS;
        inf_list_push_back(&lc->calls, &l->call.link);
    }
    inf_unlock(&lc->lock);
    if (backend) {                      /* when it is due                    */
        inf_cond_signal(&lc->reap);
    }
    return NULL;
}

void
inf_load_call_end(inf_load_t *l)
{
    const inf_lifecycle_options_t *o = &l->lc->options;
    inf_lifecycle_t *lc = l->lc;

    inf_lock(&lc->lock);
    if (l->call.state == INF_CALL_RUNS) {
        inf_link_remove(&l->call.link);
        l->call.state = INF_CALL_NONE;
    }
    bool late = l->call.state == INF_CALL_LATE;
    inf_unlock(&lc->lock);

    if (o->watch != NULL) {
        o->watch->end(o->watch_userp, l->call.mark, late);
    }
}

uint64_t
inf_lifecycle_next_stuck_locked(const inf_lifecycle_t *lc, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    for (const inf_link_t *at = lc->calls.next; at != &lc->calls;
        at = at->next)
    {
        inf_load_call_t *c = inf_link_entry((inf_link_t *) (uintptr_t) at,
            inf_load_call_t, link);
        uint64_t limit = limit_ns(load_of(c));
        next = limit < next - c->since_ns ? c->since_ns + limit : next;
        next = now_ns + CHECK_NS < next ? now_ns + CHECK_NS : next;
    }
    return next;
}

void
inf_lifecycle_give_up_stuck(inf_lifecycle_t *lc)
{
    uint64_t failed_ns = lc->failed_patience_ns;
    uint64_t now = inf_clock_ns();
    verdict_t v = { .call = 0 };
    char why[128];

    while (find_overdue(lc, &v)) {
        give_up(lc, &v);
    }

    if (now - lc->failed_checked_ns < CHECK_NS / 2) {
        return;
    }

    lc->failed_checked_ns = now;
    v = (verdict_t) { .call = inf_load_threads_find_failed(&lc->threads, now,
        failed_ns, why, sizeof(why)) };
    if (v.call != 0) {
        snprintf(v.text, sizeof(v.text), "%s, and its load has not returned"
            " for %llu s since", why,
            (unsigned long long) (failed_ns / 1000000000));
        give_up(lc, &v);
    }
}

uint64_t
inf_lifecycle_stuck_loads(inf_lifecycle_t *lc)
{
    uint64_t n = 0;

    inf_lock(&lc->lock);
    for (uint32_t i = 0; i < INF_LOADERS_MAX; i++) {
        n += lc->loaders[i].state == INF_LOADER_STUCK;
    }
    inf_unlock(&lc->lock);
    return n;
}

void
inf_lifecycle_load_returned(inf_lifecycle_t *lc, inf_edit_t *edit,
    uint64_t since_ns)
{
    inf_model_record_t *r = edit->record;

    inf_log(INF_LOG_WARN, "model=%s: a load that was given up has returned"
        " after %llu s; what it has made is finalized", r->title,
        (unsigned long long) ((inf_clock_ns() - since_ns) / 1000000000));
    inf_lock(&lc->lock);
    inf_model_set_returned(r);
    inf_unlock(&lc->lock);
    inf_edit_free(edit);
}

/* The call of that number; NULL: it has returned. */
static inf_load_call_t *
find_call_locked(inf_lifecycle_t *lc, uint64_t id)
{
    for (inf_link_t *at = lc->calls.next; at != &lc->calls; at = at->next) {
        inf_load_call_t *c = inf_link_entry(at, inf_load_call_t, link);
        if (c->id == id) {
            return c;
        }
    }

    return NULL;
}

static uint64_t
limit_ns(const inf_load_t *l)
{
    uint64_t ms = l->core_config->values->load_timeout_ms;
    return ms == 0 ? UINT64_MAX : ms * 1000000;
}

static bool
find_overdue(inf_lifecycle_t *lc, verdict_t *v)
{
    uint64_t limit = 0;

    *v = (verdict_t) { .call = 0 };
    inf_lock(&lc->lock);
    uint64_t now = inf_clock_ns();      /* later than the begin of all calls
                                           here                              */
    for (inf_link_t *at = lc->calls.next; v->call == 0 && at != &lc->calls;
        at = at->next)
    {
        inf_load_call_t *c = inf_link_entry(at, inf_load_call_t, link);
        limit = limit_ns(load_of(c));
        v->call = now - c->since_ns >= limit ? c->id : 0;
    }
    inf_unlock(&lc->lock);

    snprintf(v->text, sizeof(v->text), "its load has not returned for %g s"
        " (inference_model_load timeout=)", (double) limit / 1e9);
    return v->call != 0;
}

/* Makes the texts; false: out of memory, tried again later. */
static bool
prepare(inf_lifecycle_t *lc, verdict_t *v)
{
    inf_lock(&lc->lock);
    inf_load_call_t *c = find_call_locked(lc, v->call);
    if (c != NULL) {
        v->record = load_of(c)->record;
        v->version = c->version;
    }
    inf_unlock(&lc->lock);
    if (c == NULL) {
        return false;
    }

    inf_err_t *err = inf_err_new(INF_ERR_UNAVAILABLE, "%s; the model can be"
        " loaded again, but no more than %u of its loads may be stuck",
        v->text, INF_MODEL_STUCK_MAX);
    v->reason = inf_reason_of(err);
    v->err = inf_err_new(INF_ERR_INVALID_ARG, "load failed for model '%s':"
        " version %lld is at UNAVAILABLE state: %s: %s;\n", v->record->name,
        (long long) v->version, inf_err_code_string(inf_err_code(err)),
        inf_err_msg(err));
    inf_err_free(err);
    err = inf_edit_new(INF_EDIT_REBUILD, &v->rebuild);
    if (err == NULL) {
        v->rebuild->why = strdup(v->text);
    } else {
        inf_err_free(err);
        v->rebuild = NULL;
    }
    return v->rebuild != NULL;
}

/* Gives up the call of v, and frees v's contents. */
static void
give_up(inf_lifecycle_t *lc, verdict_t *v)
{
    inf_caller_t *caller = NULL;
    const void *owner = NULL;
    void *mark = NULL;

    bool ready = prepare(lc, v);
    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    inf_load_call_t *c = ready ? find_call_locked(lc, v->call) : NULL;
    if (c != NULL) {                    /* no lock was held in between       */
        inf_load_t *l = load_of(c);
        inf_link_remove(&c->link);
        caller = inf_model_set_time_out(&lc->set, l, v->reason, v->err,
            &v->rebuild, inf_clock_ns());
        v->err = NULL;
        stick_locked(lc, l->edit);
        mark = c->mark;
        owner = c->owner;               /* only compared from here on        */
    }
    inf_unlock(&lc->lock);
    inf_lifecycle_publish_unlock(lc);

    if (c != NULL) {
        uint32_t killed = inf_load_threads_kill(&lc->threads, v->call)
            + inf_children_kill(lc->options.children, owner);
        if (lc->options.watch != NULL) {
            lc->options.watch->late(lc->options.watch_userp, mark);
        }
        inf_log(INF_LOG_ERROR, "model=%s version=%lld failed to load: %s; %u"
            " processes that it had started are killed; loads stuck now:"
            " %llu", v->record->title, (long long) v->version, v->text, killed,
            (unsigned long long) inf_lifecycle_stuck_loads(lc));
        inf_cond_broadcast(&lc->idle);
        inf_cond_broadcast(&lc->work);
        inf_caller_answer(caller);
    }
    inf_err_free(v->err);
    inf_reason_unref(v->reason);
    inf_edit_free(v->rebuild);
}

/* Marks the loader that carries out edit, which the reaper replaces. */
static void
stick_locked(inf_lifecycle_t *lc, const inf_edit_t *edit)
{
    inf_loader_t *l = lc->loaders;
    while (l->edit != edit) {
        l++;
    }

    assert(l->state == INF_LOADER_RUNS);
    l->state = INF_LOADER_STUCK;
}
