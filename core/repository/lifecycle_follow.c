/* lifecycle_follow.c - what models do when the repositories, or what is to be
   loaded of them, have changed. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/repository/repository_names.h"

/* What lies there is brought together with what is known. */
typedef struct {
    inf_lifecycle_t       *lc;
    inf_repository_list_t *list;        /* a reference                       */
    const inf_follow_t    *want;
    bool                   all;
    inf_arena_t            arena;
    inf_repository_name_t *names;       /* sorted                            */
    size_t                 count;
    inf_model_id_t        *leaving;     /* as far as one can tell            */
    size_t                 leaving_count;
    inf_model_id_t        *coming;
    size_t                 coming_count;
} follow_t;

static inf_err_t *follow(follow_t *f);
static bool says_what_is_missing(const follow_t *f, const bool *failed);
static inf_err_t *sort_out(follow_t *f);
static bool is_settled_locked(const follow_t *f, const inf_model_record_t *r,
    const inf_repository_name_t *n);
static bool is_settled_by_name_locked(const follow_t *f,
    const inf_model_record_t *r, const inf_repository_name_t *n);
static inf_err_t *leave(follow_t *f, const inf_model_record_t *r);
static inf_err_t *add_missing(follow_t *f);
static inf_err_t *submit_all(follow_t *f, const inf_model_id_t *ids,
    size_t count, bool coming);
static bool is_named(char *const *names, size_t count, const char *name);
static bool is_known(const follow_t *f, const char *name);
static inf_op_kind_t decide_locked(inf_lifecycle_op_t *op,
    const inf_repository_list_t *list, const inf_scan_model_t *m);
static inf_op_kind_t decide_by_name_locked(inf_lifecycle_op_t *op,
    bool stays, bool awaited, const inf_scan_model_t *m);

inf_err_t *
inf_lifecycle_follow(inf_lifecycle_t *lc, const inf_follow_t *want)
{
    follow_t f = { .lc = lc, .want = want, .all = want->all };

    inf_arena_init(&f.arena);
    f.list = inf_repositories_take(lc->options.repositories);
    inf_err_t *err = follow(&f);
    inf_repository_list_unref(f.list);
    free(f.leaving);
    free(f.coming);
    inf_arena_fini(&f.arena);
    return err;
}

void
inf_lifecycle_listed(inf_lifecycle_t *lc, const inf_repository_list_t *list,
    const bool *failed)
{
    bool unseen = list->awaited_count > 0;
    bool unlisted = inf_repository_list_lacks(list, INF_REPOSITORY_AWAITED,
        "");

    for (size_t i = 0; i < list->count; i++) {
        unseen = unseen || failed[i];
    }

    inf_lock(&lc->lock);
    lc->unseen = unseen;
    lc->unlisted = unlisted;
    inf_unlock(&lc->lock);
    atomic_store(&lc->options.registry->incomplete, unlisted);
}

inf_err_t *
inf_lifecycle_run_follow(inf_lifecycle_t *lc, inf_lifecycle_op_t *op)
{
    const inf_model_id_t id = inf_model_record_id(op->record);
    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    inf_scan_t scan;

    inf_err_t *err = inf_repository_list_scan(list, &id, &scan);
    if (err == NULL) {
        const inf_scan_model_t *m = inf_scan_find(&scan, id.name);
        inf_lock(&lc->lock);
        op->kind = decide_locked(op, list, m);
        op->forget = op->kind == INF_OP_UNLOAD;
        bool told = op->forget && op->record->home != NULL;
        inf_unlock(&lc->lock);
        if (told && op->dropped) {
            inf_log(INF_LOG_INFO, "model=%s is not among those to be loaded"
                " any more: it is unloaded", op->record->title);
        } else if (told) {
            inf_log(INF_LOG_INFO, "model=%s is in %s now: it is unloaded",
                op->record->title, m == NULL ? "no repository" : m->duplicate
                ? "two repositories" : "another repository");
        }
        inf_scan_fini(&scan);
    }

    inf_repository_list_unref(list);
    return err;
}

