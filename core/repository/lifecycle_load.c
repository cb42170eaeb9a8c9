/*
 * lifecycle_load.c - what a load, a reload and an unload do to a model.
 *
 * The end of a load is commit(); the start of an unload is
 * inf_lifecycle_run_unload() or commit(), where versions are withdrawn; its
 * end is the last reference of the home (model_home.h).
 */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/proto/message.h"
#include "core/repository/code_upload.h"
#include "core/repository/instance_change.h"
#include "core/repository/model_load.h"
#include "core/sched/entrance.h"

/* In the words of a load that is rejected. */
#define AMBIGUOUS "model appears in two or more repositories"

typedef inf_load_t load_t;
typedef inf_load_version_t load_version_t;

static inf_err_t *begin(load_t *l);
static inf_err_t *check_name(load_t *l);
static inf_err_t *find_own(load_t *l, inf_repository_list_t **list,
    inf_scan_t *scan, const inf_scan_model_t **own);
static inf_err_t *choose_read(load_t *l);
static inf_err_t *parse_sent(load_t *l, Inference__ModelConfig **out);
static inf_err_t *check_sent(load_t *l, const Inference__ModelConfig *sent);
static inf_err_t *check_inputs(load_t *l, const Inference__ModelConfig *sent);
static inf_err_t *parse_own(load_t *l, Inference__ModelConfig **out);
static inf_err_t *finish(load_t *l, bool *changed);
static void forget_failure_locked(inf_record_version_t *v);
static inf_err_t *open_home(load_t *l);
static bool is_composed(const inf_model_home_t *home);
static bool is_made_again(load_t *l);
static inf_err_t *read_watched(load_t *l, const inf_home_query_t *q);
static bool nothing_to_do(load_t *l);
static inf_err_t *choose(load_t *l);
static inf_err_t *choose_again(load_t *l);
static inf_err_t *recognize(load_t *l);
static bool is_what_they_say(load_t *l);
static inf_model_t *ready_model(load_t *l, int64_t version);
static void decide_what_to_keep(load_t *l);
static void keep_none_or_all(load_t *l, bool same);
static inf_err_t *rejected(load_t *l, inf_err_t *err);
static inf_err_t *no_version(load_t *l, inf_err_t *err);
static void note_reason_locked(inf_model_record_t *r, const char *why,
    const char *reason, char **spare);
static inf_err_t *mark_loading(load_t *l);
static void merge_versions_locked(load_t *l, inf_record_version_t *merged);
static bool build_all(load_t *l);
static inf_err_t *build(load_t *l, int64_t version, inf_model_t **out);
static inf_err_t *change(load_t *l, load_version_t *v);
static inf_err_t *build_watched(const inf_model_load_t *what,
    inf_model_t **out);
static inf_err_t *watch_begin(const inf_model_load_t *what, void **mark);
static void watch_end(const inf_model_load_t *what, void *mark);
static inf_err_t *commit(load_t *l, bool whole);
static void tell_agents(load_t *l, bool whole);
static void end_changes(load_t *l, bool whole);
static void take_over_locked(load_t *l);
static void give_up_locked(load_t *l);
static void release(load_t *l, inf_model_t *model);
static inf_err_t *failure(const load_t *l);
static void log_outcome(const load_t *l, bool whole);
static void load_fini(load_t *l);
static void load_free(load_t *l);

inf_err_t *
inf_lifecycle_run_load(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    bool *changed, bool *parked)
{
    load_t *l = op->load;
    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        if (l == NULL) {
            return inf_err_add(inf_err_nomem(), "model \"%s\" is not loaded",
                op->record->name);
        }
        *l = (load_t) {
            .lc = lc,
            .op = op,
            .record = op->record,
            .terms = inf_lifecycle_take_terms(lc)
        };
        op->load = l;

        inf_err_t *err = begin(l);
        if (l->parked) {                /* op is somebody else's             */
            *parked = true;
            load_free(l);
            return err;
        }
        if (err != NULL) {
            op->load = NULL;
            load_free(l);
            return err;
        }
        if (l->ensemble) {
            *parked = inf_lifecycle_gather(l);
        }
    } else if (l->awaits) {
        *parked = inf_lifecycle_gather(l);
    }
    if (*parked) {
        return NULL;
    }

    op->load = NULL;
    inf_err_t *err = l->count > 0 ? finish(l, changed) : NULL;
    load_free(l);
    return err;
}

