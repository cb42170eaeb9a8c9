/* lifecycle_start.c - what is loaded when a core starts. */

#include "core/repository/lifecycle_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

static void report_problems(const inf_scan_t *scan);
static inf_err_t *start_named(inf_lifecycle_t *lc, const inf_scan_t *scan,
    const char *name, const inf_model_id_t *except, size_t except_count);
static bool is_among(const inf_model_id_t *ids, size_t count,
    const inf_model_id_t *id);
static inf_err_t *start_name(inf_lifecycle_t *lc, const inf_model_id_t *id,
    uint32_t who, inf_override_t *override);
static inf_err_t *bar(inf_lifecycle_t *lc, const inf_model_id_t *ids,
    size_t count);
static inf_err_t *start_model(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_scan_model_t *m, uint32_t who, inf_override_t *override);

inf_err_t *
inf_lifecycle_start(inf_lifecycle_t *lc, bool all, char *const *names,
    size_t count, const inf_model_id_t *except, size_t except_count)
{
    inf_scan_t scan;

    inf_err_t *err = bar(lc, except, except_count);
    all = all || (count == 1 && strcmp(names[0], "*") == 0);
    if (err != NULL || (!all && count == 0)) {
        return err;
    }

    inf_repository_list_t *list = inf_repositories_take(
        lc->options.repositories);
    err = inf_scan(list->roots, list->count, &scan);
    if (err != NULL) {
        inf_repository_list_unref(list);
        return err;
    }

    report_problems(&scan);
    if (all) {
        inf_lifecycle_listed(lc, list, scan.root_failed);
    }
    inf_repository_list_unref(list);
    inf_lifecycle_hold(lc);
    for (size_t i = 0; all && err == NULL && i < scan.model_count; i++) {
        if (i == 0 || strcmp(scan.models[i - 1].name, scan.models[i].name)
            != 0)
        {
            err = start_named(lc, &scan, scan.models[i].name, except,
                except_count);
        }
    }
    for (size_t i = 0; !all && err == NULL && i < count; i++) {
        err = start_named(lc, &scan, names[i], except, except_count);
    }
    inf_lifecycle_release(lc);

    inf_scan_fini(&scan);
    inf_lifecycle_publish(lc);              /* they are known, not ready     */
    return err;
}

inf_err_t *
inf_lifecycle_restore(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_override_t *override, bool implicit)
{
    const inf_model_id_t bare = inf_model_id(id->name);
    uint32_t who = INF_WANTED_BY_REQUEST
        | (implicit ? 0 : INF_WANTED_ITSELF);

    if (!lc->options.repositories->namespacing || id->space[0] != '\0'
        || (override != NULL && override->file_count > 0))
    {
        return start_model(lc, lc->options.repositories->namespacing ? id
            : &bare, NULL, who, override);
    }

    /* it was loaded without namespacing */
    return start_name(lc, id, who, override);
}

/* Of namespaces that aren't known yet.  Takes override. */
static inf_err_t *
start_name(inf_lifecycle_t *lc, const inf_model_id_t *id, uint32_t who,
    inf_override_t *override)
{
    inf_edit_t *edit;

    inf_err_t *err = inf_edit_new(INF_EDIT_LOAD_NAME, &edit);
    if (err != NULL) {
        inf_override_free(override);
        return err;
    }

    edit->override = override;
    edit->at_start = true;
    edit->who = who;
    inf_lifecycle_submit(lc, id, edit);
    return NULL;
}

static inf_err_t *
bar(inf_lifecycle_t *lc, const inf_model_id_t *ids, size_t count)
{
    if (count == 0) {
        return NULL;
    }

    inf_lifecycle_unbar(lc);
    lc->barred = calloc(count, sizeof(*lc->barred));
    for (size_t i = 0; lc->barred != NULL && i < count; i++) {
        inf_model_id_t *id = &lc->barred[lc->barred_count++];
        id->space = strdup(ids[i].space);
        id->name = strdup(ids[i].name);
        if (id->space == NULL || id->name == NULL) {
            inf_lifecycle_unbar(lc);
        }
    }
    return lc->barred != NULL ? NULL : inf_err_nomem();
}

