/* lifecycle_build.c - builds the versions of a load, and replaces the serving
   versions by them. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/instance_change.h"
#include "core/repository/model_load.h"
#include "core/sched/entrance.h"

typedef inf_load_t load_t;
typedef inf_load_version_t load_version_t;

static bool build_all(load_t *l);
static bool gives_up(const load_t *l, const load_version_t *v);
static inf_err_t *build(load_t *l, int64_t version, inf_model_t **out);
static inf_model_load_t load_of(const load_t *l,
    const inf_model_source_t *files, const inf_core_config_t *core_config,
    int64_t version);
static inf_err_t *loaded_new(load_t *l, inf_loaded_t **out);
static void loaded_free(inf_loaded_t *loaded);
static inf_err_t *change(load_t *l, load_version_t *v);
static inf_err_t *commit(load_t *l, bool whole);
static void drop(load_t *l);
static void end_changes(load_t *l, bool whole);
static void tell_agents(load_t *l, bool whole);
static inf_err_t *failure(const load_t *l, const char *serving);
static void log_outcome(const load_t *l, bool whole, const char *serving);

inf_err_t *
inf_lifecycle_build(inf_load_t *l, inf_loading_place_t *place)
{
    bool whole = build_all(l);

    inf_loading_place_leave(place);         /* before it serves              */
    return commit(l, whole);
}

/* Builds all versions; false: one failed (the others are tried, too). */
static bool
build_all(load_t *l)
{
    bool whole = true;

    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        uint32_t tries = 1 + l->core_config->values->load_retries;
        uint64_t start = inf_clock_ns();

        tries = v->err != NULL ? 0 : tries;     /* its models do not fit     */
        while (!v->keep && v->model == NULL && tries-- > 0
            && !gives_up(l, v))
        {
            inf_err_free(v->err);       /* of the previous try               */
            v->err = build(l, v->version, &v->model);
        }
        while (v->stays != NULL && v->change == NULL && tries-- > 0
            && !gives_up(l, v))
        {
            inf_err_free(v->err);
            v->err = change(l, v);
        }
        v->took_ns = inf_clock_ns() - start;
        if (v->err != NULL) {
            inf_reason_unref(v->reason);
            v->reason = inf_reason_of(v->err);
            whole = false;
        }
    }

    return whole;
}

static bool
gives_up(const load_t *l, const load_version_t *v)
{
    return inf_load_is_late(l)
        || (v->err != NULL && atomic_load(&l->lc->stopping));
}

static inf_err_t *
build(load_t *l, int64_t version, inf_model_t **out)
{
    inf_loaded_t *loaded = NULL;

    inf_err_t *err = loaded_new(l, &loaded);
    if (err != NULL) {
        return err;
    }

    inf_model_load_t what = load_of(l, l->source, l->core_config, version);
    what.ops = &inf_lifecycle_model_ops;
    what.owner = loaded;
    err = inf_load_call_begin(l, version, loaded);
    if (err == NULL) {
        what.load = l->call.id;
        err = inf_model_load(&what, out);
        inf_load_call_end(l);
    }
    if (err != NULL) {
        *out = NULL;
        loaded_free(loaded);
        return err;
    }

    inf_lock(&l->lc->lock);
    l->lc->alive++;
    inf_unlock(&l->lc->lock);
    return NULL;
}

/* The description of a version's load, without an owner. */
static inf_model_load_t
load_of(const load_t *l, const inf_model_source_t *files,
    const inf_core_config_t *core_config, int64_t version)
{
    return (inf_model_load_t) {
        .options = &l->lc->options,
        .core_config = core_config,
        .backends = l->lc->backends,
        .timekeeper = &l->lc->timekeeper,
        .storage = files->load_storage,
        .name = l->record->name,
        .space = l->record->space,
        .title = l->record->title,
        .dir = files->load_dir,
        .config = l->source->config,
        .overridden = l->source->overridden,
        .bounded = l->source->overridden
            && !l->core_config->values->code_upload,
        .version = version,
        .composing = l->composing,
        .composing_count = l->composing_count,
        .stopping = &l->lc->stopping
    };
}

static inf_err_t *
loaded_new(load_t *l, inf_loaded_t **out)
{
    inf_loaded_t *loaded = calloc(1, sizeof(*loaded));
    if (loaded == NULL) {
        return inf_err_nomem();
    }

    loaded->lc = l->lc;
    loaded->record = l->record;
    loaded->source = inf_model_source_ref(l->source);
    loaded->core_config = inf_core_config_ref(l->core_config);
    inf_link_init(&loaded->link);
    *out = loaded;
    return NULL;
}

/* Frees the data of a model that was not loaded. */
static void
loaded_free(inf_loaded_t *loaded)
{
    inf_model_source_unref(loaded->source);
    inf_core_config_unref(loaded->core_config);
    free(loaded);
}

/* Prepares an instance change; the files are those the version was made
   from. */