/* No error and no version: there is nothing to do. */
static inf_err_t *
begin(load_t *l)
{
    if (l->op->kind == INF_OP_RENEW && !is_made_again(l)) {
        return NULL;
    }

    inf_err_t *err = check_name(l);
    if (l->parked) {
        return err;
    }
    if (err == NULL && !l->terms->options.code_upload) {
        err = inf_code_upload_check_files(l->op->override);
    }
    if (err != NULL) {
        return no_version(l, err);
    }

    err = open_home(l);
    if (l->parked) {
        return err;
    }
    if (err != NULL) {
        return rejected(l, err);
    }

    bool same = nothing_to_do(l);
    if (same && (l->home == NULL || !is_composed(l->record->home))) {
        return NULL;
    }
    if (same) {                         /* what it is made of may not be     */
        inf_model_home_unref(l->home);
        l->home = inf_model_home_ref(l->record->home);
    }

    l->fresh = l->home != l->record->home;
    if (l->fresh) {
        inf_lock(&l->lc->lock);
        l->record->graph.by_request = !l->op->implicit
            || (l->record->graph.by_request
                && inf_model_record_is_held(l->record));
        inf_unlock(&l->lc->lock);
        err = choose_read(l);
        if (err != NULL || l->parked) {
            return err;
        }
    }

    l->ensemble = is_composed(l->home);
    err = l->fresh ? NULL : l->ensemble ? choose(l) : choose_again(l);
    if (err == NULL) {
        decide_what_to_keep(l);
        err = mark_loading(l);
    }
    return err != NULL ? no_version(l, err) : NULL;
}

/* The name of a model whose files come with the request is the client's, and
   backends put names into commands (CVE-2025-23316: Python's stub).  An odd
   one waits until all repositories are listed that may have it. */
static inf_err_t *
check_name(load_t *l)
{
    const char *name = l->record->name;
    const char *odd = inf_model_name_odd(name);
    const inf_override_t *override = l->op->override;
    if (odd == NULL || override == NULL || override->file_count == 0) {
        return NULL;
    }

    inf_repository_list_t *list;
    const inf_scan_model_t *own;
    inf_scan_t scan;
    inf_err_t *err = find_own(l, &list, &scan, &own);
    if (err != NULL || l->parked) {
        return err;
    }

    bool known = own != NULL;
    inf_scan_fini(&scan);
    inf_repository_list_unref(list);
    if (known) {
        return NULL;
    }

    char one[8] = { odd[0] };
    char text[INF_SCAN_PRINTABLE];
    for (int i = 1; i < 4 && (odd[i] & 0xc0) == 0x80; i++) {
        one[i] = odd[i];                /* the rest of a character of UTF-8  */
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "its name has the character '%s':"
        " a model that comes with a request is named by A-Z, a-z, 0-9, '_',"
        " '.' and '-' alone, unless a repository has a directory of that name",
        inf_scan_printable(one, text));
}

/* The model as the repositories have it; *own NULL: none has it.  scan and
   list are the caller's to end, scan first.  l->parked: there is neither, the
   load waits for a repository that may have it and is still to be listed. */
static inf_err_t *
find_own(load_t *l, inf_repository_list_t **list, inf_scan_t *scan,
    const inf_scan_model_t **own)
{
    const inf_model_id_t id = {
        .space = l->record->space, .name = l->record->name
    };

    for (;;) {
        inf_absence_t absence = INF_ABSENCE_FINAL;

        *list = inf_repositories_take(l->terms->options.repositories);
        inf_err_t *err = inf_repository_list_scan(*list, &id, scan);
        if (err != NULL) {
            inf_repository_list_unref(*list);
            return err;
        }

        *own = inf_scan_find(scan, l->record->name);
        if (*own == NULL && l->op->kind == INF_OP_LOAD) {
            l->op->load = NULL;
            absence = inf_lifecycle_absent(l->lc, l->op, *list,
                l->record->space);
        }
        l->parked = absence == INF_ABSENCE_PARKED;
        if (!l->parked) {               /* else op is somebody else's        */
            l->op->load = l;
        }
        if (absence == INF_ABSENCE_FINAL) {
            return NULL;
        }

        inf_scan_fini(scan);
        inf_repository_list_unref(*list);
        if (l->parked) {
            return NULL;
        }
    }
}

