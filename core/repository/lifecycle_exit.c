/* lifecycle_exit.c - handles the exit of a version's process: the version
   leaves service, is unloaded by force on its own thread, and a loader rebuilds
   it. */

#include "core/base/os/thread.h"
#include "core/repository/lifecycle_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/model_load.h"

#define SECOND_NS UINT64_C(1000000000)

/* The handling of an exit, up to the end of the forced unload; allocated before
   the lock is taken. */
typedef struct {
    inf_link_t       link;          /* in lc->exits                          */
    inf_lifecycle_t *lc;
    inf_model_t     *model;         /* a reference until unloaded; then only
                                       compared                              */
    inf_reason_t    *reason;        /* a reference                           */
    inf_edit_t      *rebuild;       /* NULL: the set has it                  */
    pthread_t        thread;
    bool             done;          /* under lc->lock                        */
} exit_t;

static inf_err_t *exit_new(inf_lifecycle_t *lc, inf_model_t *model,
    const char *why, exit_t **out);
static void start_unload(exit_t *x);
static void *unload_main(void *arg);
static void exit_free(exit_t *x);
static uint64_t count_stranded_locked(inf_lifecycle_t *lc,
    inf_leftovers_t **left) INF_NEEDS(lc->lock);
static const inf_model_t *next_leaving_locked(const inf_lifecycle_t *lc,
    const inf_link_t **at);
static bool is_stranded(inf_lifecycle_t *lc, const inf_model_t *model,
    inf_leftovers_t **left);

void
inf_lifecycle_child_died(void *userp, inf_model_t *model, const char *why)
{
    inf_lifecycle_t *lc = userp;
    const inf_loaded_t *loaded = model->owner;
    inf_model_record_t *r = loaded->record;
    inf_reason_room_t room = { .size = 0 };
    char when[24];
    inf_link_t gone;
    exit_t *x = NULL;

    inf_lifecycle_reap_exits(lc, false);
    inf_err_t *err = exit_new(lc, model, why, &x);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model=%s: %s", model->name, why));
        return;
    }

    inf_link_init(&gone);
    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    const inf_record_version_t *v = inf_model_set_exit(&lc->set, r, model,
        x->rebuild, x->reason, inf_clock_ns());
    uint64_t delay_ns = v != NULL ? v->due_ns - v->exit_ns : 0;
    int64_t version = v != NULL ? v->version : 0;
    if (v != NULL) {
        x->rebuild = NULL;
        inf_list_push_back(&lc->exits, &x->link);
        inf_lifecycle_drain_locked(lc, &gone, &room);
    }
    inf_unlock(&lc->lock);

    if (v == NULL) {                    /* leaves service already            */
        inf_unlock(&lc->publish_lock);
        exit_free(x);
        return;
    }

    inf_lifecycle_publish_unlock(lc);
    inf_reason_room_fini(&room);
    inf_lifecycle_put_delay(delay_ns, when, sizeof(when));
    inf_log(INF_LOG_ERROR, "model=%s version=%lld: %s; it is loaded again %s",
        r->title, (long long) version, why, when);
    inf_lifecycle_let_go(&gone);
    inf_runner_close(model->sched.runner);
    inf_lifecycle_refresh(lc, r, NULL);
    start_unload(x);
    inf_cond_signal(&lc->reap);         /* it queues the rebuild             */
}

void
inf_lifecycle_put_delay(uint64_t delay_ns, char *text, size_t cap)
{
    if (delay_ns == 0) {
        snprintf(text, cap, "now");
    } else {
        snprintf(text, cap, "in %llu s",
            (unsigned long long) (delay_ns / SECOND_NS));
    }
}

static inf_err_t *
exit_new(inf_lifecycle_t *lc, inf_model_t *model, const char *why, exit_t **out)
{
    exit_t *x = calloc(1, sizeof(*x));
    if (x == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&x->link);
    x->lc = lc;
    x->model = model;
    x->reason = inf_reason_new(why);
    inf_err_t *err = inf_edit_new(INF_EDIT_REBUILD, &x->rebuild);
    if (err != NULL) {
        exit_free(x);
        return err;
    }

    x->rebuild->why = strdup(why);
    *out = x;
    return NULL;
}

