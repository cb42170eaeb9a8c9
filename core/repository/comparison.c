#include "core/repository/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/path.h"

struct inf_difference_s {
    const inf_repository_name_t *name;      /* of the inventory              */
    inf_model_stamp_t            stamp;
    bool                         settled;
};

struct inf_attempt_s {
    char             *space;
    char             *name;
    inf_model_stamp_t stamp;
};

static bool take_stamp(const inf_comparison_t *c,
    const inf_repository_name_t *n, inf_model_stamp_t *stamp, bool *differs);
static void compare_again(inf_comparison_t *c, inf_difference_t *d);
static void forget_attempts(const inf_comparison_t *c);
static struct inf_attempt_s *find_attempt(const inf_last_attempts_t *a,
    const inf_model_id_t *id);
static bool was_tried(const inf_comparison_t *c, const inf_difference_t *d);
static void note_attempt(inf_last_attempts_t *a, const inf_difference_t *d);
static void attempt_fini(struct inf_attempt_s *t);

inf_err_t *
inf_comparison_find(inf_comparison_t *c,
    const inf_repositories_t *repositories)
{
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_POLL, .polled = c->remote
    };

    inf_err_t *err = inf_inventory_new(repositories, &q, &c->inventory);
    if (err != NULL) {
        return err;
    }

    const inf_inventory_t *l = c->inventory;
    c->differences = calloc(l->count + 1, sizeof(*c->differences));
    if (c->differences == NULL) {
        return inf_err_nomem();
    }
    if (c->attempts != NULL) {
        forget_attempts(c);
    }

    for (size_t i = 0; i < l->count; i++) {
        inf_difference_t d = { .name = &l->names[i] };
        bool differs;

        if (l->list->items[d.name->repository]->listed_once
            || !inf_lifecycle_comes(c->lc, l, d.name)
            || !take_stamp(c, d.name, &d.stamp, &differs))
        {
            continue;
        }
        if (differs && !was_tried(c, &d)) {
            c->differences[c->count++] = d;
        } else {
            inf_model_stamp_fini(&d.stamp);
        }
    }
    return NULL;
}

void
inf_comparison_fini(inf_comparison_t *c)
{
    for (size_t i = 0; i < c->count; i++) {
        inf_model_stamp_fini(&c->differences[i].stamp);
    }
    free(c->differences);
    inf_inventory_unref(c->inventory);
}

/* Takes the stamp of the model's directory; false: its files cannot be compared
   now. */
static bool
take_stamp(const inf_comparison_t *c, const inf_repository_name_t *n,
    inf_model_stamp_t *stamp, bool *differs)
{
    const inf_repository_list_t *list = c->inventory->list;
    const inf_scan_root_t *root = &list->roots[n->repository];
    char *dir = inf_path_join(root->root, n->id.name);
    inf_err_t *err = dir == NULL ? inf_err_nomem()
        : inf_model_stamp_take(root->storage, dir, stamp);

    if (err == NULL) {
        *differs = inf_lifecycle_differs(c->lc, &n->id,
            list->items[n->repository], dir, stamp);
    }
    free(dir);

    bool taken = err == NULL;
    if (!taken && inf_err_code(err) != INF_ERR_NOT_FOUND) {
        inf_log(INF_LOG_WARN, "model=%s can't be compared: %s",
            n->id.name, inf_err_msg(err));
    }
    inf_err_free(err);
    return taken;
}

/* Forgets attempts before a full poll, and of models that can't be present. */
static void
forget_attempts(const inf_comparison_t *c)
{
    inf_last_attempts_t *a = c->attempts;
    size_t left = 0;

    for (size_t i = 0; i < a->count; i++) {
        const inf_model_id_t id = {
            .space = a->items[i].space, .name = a->items[i].name
        };
        const inf_repository_name_t *n = inf_inventory_find(c->inventory, &id);
        if (c->early && n != NULL && !n->duplicate
            && (n->problem == NULL || n->unsure))
        {
            a->items[left++] = a->items[i];
        } else {
            attempt_fini(&a->items[i]);
        }
    }
    a->count = left;
}

inf_err_t *
inf_comparison_unload(inf_comparison_t *c)
{
    size_t count;

    inf_err_t *err = inf_lifecycle_unload_missing(c->lc, c->inventory,
        c->done, c->done_userp, &count);
    c->queued += count;
    return err;
}

void
inf_comparison_load(inf_comparison_t *c)
{
    size_t left = 0;

    for (size_t i = 0; i < c->count; i++) {
        compare_again(c, &c->differences[i]);
    }

    inf_lifecycle_hold(c->lc);
    for (size_t i = 0; i < c->count; i++) {
        inf_difference_t *d = &c->differences[i];
        if (!d->settled) {
            c->differences[left++] = *d;
            continue;
        }

        c->queued++;
        inf_lifecycle_load_id_async(c->lc, &d->name->id, c->done,
            c->done_userp);
        if (c->attempts != NULL) {
            note_attempt(c->attempts, d);
        } else {
            inf_model_stamp_fini(&d->stamp);
        }
    }
    c->count = left;
    inf_lifecycle_release(c->lc);
}

static void
compare_again(inf_comparison_t *c, inf_difference_t *d)
{
    inf_model_stamp_t now;
    bool differs;

    d->settled = false;
    if (take_stamp(c, d->name, &now, &differs)) {
        d->settled = inf_model_stamp_equal(&d->stamp, &now);
        inf_model_stamp_fini(&d->stamp);
        d->stamp = now;
    }
}

static struct inf_attempt_s *
find_attempt(const inf_last_attempts_t *a, const inf_model_id_t *id)
{
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->items[i].name, id->name) == 0
            && strcmp(a->items[i].space, id->space) == 0)
        {
            return &a->items[i];
        }
    }

    return NULL;
}

/* Whether the last attempt at the model was with these files. */
static bool
was_tried(const inf_comparison_t *c, const inf_difference_t *d)
{
    const struct inf_attempt_s *t = c->attempts == NULL ? NULL
        : find_attempt(c->attempts, &d->name->id);

    return t != NULL && inf_model_stamp_equal(&t->stamp, &d->stamp);
}

/* Records an attempt; takes the contents of d's stamp. */
static void
note_attempt(inf_last_attempts_t *a, const inf_difference_t *d)
{
    const inf_model_id_t *id = &d->name->id;
    struct inf_attempt_s *known = find_attempt(a, id);
    if (known != NULL) {
        inf_model_stamp_fini(&known->stamp);
        known->stamp = d->stamp;
        return;
    }

    struct inf_attempt_s *wider = realloc(a->items,
        (a->count + 1) * sizeof(*wider));
    struct inf_attempt_s t = { strdup(id->space), strdup(id->name), d->stamp };
    a->items = wider != NULL ? wider : a->items;
    if (wider == NULL || t.space == NULL || t.name == NULL) {
        attempt_fini(&t);
        return;
    }
    wider[a->count++] = t;
}

void
inf_last_attempts_fini(inf_last_attempts_t *a)
{
    for (size_t i = 0; i < a->count; i++) {
        attempt_fini(&a->items[i]);
    }
    free(a->items);
}

static void
attempt_fini(struct inf_attempt_s *t)
{
    free(t->space);
    free(t->name);
    inf_model_stamp_fini(&t->stamp);
}
