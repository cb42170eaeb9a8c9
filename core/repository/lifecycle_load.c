/*
 * lifecycle_load.c - a load up to the build of its versions, and an unload.
 *
 * An unload begins when versions are withdrawn (model_swap.c) and ends with the
 * last reference of the source (model_source.h).
 */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/model/versions.h"
#include "core/proto/message.h"
#include "core/repository/code_upload.h"
#include "core/sched/entrance.h"

typedef inf_load_t load_t;
typedef inf_load_version_t load_version_t;

/* The model in the repositories, scanned once for a load. */
typedef struct {
    inf_repository_list_t  *list;   /* a reference; NULL: not scanned        */
    inf_scan_t              scan;
    const inf_scan_model_t *model;  /* NULL: in no repository                */
} found_t;

static inf_err_t *begin(load_t *l);
static inf_err_t *prepare(load_t *l, found_t *f);
static void note_who_wants_it(load_t *l);
static inf_err_t *check_stuck(load_t *l);
static inf_err_t *check_name(load_t *l, found_t *f);
static inf_err_t *find(load_t *l, found_t *f);
static inf_source_query_t query_of(const load_t *l, const found_t *f);
static inf_err_t *choose_read(load_t *l, found_t *f);
static inf_err_t *parse_sent(load_t *l, Inference__ModelConfig **out);
static inf_err_t *check_sent(load_t *l, found_t *f,
    const Inference__ModelConfig *sent);
static inf_err_t *finish(load_t *l, inf_loading_place_t *place,
    inf_run_t *run);
static inf_err_t *open_source(load_t *l, found_t *f);
static bool is_composed(const inf_model_source_t *source);
static bool is_stale(load_t *l);
static bool nothing_to_do(load_t *l);
static inf_err_t *choose(load_t *l);
static inf_err_t *choose_again(load_t *l);
static inf_err_t *recognize(load_t *l);
static bool is_what_they_say(load_t *l);
static inf_model_t *ready_model(load_t *l, int64_t version);
static void decide_what_to_keep(load_t *l);
static void keep_none_or_all(load_t *l, bool same);
static inf_err_t *unread(load_t *l, inf_err_t *err);
static inf_err_t *no_version(load_t *l, inf_err_t *err);
static void reject(load_t *l, const inf_err_t *err,
    char serving[INF_SERVING_MAX]);
static inf_err_t *mark_loading(load_t *l);
static void load_free(load_t *l);

inf_core_config_t *
inf_lifecycle_core_config(inf_lifecycle_t *lc)
{
    inf_lock(&lc->lock);
    inf_core_config_t *c = inf_core_config_ref(lc->core_config);
    inf_unlock(&lc->lock);
    return c;
}

inf_err_t *
inf_lifecycle_run_load(inf_lifecycle_t *lc, inf_edit_t *edit,
    inf_loading_place_t *place, inf_run_t *run)
{
    load_t *l = edit->load;
    inf_err_t *err = NULL;

    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        if (l == NULL) {
            return inf_err_add(inf_err_nomem(), "model \"%s\" is not loaded",
                edit->record->name);
        }
        *l = (load_t) {
            .lc = lc,
            .edit = edit,
            .record = edit->record,
            .core_config = inf_lifecycle_core_config(lc),
            .rejection = INF_REJECTED_UNREAD
        };
        inf_link_init(&l->call.link);

        err = begin(l);
        if (err != NULL || l->waits) {      /* it begins again later         */
            *run = l->waits ? INF_RUN_LISTING : *run;
            load_free(l);
            return err;
        }
        *run = l->ensemble ? inf_lifecycle_gather(l) : *run;
    } else if (l->record->stage == INF_LOAD_GATHERS) {
        *run = inf_lifecycle_gather(l);
    }
    if (*run == INF_RUN_LISTING || *run == INF_RUN_COMPOSING) {
        edit->load = l;
        return NULL;
    }

    edit->load = NULL;
    err = l->count > 0 ? finish(l, place, run) : NULL;
    *run = inf_load_is_late(l) ? INF_RUN_LATE : *run;
    load_free(l);
    return err;
}

