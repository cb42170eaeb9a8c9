/* lifecycle_lost.c - a version whose process has died: out of service at once,
   taken apart by one thread, loaded again by another. */

#include "core/repository/lifecycle_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/burial.h"

#define SECOND_NS   UINT64_C(1000000000)
#define DELAY_MAX   (60 * SECOND_NS)
#define CALM_NS     (2 * DELAY_MAX)     /* after that it begins anew         */

/* A process exit, shared by two threads. */
typedef struct {
    inf_link_t          link;           /* in lc->losses                     */
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;         /* has versions: it stays            */
    int64_t             version;
    uint64_t            delay_ns;
    inf_model_t        *model;          /* a reference until it is buried;
                                           then only compared                */
    char               *why;            /* NULL: out of memory               */
    pthread_t           burier;
    pthread_t           reviver;
    bool                has_reviver;
    bool                buried;         /* under lc->lock, like the next     */
    bool                revived;        /* or nobody wants that any more     */
} loss_t;

static inf_record_version_t *withdraw_locked(inf_model_record_t *r,
    inf_model_t *model, char **old);
static uint64_t count_stranded_locked(inf_lifecycle_t *lc,
    inf_leftovers_t **left) INF_NEEDS(lc->lock);
static bool is_stranded(inf_lifecycle_t *lc, const inf_model_t *model,
    inf_leftovers_t **left);
static void start(loss_t *loss);
static void *bury_main(void *arg);
static void *revive_main(void *arg);
static bool wait_until_due(loss_t *loss, uint64_t delay_ns);
static bool wait_for_load(loss_t *loss, uint64_t *delay_ns);
static bool lost_locked(const loss_t *loss, inf_record_version_t **v);
static const char *why_of(const loss_t *loss);
static void put_delay(uint64_t delay_ns, char *text, size_t cap);

void
inf_lifecycle_child_died(void *userp, inf_model_t *model, const char *why)
{
    inf_lifecycle_t *lc = userp;
    const inf_loaded_t *loaded = model->owner;
    inf_model_record_t *r = loaded->record;
    loss_t *loss = calloc(1, sizeof(*loss));
    char *reason = strdup(why);
    char *lost = strdup(why);
    bool memory = loss != NULL && reason != NULL && lost != NULL;
    char *old = NULL;
    char when[24];
    inf_link_t gone;

    inf_link_init(&gone);
    inf_lifecycle_reap_losses(lc, false);
    inf_lock(&lc->lock);
    inf_record_version_t *v = memory && !lc->stopping
        ? withdraw_locked(r, model, &old) : NULL;
    if (v != NULL) {
        v->reason = reason;
        v->lost = lost;
    }
    if (v != NULL) {
        inf_lifecycle_withdraw_dependents_locked(lc, r, &gone);
        *loss = (loss_t) {
            .lc = lc,
            .record = r,
            .version = v->version,
            .delay_ns = inf_lifecycle_lost_delay_ns(v->deaths),
            .model = model
        };
        inf_link_init(&loss->link);
        inf_list_push_back(&lc->losses, &loss->link);
    }
    inf_unlock(&lc->lock);

    if (v == NULL) {                    /* it is leaving already             */
        free(loss);
        free(reason);
        free(lost);
        if (!memory) {
            inf_err_log(inf_err_add(inf_err_nomem(), "model=%s: %s",
                model->name, why));
        }
        return;
    }

    free(old);
    put_delay(loss->delay_ns, when, sizeof(when));
    inf_log(INF_LOG_ERROR, "model=%s version=%lld: %s; it is loaded again %s",
        r->title, (long long) loss->version, why, when);
    loss->why = strdup(why);
    inf_lifecycle_publish(lc);
    inf_lifecycle_let_go(&gone);
    inf_runner_close(model->runner);
    inf_lifecycle_renew(lc, r, NULL);
    start(loss);
}

uint64_t
inf_lifecycle_lost_delay_ns(uint32_t deaths)
{
    if (deaths <= 1) {
        return 0;
    }

    uint64_t delay = deaths < 8 ? SECOND_NS << (deaths - 2) : DELAY_MAX;
    return delay < DELAY_MAX ? delay : DELAY_MAX;
}

void
inf_lifecycle_reap_losses(inf_lifecycle_t *lc, bool all)
{
    inf_link_t finished;
    inf_link_t *link;
    inf_link_init(&finished);

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->losses.next; l != &lc->losses; ) {
        loss_t *loss = inf_link_entry(l, loss_t, link);
        l = l->next;
        if (all || (loss->buried && loss->revived)) {
            inf_link_remove(&loss->link);
            inf_list_push_back(&finished, &loss->link);
        }
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);

    while ((link = inf_list_pop_front(&finished)) != NULL) {
        loss_t *loss = inf_link_entry(link, loss_t, link);
        pthread_join(loss->burier, NULL);
        if (loss->has_reviver) {
            pthread_join(loss->reviver, NULL);
        }
        free(loss->why);
        free(loss);
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

/* left not NULL: they are forgotten, and leave this. */
static uint64_t
count_stranded_locked(inf_lifecycle_t *lc, inf_leftovers_t **left)
{
    const inf_link_t *at = NULL;
    const inf_model_t *model;
    uint64_t count = 0;

    while ((model = inf_lifecycle_next_leaving_locked(lc, &at)) != NULL) {
        count += is_stranded(lc, model, left);
    }
    for (inf_link_t *l = lc->losses.next; l != &lc->losses; l = l->next) {
        const loss_t *loss = inf_link_entry(l, loss_t, link);
        count += !loss->buried && is_stranded(lc, loss->model, left);
    }

    return count;
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
            model));
    }
    return true;
}

