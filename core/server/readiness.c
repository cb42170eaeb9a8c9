#include "core/server/readiness.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/thread.h"
#include "core/base/queue.h"
#include "core/model/instances.h"
#include "core/sched/entrance.h"
#include "core/sched/timekeeper.h"

#define READINESS_RANK 7
#define ANSWER_RANK    6

/* Time that a model waits for a thread before one is added. */
#define PATIENCE_NS UINT64_C(50000000)

/* Limit of threads, not counting those with late models. */
#define MOST_THREADS 16

typedef struct {
    inf_link_t       link;
    inf_readiness_fn fn;
    void            *userp;
} waiter_t;

/* A model that is asked or waits to be. */
typedef struct {
    inf_link_t   link;          /* in waiting or running                     */
    inf_model_t *model;         /* a reference                               */
    uint64_t     asked_ns;      /* when it began to wait for a thread        */
    uint64_t     due_ns;        /* end of waiting, once it runs              */
    inf_link_t   waiters;
} ask_t;

typedef struct {
    inf_link_t       link;      /* in threads                                */
    inf_readiness_t *readiness;
    pthread_t        thread;
} asker_t;

struct inf_readiness_s {
    const inf_plugin_ops_t *plugins; /* set in new(); the timer belongs to the
                                        timekeeper                           */
    uint64_t                limit_ns;
    inf_timekeeper_t        timekeeper;
    inf_timer_t             timer;

    inf_lock_t              lock;       /* rank 7; guards the rest           */
    inf_cond_t              work;
    inf_link_t              waiting;    /* asks, in order                    */
    inf_link_t              running;    /* asks, by start                    */
    inf_link_t              threads;
    uint32_t                thread_count;
    uint32_t                idle;       /* idle threads                      */
    bool                    stopping;
};

static ask_t *find_locked(inf_readiness_t *r, const inf_model_t *model)
    INF_NEEDS(r->lock);
static void push_locked(inf_readiness_t *r, ask_t *ask, inf_model_t *model,
    uint64_t now_ns) INF_NEEDS(r->lock);
static void start_thread(inf_readiness_t *r);
static void give_up_first(inf_readiness_t *r);
static void *asker_main(void *arg);
static bool ask_instances(const inf_readiness_t *r, inf_model_t *model);
static void tick(void *userp);
static bool tell_late(inf_readiness_t *r, uint64_t now_ns);
static ask_t *first_due_locked(inf_readiness_t *r, uint64_t *due_ns)
    INF_NEEDS(r->lock);
static bool needs_thread_locked(const inf_readiness_t *r, uint64_t now_ns)
    INF_NEEDS(r->lock);
static void move_waiters(inf_link_t *to, inf_link_t *from);
static void tell(inf_link_t *waiters, bool ready);

inf_err_t *
inf_readiness_new(const inf_plugin_ops_t *plugins, uint64_t limit_ns,
    inf_readiness_t **out)
{
    inf_readiness_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return inf_err_nomem();
    }

    r->plugins = plugins;
    r->limit_ns = limit_ns;
    inf_lock_init(&r->lock, READINESS_RANK);
    inf_cond_init(&r->work);
    inf_link_init(&r->waiting);
    inf_link_init(&r->running);
    inf_link_init(&r->threads);
    inf_timekeeper_init(&r->timekeeper);
    r->timer.fire = tick;
    r->timer.userp = r;
    inf_err_t *err = inf_timekeeper_add(&r->timekeeper, &r->timer);
    if (err != NULL) {
        inf_readiness_free(r);
        return err;
    }

    *out = r;
    return NULL;
}

void
inf_readiness_free(inf_readiness_t *r)
{
    inf_link_t *link;
    if (r == NULL) {
        return;
    }

    inf_timekeeper_remove(&r->timekeeper, &r->timer);
    inf_lock(&r->lock);
    r->stopping = true;
    inf_unlock(&r->lock);
    inf_cond_broadcast(&r->work);
    while ((link = inf_list_pop_front(&r->threads)) != NULL) {
        asker_t *asker = inf_link_entry(link, asker_t, link);
        pthread_join(asker->thread, NULL);
        free(asker);
    }

    inf_timekeeper_fini(&r->timekeeper);
    inf_cond_fini(&r->work);
    inf_lock_fini(&r->lock);
    free(r);
}