/* Reads the model; no error and no version: nothing to do. */
static inf_err_t *
begin(load_t *l)
{
    found_t found = { .list = NULL };

    inf_err_t *err = prepare(l, &found);
    if (found.list != NULL) {
        inf_scan_fini(&found.scan);
        inf_repository_list_unref(found.list);
    }
    return err;
}

static inf_err_t *
prepare(load_t *l, found_t *f)
{
    if (l->edit->kind == INF_EDIT_REFRESH && !is_stale(l)) {
        return NULL;
    }

    inf_err_t *err = check_stuck(l);
    if (err == NULL) {
        err = check_name(l, f);
    }
    if (l->waits) {
        return err;
    }
    if (err == NULL && !l->core_config->values->code_upload) {
        err = inf_code_upload_check_files(l->edit->override);
    }
    if (err != NULL) {
        return no_version(l, err);
    }

    err = open_source(l, f);
    if (l->waits) {
        return err;
    }
    if (err != NULL) {
        return unread(l, err);
    }

    bool same = nothing_to_do(l);
    if (same && (l->source == NULL || !is_composed(l->record->source))) {
        return NULL;
    }
    if (same) {                         /* composing models may have changed */
        inf_model_source_unref(l->source);
        l->source = inf_model_source_ref(l->record->source);
    }

    if (inf_load_is_fresh(l)) {
        note_who_wants_it(l);
        err = choose_read(l, f);
        if (err != NULL || l->waits) {
            return err;
        }
    }

    l->ensemble = is_composed(l->source);
    err = inf_load_is_fresh(l) ? NULL
        : l->ensemble ? choose(l) : choose_again(l);
    if (err == NULL) {
        decide_what_to_keep(l);
        err = mark_loading(l);
    }
    return err != NULL ? no_version(l, err) : NULL;
}

static void
note_who_wants_it(load_t *l)
{
    inf_lock(&l->lc->lock);
    if ((l->edit->who & INF_WANTED_ITSELF) != 0) {
        l->record->who |= INF_WANTED_ITSELF;
    } else if (!inf_model_record_is_held(l->record)) {
        l->record->who &= ~INF_WANTED_ITSELF;
    }
    inf_unlock(&l->lc->lock);
}

static inf_err_t *
check_stuck(load_t *l)
{
    inf_lock(&l->lc->lock);
    uint32_t stuck = l->record->stuck;
    inf_unlock(&l->lc->lock);

    return stuck < INF_MODEL_STUCK_MAX ? NULL
        : inf_err_new(INF_ERR_UNAVAILABLE, "%u loads of it were given up and"
            " have not returned: it can be loaded again when one of them has,"
            " or by the next core", stuck);
}

/* Checks the name of a model whose files come with the request: the client
   chose it, and backends put names into commands (CVE-2025-23316: Python's
   stub).  An odd name waits until all repositories that may have the model are
   listed. */
static inf_err_t *
check_name(load_t *l, found_t *f)
{
    const char *odd = inf_model_name_odd(l->record->name);
    if (odd == NULL || !inf_override_has_files(l->edit->override)) {
        return NULL;
    }

    inf_err_t *err = find(l, f);
    if (err != NULL || l->waits || f->model != NULL) {
        return err;
    }

    char one[8] = { odd[0] };
    char text[INF_SCAN_PRINTABLE];
    for (int i = 1; i < 4 && (odd[i] & 0xc0) == 0x80; i++) {
        one[i] = odd[i];                /* rest of a UTF-8 character         */
    }

    /* begins with Triton's words for Python's models */
    return inf_err_new(INF_ERR_INVALID_ARG, "Invalid stub name: contains"
        " invalid characters: its name has the character '%s': a model that"
        " comes with a request is named by A-Z, a-z, 0-9, '_', '.' and '-'"
        " alone, unless a repository has a directory of that name",
        inf_scan_printable(one, text));
}

