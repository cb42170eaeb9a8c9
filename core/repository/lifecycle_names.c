/*
 * lifecycle_names.c - what a request by name means where repositories are
 *                     namespaces: something for each model of that name.
 *
 * Such a request waits for its turn in the record of the name alone, so that
 * those for one name keep their order.  When its turn has come it is replaced
 * by one operation for each model, and ends with the last of them.
 */

#include "core/repository/lifecycle_parts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct spread_s spread_t;

/* One of the models that are meant. */
typedef struct {
    spread_t      *spread;
    char          *space;
    inf_op_kind_t  kind;
    inf_err_t     *err;             /* how it ended                          */
} part_t;

struct spread_s {
    _Atomic size_t         left;    /* parts that haven't ended              */
    part_t                *parts;
    size_t                 count;
    inf_lifecycle_done_fn  done;
    void                  *userp;
};

static void nobody_has_it(inf_lifecycle_t *lc, inf_lifecycle_op_t *op);
static inf_err_t *find_some(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    spread_t **out, bool *parked);
static inf_err_t *find_parts(inf_lifecycle_t *lc, const inf_lifecycle_op_t *op,
    const inf_repository_list_t *list, spread_t *s);
static inf_err_t *add_records(inf_lifecycle_t *lc, spread_t *s,
    const char *name, const inf_repository_list_t *list, const bool *unknown);
static bool is_moved(const inf_model_record_t *r,
    const inf_repository_list_t *list, const bool *unknown);
static bool has_part(const spread_t *s, const char *space);
static inf_err_t *add_part(spread_t *s, const char *space,
    inf_op_kind_t kind);
static inf_err_t *make_op(part_t *part, const inf_lifecycle_op_t *op,
    inf_lifecycle_op_t **out);
static void part_done(void *userp, inf_err_t *err);
static void spread_free(spread_t *s);

inf_err_t *
inf_lifecycle_run_named(inf_lifecycle_t *lc, inf_lifecycle_op_t *op,
    bool *parked)
{
    spread_t *s = NULL;

    if (op->override != NULL && op->override->file_count > 0) {
        op->kind = INF_OP_LOAD;             /* it is in no repository        */
        return NULL;
    }

    inf_err_t *err = find_some(lc, op, &s, parked);
    if (*parked) {
        return NULL;
    }
    if (err != NULL || s->count == 0) {
        spread_free(s);
        nobody_has_it(lc, op);
        return err;
    }

    s->done = op->done;
    s->userp = op->userp;
    op->done = NULL;                        /* the last part tells           */
    atomic_init(&s->left, s->count);

    /* s may be gone with the last part */
    for (size_t i = 0, count = s->count; i < count; i++) {
        part_t *part = &s->parts[i];
        const inf_model_id_t id = {
            .space = part->space, .name = op->record->name
        };
        inf_lifecycle_op_t *one;
        err = make_op(part, op, &one);
        if (err != NULL) {
            part_done(part, err);
        } else {
            inf_lifecycle_submit(lc, &id, one);
        }
    }
    return NULL;
}

/* Some models, unless there are none: then one may be awaited. */
static inf_err_t *
find_some(inf_lifecycle_t *lc, inf_lifecycle_op_t *op, spread_t **out,
    bool *parked)
{
    inf_absence_t absence = INF_ABSENCE_AGAIN;
    inf_err_t *err = NULL;

    while (err == NULL && absence == INF_ABSENCE_AGAIN) {
        inf_repository_list_t *list = inf_repositories_take(
            lc->options.repositories);
        spread_t *s = calloc(1, sizeof(*s));
        err = s != NULL ? find_parts(lc, op, list, s) : inf_err_nomem();
        absence = err != NULL || s->count > 0 || op->unload
            ? INF_ABSENCE_FINAL : inf_lifecycle_absent(lc, op, list, "");
        if (err != NULL || absence != INF_ABSENCE_FINAL) {
            spread_free(s);
            s = NULL;
        }
        *out = s;
        inf_repository_list_unref(list);
    }

    *parked = absence == INF_ABSENCE_PARKED;
    return err;
}

/* The operation says so itself. */
static void
nobody_has_it(inf_lifecycle_t *lc, inf_lifecycle_op_t *op)
{
    op->kind = op->unload ? INF_OP_UNLOAD : INF_OP_LOAD;
    if (op->start) {
        inf_lock(&lc->lock);
        op->record->wanted = true;
        op->record->asked = op->asked;
        inf_unlock(&lc->lock);
    }
}

