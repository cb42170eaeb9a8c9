/* lifecycle_op.c - operations: who waits for them, and how he is told. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"

/* So long somebody waits before one more loader is started for his sake: the
   loads in front of his may be waiting for him. */
#define PATIENCE_NS    UINT64_C(10000000000)

/* Who waits for an operation on his own stack. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *own;    /* whose load waits; NULL: it is no load     */
    bool                ended;  /* under lc->lock                            */
    inf_err_t          *err;
} waiter_t;

/* The load that this thread runs; NULL: it is no loader. */
static _Thread_local const inf_lifecycle_op_t *own_op;

static inf_err_t *begin_waiting(waiter_t *w, const char *name);
static void waiter_done(void *userp, inf_err_t *err);
static inf_err_t *wait_for(waiter_t *w);

void
inf_lifecycle_op_runs(const inf_lifecycle_op_t *op)
{
    own_op = op;
}

inf_err_t *
inf_lifecycle_op_new(inf_op_kind_t kind, inf_lifecycle_done_fn done,
    void *userp, inf_lifecycle_op_t **out)
{
    inf_lifecycle_op_t *op = calloc(1, sizeof(*op));
    *out = op;
    if (op == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&op->link);
    op->kind = kind;
    op->left = 1;
    op->inside = own_op != NULL;
    op->done = done;
    op->userp = userp;
    return NULL;
}

/* What a load waits for must not wait for the load. */
void
inf_lifecycle_adopt_locked(inf_lifecycle_op_t *parent,
    inf_lifecycle_op_t *child)
{
    if (parent == NULL || parent->inside) {
        return;
    }

    child->start = parent->start;
    if (parent->done != NULL || parent->parent != NULL) {
        child->parent = parent;
        parent->left++;
    }
}

void
inf_lifecycle_op_end(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    inf_err_t *err)
{
    op->err = err;
    while (op != NULL) {
        inf_lock(&lc->lock);
        bool last = --op->left == 0;
        inf_unlock(&lc->lock);
        if (!last) {
            return;
        }

        inf_lifecycle_op_t *parent = op->parent;
        inf_lifecycle_tell(op->done, op->userp, op->err);
        inf_lifecycle_load_drop(op->load);
        inf_override_free(op->override);
        inf_repository_list_unref(op->list);
        free(op->plan);
        free(op);
        op = parent;
    }
}

void
inf_lifecycle_tell(inf_lifecycle_done_fn done, void *userp, inf_err_t *err)
{
    if (done != NULL) {
        done(userp, err);
    } else {
        inf_err_free(err);                  /* logged where it arose         */
    }
}

void
inf_lifecycle_drop_ops(inf_lifecycle_t *lc)
{
    inf_link_t dropped;
    inf_link_t *link;
    inf_link_init(&dropped);

    inf_lock(&lc->lock);
    while (inf_list_pop_front(&lc->loads) != NULL
        || inf_list_pop_front(&lc->unloads) != NULL)
    {
        continue;
    }
    for (inf_link_t *l = lc->models.next; l != &lc->models; l = l->next) {
        inf_model_record_t *r = inf_link_entry(l, inf_model_record_t, link);
        r->parked = false;
        r->absent = false;
        while ((link = inf_list_pop_front(&r->ops)) != NULL) {
            const inf_lifecycle_op_t *op = inf_link_entry(link,
                inf_lifecycle_op_t, link);
            lc->busy--;
            lc->starting -= op->start;
            inf_list_push_back(&dropped, link);
        }
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);

    while ((link = inf_list_pop_front(&dropped)) != NULL) {
        inf_lifecycle_op_t *op = inf_link_entry(link, inf_lifecycle_op_t,
            link);
        inf_lifecycle_op_end(lc, op, inf_err_new(INF_ERR_UNAVAILABLE,
            "model \"%s\" is not loaded or unloaded: the server is stopping",
            op->record->name));
    }
}

inf_err_t *
inf_lifecycle_load(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override)
{
    waiter_t w = { .lc = lc };
    inf_err_t *err = begin_waiting(&w, name);
    if (err != NULL) {
        inf_override_free(override);
        return err;
    }

    inf_lifecycle_load_async(lc, name, override, waiter_done, &w);
    return wait_for(&w);
}

inf_err_t *
inf_lifecycle_unload(inf_lifecycle_t *lc, const char *name, bool dependents)
{
    waiter_t w = { .lc = lc };
    inf_err_t *err = begin_waiting(&w, name);
    if (err != NULL) {
        return err;
    }

    inf_lifecycle_unload_async(lc, name, dependents, waiter_done, &w);
    return wait_for(&w);
}

/* A model that waits for itself would wait for ever. */
static inf_err_t *
begin_waiting(waiter_t *w, const char *name)
{
    inf_lifecycle_t *lc = w->lc;
    if (own_op == NULL) {
        return NULL;
    }

    w->own = own_op->record;
    bool own = strcmp(w->own->name, name) == 0;
    inf_lock(&lc->lock);
    bool endless = own || inf_lifecycle_await_locked(lc, w->own, name);
    inf_unlock(&lc->lock);
    if (!endless) {
        return NULL;
    }

    return own ? inf_err_new(INF_ERR_UNAVAILABLE, "model '%s' can't be loaded"
        " or unloaded from within its own load", name)
        : inf_err_new(INF_ERR_UNAVAILABLE, "model '%s' can't be loaded or"
            " unloaded from within the load of '%s', which it waits for",
            name, w->own->name);
}

static void
waiter_done(void *userp, inf_err_t *err)
{
    waiter_t *w = userp;
    inf_lifecycle_t *lc = w->lc;

    inf_lock(&lc->lock);
    w->err = err;
    w->ended = true;
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);
}

/* A loader that waits is no loader meanwhile: another takes its place. */
static inf_err_t *
wait_for(waiter_t *w)
{
    inf_lifecycle_t *lc = w->lc;
    uint64_t until = inf_clock_ns() + (own_op == NULL ? PATIENCE_NS : 0);
    bool added = false;

    inf_lock(&lc->lock);
    while (!w->ended) {
        if (added) {
            inf_cond_wait(&lc->idle, &lc->lock);
        } else if (!inf_cond_wait_until(&lc->idle, &lc->lock, until)
            && !w->ended)
        {
            inf_err_t *none = inf_lifecycle_add_loader_locked(lc, false);
            added = none == NULL;
            inf_err_free(none);
            until = inf_clock_ns() + PATIENCE_NS;
        }
    }
    if (w->own != NULL) {
        inf_lifecycle_awaited_locked(w->own);
    }
    lc->enough -= added;
    inf_unlock(&lc->lock);

    if (added) {
        inf_cond_broadcast(&lc->work);
    }
    return w->err;
}