/* Finds the model.  l->waits: it is in no repository, but one that may have it
   is not listed yet. */
static inf_err_t *
find(load_t *l, found_t *f)
{
    const inf_model_id_t *id = &l->record->graph.id;
    if (f->list != NULL) {
        return NULL;
    }

    inf_repository_list_t *list = inf_repositories_take(
        l->lc->options.repositories);
    inf_err_t *err = inf_repository_list_scan(list, id, &f->scan);
    if (err != NULL) {
        inf_repository_list_unref(list);
        return err;
    }

    f->list = list;
    f->model = inf_scan_find(&f->scan, id->name);
    l->waits = f->model == NULL && l->edit->kind == INF_EDIT_LOAD
        && inf_lifecycle_is_pending(l->lc, l->edit, list, id->space);
    return NULL;
}

static inf_source_query_t
query_of(const load_t *l, const found_t *f)
{
    return (inf_source_query_t) {
        .list = f->list,
        .scan = &f->scan,
        .name = l->record->name,
        .override = l->edit->override,
        .agents = l->lc->agents,
        .core_config = l->core_config->values
    };
}

static inf_err_t *
choose_read(load_t *l, found_t *f)
{
    const inf_source_query_t q = query_of(l, f);

    /* before agents run, which it may name */
    Inference__ModelConfig *sent;
    inf_err_t *err = parse_sent(l, &sent);
    if (err != NULL) {
        return unread(l, err);
    }
    if (sent != NULL) {
        err = check_sent(l, f, sent);
        inf_message_free(&sent->base);
    }
    if (l->waits) {
        return err;
    }
    if (err != NULL) {
        return no_version(l, err);
    }

    err = inf_load_call_begin(l, -1, NULL);     /* agents run here           */
    if (err == NULL) {
        err = inf_model_source_read(l->source, &q);
        inf_load_call_end(l);
    }
    if (err != NULL) {
        return unread(l, err);
    }

    err = l->core_config->values->code_upload ? NULL
        : inf_code_upload_check_backend(l->edit->override,
            l->source->config->msg->backend);
    if (err == NULL) {
        err = choose(l);
    }
    if (err == NULL) {
        err = recognize(l);
    }
    return err != NULL ? no_version(l, err) : NULL;
}

/* Parses the request's configuration; NULL: none, or code upload is allowed. */
static inf_err_t *
parse_sent(load_t *l, Inference__ModelConfig **out)
{
    *out = NULL;
    if (l->core_config->values->code_upload || !l->source->overridden) {
        return NULL;
    }

    const inf_config_options_t opt = {
        .override_json = inf_slice_str(l->edit->override->config)
    };
    return inf_model_config_parse(NULL, NULL, &opt, NULL, out);
}

/* Checks the request's configuration against that of the repository, which a
   model with uploaded files may have, too. */
static inf_err_t *
check_sent(load_t *l, found_t *f, const Inference__ModelConfig *sent)
{
    const inf_config_options_t opt = {
        .config_name = l->core_config->values->model_config_name
    };
    Inference__ModelConfig *own = NULL;

    inf_err_t *err = inf_model_source_check_sent(l->source, opt.config_name,
        sent);
    if (err == NULL || l->source->private_dir == NULL) {
        return err;
    }

    inf_err_free(err);
    err = find(l, f);
    if (err != NULL || l->waits) {
        return err;
    }

    if (f->model != NULL && !f->model->duplicate) {
        err = inf_model_config_parse(
            f->list->items[f->model->repository]->storage, f->model->dir,
            &opt, NULL, &own);
    }
    if (err == NULL) {
        err = inf_code_upload_check_config(sent, own);
    }
    if (own != NULL) {
        inf_message_free(&own->base);
    }
    return err;
}