void
inf_readiness_ask(inf_readiness_t *r, inf_model_t *model, inf_readiness_fn fn,
    void *userp)
{
    if (inf_entrance_is_stuck(model)
        || inf_instances_failed_gpu(model) >= 0)
    {
        fn(userp, false);
        return;
    }
    if (!r->plugins->has_ready_check(model)) {
        fn(userp, ask_instances(r, model));
        return;
    }

    ask_t *fresh = calloc(1, sizeof(*fresh));
    waiter_t *waiter = calloc(1, sizeof(*waiter));
    if (fresh == NULL || waiter == NULL) {
        free(fresh);
        free(waiter);
        fn(userp, false);
        return;
    }

    uint64_t now = inf_clock_ns();
    uint64_t at_ns = now + PATIENCE_NS;
    waiter->fn = fn;
    waiter->userp = userp;

    inf_lock(&r->lock);
    ask_t *ask = find_locked(r, model);
    bool late = ask != NULL && now >= ask->due_ns;
    bool first = ask == NULL;
    if (first) {
        ask = fresh;
        push_locked(r, ask, model, now);
    }
    if (!late) {
        inf_list_push_back(&ask->waiters, &waiter->link);
    }
    bool idle = r->idle > 0;
    bool starts = first && r->thread_count == 0;
    inf_unlock(&r->lock);

    if (!first) {
        free(fresh);
    }
    if (late) {
        free(waiter);
        fn(userp, false);
        return;
    }
    if (idle) {
        inf_cond_signal(&r->work);
    } else if (starts) {
        start_thread(r);
    }
    inf_timekeeper_arm(&r->timekeeper, &r->timer, at_ns);
}

void
inf_readiness_answer_init(inf_readiness_answer_t *a)
{
    inf_lock_init(&a->lock, ANSWER_RANK);
    inf_cond_init(&a->came);
    a->done = a->ready = false;
}

void
inf_readiness_answer(void *userp, bool ready)
{
    inf_readiness_answer_t *a = userp;

    inf_lock(&a->lock);
    a->done = true;
    a->ready = ready;
    inf_cond_signal(&a->came);      /* a may be freed after the unlock       */
    inf_unlock(&a->lock);
}

bool
inf_readiness_answer_wait(inf_readiness_answer_t *a)
{
    inf_lock(&a->lock);
    while (!a->done) {
        inf_cond_wait(&a->came, &a->lock);
    }
    bool ready = a->ready;
    inf_unlock(&a->lock);

    inf_cond_fini(&a->came);
    inf_lock_fini(&a->lock);
    return ready;
}

static ask_t *
find_locked(inf_readiness_t *r, const inf_model_t *model)
{
    inf_link_t *const lists[] = { &r->waiting, &r->running };

    for (int i = 0; i < 2; i++) {
        for (inf_link_t *l = lists[i]->next; l != lists[i]; l = l->next) {
            ask_t *ask = inf_link_entry(l, ask_t, link);
            if (ask->model == model) {
                return ask;
            }
        }
    }

    return NULL;
}

/* Makes ask one of model, the last that waits for a thread. */
static void
push_locked(inf_readiness_t *r, ask_t *ask, inf_model_t *model,
    uint64_t now_ns)
{
    ask->model = model;
    ask->asked_ns = now_ns;
    ask->due_ns = UINT64_MAX;
    inf_link_init(&ask->waiters);
    inf_list_push_back(&r->waiting, &ask->link);
    inf_model_ref(model);
}

static void
start_thread(inf_readiness_t *r)
{
    asker_t *asker = calloc(1, sizeof(*asker));
    if (asker == NULL) {
        give_up_first(r);
        return;
    }

    asker->readiness = r;
    inf_lock(&r->lock);
    inf_err_t *err = inf_thread_start(&asker->thread, "readiness", asker_main,
        asker);
    if (err == NULL) {
        inf_list_push_back(&r->threads, &asker->link);
        r->thread_count++;
    }
    inf_unlock(&r->lock);

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "backends cannot be asked whether they"
            " are ready"));
        free(asker);
        give_up_first(r);
    }
}

/* Answers the first ask negatively: it has no thread. */
static void
give_up_first(inf_readiness_t *r)
{
    inf_lock(&r->lock);
    inf_link_t *link = inf_list_pop_front(&r->waiting);
    inf_unlock(&r->lock);

    if (link != NULL) {
        ask_t *ask = inf_link_entry(link, ask_t, link);
        tell(&ask->waiters, false);
        inf_model_unref(ask->model);
        free(ask);
    }
}