static inf_err_t *
choose_read(load_t *l)
{
    const inf_home_query_t q = {
        .name = l->record->name,
        .space = l->record->space,
        .override = l->op->override,
        .agents = l->lc->agents,
        .auto_complete = l->terms->options.auto_complete,
        .config_name = l->terms->options.config_name
    };

    /* before agents run, which it may name */
    Inference__ModelConfig *sent;
    inf_err_t *err = parse_sent(l, &sent);
    if (err != NULL) {
        return rejected(l, err);
    }
    if (sent != NULL) {
        err = check_sent(l, sent);
        inf_message_free(&sent->base);
    }
    if (l->parked) {
        return err;
    }
    if (err != NULL) {
        return no_version(l, err);
    }

    err = read_watched(l, &q);
    if (err != NULL) {
        return rejected(l, err);
    }

    err = l->terms->options.code_upload ? NULL
        : inf_code_upload_check_backend(l->op->override,
            l->home->config->msg->backend);
    if (err == NULL) {
        err = choose(l);
    }
    if (err == NULL) {
        err = recognize(l);
    }
    return err != NULL ? no_version(l, err) : NULL;
}

/* The request's configuration as written; NULL: none came, or any is taken. */
static inf_err_t *
parse_sent(load_t *l, Inference__ModelConfig **out)
{
    *out = NULL;
    if (l->terms->options.code_upload || !l->home->overridden) {
        return NULL;
    }

    const inf_config_options_t opt = {
        .override_json = inf_slice_str(l->op->override->config)
    };
    return inf_model_config_parse(NULL, NULL, &opt, NULL, out);
}

/* The repository's configuration is read only where that matters. */
static inf_err_t *
check_sent(load_t *l, const Inference__ModelConfig *sent)
{
    Inference__ModelConfig *own;

    inf_err_t *err = check_inputs(l, sent);
    if (err != NULL) {
        return err;
    }

    err = inf_code_upload_check_config(sent, NULL);
    if (err == NULL) {
        return NULL;
    }

    inf_err_free(err);
    err = parse_own(l, &own);
    if (err != NULL || l->parked) {
        return err;
    }

    err = inf_code_upload_check_config(sent, own);
    if (own != NULL) {
        inf_message_free(&own->base);
    }
    return err;
}

/* Files that come with the request are for backends that read data alone.  A
   repository's configuration that is missing or broken says nothing. */
static inf_err_t *
check_inputs(load_t *l, const Inference__ModelConfig *sent)
{
    const inf_config_options_t opt = {
        .config_name = l->terms->options.config_name
    };
    Inference__ModelConfig *own;

    if (l->home->private_dir != NULL) {
        return NULL;
    }

    inf_err_t *err = inf_model_config_parse(l->home->storage, l->home->dir,
        &opt, NULL, &own);
    if (err != NULL || own == NULL) {
        inf_err_free(err);
        return NULL;
    }

    err = inf_code_upload_check_inputs(sent, own);
    inf_message_free(&own->base);
    return err;
}

/* As the repository has it; NULL: none has, or more than one, or the load
   waits for it as in find_own. */
static inf_err_t *
parse_own(load_t *l, Inference__ModelConfig **out)
{
    const inf_config_options_t opt = {
        .config_name = l->terms->options.config_name
    };
    inf_repository_list_t *list;
    const inf_scan_model_t *own;
    inf_scan_t scan;

    *out = NULL;
    inf_err_t *err = find_own(l, &list, &scan, &own);
    if (err != NULL || l->parked) {
        return err;
    }

    if (own != NULL && !own->duplicate) {
        err = inf_model_config_parse(list->items[own->repository]->storage,
            own->dir, &opt, NULL, out);
    }
    inf_scan_fini(&scan);
    inf_repository_list_unref(list);
    return err;
}

static inf_err_t *
finish(load_t *l, bool *changed)
{
    if (l->ensemble) {
        inf_lifecycle_take_members(l);
        bool same = !l->fresh;
        for (size_t i = 0; i < l->count; i++) {
            same = same && l->versions[i].keep;
        }
        if (same) {
            inf_lock(&l->lc->lock);
            inf_graph_plan_t *plan = inf_graph_drop_asked(&l->record->graph);
            inf_unlock(&l->lc->lock);
            free(plan);
            return NULL;
        }
    }

    *changed = true;
    l->op->made_good = l->op->kind == INF_OP_RENEW && l->fresh;
    bool whole = build_all(l);
    inf_loading_place_leave(l->op->place);  /* before it serves                */
    return commit(l, whole);
}

