/* lifecycle_follow.c - what models do when the repositories have changed. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

/* What lies there is brought together with what is known. */
typedef struct {
    inf_lifecycle_t       *lc;
    inf_repository_list_t *list;        /* a reference                       */
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
static inf_err_t *sort_out(follow_t *f);
static bool is_settled_locked(const follow_t *f, const inf_model_record_t *r,
    const inf_repository_name_t *n);
static inf_err_t *leave(follow_t *f, const inf_model_record_t *r);
static inf_err_t *submit_all(follow_t *f, const inf_model_id_t *ids,
    size_t count, bool wanted);
static inf_op_kind_t decide_locked(const inf_lifecycle_op_t *op,
    const inf_repository_list_t *list, const inf_scan_model_t *m);

inf_err_t *
inf_lifecycle_follow(inf_lifecycle_t *lc, bool all)
{
    follow_t f = { .lc = lc, .all = all };

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
inf_lifecycle_listed(inf_lifecycle_t *lc, const bool *failed, size_t count)
{
    bool unseen = false;

    for (size_t i = 0; i < count; i++) {
        unseen = unseen || failed[i];
    }

    inf_lock(&lc->lock);
    lc->unseen = unseen;
    inf_unlock(&lc->lock);
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
        if (told) {
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

    inf_err_t *err = inf_repositories_names(f->list, &f->arena, failed,
        &f->names, &f->count);
    if (err == NULL
        && (f->all || memchr(failed, true, f->list->count) == NULL))
    {
        inf_lifecycle_listed(f->lc, failed, f->list->count);
    }
    free(failed);
    for (size_t i = 0; err == NULL && i < f->count; i++) {
        if (f->names[i].duplicate) {
            inf_log(INF_LOG_ERROR, "model '%s' appears in two or more"
                " repositories", f->names[i].id.name);
        }
    }
    if (err == NULL) {
        err = sort_out(f);
    }
    if (err == NULL) {                  /* they make room                    */
        err = submit_all(f, f->leaving, f->leaving_count, false);
    }
    if (err == NULL) {
        err = submit_all(f, f->coming, f->coming_count, f->all);
    }
    if (err == NULL && f->coming_count > 0) {
        inf_lifecycle_publish(f->lc);       /* they are known, not ready     */
    }
    return err;
}

/* What is loaded from where it lies is in neither list. */
static inf_err_t *
sort_out(follow_t *f)
{
    inf_lifecycle_t *lc = f->lc;
    inf_err_t *err = NULL;
    size_t i = 0;

    inf_lock(&lc->lock);
    size_t most = f->count + lc->model_count + 1;
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

    return err;
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
    if (r == NULL) {
        return !f->all;
    }
    if (r->busy) {
        return false;
    }
    if (r->home == NULL) {
        return f->all ? n == NULL && r->version_count == 0 && !r->wanted
            : n != NULL || r->wanted;
    }
    if (r->home->private_dir != NULL) {
        return true;
    }

    bool stays = inf_repository_list_has(f->list, r->home->repository);
    if (n == NULL || !f->all) {
        return stays;
    }
    return !n->duplicate
        && f->list->items[n->repository] == r->home->repository;
}

static inf_err_t *
submit_all(follow_t *f, const inf_model_id_t *ids, size_t count, bool wanted)
{
    for (size_t i = 0; i < count; i++) {
        inf_lifecycle_op_t *op;
        inf_err_t *err = inf_lifecycle_op_new(INF_OP_FOLLOW, NULL, NULL, &op);
        if (err != NULL) {
            return err;
        }

        op->all = f->all;
        op->wanted = wanted;
        inf_lifecycle_submit(f->lc, &ids[i], op);
    }

    return NULL;
}

/* m NULL: it lies nowhere. */
static inf_op_kind_t
decide_locked(const inf_lifecycle_op_t *op, const inf_repository_list_t *list,
    const inf_scan_model_t *m)
{
    const inf_model_record_t *r = op->record;
    const inf_model_home_t *home = r->home;

    if (home != NULL && home->private_dir != NULL) {
        return INF_OP_FOLLOW;
    }

    bool stays = home != NULL
        && inf_repository_list_has(list, home->repository);
    if (!op->all) {
        bool failed = home == NULL && m == NULL && !r->wanted;
        return failed || (home != NULL && !stays) ? INF_OP_UNLOAD
            : INF_OP_FOLLOW;
    }
    if (m == NULL) {
        return stays ? INF_OP_FOLLOW : INF_OP_UNLOAD;
    }
    if (m->duplicate) {
        return INF_OP_UNLOAD;
    }
    return stays && list->items[m->repository] == home->repository
        ? INF_OP_FOLLOW : INF_OP_LOAD;
}
