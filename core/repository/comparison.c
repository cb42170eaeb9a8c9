#include "core/repository/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/path.h"

struct inf_difference_s {
    inf_model_id_t    id;
    size_t            repository;
    inf_model_stamp_t stamp;
    bool              settled;
};

/* A model that the lifecycle knows. */
typedef struct known_s {
    inf_model_id_t  id;
    struct known_s *next;
} known_t;

typedef struct {
    inf_arena_t *arena;
    known_t     *first;
    known_t    **last;
    bool         out_of_memory;
} known_list_t;

static bool take_stamp(const inf_comparison_t *c, const inf_model_id_t *id,
    size_t repository, inf_model_stamp_t *stamp, bool *differs);
static void compare_again(inf_comparison_t *c, inf_difference_t *d);
static bool is_kept(void *userp, const inf_model_id_t *id);
static void add_known(void *userp, const inf_model_id_t *id);
static bool is_missing(const inf_comparison_t *c, const inf_model_id_t *id);
static bool may_be_unlisted(const inf_comparison_t *c,
    const inf_model_id_t *id, bool known);
static bool decides(const inf_comparison_t *c,
    const inf_repository_name_t *n);
static bool decides_missing(const inf_comparison_t *c,
    const inf_model_id_t *id);
static bool is_there(const inf_comparison_t *c, const inf_model_id_t *id);
static const inf_repository_name_t *find_name(const inf_comparison_t *c,
    const inf_model_id_t *id);
static int by_id(const void *key, const void *name);

void
inf_comparison_init(inf_comparison_t *c,
    const inf_repositories_t *repositories)
{
    inf_arena_init(&c->arena);
    c->list = inf_repositories_take(repositories);
}

void
inf_comparison_fini(inf_comparison_t *c)
{
    for (size_t i = 0; i < c->count; i++) {
        inf_model_stamp_fini(&c->differences[i].stamp);
    }
    inf_repository_list_unref(c->list);
    inf_arena_fini(&c->arena);
}

inf_err_t *
inf_comparison_find(inf_comparison_t *c)
{
    c->failed = inf_arena_calloc(&c->arena, c->list->count + 1,
        sizeof(*c->failed));
    inf_err_t *err = c->failed == NULL ? inf_err_nomem()
        : inf_repositories_names_seen(c->list, c->remote, &c->arena,
            c->failed, &c->names, &c->name_count);
    if (err != NULL) {
        return err;
    }

    c->differences = inf_arena_calloc(&c->arena, c->name_count + 1,
        sizeof(*c->differences));
    if (c->differences == NULL) {
        return inf_err_nomem();
    }
    if (c->attempts != NULL) {
        inf_last_attempts_forget(c->attempts, is_kept, c);
    }

    for (size_t i = 0; i < c->name_count; i++) {
        const inf_repository_name_t *n = &c->names[i];
        inf_difference_t d = { .id = n->id, .repository = n->repository };
        bool differs;

        if (n->duplicate || n->problem != NULL || !decides(c, n)
            || may_be_unlisted(c, &n->id, false)
            || !take_stamp(c, &n->id, n->repository, &d.stamp, &differs))
        {
            continue;
        }
        if (differs && (c->attempts == NULL
                || !inf_last_attempts_has(c->attempts, &d.id, &d.stamp)))
        {
            c->differences[c->count++] = d;
        } else {
            inf_model_stamp_fini(&d.stamp);
        }
    }
    return NULL;
}

/* false: its files can't be compared now. */
static bool
take_stamp(const inf_comparison_t *c, const inf_model_id_t *id,
    size_t repository, inf_model_stamp_t *stamp, bool *differs)
{
    const inf_scan_root_t *root = &c->list->roots[repository];
    char *dir = inf_path_join(root->root, id->name);
    inf_err_t *err = dir == NULL ? inf_err_nomem()
        : inf_model_stamp_take(root->storage, dir, stamp);

    if (err == NULL) {
        *differs = inf_lifecycle_differs(c->lc, id,
            c->list->items[repository], dir, stamp);
    }
    free(dir);

    bool taken = err == NULL;
    if (!taken && inf_err_code(err) != INF_ERR_NOT_FOUND) {
        inf_log(INF_LOG_WARN, "model=%s can't be compared: %s", id->name,
            inf_err_msg(err));
    }
    inf_err_free(err);
    return taken;
}