/* home may be NULL. */
static bool
is_composed(const inf_model_home_t *home)
{
    return home != NULL && inf_config_is_ensemble(home->config->msg)
        && home->config->msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

/* An ensemble that is not made of what serves now: from what it was made from
   before, or what couldn't be made. */
static bool
is_made_again(load_t *l)
{
    inf_model_record_t *r = l->record;

    inf_lock(&l->lc->lock);
    bool needed = inf_graph_verdict(&l->lc->graph, &r->graph)
        == INF_GRAPH_STALE;
    if (needed && r->home == NULL) {
        needed = r->retry;
        l->op->override = r->override;
        r->override = NULL;
        l->op->implicit = !r->graph.by_request;
    }
    inf_unlock(&l->lc->lock);
    return needed;
}

void
inf_lifecycle_run_unload(inf_lifecycle_t *lc, inf_lifecycle_op_t *op)
{
    inf_model_record_t *r = op->record;
    inf_model_home_t *home;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&lc->lock);
    bool forget = op->forget || inf_model_record_never_made(r);
    char *reason = r->reason;
    r->reason = op->ambiguous ? strdup(AMBIGUOUS) : NULL;
    r->rejected = op->ambiguous;
    r->wanted = op->ambiguous && r->wanted;
    r->retry = false;
    r->unloaded = true;
    r->asked = false;
    home = r->home;
    r->home = NULL;
    op->implicit = home != NULL && !r->graph.by_request;
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        inf_lifecycle_drop_locked(inf_lifecycle_withdraw_locked(v), &gone);
        if (forget || v->missing != NULL) {
            forget_failure_locked(v);
        }
        inf_record_version_found(v);
    }
    r->graph.by_request = false;
    op->plan = inf_graph_drop_made(&r->graph);
    inf_lifecycle_withdraw_dependents_locked(lc, r, &gone);
    inf_unlock(&lc->lock);

    inf_lifecycle_publish(lc);
    inf_model_home_leave(home);
    inf_lifecycle_let_go(&gone);
    free(reason);
}

/* It counts as unloaded. */
static void
forget_failure_locked(inf_record_version_t *v)
{
    if (v->state == INF_VERSION_UNAVAILABLE) {
        free(v->reason);
        v->reason = strdup(INF_REASON_UNLOADED);
    }
}

static inf_err_t *
open_home(load_t *l)
{
    inf_model_record_t *r = l->record;

    if (l->op->kind == INF_OP_RELOAD
        || (l->op->kind == INF_OP_RENEW && r->home != NULL))
    {
        l->home = r->home != NULL ? inf_model_home_ref(r->home) : NULL;
        return NULL;
    }

    return inf_lifecycle_look(l);
}

/* Agents run here, before there is any version. */
static inf_err_t *
read_watched(load_t *l, const inf_home_query_t *q)
{
    const inf_lifecycle_options_t *o = &l->lc->options;
    void *mark = NULL;

    if (o->watch == NULL) {
        return inf_model_home_read(l->home, q);
    }

    inf_err_t *err = o->watch->begin(o->watch_userp, l->record->title, -1,
        &mark);
    if (err == NULL) {
        err = inf_model_home_read(l->home, q);
        o->watch->end(o->watch_userp, mark);
    }

    return err;
}

static bool
nothing_to_do(load_t *l)
{
    inf_model_record_t *r = l->record;
    char *spare = NULL;
    bool same = true;

    if (l->op->kind == INF_OP_RELOAD) {
        return l->home == NULL;         /* unloaded meanwhile                */
    }
    if (l->op->kind == INF_OP_RENEW) {
        return false;
    }
    if (l->op->override != NULL || r->home == NULL
        || r->home->private_dir != NULL
        || r->home->repository != l->home->repository
        || strcmp(r->home->dir, l->home->dir) != 0
        || !inf_model_stamp_equal(&r->home->stamp, &l->home->stamp))
    {
        return false;
    }

    inf_lock(&l->lc->lock);
    same = inf_model_record_any_ready(r);
    for (size_t i = 0; same && i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        same = v->state == INF_VERSION_READY
            || v->state == INF_VERSION_UNLOADING
            || (v->reason != NULL
                && strcmp(v->reason, INF_REASON_UNLOADED) == 0);
    }
    if (same) {                         /* what failed before is over        */
        note_reason_locked(r, NULL, NULL, &spare);
    }
    inf_unlock(&l->lc->lock);
    free(spare);
    return same;
}