static void
exit_free(exit_t *x)
{
    inf_edit_free(x->rebuild);
    inf_reason_unref(x->reason);
    free(x);
}

static void
start_unload(exit_t *x)
{
    inf_lifecycle_t *lc = x->lc;

    inf_err_t *err = inf_thread_start(&x->thread, "forced unload", unload_main,
        x);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model \"%s\" stays in memory",
            inf_lifecycle_title(x->model)));
        inf_lock(&lc->lock);
        inf_link_remove(&x->link);          /* never joined, never freed     */
        inf_unlock(&lc->lock);
    }
}

static void *
unload_main(void *arg)
{
    exit_t *x = arg;
    inf_lifecycle_t *lc = x->lc;

    inf_model_force_unload(x->model, lc->options.plugins, lc->options.children,
        x->reason->msg);
    inf_model_unref(x->model);

    inf_lock(&lc->lock);
    x->done = true;
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);
    return NULL;
}

void
inf_lifecycle_reap_exits(inf_lifecycle_t *lc, bool all)
{
    inf_link_t finished;
    inf_link_t *link;
    inf_link_init(&finished);

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->exits.next; l != &lc->exits; ) {
        exit_t *x = inf_link_entry(l, exit_t, link);
        l = l->next;
        if (all || x->done) {
            inf_link_remove(&x->link);
            inf_list_push_back(&finished, &x->link);
        }
    }
    inf_unlock(&lc->lock);

    while ((link = inf_list_pop_front(&finished)) != NULL) {
        exit_t *x = inf_link_entry(link, exit_t, link);
        pthread_join(x->thread, NULL);
        exit_free(x);
    }
}

bool
inf_lifecycle_stranded(inf_lifecycle_t *lc)
{
    return count_stranded_locked(lc, NULL) == lc->alive;
}

void
inf_lifecycle_forget_stranded(inf_lifecycle_t *lc)
{
    inf_leftovers_t *left = NULL;

    inf_lock(&lc->lock);
    uint64_t stranded = count_stranded_locked(lc, &left);
    inf_unlock(&lc->lock);

    if (stranded > 0) {
        inf_log(INF_LOG_WARN, "%llu models are left behind: their finalizers"
            " wait for processes that have died",
            (unsigned long long) stranded);
    }
    inf_leftovers_remove(left, true);
}

/* Counts live models that wait for exited processes; left not NULL: gives them
   up, and collects what they leave. */
static uint64_t
count_stranded_locked(inf_lifecycle_t *lc, inf_leftovers_t **left)
{
    const inf_link_t *at = NULL;
    const inf_model_t *model;
    uint64_t count = 0;

    while ((model = next_leaving_locked(lc, &at)) != NULL) {
        count += is_stranded(lc, model, left);
    }
    for (inf_link_t *l = lc->exits.next; l != &lc->exits; l = l->next) {
        const exit_t *x = inf_link_entry(l, exit_t, link);
        count += !x->done && is_stranded(lc, x->model, left);
    }

    return count;
}

/* Iterates over the models that are being finalized; *at begins as NULL.  The
   caller only compares the result.  NULL: end. */
static const inf_model_t *
next_leaving_locked(const inf_lifecycle_t *lc, const inf_link_t **at)
{
    const inf_link_t *l = *at == NULL ? lc->destroyed.next : (*at)->next;

    for (; l != &lc->destroyed; l = l->next) {
        const inf_loaded_t *loaded = inf_link_entry(l, inf_loaded_t, link);
        if (loaded->state != INF_LOADED_ENDED) {
            *at = l;
            return loaded->model;
        }
    }

    return NULL;
}

static bool
is_stranded(inf_lifecycle_t *lc, const inf_model_t *model,
    inf_leftovers_t **left)
{
    inf_children_t *children = lc->options.children;
    if (!inf_children_stranded(children, model)) {
        return false;
    }

    if (left != NULL) {
        *left = inf_leftovers_join(*left, inf_children_forget(children,
            model, NULL));
    }
    return true;
}
