/* lifecycle_loaders.c - the threads that carry out edits. */

#include "core/base/os/thread.h"
#include "core/repository/lifecycle_parts.h"

#include "core/base/clock.h"
#include "core/base/log.h"

static void *loader_main(void *arg);
static void run(inf_lifecycle_t *lc, inf_edit_t *edit);
static inf_err_t *carry_out(inf_lifecycle_t *lc, inf_edit_t *edit,
    inf_loading_place_t *place, inf_run_t *run);
static bool put_back(inf_lifecycle_t *lc, inf_edit_t *edit, inf_run_t run,
    inf_err_t **err);
static void end(inf_lifecycle_t *lc, inf_edit_t *edit, inf_err_t *err);
static bool take_note_of_request(inf_lifecycle_t *lc, const inf_edit_t *edit);
static void note(const inf_lifecycle_t *lc, const inf_edit_t *edit,
    inf_run_t run);

/* The edit of this loader thread; NULL: not a loader. */
static _Thread_local const inf_edit_t *own_edit;

const inf_edit_t *
inf_lifecycle_own_edit(void)
{
    return own_edit;
}

inf_err_t *
inf_lifecycle_start_loaders(inf_lifecycle_t *lc)
{
    uint32_t count = lc->core_config->values->load_threads;
    count = count == 0 ? 1 : count;
    count = count > INF_LOADERS_MAX / 2 ? INF_LOADERS_MAX / 2 : count;

    inf_lock(&lc->lock);
    inf_err_t *err = inf_lifecycle_add_loader_locked(lc, true);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        err = inf_lifecycle_add_loader_locked(lc, false);
    }
    inf_unlock(&lc->lock);
    return err;
}

inf_err_t *
inf_lifecycle_add_loader_locked(inf_lifecycle_t *lc, bool unloads)
{
    inf_loader_t *l = lc->loaders;
    if (lc->set.stopping) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "the server is stopping");
    }

    while (l < lc->loaders + INF_LOADERS_MAX && (l->state == INF_LOADER_RUNS
            || l->state == INF_LOADER_STUCK))
    {
        l++;
    }
    if (l == lc->loaders + INF_LOADERS_MAX) {
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE,
            "too many loaders are busy"), INF_CAUSE_FULL);
    }

    if (l->state == INF_LOADER_ENDED) {
        pthread_join(l->thread, NULL);      /* it holds no lock any more     */
        l->state = INF_LOADER_FREE;
    }

    l->lc = lc;
    l->unloads = unloads;
    inf_err_t *err = inf_thread_start(&l->thread, unloads ? "unloader"
        : "loader", loader_main, l);
    if (err != NULL) {
        return err;
    }

    l->state = INF_LOADER_RUNS;
    lc->running += !unloads;
    lc->enough += !unloads;
    return NULL;
}

bool
inf_lifecycle_stop_loaders(inf_lifecycle_t *lc, uint64_t until)
{
    inf_link_t dropped;
    inf_link_t *link;
    inf_link_init(&dropped);

    inf_lock(&lc->lock);
    inf_model_set_stop(&lc->set, &dropped);
    atomic_store(&lc->stopping, true);
    inf_unlock(&lc->lock);
    while ((link = inf_list_pop_front(&dropped)) != NULL) {
        inf_edit_t *edit = inf_link_entry(link, inf_edit_t, link);
        inf_lock(&lc->lock);
        inf_caller_t *caller = inf_model_set_end_dropped(&lc->set, edit,
            inf_lifecycle_stopping(edit->record->name));
        inf_unlock(&lc->lock);
        inf_lifecycle_load_drop(edit->load);
        inf_edit_free(edit);
        inf_caller_answer(caller);
    }
    inf_cond_broadcast(&lc->work);
    inf_cond_broadcast(&lc->idle);

    inf_lock(&lc->lock);
    while (lc->set.busy > 0
        && inf_cond_wait_until(&lc->idle, &lc->lock, until))
    {
        continue;
    }
    bool ended = lc->set.busy == 0;
    inf_unlock(&lc->lock);

    for (uint32_t i = 0; i < INF_LOADERS_MAX; i++) {
        inf_loader_t *l = &lc->loaders[i];
        inf_lock(&lc->lock);
        bool join = l->state == INF_LOADER_ENDED
            || (ended && l->state == INF_LOADER_RUNS);
        inf_unlock(&lc->lock);
        if (join) {
            pthread_join(l->thread, NULL);
            inf_lock(&lc->lock);
            l->state = INF_LOADER_FREE;
            inf_unlock(&lc->lock);
        }
    }

    return ended;
}