static inf_err_t *
choose(load_t *l)
{
    int64_t *versions;
    size_t count;

    inf_err_t *err = inf_model_home_choose(l->home, l->record->name,
        &versions, &count);
    if (err != NULL) {
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

/* READY versions stay chosen; one that is to be built again is not kept.  One
   that has lost a process waits for just this. */
static inf_err_t *
choose_again(load_t *l)
{
    const inf_model_record_t *r = l->record;
    int64_t version = l->op->version;

    l->versions = calloc(r->version_count + 1, sizeof(*l->versions));
    if (l->versions == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&l->lc->lock);
    for (size_t i = 0; i < r->version_count; i++) {
        bool meant = version == -1 || version == r->versions[i].version;
        if (r->versions[i].state == INF_VERSION_READY
            || (r->versions[i].lost != NULL && meant))
        {
            l->versions[l->count++] = (load_version_t) {
                .version = r->versions[i].version,
                .keep = !meant
            };
        }
    }
    inf_unlock(&l->lc->lock);
    return NULL;
}

/* A configuration that the model gave out itself, completed by its backend, is
   the one that it was made from. */
static inf_err_t *
recognize(load_t *l)
{
    const inf_model_home_t *now = l->record->home;

    if (l->op->kind == INF_OP_RELOAD || now == NULL
        || inf_model_home_says(l->home, now->config->msg)
        || inf_config_is_ensemble(now->config->msg) || !is_what_they_say(l))
    {
        return NULL;
    }

    return inf_model_home_adopt(l->home, now);
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
        same = inf_model_home_says(l->home, model->config->msg);
        inf_unlock(&model->config_lock);
        inf_model_unref(model);
    }

    return any && same;
}

/* A reference, or NULL. */
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
    if (l->op->kind == INF_OP_RELOAD || r->home == NULL) {
        return;
    }

    bool same = inf_model_home_same_config(r->home, l->home);
    for (size_t i = 0; i < l->count; i++) {     /* any change of an ensemble
                                                   makes it anew             */
        load_version_t *v = &l->versions[i];
        v->keep = l->ensemble ? !l->fresh
            : inf_model_home_same_version(r->home, l->home, v->version);
    }

    inf_lock(&l->lc->lock);
    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        const inf_record_version_t *now = inf_model_record_find(r, v->version);
        v->keep = v->keep && now != NULL && now->state == INF_VERSION_READY;
    }
    if (!l->ensemble
        && (l->home->agents != NULL || r->home->agents != NULL))
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

/* Nobody knows what agents read besides the model's folder: only where there
   is nothing but instances to change the chain that was loaded stays. */
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

/* The model can't even be looked at: what serves goes on.  Takes err. */
static inf_err_t *
rejected(load_t *l, inf_err_t *err)
{
    inf_model_record_t *r = l->record;
    char *reason = inf_reason_text(err);
    char *why = strdup(inf_err_msg(err));
    char *spare = NULL;
    bool known = inf_err_code(err) != INF_ERR_NOT_FOUND
        && inf_model_name_problem(r->name, strlen(r->name)) == NULL;

    inf_lock(&l->lc->lock);
    if (r->wanted || known || r->version_count > 0) {
        r->rejected = !inf_model_record_any_ready(r);
        note_reason_locked(r, why, reason, &spare);
    }
    if (l->op->kind == INF_OP_RENEW && r->override == NULL) {
        r->override = l->op->override;
        l->op->override = NULL;
    }
    inf_unlock(&l->lc->lock);

    inf_lifecycle_publish(l->lc);
    inf_err_log(inf_err_add(err, "model \"%s\" is not loaded", r->title));
    free(reason);
    free(why);
    free(spare);
    load_fini(l);
    return inf_err_new(INF_ERR_INTERNAL, "failed to load '%s', failed to poll"
        " from model repository", r->name);
}