static inf_err_t *
finish(load_t *l, inf_loading_place_t *place, inf_run_t *run)
{
    if (l->ensemble) {
        inf_lifecycle_take_composing(l);
        bool same = !inf_load_is_fresh(l);
        for (size_t i = 0; i < l->count; i++) {
            same = same && l->versions[i].keep;
        }
        if (same) {
            inf_lock(&l->lc->lock);
            inf_graph_plan_t *plan = inf_graph_drop(&l->record->graph.asked);
            inf_unlock(&l->lc->lock);
            free(plan);
            return NULL;
        }
    }

    *run = l->edit->kind == INF_EDIT_REFRESH && inf_load_is_fresh(l)
        ? INF_RUN_RECOVERED : INF_RUN_CHANGED;
    return inf_lifecycle_build(l, place);
}

/* Whether it is an ensemble; source may be NULL. */
static bool
is_composed(const inf_model_source_t *source)
{
    return source != NULL && inf_config_is_ensemble(source->config->msg)
        && source->config->msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

/* Whether the record's ensemble is not made of what serves now. */
static bool
is_stale(load_t *l)
{
    inf_model_record_t *r = l->record;

    inf_lock(&l->lc->lock);
    bool needed = inf_graph_verdict(&l->lc->set.graph, &r->graph)
        == INF_GRAPH_STALE;
    if (needed && r->source == NULL) {
        needed = r->retry;
        l->edit->override = r->override;
        r->override = NULL;
        l->edit->who = r->who & INF_WANTED_ITSELF;
    }
    inf_unlock(&l->lc->lock);
    return needed;
}

void
inf_lifecycle_run_unload(inf_lifecycle_t *lc, inf_edit_t *edit)
{
    inf_model_record_t *r = edit->record;
    inf_reason_room_t room = { .size = 0 };
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    inf_model_source_t *source = inf_model_set_unload(&lc->set, edit, &gone);
    inf_lifecycle_drain_locked(lc, &gone, &room);
    inf_unlock(&lc->lock);
    inf_lifecycle_publish_unlock(lc);

    inf_reason_room_fini(&room);
    if (source != NULL && edit->cause == INF_UNLOAD_DROPPED) {
        inf_log(INF_LOG_NOTICE, "model=%s is not among those to be loaded any"
            " more: it is unloaded", r->title);
    } else if (source != NULL && edit->place != NULL) {
        inf_log(INF_LOG_NOTICE, "model=%s is in %s now: it is unloaded",
            r->title, edit->place);
    }
    inf_model_source_leave(source);
    inf_lifecycle_let_go(&gone);
}

/* The error of a model found nowhere is that of a failed listing, if any. */
static inf_err_t *
open_source(load_t *l, found_t *f)
{
    inf_model_record_t *r = l->record;

    if (l->edit->kind == INF_EDIT_REBUILD
        || (l->edit->kind == INF_EDIT_REFRESH && r->source != NULL))
    {
        l->source = r->source != NULL ? inf_model_source_ref(r->source) : NULL;
        return NULL;
    }

    inf_err_t *err = inf_override_has_files(l->edit->override) ? NULL
        : find(l, f);
    if (err != NULL || l->waits) {
        return err;
    }

    const inf_source_query_t q = query_of(l, f);
    err = inf_model_source_open(&q, &l->source);
    inf_err_t *failure = err != NULL && f->list != NULL && f->model == NULL
        && inf_err_code(err) == INF_ERR_NOT_FOUND
        ? inf_repository_list_failure(f->list, r->space) : NULL;
    if (failure == NULL) {
        return err;
    }

    inf_err_free(err);
    return failure;
}

static bool
nothing_to_do(load_t *l)
{
    inf_model_record_t *r = l->record;
    bool same = true;

    if (l->edit->kind == INF_EDIT_REBUILD) {
        return l->source == NULL;       /* unloaded meanwhile                */
    }
    if (l->edit->kind == INF_EDIT_REFRESH) {
        return false;
    }
    if (l->edit->override != NULL || r->source == NULL
        || r->source->private_dir != NULL
        || r->source->repository != l->source->repository
        || strcmp(r->source->dir, l->source->dir) != 0
        || !inf_model_stamp_equal(&r->source->stamp, &l->source->stamp))
    {
        return false;
    }

    inf_lock(&l->lc->lock);
    same = inf_model_record_any_ready(r);
    for (size_t i = 0; same && i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        same = v->state == INF_VERSION_READY
            || v->state == INF_VERSION_UNLOADING
            || inf_record_version_is_unloaded(v);
    }
    if (same) {                         /* earlier failures are void         */
        inf_model_record_explain(r, NULL);
    }
    inf_unlock(&l->lc->lock);
    return same;
}

static inf_err_t *
choose(load_t *l)
{
    int64_t *versions;
    size_t count;

    inf_err_t *err = inf_versions_select(
        l->source->config->msg->version_policy, l->record->name,
        l->source->versions, l->source->version_count, &versions, &count);
    if (err != NULL) {
        if (inf_err_code(err) == INF_ERR_INVALID_ARG) {
            l->rejection = INF_REJECTED_VERSIONLESS;
        }
        return err;
    }

    l->versions = calloc(count + 1, sizeof(*l->versions));
    if (l->versions == NULL) {
        free(versions);
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        l->versions[i].version = versions[i];
    }
    l->count = count;
    free(versions);
    return NULL;
}

/* Chooses the versions of a rebuild: READY ones are kept, the one whose process
   has exited is built. */
static inf_err_t *
choose_again(load_t *l)
{
    const inf_model_record_t *r = l->record;

    l->versions = calloc(r->version_count + 1, sizeof(*l->versions));
    if (l->versions == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&l->lc->lock);
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        bool ready = v->state == INF_VERSION_READY;
        if (ready || v->version == l->edit->version) {
            l->versions[l->count++] = (load_version_t) {
                .version = v->version, .keep = ready
            };
        }
    }
    inf_unlock(&l->lc->lock);
    return NULL;
}