bool
inf_lifecycle_is_barred(const inf_lifecycle_t *lc, const inf_model_id_t *id)
{
    return is_among(lc->barred, lc->barred_count, id);
}

void
inf_lifecycle_unbar(inf_lifecycle_t *lc)
{
    for (size_t i = 0; i < lc->barred_count; i++) {
        free((char *) (uintptr_t) lc->barred[i].space);
        free((char *) (uintptr_t) lc->barred[i].name);
    }
    free(lc->barred);
    lc->barred = NULL;
    lc->barred_count = 0;
}

static void
report_problems(const inf_scan_t *scan)
{
    for (size_t i = 0; i < scan->problem_count; i++) {
        inf_log(scan->problems[i].level, "%s", scan->problems[i].text);
    }
}

/* All models of that name but those in except; none of them: it is missing. */
static inf_err_t *
start_named(inf_lifecycle_t *lc, const inf_scan_t *scan, const char *name,
    const inf_model_id_t *except, size_t except_count)
{
    const inf_scan_model_t *m = inf_scan_find(scan, name);
    const inf_scan_model_t *end = scan->models + scan->model_count;
    const inf_model_id_t bare = inf_model_id(name);
    inf_err_t *err = NULL;

    for (size_t i = 0; m == NULL && i < except_count; i++) {
        if (strcmp(except[i].name, name) == 0) {
            return NULL;
        }
    }
    if (m == NULL) {
        return lc->options.repositories->namespacing
            ? start_name(lc, &bare, INF_WANTED_ITSELF, NULL)
            : start_model(lc, &bare, NULL, INF_WANTED_ITSELF, NULL);
    }

    for (; err == NULL && m < end && strcmp(m->name, name) == 0; m++) {
        const inf_model_id_t id = { .space = m->space, .name = m->name };
        if (!is_among(except, except_count, &id)) {
            err = start_model(lc, &id, m, INF_WANTED_ITSELF, NULL);
        }
    }
    return err;
}

static bool
is_among(const inf_model_id_t *ids, size_t count, const inf_model_id_t *id)
{
    for (size_t i = 0; i < count; i++) {
        if (inf_model_id_equal(&ids[i], id)) {
            return true;
        }
    }

    return false;
}

/* m NULL: nobody has seen it.  Takes override. */
static inf_err_t *
start_model(inf_lifecycle_t *lc, const inf_model_id_t *id,
    const inf_scan_model_t *m, uint32_t who, inf_override_t *override)
{
    inf_edit_t *edit;
    inf_model_record_t *r;
    size_t count = m != NULL ? m->version_count : 0;

    inf_err_t *err = inf_model_record_new(id, &r);
    if (err != NULL) {
        inf_override_free(override);
        return err;
    }

    r->who = INF_WANTED_AT_START;
    r->found = calloc(count + 1, sizeof(*r->found));
    err = r->found != NULL ? inf_edit_new(INF_EDIT_LOAD, &edit)
        : inf_err_nomem();
    if (err != NULL) {
        inf_model_record_free(r);
        inf_override_free(override);
        return err;
    }
    if (count > 0) {
        memcpy(r->found, m->versions, count * sizeof(*r->found));
    }
    r->found_count = count;
    edit->override = override;
    edit->at_start = true;
    edit->who = who;

    inf_lock(&lc->lock);
    bool known = inf_model_set_find(&lc->set, id) != NULL;
    if (!known) {
        inf_model_set_insert(&lc->set, r);
    }
    inf_unlock(&lc->lock);

    if (known) {                            /* named twice                   */
        inf_model_record_free(r);
        inf_edit_free(edit);
        return NULL;
    }

    inf_lifecycle_submit(lc, id, edit);
    return NULL;
}