/* Its configuration leaves nothing to load.  Takes err. */
static inf_err_t *
no_version(load_t *l, inf_err_t *err)
{
    inf_model_record_t *r = l->record;
    inf_err_t *told = inf_err_new(INF_ERR_INVALID_ARG,
        "load failed for model '%s': %s\n", r->name, inf_err_msg(err));

    inf_err_free(rejected(l, err));
    return told;
}

/* why goes to the model if nothing of it serves, a copy of reason to each
   READY version; NULL: there is none.  *spare is for the caller to free. */
static void
note_reason_locked(inf_model_record_t *r, const char *why, const char *reason,
    char **spare)
{
    *spare = r->reason;
    r->reason = why != NULL ? strdup(why) : NULL;

    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->state == INF_VERSION_READY) {
            free(v->reason);
            v->reason = reason != NULL ? strdup(reason) : NULL;
        }
    }
}

/* Versions that don't serve yet are LOADING from now on. */
static inf_err_t *
mark_loading(load_t *l)
{
    inf_lifecycle_t *lc = l->lc;
    inf_model_record_t *r = l->record;
    bool shown = false;

    size_t most = r->version_count + l->count + 1;
    inf_record_version_t *merged = calloc(most, sizeof(*merged));
    l->released = calloc(most, sizeof(*l->released));
    if (merged == NULL || l->released == NULL) {
        free(merged);
        return inf_err_nomem();
    }

    inf_lock(&lc->lock);
    merge_versions_locked(l, merged);
    for (size_t i = 0; i < l->count; i++) {
        inf_record_version_t *v = inf_model_record_find(r,
            l->versions[i].version);
        if (v->state != INF_VERSION_READY) {
            v->state = INF_VERSION_LOADING;
            l->versions[i].waited = v->missing != NULL;
            if (l->op->kind != INF_OP_RELOAD) {
                inf_record_version_found(v);
            }
            v->leaving = NULL;
            free(v->reason);
            v->reason = NULL;
            shown = true;
        }
    }
    r->rejected = false;
    r->unloaded = false;
    free(r->reason);
    r->reason = NULL;
    inf_unlock(&lc->lock);

    if (shown) {
        inf_lifecycle_publish(lc);
    }
    return NULL;
}

static void
merge_versions_locked(load_t *l, inf_record_version_t *merged)
{
    inf_model_record_t *r = l->record;
    size_t n = 0;
    size_t i = 0;
    size_t k = 0;

    while (i < r->version_count || k < l->count) {
        if (k == l->count || (i < r->version_count
            && r->versions[i].version <= l->versions[k].version))
        {
            k += k < l->count
                && r->versions[i].version == l->versions[k].version;
            merged[n++] = r->versions[i++];
            continue;
        }
        merged[n].version = l->versions[k++].version;
        merged[n++].state = INF_VERSION_LOADING;
    }

    free(r->versions);
    r->versions = merged;
    r->version_count = n;
}

/* false: some version can't be built; the others were tried all the same. */
static bool
build_all(load_t *l)
{
    bool whole = true;

    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        uint32_t tries = 1 + l->terms->options.load_retries;
        uint64_t start = inf_clock_ns();

        tries = v->err != NULL ? 0 : tries;     /* its members don't fit     */
        while (!v->keep && v->model == NULL && tries-- > 0) {
            inf_err_free(v->err);       /* of the try before                 */
            v->err = build(l, v->version, &v->model);
        }
        while (v->stays != NULL && v->change == NULL && tries-- > 0) {
            inf_err_free(v->err);
            v->err = change(l, v);
        }
        v->took_ns = inf_clock_ns() - start;
        if (v->err != NULL) {
            free(v->reason);
            v->reason = inf_reason_text(v->err);
            whole = false;
        }
    }

    return whole;
}