static void *
loader_main(void *arg)
{
    inf_loader_t *loader = arg;
    inf_lifecycle_t *lc = loader->lc;

    inf_lock(&lc->lock);
    for (;;) {
        if (!loader->unloads && lc->running > lc->enough) {
            break;                          /* a temporary loader            */
        }

        inf_edit_t *edit = inf_model_set_take(&lc->set, loader->unloads);
        if (edit == NULL) {
            if (lc->set.stopping) {
                break;
            }
            inf_cond_wait(&lc->work, &lc->lock);
            continue;
        }

        edit->listings = lc->listings;
        loader->edit = edit;
        loader->busy_ns = inf_clock_ns();
        inf_cond_signal(&lc->reap);
        inf_unlock(&lc->lock);
        run(lc, edit);
        inf_lock(&lc->lock);
        loader->edit = NULL;
        loader->state = INF_LOADER_RUNS;    /* after it was stuck            */
        if (loader->replaced) {
            loader->replaced = false;
            lc->enough--;
            inf_cond_broadcast(&lc->work);      /* a waiting loader may end  */
        }
    }
    lc->running -= !loader->unloads;
    loader->state = INF_LOADER_ENDED;
    inf_unlock(&lc->lock);
    return NULL;
}

/* Carries out edit, which is taken. */
static void
run(inf_lifecycle_t *lc, inf_edit_t *edit)
{
    inf_model_record_t *r = edit->record;
    inf_run_t run = INF_RUN_UNCHANGED;
    uint64_t since_ns = inf_clock_ns();
    inf_loading_place_t place;

    if (edit->kind == INF_EDIT_REBUILD) {
        inf_log(INF_LOG_WARN, "model=%s is loaded again: %s", r->title,
            edit->why != NULL ? edit->why : "out of memory");
    }
    inf_core_config_t *core_config = inf_lifecycle_core_config(lc);
    inf_loading_place_enter(&place, &core_config->host_policies);
    inf_core_config_unref(core_config);
    own_edit = edit;
    inf_err_t *err = carry_out(lc, edit, &place, &run);
    own_edit = NULL;
    inf_loading_place_leave(&place);
    if (run == INF_RUN_LATE) {          /* reported when it was given up     */
        inf_err_free(err);
        inf_lifecycle_load_returned(lc, edit, since_ns);
        return;
    }
    if (put_back(lc, edit, run, &err)) {
        return;                         /* the set owns edit                 */
    }

    if (err == NULL && (take_note_of_request(lc, edit)
            || run != INF_RUN_UNCHANGED || edit->kind == INF_EDIT_ADOPT))
    {
        note(lc, edit, run);
    }
    inf_lifecycle_refresh(lc, r, edit);
    inf_lifecycle_unload_orphans(lc, edit);
    end(lc, edit, err);
}

static inf_err_t *
carry_out(inf_lifecycle_t *lc, inf_edit_t *edit, inf_loading_place_t *place,
    inf_run_t *run)
{
    inf_err_t *err = NULL;

    if (edit->kind == INF_EDIT_LOAD_NAME
        || edit->kind == INF_EDIT_UNLOAD_NAME)
    {
        err = inf_lifecycle_run_name(lc, edit, run);
    }
    switch (edit->kind) {
    case INF_EDIT_LOAD:
    case INF_EDIT_REFRESH:
    case INF_EDIT_REBUILD:
        inf_err_free(err);              /* the load reports it               */
        return inf_lifecycle_run_load(lc, edit, place, run);
    case INF_EDIT_UNLOAD:
        inf_err_free(err);
        inf_lifecycle_run_unload(lc, edit);
        *run = INF_RUN_CHANGED;
        return NULL;
    case INF_EDIT_LOAD_NAME:
    case INF_EDIT_UNLOAD_NAME:          /* other edits do it                 */
    case INF_EDIT_LISTED:
    case INF_EDIT_ADOPT:
    case INF_EDIT_NOTHING:
        break;
    }
    return err;
}

/* Puts an edit back to wait, except during the stop.  If a listing has come
   meanwhile, or the repositories have changed, it continues at once. */