/* Replaces a configuration that the model reported itself, completed by its
   backend, by the one it was made from. */
static inf_err_t *
recognize(load_t *l)
{
    const inf_model_source_t *now = l->record->source;

    if (l->edit->kind == INF_EDIT_REBUILD || now == NULL
        || inf_model_source_says(l->source, now->config->msg, true)
        || inf_config_is_ensemble(now->config->msg) || !is_what_they_say(l))
    {
        return NULL;
    }

    return inf_model_source_adopt(l->source, now);
}

static bool
is_what_they_say(load_t *l)
{
    bool any = false;
    bool same = true;

    for (size_t i = 0; same && i < l->count; i++) {
        inf_model_t *model = ready_model(l, l->versions[i].version);
        if (model == NULL) {
            continue;
        }

        any = true;
        inf_lock(&model->config_lock);
        same = inf_model_source_says(l->source, model->config->msg, true);
        inf_unlock(&model->config_lock);
        inf_model_unref(model);
    }

    return any && same;
}

/* A reference to a READY version, or NULL. */
static inf_model_t *
ready_model(load_t *l, int64_t version)
{
    inf_model_t *model = NULL;

    inf_lock(&l->lc->lock);
    const inf_record_version_t *v = inf_model_record_find(l->record, version);
    if (v != NULL && v->state == INF_VERSION_READY) {
        model = v->model;
        inf_model_ref(model);
    }
    inf_unlock(&l->lc->lock);
    return model;
}

static void
decide_what_to_keep(load_t *l)
{
    const inf_model_record_t *r = l->record;
    if (l->edit->kind == INF_EDIT_REBUILD || r->source == NULL) {
        return;
    }

    bool same = inf_model_source_says(r->source, l->source->config->msg,
        false);
    for (size_t i = 0; i < l->count; i++) {     /* any change remakes an
                                                   ensemble                  */
        load_version_t *v = &l->versions[i];
        v->keep = l->ensemble ? !inf_load_is_fresh(l)
            : inf_model_source_same_version(r->source, l->source, v->version);
    }

    inf_lock(&l->lc->lock);
    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        const inf_record_version_t *now = inf_model_record_find(r, v->version);
        v->keep = v->keep && now != NULL && now->state == INF_VERSION_READY;
    }
    if (!l->ensemble
        && (l->source->agents != NULL || r->source->agents != NULL))
    {
        keep_none_or_all(l, same);
    }
    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        if (v->keep && !same && !l->ensemble) {
            v->stays = inf_model_record_find(r, v->version)->model;
            inf_model_ref(v->stays);
        }
    }
    inf_unlock(&l->lc->lock);
}