/* What an early poll doesn't try again. */
static bool
is_kept(void *userp, const inf_model_id_t *id)
{
    const inf_comparison_t *c = userp;
    return c->early && is_there(c, id);
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
        inf_lifecycle_load_id_async(c->lc, &d->id, c->done, c->done_userp);
        if (c->attempts != NULL) {
            inf_last_attempts_note(c->attempts, &d->id, &d->stamp);
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
    if (take_stamp(c, &d->id, d->repository, &now, &differs)) {
        d->settled = inf_model_stamp_equal(&d->stamp, &now);
        inf_model_stamp_fini(&d->stamp);
        d->stamp = now;
    }
}

inf_err_t *
inf_comparison_unload(inf_comparison_t *c)
{
    known_list_t known = { .arena = &c->arena, .last = &known.first };

    inf_lifecycle_known(c->lc, add_known, &known);
    if (known.out_of_memory) {
        return inf_err_nomem();
    }

    for (const known_t *k = known.first; k != NULL; k = k->next) {
        if (is_missing(c, &k->id)) {
            inf_log(INF_LOG_INFO, "model=%s is in no repository now, or in"
                " two: it is unloaded", k->id.name);
            c->queued++;
            inf_lifecycle_unload_missing(c->lc, &k->id, c->list, c->done,
                c->done_userp);
        }
    }
    if (memchr(c->failed, true, c->list->count) == NULL) {
        inf_lifecycle_listed(c->lc, c->list, c->failed);
    }
    return NULL;
}

static void
add_known(void *userp, const inf_model_id_t *id)
{
    known_list_t *known = userp;
    known_t *k = inf_arena_alloc(known->arena, sizeof(*k));
    const char *space = inf_arena_strdup(known->arena, id->space,
        strlen(id->space));
    const char *name = inf_arena_strdup(known->arena, id->name,
        strlen(id->name));

    if (k == NULL || space == NULL || name == NULL) {
        known->out_of_memory = true;
        return;
    }

    *k = (known_t) { .id = { .space = space, .name = name } };
    *known->last = k;
    known->last = &k->next;
}

/* What waits for a repository that was never listed isn't missing yet. */
static bool
is_missing(const inf_comparison_t *c, const inf_model_id_t *id)
{
    return !is_there(c, id) && decides_missing(c, id)
        && !may_be_unlisted(c, id, true)
        && (!inf_repository_list_any(c->list, INF_REPOSITORY_NEVER_LISTED,
                id->space)
            || !inf_lifecycle_comes_from(c->lc, id, NULL, false));
}

/* Whether it may well be there, in a repository that can't be listed now.  A
   model that is new is not held up by a remote repository. */
static bool
may_be_unlisted(const inf_comparison_t *c, const inf_model_id_t *id,
    bool known)
{
    for (size_t i = 0; i < c->list->count; i++) {
        inf_repository_t *item = c->list->items[i];
        const char *space = c->list->roots[i].space;
        bool sure = !known && inf_repository_is_remote(item);
        if (c->failed[i] && (space != NULL ? strcmp(space, id->space) == 0
            : inf_lifecycle_comes_from(c->lc, id, item, sure)))
        {
            return true;
        }
    }

    return false;
}

static bool
decides(const inf_comparison_t *c, const inf_repository_name_t *n)
{
    return c->remote != NULL ? n->polled : !n->remote;
}

/* A model that lies nowhere is decided where it came from. */
static bool
decides_missing(const inf_comparison_t *c, const inf_model_id_t *id)
{
    const inf_repository_name_t *n = find_name(c, id);
    if (n != NULL && n->problem == NULL) {
        return decides(c, n);
    }
    if (c->remote != NULL) {
        return inf_lifecycle_comes_from(c->lc, id, c->remote, true);
    }

    for (size_t i = 0; i < c->list->count; i++) {
        inf_repository_t *item = c->list->items[i];
        if (inf_repository_is_remote(item)
            && inf_lifecycle_comes_from(c->lc, id, item, true))
        {
            return false;
        }
    }
    return true;
}

/* Or may well be: what can't be followed for now. */
static bool
is_there(const inf_comparison_t *c, const inf_model_id_t *id)
{
    const inf_repository_name_t *n = find_name(c, id);
    return n != NULL && !n->duplicate && (n->problem == NULL || n->unsure);
}

/* NULL: it lies nowhere. */
static const inf_repository_name_t *
find_name(const inf_comparison_t *c, const inf_model_id_t *id)
{
    return c->name_count == 0 ? NULL
        : bsearch(id, c->names, c->name_count, sizeof(*c->names), by_id);
}

static int
by_id(const void *key, const void *name)
{
    return inf_model_id_compare(key,
        &((const inf_repository_name_t *) name)->id);
}