static inf_err_t *
follow(follow_t *f)
{
    bool *failed = calloc(f->list->count + 1, sizeof(*failed));
    if (failed == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = f->want->near ? inf_repositories_names_seen(f->list,
            NULL, &f->arena, failed, &f->names, &f->count)
        : inf_repositories_names(f->list, &f->arena, failed, &f->names,
            &f->count);
    for (size_t i = 0; err == NULL && i < f->count; i++) {
        if (f->names[i].duplicate) {
            inf_log(INF_LOG_ERROR, "model '%s' appears in two or more"
                " repositories", f->names[i].id.name);
        }
    }
    if (err == NULL) {
        err = sort_out(f);
    }
    inf_lifecycle_hold(f->lc);
    if (err == NULL) {                  /* they make room                    */
        err = submit_all(f, f->leaving, f->leaving_count, false);
    }
    if (err == NULL) {
        err = submit_all(f, f->coming, f->coming_count, true);
    }
    inf_lifecycle_release(f->lc);
    if (err == NULL && says_what_is_missing(f, failed)) {
        inf_lifecycle_listed(f->lc, f->list, failed);
    }
    free(failed);
    if (err == NULL && f->coming_count > 0) {
        inf_lifecycle_publish(f->lc);       /* they are known, not ready     */
    }
    return err;
}

/* Not where models that nobody named don't count. */
static bool
says_what_is_missing(const follow_t *f, const bool *failed)
{
    const inf_follow_t *w = f->want;
    bool any = f->list->awaited_count > 0
        || memchr(failed, true, f->list->count) != NULL;

    return f->all || !any
        || (w->at_start && w->count == 1 && strcmp(w->names[0], "*") == 0);
}

/* What is loaded from where it lies is in neither list. */
static inf_err_t *
sort_out(follow_t *f)
{
    inf_lifecycle_t *lc = f->lc;
    inf_err_t *err = NULL;
    size_t i = 0;

    inf_lock(&lc->lock);
    size_t most = f->count + lc->model_count + f->want->count + 1;
    f->leaving = calloc(most, sizeof(*f->leaving));
    f->coming = calloc(most, sizeof(*f->coming));
    if (f->leaving == NULL || f->coming == NULL) {
        err = inf_err_nomem();
    }

    inf_link_t *l = lc->models.next;
    while (err == NULL && (i < f->count || l != &lc->models)) {
        const inf_model_record_t *r = l != &lc->models
            ? inf_link_entry(l, inf_model_record_t, link) : NULL;
        const inf_model_id_t id = r != NULL ? inf_model_record_id(r)
            : inf_model_id("");
        int order = i == f->count ? 1 : r == NULL ? -1
            : inf_model_id_compare(&f->names[i].id, &id);
        const inf_repository_name_t *n = order <= 0 ? &f->names[i] : NULL;
        r = order >= 0 ? r : NULL;

        if (n != NULL && n->problem != NULL) {
            n = NULL;                   /* it can be no model                */
        }
        if (n != NULL && !n->duplicate && !is_settled_locked(f, r, n)) {
            f->coming[f->coming_count++] = n->id;
        } else if (r != NULL && !is_settled_locked(f, r, n)) {
            err = leave(f, r);
        }

        i += order <= 0;
        l = order >= 0 ? l->next : l;
    }
    inf_unlock(&lc->lock);

    return err != NULL || f->all ? err : add_missing(f);
}

/* What is newly named and lies nowhere is a model that failed. */
static inf_err_t *
add_missing(follow_t *f)
{
    const inf_follow_t *w = f->want;

    for (size_t i = 0; i < w->count; i++) {
        if (!is_known(f, w->names[i]) && strcmp(w->names[i], "*") != 0
            && !is_named(w->before, w->before_count, w->names[i]))
        {
            f->coming[f->coming_count++] = inf_model_id(w->names[i]);
        }
    }

    return NULL;
}

static bool
is_known(const follow_t *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->names[i].id.name, name) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
leave(follow_t *f, const inf_model_record_t *r)
{
    const char *space = inf_arena_strdup(&f->arena, r->space,
        strlen(r->space));
    const char *name = inf_arena_strdup(&f->arena, r->name, strlen(r->name));
    if (space == NULL || name == NULL) {
        return inf_err_nomem();
    }

    f->leaving[f->leaving_count++] = (inf_model_id_t) {
        .space = space, .name = name
    };
    return NULL;
}

/* Whether nothing is to be done, for all that is known before its turn.
   Either of r and n may be NULL. */
static bool
is_settled_locked(const follow_t *f, const inf_model_record_t *r,
    const inf_repository_name_t *n)
{
    if (f->want->arrival && r != NULL && r->home == NULL && n == NULL) {
        return true;                    /* it has said so, or will           */
    }
    if (!f->all) {
        return is_settled_by_name_locked(f, r, n);
    }
    if (r == NULL || r->busy) {
        return false;
    }
    if (r->home == NULL) {
        return n == NULL && r->version_count == 0 && !r->wanted;
    }
    if (r->home->private_dir != NULL) {
        return true;
    }

    if (n == NULL) {
        return inf_repository_list_has(f->list, r->home->repository);
    }
    return !n->duplicate
        && f->list->items[n->repository] == r->home->repository;
}

/* What was unloaded by request stays away, though it is named. */
static bool
is_settled_by_name_locked(const follow_t *f, const inf_model_record_t *r,
    const inf_repository_name_t *n)
{
    const inf_follow_t *w = f->want;
    const char *name = r != NULL ? r->name : n->id.name;
    bool named = is_named(w->names, w->count, name);
    bool fresh = named && !is_named(w->before, w->before_count, name);

    if (r == NULL && w->at_start) {
        return !named || inf_lifecycle_is_barred(f->lc, &n->id);
    }
    if (r == NULL || r->busy) {
        return r == NULL && !fresh;
    }
    if (w->at_start && n != NULL && n->duplicate) {
        return r->home == NULL || r->home->private_dir != NULL;
    }
    if (!named && !r->asked && (r->wanted || w->adopt)) {
        return false;
    }
    if (r->home == NULL) {
        return !fresh && !(named && r->wanted) && (n != NULL || r->wanted);
    }
    return (!named || r->wanted) && (r->home->private_dir != NULL
        || inf_repository_list_has(f->list, r->home->repository));
}

/* As the start understands a list. */
static bool
is_named(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0
            || (count == 1 && strcmp(names[i], "*") == 0))
        {
            return true;
        }
    }

    return false;
}