static bool
put_back(inf_lifecycle_t *lc, inf_edit_t *edit, inf_run_t run,
    inf_err_t **err)
{
    if (run != INF_RUN_LISTING && run != INF_RUN_COMPOSING) {
        return false;
    }

    inf_lock(&lc->lock);
    bool stopping = lc->set.stopping;
    if (!stopping) {
        inf_model_set_put_back(&lc->set, edit, run == INF_RUN_COMPOSING
            ? INF_MODEL_COMPOSING : edit->listings == lc->listings
            ? INF_MODEL_LISTING : INF_MODEL_QUEUED);
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->work);

    if (stopping) {
        *err = inf_lifecycle_stopping(edit->record->name);
        inf_lifecycle_load_drop(edit->load);
        edit->load = NULL;
    }
    return !stopping;
}

static void
end(inf_lifecycle_t *lc, inf_edit_t *edit, inf_err_t *err)
{
    inf_model_record_t *r = edit->record;
    inf_model_record_t *gone;
    inf_caller_t *caller;
    int64_t version = edit->version;
    uint64_t delay_ns = 0;

    /* callers see the model idle */
    inf_lock(&lc->lock);
    bool start = edit->at_start;
    bool kept = inf_model_set_end(&lc->set, edit, err, inf_clock_ns(),
        &caller, &gone);
    if (kept) {
        const inf_record_version_t *v = inf_model_record_find(r, version);
        delay_ns = v->due_ns - v->exit_ns;
    }
    inf_unlock(&lc->lock);
    inf_cond_broadcast(&lc->idle);
    inf_cond_broadcast(&lc->work);
    inf_cond_signal(&lc->reap);

    if (start) {
        lc->options.changed(lc->options.userp);
    }
    if (kept) {                         /* r has that version: it stays      */
        char when[24];
        inf_lifecycle_put_delay(delay_ns, when, sizeof(when));
        inf_log(INF_LOG_WARN, "model=%s version=%lld is tried again %s",
            r->title, (long long) version, when);
    } else {
        inf_edit_free(edit);
    }
    inf_caller_answer(caller);
    inf_model_record_free(gone);
}

/* Notes a load by request; true: the record was not wanted by request
   before. */
static bool
take_note_of_request(inf_lifecycle_t *lc, const inf_edit_t *edit)
{
    if (edit->kind != INF_EDIT_LOAD
        || (edit->who & INF_WANTED_BY_REQUEST) == 0)
    {
        return false;
    }

    inf_lock(&lc->lock);
    bool fresh = (edit->record->who & INF_WANTED_BY_REQUEST) == 0;
    edit->record->who |= INF_WANTED_BY_REQUEST;
    inf_unlock(&lc->lock);
    return fresh;
}

/* Reports the edit to the load callbacks, except an edit of the start. */
static void
note(const inf_lifecycle_t *lc, const inf_edit_t *edit, inf_run_t run)
{
    const inf_load_note_ops_t *notes = lc->options.notes;
    void *userp = lc->options.notes_userp;
    const inf_model_id_t *id = &edit->record->graph.id;
    bool implicit = (edit->who & INF_WANTED_ITSELF) == 0;
    if (notes == NULL || edit->at_start) {
        return;
    }

    switch (edit->kind) {
    case INF_EDIT_LOAD:
        if (implicit || (edit->who & INF_WANTED_BY_REQUEST) != 0) {
            notes->loaded(userp, id, edit->override, implicit);
        } else {
            notes->forgotten(userp, id);
        }
        return;
    case INF_EDIT_REFRESH:
        if (run == INF_RUN_RECOVERED) {
            notes->loaded(userp, id, edit->override, implicit);
        }
        return;
    case INF_EDIT_ADOPT:
        notes->loaded(userp, id, NULL, false);
        return;
    case INF_EDIT_UNLOAD:
        break;
    case INF_EDIT_REBUILD:
    case INF_EDIT_LISTED:
    case INF_EDIT_LOAD_NAME:
    case INF_EDIT_UNLOAD_NAME:
    case INF_EDIT_NOTHING:
        return;
    }

    switch (edit->cause) {
    case INF_UNLOAD_REQUEST:
    case INF_UNLOAD_ORPHAN:
    case INF_UNLOAD_REMOVED:
        notes->unloaded(userp, id, implicit);
        return;
    case INF_UNLOAD_MISSING:
    case INF_UNLOAD_MOVED:
    case INF_UNLOAD_DROPPED:
        notes->forgotten(userp, id);
        return;
    case INF_UNLOAD_AMBIGUOUS:
        return;
    }
}
