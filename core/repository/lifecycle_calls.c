/* lifecycle_calls.c - loads and unloads by request, and callers that wait for
   them. */

#include "core/repository/lifecycle_parts.h"

#include <string.h>

#include "core/base/clock.h"

/* Time after which another loader is started for a waiting caller: earlier
   loads may be waiting for it. */
#define PATIENCE_NS    UINT64_C(10000000000)

/* A caller that waits; on its stack. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *own;    /* whose load waits; NULL: no load           */
    bool                ended;  /* under lc->lock                            */
    inf_err_t          *err;
} waiter_t;

static void unload(inf_lifecycle_t *lc, const char *name,
    inf_unload_cause_t cause, bool dependents, inf_lifecycle_done_fn done,
    void *userp);
static inf_edit_t *new_edit(const inf_lifecycle_t *lc, inf_edit_kind_t kind,
    inf_edit_kind_t by_name, inf_lifecycle_done_fn done, void *userp);
static inf_err_t *begin_waiting(waiter_t *w, const char *name);
static void waiter_done(void *userp, inf_err_t *err);
static inf_err_t *wait_for(waiter_t *w);

void
inf_lifecycle_load_async(inf_lifecycle_t *lc, const char *name,
    inf_override_t *override, bool again, inf_lifecycle_done_fn done,
    void *userp)
{
    const inf_model_id_t id = inf_model_id(name);
    inf_edit_t *edit = new_edit(lc, INF_EDIT_LOAD, INF_EDIT_LOAD_NAME, done,
        userp);
    if (edit == NULL) {
        inf_override_free(override);
        return;
    }

    edit->override = override;
    edit->who = INF_WANTED_BY_REQUEST | INF_WANTED_ITSELF;
    edit->requested = !again;
    inf_lifecycle_submit(lc, &id, edit);
}

void
inf_lifecycle_load_id_async(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_lifecycle_done_fn done, void *userp)
{
    inf_edit_t *edit = new_edit(lc, INF_EDIT_LOAD, INF_EDIT_LOAD, done,
        userp);
    if (edit != NULL) {
        edit->who = INF_WANTED_ITSELF;
        inf_lifecycle_submit(lc, id, edit);
    }
}

void
inf_lifecycle_unload_async(inf_lifecycle_t *lc, const char *name,
    bool dependents, inf_lifecycle_done_fn done, void *userp)
{
    unload(lc, name, INF_UNLOAD_REQUEST, dependents, done, userp);
}

void
inf_lifecycle_remove_async(inf_lifecycle_t *lc, const char *name,
    inf_lifecycle_done_fn done, void *userp)
{
    unload(lc, name, INF_UNLOAD_REMOVED, true, done, userp);
}

/* Submits an unload. */
static void
unload(inf_lifecycle_t *lc, const char *name, inf_unload_cause_t cause,
    bool dependents, inf_lifecycle_done_fn done, void *userp)
{
    const inf_model_id_t id = inf_model_id(name);
    inf_edit_t *edit = new_edit(lc, INF_EDIT_UNLOAD, INF_EDIT_UNLOAD_NAME,
        done, userp);
    if (edit != NULL) {
        edit->cause = cause;
        edit->dependents = dependents;
        inf_lifecycle_submit(lc, &id, edit);
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

    inf_lifecycle_load_async(lc, name, override, false, waiter_done, &w);
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

/* Creates an edit; by_name: its kind with namespaces, where a name may refer to
   several models.  NULL: out of memory, done was called. */
static inf_edit_t *
new_edit(const inf_lifecycle_t *lc, inf_edit_kind_t kind,
    inf_edit_kind_t by_name, inf_lifecycle_done_fn done, void *userp)
{
    inf_edit_t *edit;

    inf_err_t *err = inf_edit_new(lc->options.repositories->namespacing
        ? by_name : kind, &edit);
    if (err == NULL) {
        err = inf_edit_call(edit, done, userp);
    }
    if (err != NULL) {
        inf_edit_free(edit);
        if (done != NULL) {
            done(userp, err);
        } else {
            inf_err_log(err);
        }
        return NULL;
    }

    if (edit->caller != NULL) {
        edit->caller->inside = inf_lifecycle_own_edit() != NULL;
    }
    return edit;
}

/* Begins to wait; fails if the model would wait for itself. */
static inf_err_t *
begin_waiting(waiter_t *w, const char *name)
{
    inf_lifecycle_t *lc = w->lc;
    if (inf_lifecycle_own_edit() == NULL) {
        return NULL;
    }

    w->own = inf_lifecycle_own_edit()->record;
    bool own = strcmp(w->own->name, name) == 0;
    inf_lock(&lc->lock);
    bool endless = own || inf_model_set_await(&lc->set, w->own, name);
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

/* Waits.  A waiting loader is replaced by another one meanwhile. */
static inf_err_t *
wait_for(waiter_t *w)
{
    inf_lifecycle_t *lc = w->lc;
    uint64_t until = inf_clock_ns()
        + (inf_lifecycle_own_edit() == NULL ? PATIENCE_NS : 0);
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
        inf_model_set_awaited(w->own);
    }
    lc->enough -= added;
    inf_unlock(&lc->lock);

    if (added) {
        inf_cond_broadcast(&lc->work);
    }
    return w->err;
}