static inf_err_t *
submit_all(follow_t *f, const inf_model_id_t *ids, size_t count, bool coming)
{
    const inf_follow_t *w = f->want;

    for (size_t i = 0; i < count; i++) {
        inf_lifecycle_op_t *op;
        inf_err_t *err = inf_lifecycle_op_new(INF_OP_FOLLOW, NULL, NULL, &op);
        if (err != NULL) {
            return err;
        }

        bool named = f->all || is_named(w->names, w->count, ids[i].name);
        op->all = f->all;
        op->fresh = named && (f->all || !is_named(w->before, w->before_count,
            ids[i].name));
        op->dropped = !named;
        op->adopt = w->adopt && !f->all;
        op->at_start = w->at_start && !f->all;
        op->start = w->at_start;
        op->late = w->at_start;
        op->wanted = coming && named;
        inf_lifecycle_submit(f->lc, &ids[i], op);
    }

    return NULL;
}

/* m NULL: it lies nowhere. */
static inf_op_kind_t
decide_locked(inf_lifecycle_op_t *op, const inf_repository_list_t *list,
    const inf_scan_model_t *m)
{
    const inf_model_record_t *r = op->record;
    const inf_model_home_t *home = r->home;

    bool stays = home != NULL && (home->private_dir != NULL
        || inf_repository_list_has(list, home->repository));
    bool awaited = m == NULL && inf_repository_list_lacks(list,
        INF_REPOSITORY_AWAITED, r->space);
    if (!op->all) {
        return decide_by_name_locked(op, stays, awaited, m);
    }
    if (home != NULL && home->private_dir != NULL) {
        return INF_OP_FOLLOW;
    }
    if (m == NULL) {                    /* a load serves on while it waits   */
        return stays ? INF_OP_FOLLOW : home != NULL && awaited ? INF_OP_LOAD
            : INF_OP_UNLOAD;
    }
    if (m->duplicate) {
        return INF_OP_UNLOAD;
    }
    return stays && list->items[m->repository] == home->repository
        ? INF_OP_FOLLOW : INF_OP_LOAD;
}

/* *op: whether the model is dropped, or adopted, is settled now. */
static inf_op_kind_t
decide_by_name_locked(inf_lifecycle_op_t *op, bool stays, bool awaited,
    const inf_scan_model_t *m)
{
    inf_model_record_t *r = op->record;
    bool loaded = r->home != NULL;
    bool found = m != NULL && !m->duplicate;
    bool named = !op->dropped;
    bool alone = !named && !r->asked;   /* nobody wants it any more          */
    bool adopt = alone && op->adopt && loaded && stays;
    bool drop = alone && !adopt && (op->adopt || r->wanted);
    bool retry = named && !loaded && (op->fresh || r->wanted);

    op->adopt = adopt;
    op->dropped = drop;
    op->ambiguous = op->at_start && m != NULL && m->duplicate && loaded
        && r->home->private_dir == NULL;
    if (op->ambiguous) {
        return INF_OP_UNLOAD;
    }
    if (adopt) {
        r->asked = true;
        r->wanted = false;
        return INF_OP_FOLLOW;
    }
    if (loaded && !stays) {
        return named && (found || awaited) ? INF_OP_LOAD : INF_OP_UNLOAD;
    }
    if (drop || (!loaded && m == NULL && !r->wanted)) {
        return INF_OP_UNLOAD;
    }
    return retry ? INF_OP_LOAD : INF_OP_FOLLOW;
}