static inf_err_t *
build(load_t *l, int64_t version, inf_model_t **out)
{
    inf_loaded_t *loaded = calloc(1, sizeof(*loaded));
    if (loaded == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_destroyer_new(&loaded->destroyer);
    if (err != NULL) {
        free(loaded);
        return err;
    }

    loaded->lc = l->lc;
    loaded->record = l->record;
    loaded->home = inf_model_home_ref(l->home);
    inf_link_init(&loaded->gone);
    loaded->terms = inf_lifecycle_terms_ref(l->terms);

    const inf_model_load_t what = {
        .options = &l->terms->options,
        .backends = l->lc->backends,
        .timekeeper = &l->lc->timekeeper,
        .storage = l->home->load_storage,
        .name = l->record->name,
        .space = l->record->space,
        .title = l->record->title,
        .dir = l->home->load_dir,
        .config = l->home->config,
        .overridden = l->home->overridden,
        .version = version,
        .members = l->members,
        .member_count = l->member_count,
        .ops = &inf_lifecycle_model_ops,
        .owner = loaded
    };

    err = build_watched(&what, out);
    if (err != NULL) {
        *out = NULL;
        inf_model_home_unref(loaded->home);
        inf_lifecycle_terms_unref(loaded->terms);
        inf_destroyer_free(loaded->destroyer);
        free(loaded);
        return err;
    }

    inf_lock(&l->lc->lock);
    l->lc->alive++;
    inf_unlock(&l->lc->lock);
    return NULL;
}

/* The files are those that the version was made from. */
static inf_err_t *
change(load_t *l, load_version_t *v)
{
    const inf_loaded_t *loaded = v->stays->owner;
    const inf_model_load_t what = {
        .options = &l->lc->options,
        .timekeeper = &l->lc->timekeeper,
        .storage = loaded->home->load_storage,
        .name = l->record->name,
        .space = l->record->space,
        .title = l->record->title,
        .dir = loaded->home->load_dir,
        .config = l->home->config,
        .version = v->version
    };
    void *mark;

    inf_err_t *err = watch_begin(&what, &mark);
    if (err == NULL) {
        err = inf_instance_change_prepare(&what, v->stays, &v->change);
        watch_end(&what, mark);
    }
    return err;
}

static inf_err_t *
build_watched(const inf_model_load_t *what, inf_model_t **out)
{
    void *mark;

    inf_err_t *err = watch_begin(what, &mark);
    if (err == NULL) {
        err = inf_model_load(what, out);
        watch_end(what, mark);
    }
    return err;
}

static inf_err_t *
watch_begin(const inf_model_load_t *what, void **mark)
{
    const inf_lifecycle_options_t *o = what->options;

    *mark = NULL;
    return o->watch == NULL ? NULL : o->watch->begin(o->watch_userp,
        what->title, what->version, mark);
}

static void
watch_end(const inf_model_load_t *what, void *mark)
{
    const inf_lifecycle_options_t *o = what->options;

    if (o->watch != NULL) {
        o->watch->end(o->watch_userp, mark);
    }
}

/* All new versions come into service at once, or none of them does. */
static inf_err_t *
commit(load_t *l, bool whole)
{
    inf_lifecycle_t *lc = l->lc;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    if (whole && inf_lifecycle_members_left_locked(l)) {
        inf_unlock(&lc->lock);
        inf_lifecycle_fail_all(l);
        whole = false;
        inf_lock(&lc->lock);
    }
    if (whole) {
        take_over_locked(l);
    } else {
        give_up_locked(l);
    }
    inf_graph_plan_t *plan = inf_lifecycle_settle_locked(l, whole);
    inf_lifecycle_withdraw_dependents_locked(lc, l->record, &gone);
    inf_unlock(&lc->lock);

    inf_lifecycle_publish_unlock(lc);
    inf_err_t *err = whole ? NULL : failure(l);
    free(plan);
    log_outcome(l, whole);
    tell_agents(l, whole);
    inf_model_home_leave(l->left);
    l->left = NULL;
    inf_lifecycle_let_go(&gone);
    for (size_t i = 0; i < l->count; i++) {
        if (l->versions[i].serves != NULL) {
            inf_children_arm(lc->options.children, l->versions[i].serves);
            inf_model_unref(l->versions[i].serves);
        }
    }
    for (size_t i = 0; i < l->released_count; i++) {
        inf_entrance_close_door(l->released[i]);
        inf_model_unref(l->released[i]);
    }
    end_changes(l, whole);
    return err;
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

/* Before what was released is unreferenced, so that UNLOAD comes first. */
static void
tell_agents(load_t *l, bool whole)
{
    if (!whole || l->in_place) {
        inf_model_home_fail(l->home);
        return;
    }

    inf_model_home_complete(l->record->home);
    if (l->home != l->record->home) {
        inf_model_home_leave(l->home);      /* which it was until now        */
        l->home = NULL;
    }
}

static void
take_over_locked(load_t *l)
{
    inf_model_record_t *r = l->record;

    for (size_t i = 0, k = 0; i < r->version_count; i++) {
        inf_record_version_t *now = &r->versions[i];
        load_version_t *v = k < l->count
            && l->versions[k].version == now->version ? &l->versions[k++]
            : NULL;

        if (v == NULL) {                /* not wanted any more               */
            release(l, inf_lifecycle_withdraw_locked(now));
            continue;
        }
        if (v->keep && now->model == NULL) {
            continue;                   /* lost meanwhile                    */
        }

        free(now->reason);
        now->reason = NULL;
        if (!v->keep) {
            release(l, now->model);
            now->model = v->model;
            now->state = INF_VERSION_READY;
            inf_record_version_found(now);
            v->serves = v->model;
            inf_model_ref(v->serves);
            v->model = NULL;
        }
    }

    if (l->in_place) {
        inf_model_home_swap_settings(r->home, l->home);
        return;
    }

    inf_model_home_t *old = r->home;
    r->home = l->home;
    l->home = old;
}

/* Versions that served go on, and say what was wrong with their successors. */
static void
give_up_locked(load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        load_version_t *v = &l->versions[i];
        inf_record_version_t *now = inf_model_record_find(l->record,
            v->version);

        if (v->err != NULL) {
            free(now->reason);
            now->reason = v->reason;
            v->reason = NULL;
            if (now->state != INF_VERSION_READY) {
                now->state = INF_VERSION_UNAVAILABLE;
                free(now->missing);
                now->missing = v->waited && l->lack != NULL ? strdup(l->lack)
                    : NULL;
            }
        }
        if (v->model != NULL) {
            if (now->state != INF_VERSION_READY && v->err == NULL) {
                now->state = INF_VERSION_UNLOADING;
                now->leaving = v->model->owner;
            }
            release(l, v->model);
            v->model = NULL;
        }
    }
}

/* There is room for it since mark_loading; model may be NULL. */
static void
release(load_t *l, inf_model_t *model)
{
    if (model != NULL) {
        l->released[l->released_count++] = model;
    }
}

static inf_err_t *
failure(const load_t *l)
{
    inf_buf_t text;
    inf_buf_init(&text);

    for (size_t i = 0; i < l->count; i++) {
        const inf_err_t *err = l->versions[i].err;
        if (err != NULL) {
            inf_buf_printf(&text, "version %lld is at %s state: %s: %s;",
                (long long) l->versions[i].version,
                l->versions[i].keep ? "READY" : "UNAVAILABLE",
                inf_err_code_string(inf_err_code(err)), inf_err_msg(err));
        }
    }

    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG,
        "load failed for model '%s': %s\n", l->record->name,
        text.data != NULL ? text.data : "");
    inf_buf_fini(&text);
    return err;
}

