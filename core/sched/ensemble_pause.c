#include "core/sched/ensemble_pause.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/queue.h"
#include "core/base/refs.h"
#include "core/sched/ensemble.h"
#include "core/sched/runtime.h"
#include "core/sched/waiter.h"

#define PAUSE_RANK  44u
#define FIRST_NEEDS 8u

struct inf_pause_s {
    _Atomic uint32_t    refs;       /* up relaxed, down acq_rel              */
    _Atomic uint32_t    left;       /* acq_rel: starts, plus 1 until its thread
                                       waits                                 */
    inf_waiter_t        waiter;
    struct inf_pause_s *next;       /* in a list of pauses to wake           */

    /* The thread's own until it waits; then read under the table's lock. */
    inf_link_t          waiting;    /* in the table                          */
    const void         *holds[2];   /* models it executes or answers for     */
    const void        **needs;      /* models whose work it waits for        */
    uint32_t            need_count;
    uint32_t            need_cap;
    bool                holds_limited;  /* holds resources of the rate
                                           limiter                           */
    bool                needs_limited;
    uint32_t            seen;       /* number of the last search             */
    uint64_t            deadline_ns;
};

/* The state of a thread between enter() and leave(). */
typedef struct {
    uint32_t           inside;      /* depth of enter() calls                */
    const inf_model_t *producer;
    uint64_t           deadline_ns;
    inf_pause_t       *pause;       /* to wait for at the end                */
} pause_thread_t;

static inf_pause_t *pause_new(void);
static void pause_unref(inf_pause_t *pause);
static bool add_need(inf_pause_t *pause, const inf_model_t *model);
static bool is_limited(const inf_model_t *model);
static bool table_enter(inf_pause_t *pause);
static void table_leave(inf_pause_t *pause);
static bool reaches_locked(const inf_pause_t *from, const inf_pause_t *to);
static bool holds_needed(const inf_pause_t *needs, const inf_pause_t *holder);

static _Thread_local pause_thread_t self;

/* All waiting threads of the process, for the search for circular waits.  Only
   a thread that is about to sleep takes the lock. */