/* The version that model was; *old is for the caller to free.  NULL: it isn't
   in service any more. */
static inf_record_version_t *
withdraw_locked(inf_model_record_t *r, inf_model_t *model, char **old)
{
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->model != model) {
            continue;
        }

        uint64_t now = inf_clock_ns();
        v->deaths = now - v->died_ns > CALM_NS ? 1 : v->deaths + 1;
        v->died_ns = now;
        v->model = NULL;
        v->state = INF_VERSION_UNAVAILABLE;
        *old = v->reason;
        return v;
    }

    return NULL;
}

static void
start(loss_t *loss)
{
    inf_lifecycle_t *lc = loss->lc;

    int rc = pthread_create(&loss->reviver, NULL, revive_main, loss);
    loss->has_reviver = rc == 0;
    if (rc != 0) {
        inf_err_log(inf_err_os(rc, "model \"%s\" is not loaded again: cannot"
            " start a thread", loss->record->title));
        inf_lock(&lc->lock);
        loss->revived = true;
        inf_unlock(&lc->lock);
    }

    rc = pthread_create(&loss->burier, NULL, bury_main, loss);
    if (rc != 0) {
        inf_err_log(inf_err_os(rc, "model \"%s\" stays in memory: cannot start"
            " a thread to take it apart", loss->record->title));
        inf_lock(&lc->lock);
        inf_link_remove(&loss->link);       /* never joined, never freed     */
        inf_unlock(&lc->lock);
    }
}

static void *
bury_main(void *arg)
{
    loss_t *loss = arg;
    inf_lifecycle_t *lc = loss->lc;

    pthread_setname_np(pthread_self(), "burier");
    inf_model_bury(loss->model, lc->options.plugins, lc->options.children,
        why_of(loss));
    inf_model_unref(loss->model);

    inf_lock(&lc->lock);
    loss->buried = true;
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);
    return NULL;
}

/* Until it serves, or somebody has loaded or unloaded it. */
static void *
revive_main(void *arg)
{
    loss_t *loss = arg;
    inf_lifecycle_t *lc = loss->lc;
    uint64_t delay_ns = loss->delay_ns;

    pthread_setname_np(pthread_self(), "reviver");
    while (wait_until_due(loss, delay_ns)) {
        const inf_model_id_t id = inf_model_record_id(loss->record);
        inf_lifecycle_reload(lc, &id, loss->version, why_of(loss));
        if (!wait_for_load(loss, &delay_ns)) {
            break;
        }
    }

    inf_lock(&lc->lock);
    loss->revived = true;
    inf_unlock(&lc->lock);
    return NULL;
}

/* false: it needn't be loaded any more.  At the end nothing is loaded either:
   the lifecycle sees to that. */
static bool
wait_until_due(loss_t *loss, uint64_t delay_ns)
{
    inf_lifecycle_t *lc = loss->lc;
    uint64_t due = inf_clock_ns() + delay_ns;
    inf_record_version_t *v;

    inf_lock(&lc->lock);
    while (!lc->stopping && lost_locked(loss, &v) && inf_clock_ns() < due) {
        inf_cond_wait_until(&lc->idle, &lc->lock, due);
    }
    bool needed = lost_locked(loss, &v);
    inf_unlock(&lc->lock);
    return needed;
}

/* true: it failed, again after *delay_ns. */
static bool
wait_for_load(loss_t *loss, uint64_t *delay_ns)
{
    inf_lifecycle_t *lc = loss->lc;
    inf_record_version_t *v;
    char when[24];

    inf_lock(&lc->lock);
    while (!lc->stopping && loss->record->busy) {
        inf_cond_wait(&lc->idle, &lc->lock);
    }
    bool failed = !lc->stopping && lost_locked(loss, &v);
    if (failed) {
        v->deaths++;
        v->died_ns = inf_clock_ns();
        *delay_ns = inf_lifecycle_lost_delay_ns(v->deaths);
    }
    inf_unlock(&lc->lock);

    if (failed) {
        put_delay(*delay_ns, when, sizeof(when));
        inf_log(INF_LOG_WARN, "model=%s version=%lld is tried again %s",
            loss->record->title, (long long) loss->version, when);
    }
    return failed;
}

static bool
lost_locked(const loss_t *loss, inf_record_version_t **v)
{
    *v = inf_model_record_find(loss->record, loss->version);
    return *v != NULL && (*v)->lost != NULL;
}

static const char *
why_of(const loss_t *loss)
{
    return loss->why != NULL ? loss->why : "a process of the model has died";
}

static void
put_delay(uint64_t delay_ns, char *text, size_t cap)
{
    if (delay_ns == 0) {
        snprintf(text, cap, "now");
    } else {
        snprintf(text, cap, "in %llu s",
            (unsigned long long) (delay_ns / SECOND_NS));
    }
}