static void *
asker_main(void *arg)
{
    inf_readiness_t *r = ((asker_t *) arg)->readiness;
    inf_link_t waiters;
    inf_link_init(&waiters);

    inf_lock(&r->lock);
    while (!r->stopping) {
        inf_link_t *link = inf_list_pop_front(&r->waiting);
        if (link == NULL) {
            r->idle++;
            inf_cond_wait(&r->work, &r->lock);
            r->idle--;
            continue;
        }

        ask_t *ask = inf_link_entry(link, ask_t, link);
        ask->due_ns = inf_clock_ns() + r->limit_ns;
        inf_list_push_back(&r->running, &ask->link);
        inf_unlock(&r->lock);

        bool ready = ask_instances(r, ask->model);

        inf_lock(&r->lock);
        inf_link_remove(&ask->link);
        move_waiters(&waiters, &ask->waiters);
        inf_unlock(&r->lock);

        tell(&waiters, ready);
        inf_model_unref(ask->model);
        free(ask);
        inf_lock(&r->lock);
    }
    inf_unlock(&r->lock);
    return NULL;
}

static bool
ask_instances(const inf_readiness_t *r, inf_model_t *model)
{
    inf_instance_t *instance = NULL;
    bool ready = inf_model_enter(model);
    if (!ready) {
        return false;
    }

    while (ready && (instance = inf_instance_visit_next(model, instance))
        != NULL)
    {
        inf_err_t *not_ready = r->plugins->instance_ready(instance);
        ready = not_ready == NULL;
        if (!ready) {
            inf_log(INF_LOG_INFO, "Model '%s' version %lld is not ready: %s",
                model->name, (long long) model->version,
                inf_err_msg(not_ready));
        }
        inf_err_free(not_ready);
    }

    if (instance != NULL) {
        inf_instance_visited(instance);
    }
    inf_model_leave(model);
    return ready;
}

/* Answers waiters whose time is over, and adds a thread if a model waits too
   long. */
static void
tick(void *userp)
{
    inf_readiness_t *r = userp;
    uint64_t now = inf_clock_ns();
    uint64_t at_ns = UINT64_MAX;

    while (tell_late(r, now)) {
        continue;
    }

    inf_lock(&r->lock);
    (void) first_due_locked(r, &at_ns);
    bool behind = !inf_list_empty(&r->waiting);
    bool starts = behind && needs_thread_locked(r, now);
    inf_unlock(&r->lock);

    if (starts) {
        start_thread(r);
    }
    if (behind && now + PATIENCE_NS < at_ns) {
        at_ns = now + PATIENCE_NS;
    }
    if (at_ns != UINT64_MAX) {
        inf_timekeeper_arm(&r->timekeeper, &r->timer, at_ns);
    }
}

/* Answers the waiters of one late model; false: none is late. */
static bool
tell_late(inf_readiness_t *r, uint64_t now_ns)
{
    uint64_t due_ns = UINT64_MAX;
    inf_link_t waiters;
    inf_link_init(&waiters);

    inf_lock(&r->lock);
    ask_t *ask = first_due_locked(r, &due_ns);
    inf_model_t *model = NULL;
    if (due_ns <= now_ns) {
        model = ask->model;
        inf_model_ref(model);
        move_waiters(&waiters, &ask->waiters);
    }
    inf_unlock(&r->lock);

    if (model == NULL) {
        return false;
    }

    inf_log(INF_LOG_WARN, "model=%s version=%lld: its backend \"%s\" has not"
        " said within %llu ms whether it is ready; it counts as not ready"
        " until it does", model->name, (long long) model->version,
        inf_model_backend_name(model),
        (unsigned long long) (r->limit_ns / 1000000));
    tell(&waiters, false);
    inf_model_unref(model);
    return true;
}

/* The first running ask with waiters; NULL: none. */
static ask_t *
first_due_locked(inf_readiness_t *r, uint64_t *due_ns)
{
    for (inf_link_t *l = r->running.next; l != &r->running; l = l->next) {
        ask_t *ask = inf_link_entry(l, ask_t, link);
        if (!inf_list_empty(&ask->waiters)) {
            *due_ns = ask->due_ns;
            return ask;
        }
    }

    return NULL;
}

/* Whether the first waiting ask has waited too long; there is at least one. */
static bool
needs_thread_locked(const inf_readiness_t *r, uint64_t now_ns)
{
    const ask_t *first = inf_link_entry(r->waiting.next, ask_t, link);
    uint32_t most = MOST_THREADS;

    for (const inf_link_t *l = r->running.next; l != &r->running; l = l->next)
    {
        most += inf_link_entry(l, ask_t, link)->due_ns <= now_ns;
    }

    return r->idle == 0 && r->thread_count < most
        && first->asked_ns + PATIENCE_NS <= now_ns;
}

static void
move_waiters(inf_link_t *to, inf_link_t *from)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(from)) != NULL) {
        inf_list_push_back(to, link);
    }
}

static void
tell(inf_link_t *waiters, bool ready)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(waiters)) != NULL) {
        waiter_t *waiter = inf_link_entry(link, waiter_t, link);
        waiter->fn(waiter->userp, ready);
        free(waiter);
    }
}