/* Keeps the loaded agents only if nothing but instances changes, because agents
   may read files outside of the model's directory. */
static void
keep_none_or_all(load_t *l, bool same)
{
    bool all = !same;

    for (size_t i = 0; i < l->count; i++) {
        all = all && l->versions[i].keep;
    }
    for (size_t i = 0; i < l->count; i++) {
        l->versions[i].keep = all;
    }
    l->in_place = all;
}

/* Ends a load of a model that cannot be read.  Takes err. */
static inf_err_t *
unread(load_t *l, inf_err_t *err)
{
    char serving[INF_SERVING_MAX];

    reject(l, err, serving);
    bool reload = serving[0] != '\0';
    inf_err_t *told = inf_err_new(INF_ERR_INTERNAL, "failed to load '%s',"
        " failed to poll from model repository%s%s%s", l->record->name,
        reload ? ": " : "", reload ? inf_err_msg(err) : "", serving);
    inf_err_free(err);
    return told;
}

/* Ends a load whose configuration leaves no version.  Takes err. */
static inf_err_t *
no_version(load_t *l, inf_err_t *err)
{
    char serving[INF_SERVING_MAX];

    reject(l, err, serving);
    inf_err_t *told = inf_err_new(INF_ERR_INVALID_ARG,
        "load failed for model '%s': %s%s\n", l->record->name,
        inf_err_msg(err), serving);
    inf_err_free(err);
    return told;
}

/* Makes err the model's reason; versions go on serving. */
static void
reject(load_t *l, const inf_err_t *err, char serving[INF_SERVING_MAX])
{
    inf_model_record_t *r = l->record;
    inf_reason_t *reason = inf_reason_of(err);
    bool found = l->source != NULL || inf_err_code(err) != INF_ERR_NOT_FOUND;
    bool known = found
        && inf_model_name_problem(r->name, strlen(r->name)) == NULL;

    inf_lock(&l->lc->lock);
    inf_model_set_reject(l->edit, known, l->rejection, reason);
    inf_model_record_serving(r, serving);
    inf_unlock(&l->lc->lock);

    inf_lifecycle_publish(l->lc);
    inf_log(INF_LOG_ERROR, "model \"%s\" is not loaded: %s%s", r->title,
        inf_err_msg(err), serving);
    inf_reason_unref(reason);
}

/* Makes versions that do not serve LOADING. */
static inf_err_t *
mark_loading(load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    size_t most = l->record->version_count + l->count + 1;

    inf_record_version_t *merged = calloc(most, sizeof(*merged));
    l->released = calloc(most, sizeof(*l->released));
    if (merged == NULL || l->released == NULL) {
        free(merged);
        return inf_err_nomem();
    }

    inf_lock(&lc->lock);
    bool shown = inf_model_set_begin(l, merged);
    inf_unlock(&lc->lock);
    if (shown) {
        inf_lifecycle_publish(lc);
    }
    return NULL;
}

static void
load_free(load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_err_free(l->versions[i].err);
        inf_reason_unref(l->versions[i].reason);
        inf_model_unref(l->versions[i].stays);
    }
    for (size_t i = 0; i < l->composing_count; i++) {
        inf_model_unref(l->composing[i]);
    }
    free(l->composing);
    inf_reason_unref(l->lack);
    free(l->versions);
    free(l->released);
    inf_model_source_unref(l->source);
    inf_core_config_unref(l->core_config);
    free(l);
}

void
inf_lifecycle_load_drop(load_t *l)
{
    if (l == NULL) {
        return;
    }

    if (inf_load_is_fresh(l)) {
        inf_agents_fail(l->source->agents);
    }
    load_free(l);
}