static inf_err_t *
find_parts(inf_lifecycle_t *lc, const inf_lifecycle_op_t *op,
    const inf_repository_list_t *list, spread_t *s)
{
    const char *name = op->record->name;
    inf_scan_t scan;

    if (op->unload) {
        return add_records(lc, s, name, NULL, NULL);
    }

    bool *unknown = calloc(list->count + 1, sizeof(*unknown));
    inf_err_t *err = unknown != NULL
        ? inf_scan_one(list->roots, list->count, name, &scan)
        : inf_err_nomem();
    if (err == NULL) {
        for (size_t i = 0; i < scan.problem_count; i++) {
            unknown[scan.problems[i].repository] |=
                scan.problems[i].level == INF_LOG_ERROR;
        }
        for (size_t i = 0; err == NULL && i < scan.model_count; i++) {
            err = add_part(s, scan.models[i].space, INF_OP_LOAD);
        }
        if (err == NULL && s->count > 0) {
            err = add_records(lc, s, name, list, unknown);
        }
        inf_scan_fini(&scan);
    }

    free(unknown);
    return err;
}

/* Those that are known and have no part yet: all, or with list only those that
   don't lie where they came from any more. */
static inf_err_t *
add_records(inf_lifecycle_t *lc, spread_t *s, const char *name,
    const inf_repository_list_t *list, const bool *unknown)
{
    inf_err_t *err = NULL;

    inf_lock(&lc->lock);
    for (inf_link_t *l = lc->models.next; err == NULL && l != &lc->models;
        l = l->next)
    {
        const inf_model_record_t *r = inf_link_entry(l, inf_model_record_t,
            link);
        if (strcmp(r->name, name) != 0 || has_part(s, r->space)) {
            continue;
        }

        bool bare = r->space[0] == '\0' && r->home == NULL
            && r->version_count == 0 && !r->wanted && !r->rejected;
        if (!bare && (list == NULL || is_moved(r, list, unknown))) {
            err = add_part(s, r->space, INF_OP_UNLOAD);
        }
    }
    inf_unlock(&lc->lock);
    return err;
}

/* One that came with a request gives way to what lies in the repositories. */
static bool
is_moved(const inf_model_record_t *r, const inf_repository_list_t *list,
    const bool *unknown)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->roots[i].space, r->space) == 0) {
            return !unknown[i];
        }
    }

    return true;
}

static bool
has_part(const spread_t *s, const char *space)
{
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->parts[i].space, space) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
add_part(spread_t *s, const char *space, inf_op_kind_t kind)
{
    part_t *wider = realloc(s->parts, (s->count + 1) * sizeof(*wider));
    char *copy = strdup(space);

    s->parts = wider != NULL ? wider : s->parts;
    if (wider == NULL || copy == NULL) {
        free(copy);
        return inf_err_nomem();
    }

    wider[s->count++] = (part_t) {
        .spread = s, .space = copy, .kind = kind
    };
    return NULL;
}

static inf_err_t *
make_op(part_t *part, const inf_lifecycle_op_t *op, inf_lifecycle_op_t **out)
{
    inf_lifecycle_op_t *one;

    inf_err_t *err = inf_lifecycle_op_new(part->kind, part_done, part, &one);
    if (err != NULL) {
        return err;
    }

    one->start = op->start;
    one->inside = op->inside;
    one->implicit = op->implicit;
    one->dependents = op->dependents;
    one->asked = op->asked && part->kind == INF_OP_LOAD;
    one->wanted = op->start && part->kind == INF_OP_LOAD;
    if (op->override != NULL && part->kind == INF_OP_LOAD) {
        err = inf_override_new(&one->override);
        if (err == NULL && op->override->config != NULL) {
            err = inf_override_set_config(one->override,
                inf_slice_str(op->override->config));
        }
    }
    if (err != NULL) {
        inf_override_free(one->override);
        free(one);
        return err;
    }

    *out = one;
    return NULL;
}

/* Who asked hears the first error in the order of the namespaces. */
static void
part_done(void *userp, inf_err_t *err)
{
    part_t *part = userp;
    spread_t *s = part->spread;

    part->err = err;
    if (atomic_fetch_sub(&s->left, 1) != 1) {
        return;
    }

    err = NULL;
    for (size_t i = 0; err == NULL && i < s->count; i++) {
        err = s->parts[i].err;
        s->parts[i].err = NULL;
    }
    if (s->done != NULL) {
        s->done(s->userp, err);
    } else {
        inf_err_free(err);                  /* logged where it arose         */
    }
    spread_free(s);
}

static void
spread_free(spread_t *s)
{
    if (s == NULL) {
        return;
    }

    for (size_t i = 0; i < s->count; i++) {
        inf_err_free(s->parts[i].err);
        free(s->parts[i].space);
    }
    free(s->parts);
    free(s);
}