static inf_err_t *
change(load_t *l, load_version_t *v)
{
    const inf_loaded_t *loaded = v->stays->owner;
    inf_model_load_t what = load_of(l, loaded->source, loaded->core_config,
        v->version);

    inf_err_t *err = inf_load_call_begin(l, v->version, NULL);
    if (err == NULL) {
        what.load = l->call.id;
        err = inf_instance_change_prepare(&what, v->stays, &v->change);
        inf_load_call_end(l);
    }
    return err;
}

const char *
inf_lifecycle_title(const inf_model_t *model)
{
    const inf_loaded_t *loaded = model->owner;
    return loaded->record->title;
}

/* Puts all new versions into service, or none. */
static inf_err_t *
commit(load_t *l, bool whole)
{
    inf_lifecycle_t *lc = l->lc;
    inf_reason_room_t room = { .size = 0 };
    char serving[INF_SERVING_MAX];
    inf_graph_plan_t *plan;
    inf_link_t gone;
    inf_link_init(&gone);
    if (inf_load_is_late(l)) {
        drop(l);
        return NULL;
    }

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    while (!inf_model_set_swap(&lc->set, l, &room, &whole, &plan)) {
        inf_lifecycle_renew_locked(lc, &room);
    }
    inf_lifecycle_drain_locked(lc, &gone, &room);
    inf_model_record_serving(l->record, serving);
    inf_unlock(&lc->lock);

    inf_lifecycle_publish_unlock(lc);
    inf_reason_room_fini(&room);
    if (l->lack != NULL) {
        inf_load_fail_all(l);
    }
    inf_err_t *err = whole ? NULL : failure(l, serving);
    free(plan);
    log_outcome(l, whole, serving);
    tell_agents(l, whole);
    inf_model_source_leave(l->left);
    l->left = NULL;
    inf_lifecycle_let_go(&gone);
    for (size_t i = 0; i < l->count; i++) {
        if (l->versions[i].serves != NULL) {
            inf_children_arm(lc->options.children, l->versions[i].serves);
            inf_model_unref(l->versions[i].serves);
        }
    }
    for (size_t i = 0; i < l->released_count; i++) {
        inf_entrance_drop_user(l->released[i]);
        inf_model_unref(l->released[i]);
    }
    end_changes(l, whole);
    return err;
}

/* Drops the results of a load that was given up. */
static void
drop(load_t *l)
{
    tell_agents(l, false);
    for (size_t i = 0; i < l->count; i++) {
        inf_model_t *model = l->versions[i].model;
        l->versions[i].model = NULL;
        if (model != NULL) {
            inf_entrance_drop_user(model);
            inf_model_unref(model);
        }
    }
    end_changes(l, false);
}

static void
end_changes(load_t *l, bool whole)
{
    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        if (v->change != NULL && whole) {
            inf_instance_change_commit(v->change);
        } else {
            inf_instance_change_abort(v->change);
        }
    }
}

/* Tells the agents, before released models are unreferenced, so that UNLOAD
   comes first. */
static void
tell_agents(load_t *l, bool whole)
{
    if (!whole || l->in_place) {
        inf_agents_fail(l->source->agents);
        return;
    }

    inf_agents_complete(l->record->source->agents);
    if (l->source != l->record->source) {
        inf_model_source_leave(l->source);  /* the record's source until now */
        l->source = NULL;
    }
}

/* The error of the load, with serving appended. */
static inf_err_t *
failure(const load_t *l, const char *serving)
{
    inf_buf_t text;
    inf_buf_init(&text);

    for (size_t i = 0; i < l->count; i++) {
        const inf_err_t *err = l->versions[i].err;
        if (err != NULL && l->ensemble) {
            inf_buf_puts(&text, inf_err_msg(err));      /* same for all
                                                           versions          */
            break;
        }
        if (err != NULL) {
            inf_buf_printf(&text, "version %lld is at %s state: %s: %s;",
                (long long) l->versions[i].version,
                l->versions[i].keep ? "READY" : "UNAVAILABLE",
                inf_err_code_string(inf_err_code(err)), inf_err_msg(err));
        }
    }

    if (serving[0] != '\0' && !l->ensemble) {
        serving++;                      /* each version's text ends with ";" */
    }
    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG,
        "load failed for model '%s': %s%s\n", l->record->name,
        text.data != NULL ? text.data : "", serving);
    inf_buf_fini(&text);
    return err;
}

static void
log_outcome(const load_t *l, bool whole, const char *serving)
{
    for (size_t i = 0; i < l->count; i++) {
        const load_version_t *v = &l->versions[i];
        if (v->err != NULL) {
            inf_log(INF_LOG_ERROR, "model=%s version=%lld %s: %s%s",
                l->record->title, (long long) v->version, v->keep
                ? "serves on with the instances it has" : "failed to load",
                inf_err_msg(v->err), v->keep ? "" : serving);
        } else if (!v->keep && whole) {
            inf_log(INF_LOG_NOTICE, "model=%s version=%lld is ready after %llu"
                " ms", l->record->title, (long long) v->version,
                (unsigned long long) (v->took_ns / 1000000));
        }
    }
}