static struct {
    inf_lock_t lock;                /* rank 44                               */
    inf_link_t pauses;              /* lock                                  */
    uint32_t   count;               /* lock                                  */
    uint32_t   search;              /* lock                                  */
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void
table_init(void)
{
    inf_lock_init(&table.lock, PAUSE_RANK);
    inf_link_init(&table.pauses);
}

void
inf_pause_enter(const inf_model_t *producer, uint64_t deadline_ns)
{
    if (self.inside++ == 0) {
        self.producer = producer;
        self.deadline_ns = deadline_ns;
    } else if (deadline_ns < self.deadline_ns) {
        self.deadline_ns = deadline_ns;
    }
}

void
inf_pause_leave(void)
{
    self.inside--;
}

inf_pause_t *
inf_pause_get(void)
{
    if (self.inside == 0) {
        return NULL;
    }
    if (self.pause == NULL) {
        self.pause = pause_new();
    }
    if (self.pause != NULL && is_limited(self.producer)) {
        self.pause->holds_limited = true;
    }
    return self.pause;
}

void
inf_pause_hold(inf_pause_t *pause, const inf_model_t *model)
{
    atomic_fetch_add_explicit(&pause->refs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pause->left, 1, memory_order_relaxed);

    /* without memory for the need, do not wait */
    if (!add_need(pause, model)) {
        pause->deadline_ns = 0;
    }
}

bool
inf_pause_drop(inf_pause_t *pause)
{
    bool last = atomic_fetch_sub_explicit(&pause->left, 1,
        memory_order_acq_rel) == 1;
    if (!last) {
        pause_unref(pause);
    }
    return last;
}

void
inf_pause_push(inf_pause_t **list, inf_pause_t *pause)
{
    pause->next = *list;
    *list = pause;
}

void
inf_pause_wake_all(inf_pause_t *list)
{
    while (list != NULL) {
        inf_pause_t *pause = list;
        list = pause->next;
        inf_waiter_wake(&pause->waiter);
        pause_unref(pause);
    }
}

void
inf_pause_wait(void)
{
    inf_pause_t *pause = self.pause;
    if (pause == NULL || self.inside > 0) {
        return;
    }
    self.pause = NULL;

    pause->holds[0] = self.producer;
    pause->holds[1] = inf_runner_of_thread();
    bool waits = atomic_fetch_sub_explicit(&pause->left, 1,
            memory_order_acq_rel) > 1
        && pause->deadline_ns != 0 && table_enter(pause);

    if (waits) {
        inf_runner_sleeps();
        while (atomic_load_explicit(&pause->left, memory_order_acquire) > 0) {
            uint64_t now = inf_clock_ns();
            if (self.deadline_ns == INF_NEVER) {
                inf_waiter_wait(&pause->waiter, 0);
            } else if (now < self.deadline_ns) {
                inf_waiter_wait_for(&pause->waiter, self.deadline_ns - now);
            } else {
                break;
            }
        }
        table_leave(pause);
    }
    pause_unref(pause);
}

uint32_t
inf_pause_count(void)
{
    pthread_once(&table_once, table_init);
    inf_lock(&table.lock);
    uint32_t count = table.count;
    inf_unlock(&table.lock);
    return count;
}

/* Creates a pause; NULL: out of memory. */
static inf_pause_t *
pause_new(void)
{
    inf_pause_t *pause = calloc(1, sizeof(*pause));
    if (pause == NULL) {
        return NULL;
    }

    atomic_init(&pause->refs, 1);
    atomic_init(&pause->left, 1);
    inf_waiter_init(&pause->waiter);
    inf_link_init(&pause->waiting);
    pause->deadline_ns = INF_NEVER;
    return pause;
}

static void
pause_unref(inf_pause_t *pause)
{
    if (inf_refs_drop(&pause->refs)) {
        free(pause->needs);
        free(pause);
    }
}

/* Adds the models whose threads do model's work: itself, or all composing
   models of an ensemble. */
static bool
add_need(inf_pause_t *pause, const inf_model_t *model)
{
    const inf_model_t *composing;
    if (model->sched.ensemble != NULL) {
        bool ok = true;
        for (uint32_t i = 0; ok && (composing = inf_ensemble_composing_model(
                model->sched.ensemble, i)) != NULL; i++)
        {
            ok = add_need(pause, composing);
        }
        return ok;
    }

    for (uint32_t i = 0; i < pause->need_count; i++) {
        if (pause->needs[i] == model) {
            return true;
        }
    }
    if (pause->need_count == pause->need_cap) {
        uint32_t cap = pause->need_cap == 0 ? FIRST_NEEDS
            : pause->need_cap * 2;
        void *wider = realloc(pause->needs, cap * sizeof(pause->needs[0]));
        if (wider == NULL) {
            return false;
        }
        pause->needs = wider;
        pause->need_cap = cap;
    }
    pause->needs[pause->need_count++] = model;
    pause->needs_limited |= is_limited(model);
    return true;
}

static bool
is_limited(const inf_model_t *model)
{
    return model->sched.runner != NULL
        && inf_runner_is_limited(model->sched.runner);
}

/* Adds the pause to the table; false: a model it waits for waits for this
   thread. */
static bool
table_enter(inf_pause_t *pause)
{
    pthread_once(&table_once, table_init);
    inf_lock(&table.lock);

    table.search++;
    bool safe = !holds_needed(pause, pause) && !reaches_locked(pause, pause);
    if (safe) {
        inf_list_push_back(&table.pauses, &pause->waiting);
        table.count++;
    }
    inf_unlock(&table.lock);
    return safe;
}

static void
table_leave(inf_pause_t *pause)
{
    inf_lock(&table.lock);
    inf_link_remove(&pause->waiting);
    table.count--;
    inf_unlock(&table.lock);
}

/* Whether from waits, directly or through others, for to. */
static bool
reaches_locked(const inf_pause_t *from, const inf_pause_t *to)
{
    for (inf_link_t *l = table.pauses.next; l != &table.pauses; l = l->next) {
        inf_pause_t *p = inf_link_entry(l, inf_pause_t, waiting);

        if (p->seen == table.search || !holds_needed(from, p)) {
            continue;
        }
        p->seen = table.search;
        if (holds_needed(p, to) || reaches_locked(p, to)) {
            return true;
        }
    }
    return false;
}

/* Whether holder's thread does the work that needs waits for. */
static bool
holds_needed(const inf_pause_t *needs, const inf_pause_t *holder)
{
    if (needs->needs_limited && holder->holds_limited) {
        return true;
    }

    for (uint32_t i = 0; i < needs->need_count; i++) {
        if (needs->needs[i] == holder->holds[0]
            || needs->needs[i] == holder->holds[1])
        {
            return true;
        }
    }
    return false;
}
