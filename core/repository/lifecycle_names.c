/*
 * lifecycle_names.c - requests by name with namespaces: an edit for each model
 *                     of that name.
 *
 * Such an edit waits in the record of the bare name, so that edits of one name
 * keep their order.  In its turn it is replaced by one edit for each model; its
 * caller gets the first error in the order of namespaces.
 */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

/* A model of the name. */
typedef struct {
    char            *space;
    inf_edit_kind_t  kind;
} part_t;

typedef struct {
    part_t *items;
    size_t  count;
} parts_t;

static void become_single(inf_lifecycle_t *lc, inf_edit_t *edit);
static inf_err_t *find_parts(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, parts_t *p);
static inf_err_t *add_records(inf_lifecycle_t *lc, parts_t *p,
    const char *name, const inf_repository_list_t *list,
    const inf_scan_t *scan);
static bool is_moved(const inf_model_record_t *r,
    const inf_repository_list_t *list, const inf_scan_t *scan);
static bool has_part(const parts_t *p, const char *space);
static inf_err_t *add_part(parts_t *p, const char *space,
    inf_edit_kind_t kind);
static inf_err_t *submit_part(inf_lifecycle_t *lc, inf_edit_t *edit,
    const part_t *part, size_t order);
static inf_err_t *copy_override(const inf_override_t *from,
    inf_override_t **out);
static void parts_fini(parts_t *p);

inf_err_t *
inf_lifecycle_run_name(inf_lifecycle_t *lc, inf_edit_t *edit, inf_run_t *run)
{
    parts_t p = { .count = 0 };

    if (inf_override_has_files(edit->override)) {
        edit->kind = INF_EDIT_LOAD;         /* in no repository              */
        return NULL;
    }

    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    inf_err_t *err = find_parts(lc, edit, list, &p);
    bool waits = err == NULL && p.count == 0
        && edit->kind == INF_EDIT_LOAD_NAME
        && inf_lifecycle_is_pending(lc, edit, list, "");
    inf_repository_list_unref(list);

    if (waits) {
        *run = INF_RUN_LISTING;
    } else if (err != NULL || p.count == 0) {
        become_single(lc, edit);
    }
    size_t count = err == NULL ? p.count : 0;
    for (size_t i = 0; i < count; i++) {
        inf_err_t *one = submit_part(lc, edit, &p.items[i], i);
        if (err == NULL) {
            err = one;
        } else {
            inf_err_free(one);
        }
    }
    parts_fini(&p);
    return err;
}

/* Makes the edit one of an unknown model, which reports the error. */
static void
become_single(inf_lifecycle_t *lc, inf_edit_t *edit)
{
    edit->kind = edit->kind == INF_EDIT_UNLOAD_NAME ? INF_EDIT_UNLOAD
        : INF_EDIT_LOAD;
    inf_lock(&lc->lock);
    edit->record->who |= edit->who & (INF_WANTED_AT_START
        | (edit->at_start ? INF_WANTED_BY_REQUEST : 0));
    inf_unlock(&lc->lock);
}

static inf_err_t *
find_parts(inf_lifecycle_t *lc, const inf_edit_t *edit,
    const inf_repository_list_t *list, parts_t *p)
{
    const char *name = edit->record->name;
    inf_scan_t scan;

    if (edit->kind == INF_EDIT_UNLOAD_NAME) {
        return add_records(lc, p, name, NULL, NULL);
    }

    inf_err_t *err = inf_scan_one(list->roots, list->count, name, &scan);
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; err == NULL && i < scan.model_count; i++) {
        err = add_part(p, scan.models[i].space, INF_EDIT_LOAD);
    }
    if (err == NULL && p->count > 0) {
        err = add_records(lc, p, name, list, &scan);
    }
    inf_scan_fini(&scan);
    return err;
}

/* Adds parts for known records without one: all, or with list only records
   whose source is gone. */
static inf_err_t *
add_records(inf_lifecycle_t *lc, parts_t *p, const char *name,
    const inf_repository_list_t *list, const inf_scan_t *scan)
{
    const inf_model_record_t *r = NULL;
    inf_err_t *err = NULL;

    inf_lock(&lc->lock);
    while (err == NULL && (r = inf_model_set_next(&lc->set, r)) != NULL) {
        if (strcmp(r->name, name) != 0 || has_part(p, r->space)) {
            continue;
        }

        bool bare = r->space[0] == '\0' && r->source == NULL
            && r->version_count == 0 && !r->rejected
            && (r->who & INF_WANTED_AT_START) == 0;
        if (!bare && (list == NULL || is_moved(r, list, scan))) {
            err = add_part(p, r->space, INF_EDIT_UNLOAD);
        }
    }
    inf_unlock(&lc->lock);
    return err;
}

/* Whether the record's model is known not to be in its repository any more; a
   model that came with a request has no repository. */
static bool
is_moved(const inf_model_record_t *r, const inf_repository_list_t *list,
    const inf_scan_t *scan)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        const inf_scan_problem_t *p = &scan->problems[i];
        if (p->level == INF_LOG_ERROR
            && strcmp(list->roots[p->repository].space, r->space) == 0)
        {
            return false;
        }
    }

    return true;
}

static bool
has_part(const parts_t *p, const char *space)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->items[i].space, space) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
add_part(parts_t *p, const char *space, inf_edit_kind_t kind)
{
    part_t *wider = realloc(p->items, (p->count + 1) * sizeof(*wider));
    char *copy = strdup(space);

    p->items = wider != NULL ? wider : p->items;
    if (wider == NULL || copy == NULL) {
        free(copy);
        return inf_err_nomem();
    }

    wider[p->count++] = (part_t) { .space = copy, .kind = kind };
    return NULL;
}

static inf_err_t *
submit_part(inf_lifecycle_t *lc, inf_edit_t *edit, const part_t *part,
    size_t order)
{
    const inf_model_id_t id = {
        .space = part->space, .name = edit->record->name
    };
    bool loads = part->kind == INF_EDIT_LOAD;
    inf_edit_t *one;

    inf_err_t *err = inf_edit_new(part->kind, &one);
    if (err == NULL && loads) {
        err = copy_override(edit->override, &one->override);
    }
    if (err != NULL) {
        inf_edit_free(one);
        return err;
    }

    one->at_start = edit->at_start;
    one->cause = edit->cause;
    one->dependents = edit->dependents;
    one->who = loads ? edit->who : 0;
    one->requested = edit->requested;
    inf_lock(&lc->lock);
    inf_edit_share_caller(edit, one, order);
    inf_unlock(&lc->lock);
    inf_lifecycle_submit(lc, &id, one);
    return NULL;
}

static inf_err_t *
copy_override(const inf_override_t *from, inf_override_t **out)
{
    if (from == NULL) {
        return NULL;
    }

    inf_err_t *err = inf_override_new(out);
    if (err == NULL && from->config != NULL) {
        err = inf_override_set_config(*out, inf_slice_str(from->config));
    }
    return err;
}

static void
parts_fini(parts_t *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].space);
    }
    free(p->items);
}