static void
log_outcome(const load_t *l, bool whole)
{
    for (size_t i = 0; i < l->count; i++) {
        const load_version_t *v = &l->versions[i];
        if (v->err != NULL) {
            inf_log(INF_LOG_ERROR, "model=%s version=%lld %s: %s",
                l->record->title, (long long) v->version, v->keep
                ? "serves on with the instances it has" : "failed to load",
                inf_err_msg(v->err));
        } else if (!v->keep && whole) {
            inf_log(INF_LOG_INFO, "model=%s version=%lld is ready after %llu"
                " ms", l->record->title, (long long) v->version,
                (unsigned long long) (v->took_ns / 1000000));
        }
    }
}

static void
load_fini(load_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        inf_err_free(l->versions[i].err);
        free(l->versions[i].reason);
        inf_model_unref(l->versions[i].stays);
    }
    for (size_t i = 0; i < l->member_count; i++) {
        inf_model_unref(l->members[i]);
    }
    free(l->members);
    free(l->lack);
    free(l->versions);
    free(l->released);
    inf_model_home_unref(l->home);
    l->members = NULL;
    l->member_count = 0;
    l->lack = NULL;
    inf_lifecycle_terms_unref(l->terms);
    l->versions = NULL;
    l->released = NULL;
    l->home = NULL;
    l->terms = NULL;
    l->count = 0;
}

static void
load_free(load_t *l)
{
    load_fini(l);
    free(l);
}

void
inf_lifecycle_load_drop(load_t *l)
{
    if (l == NULL) {
        return;
    }

    if (l->fresh) {
        inf_model_home_fail(l->home);
    }
    load_free(l);
}
