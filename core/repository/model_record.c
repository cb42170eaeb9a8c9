#include "core/repository/model_record.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/instances.h"
#include "core/sched/entrance.h"
#include "core/tensor/memory.h"

/* Permitted changes of a version's state.  A READY version that another load
   replaces stays READY; one that leaves service during its load comes into
   service again, or fails. */
#define BIT(state) (1u << (state))
static const uint32_t may_become[] = {
    [INF_VERSION_UNKNOWN] = BIT(INF_VERSION_LOADING),
    [INF_VERSION_LOADING] = BIT(INF_VERSION_READY)
        | BIT(INF_VERSION_UNLOADING) | BIT(INF_VERSION_UNAVAILABLE),
    [INF_VERSION_READY] = BIT(INF_VERSION_READY) | BIT(INF_VERSION_UNLOADING)
        | BIT(INF_VERSION_UNAVAILABLE),
    [INF_VERSION_UNLOADING] = BIT(INF_VERSION_LOADING)
        | BIT(INF_VERSION_UNAVAILABLE),
    [INF_VERSION_UNAVAILABLE] = BIT(INF_VERSION_LOADING)
        | BIT(INF_VERSION_READY) | BIT(INF_VERSION_UNLOADING)
        | BIT(INF_VERSION_UNAVAILABLE)
};

inf_err_t *
inf_model_record_new(const inf_model_id_t *id, inf_model_record_t **out)
{
    inf_model_record_t *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&r->link);
    inf_link_init(&r->turn);
    inf_link_init(&r->left);
    inf_link_init(&r->to_leave);
    inf_link_init(&r->edits);
    inf_link_init(&r->graph.link);
    r->space = strdup(id->space);
    r->name = strdup(id->name);
    r->title = inf_model_id_print(id);
    if (r->space == NULL || r->name == NULL || r->title == NULL) {
        inf_model_record_free(r);
        return inf_err_nomem();
    }

    r->graph.id = (inf_model_id_t) { .space = r->space, .name = r->name };
    *out = r;
    return NULL;
}

void
inf_model_record_free(inf_model_record_t *r)
{
    if (r == NULL) {
        return;
    }

    inf_graph_remove(&r->graph);
    free(inf_graph_drop(&r->graph.asked));
    free(inf_graph_drop(&r->graph.made));
    inf_override_free(r->override);
    for (size_t i = 0; i < r->version_count; i++) {
        inf_reason_unref(r->versions[i].reason);
        inf_record_version_settle(&r->versions[i]);
        inf_model_unref(r->versions[i].model);
    }
    inf_model_source_unref(r->source);
    free(r->versions);
    inf_reason_unref(r->reason);
    free(r->title);
    free(r->name);
    free(r->space);
    free(r);
}

inf_record_version_t *
inf_model_record_find(const inf_model_record_t *r, int64_t version)
{
    for (size_t i = 0; i < r->version_count; i++) {
        if (r->versions[i].version == version) {
            return &r->versions[i];
        }
    }

    return NULL;
}

bool
inf_model_record_any_ready(const inf_model_record_t *r)
{
    for (size_t i = 0; i < r->version_count; i++) {
        if (r->versions[i].state == INF_VERSION_READY) {
            return true;
        }
    }

    return false;
}

void
inf_model_record_serving(const inf_model_record_t *r,
    char text[INF_SERVING_MAX])
{
    unsigned count = 0;
    int64_t first = 0;

    for (size_t i = 0; i < r->version_count; i++) {
        if (r->versions[i].state == INF_VERSION_READY) {
            first = count++ == 0 ? r->versions[i].version : first;
        }
    }

    text[0] = '\0';
    if (count == 1) {
        snprintf(text, INF_SERVING_MAX,
            "; not reloaded, version %lld goes on serving", (long long) first);
    } else if (count > 1) {
        snprintf(text, INF_SERVING_MAX,
            "; not reloaded, %u versions go on serving", count);
    }
}

inf_model_t *
inf_model_record_serves(const inf_model_record_t *r, int64_t version)
{
    for (size_t i = r->version_count; i-- > 0; ) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->model != NULL && (version == -1 || v->version == version)) {
            return v->model;
        }
    }

    return NULL;
}

void
inf_record_version_move(inf_record_version_t *v, inf_version_state_t to)
{
    assert((may_become[v->state] & BIT(to)) != 0);
    v->state = to;
}

bool
inf_record_version_is_unloaded(const inf_record_version_t *v)
{
    return v->state == INF_VERSION_UNAVAILABLE
        && v->reason == &inf_reason_unloaded;
}

void
inf_record_version_settle(inf_record_version_t *v)
{
    inf_reason_unref(v->exited);
    v->exited = NULL;
    v->missing = false;
    inf_edit_free(v->rebuild);
    v->rebuild = NULL;
}

void
inf_record_version_forget(inf_record_version_t *v)
{
    if (v->state == INF_VERSION_UNAVAILABLE) {
        inf_reason_unref(v->reason);
        v->reason = inf_reason_ref(&inf_reason_unloaded);
    }
}

inf_model_t *
inf_record_version_withdraw(inf_record_version_t *v)
{
    inf_model_t *model = v->model;
    if (model == NULL) {
        return NULL;
    }

    v->model = NULL;
    v->leaving = model->owner;
    inf_record_version_move(v, INF_VERSION_UNLOADING);
    inf_reason_unref(v->reason);
    v->reason = NULL;
    return model;
}

void
inf_model_record_explain(inf_model_record_t *r, inf_reason_t *reason)
{
    inf_reason_unref(r->reason);
    r->reason = inf_reason_ref(reason);
    for (size_t i = 0; i < r->version_count; i++) {
        inf_record_version_t *v = &r->versions[i];
        if (v->state == INF_VERSION_READY) {
            inf_reason_unref(v->reason);
            v->reason = inf_reason_ref(reason);
        }
    }
}

bool
inf_model_record_is_held(const inf_model_record_t *r)
{
    return r->graph.made != NULL || inf_model_record_any_ready(r)
        || (r->version_count == 0 && (r->rejected
            || (r->who & INF_WANTED_AT_START) != 0));
}

bool
inf_model_record_is_empty(const inf_model_record_t *r)
{
    return inf_list_empty(&r->edits) && r->version_count == 0 && !r->rejected
        && (r->who & INF_WANTED_AT_START) == 0 && r->graph.made == NULL;
}

bool
inf_model_record_content(const inf_model_record_t *r)
{
    if ((r->who & INF_WANTED_AT_START) != 0
        && (r->rejected || r->version_count == 0))
    {
        return false;
    }

    bool serves = inf_model_record_any_ready(r);
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        if (v->state == INF_VERSION_UNAVAILABLE
            && (v->missing || inf_model_record_never_made(r)))
        {
            continue;               /* it is reported by the reason          */
        }
        if (v->state == INF_VERSION_READY && v->model != NULL
            && inf_instances_failed_gpu(v->model) >= 0)
        {
            return false;
        }
        if (serves && v->exited == NULL) {
            continue;               /* it loads, failed or leaves beside a
                                       serving version                       */
        }
        if (v->state != INF_VERSION_READY
            && !inf_record_version_is_unloaded(v)) {
            return false;
        }
    }

    return true;
}

bool
inf_model_record_never_made(const inf_model_record_t *r)
{
    return r->retry && (r->who & INF_WANTED_AT_START) == 0;
}

/* Why a READY version cannot serve at present; NULL: it can. */
static const char *
out_of_service(const inf_record_version_t *v)
{
    if (v->state != INF_VERSION_READY || v->model == NULL) {
        return NULL;
    }

    int64_t gpu = inf_instances_failed_gpu(v->model);
    return gpu >= 0 ? inf_memory_gpu_failure(inf_memory_shared(), gpu)
        : inf_entrance_is_stuck(v->model) ? inf_reason_stuck.text : NULL;
}

void
inf_model_record_rows(const inf_model_record_t *r, bool ready_only,
    inf_lifecycle_row_fn fn, void *userp)
{
    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *v = &r->versions[i];
        const char *out = out_of_service(v);
        const char *reason = out != NULL ? out
            : v->reason != NULL ? v->reason->text : "";
        if (!ready_only || (v->state == INF_VERSION_READY && out == NULL)) {
            fn(userp, r->name, v->version, out != NULL
                ? INF_VERSION_UNAVAILABLE : v->state, reason);
        }
    }

    if (r->version_count > 0 || ready_only) {
        return;
    }
    if (r->rejected) {
        fn(userp, r->name, -1, INF_VERSION_UNAVAILABLE,
            r->reason != NULL ? r->reason->msg : "out of memory");
    } else if ((r->who & INF_WANTED_AT_START) != 0) {
        fn(userp, r->name, -1, INF_VERSION_LOADING, "");
    }
}

static bool
is_quarantined(const inf_record_version_t *v)
{
    return v->model == NULL && v->reason != NULL && v->reason->quarantined;
}

bool
inf_model_record_entry(const inf_model_record_t *r, inf_registry_entry_t *e)
{
    e->loading = r->version_count == 0
        && r->rejected != INF_REJECTED_VERSIONLESS;
    e->gone = r->unloaded && (r->who & INF_WANTED_AT_START) == 0;
    e->name = strdup(r->name);
    e->space = r->space[0] != '\0' ? strdup(r->space) : NULL;
    e->versions = calloc(r->version_count + 1, sizeof(*e->versions));
    if (e->name == NULL || e->versions == NULL
        || (r->space[0] != '\0' && e->space == NULL))
    {
        return false;
    }

    for (size_t i = 0; i < r->version_count; i++) {
        const inf_record_version_t *from = &r->versions[i];
        inf_registry_version_t *v = &e->versions[e->version_count++];
        v->version = from->version;
        v->model = from->model;
        e->loading |= from->state == INF_VERSION_LOADING;
        if (v->model != NULL) {
            inf_model_ref(v->model);
        }
        if (e->interrupted == NULL && (from->exited != NULL || from->missing
                || is_quarantined(from)))
        {
            e->rebuilt = from->exited != NULL;
            e->interrupted = inf_reason_ref(e->rebuilt ? from->exited
                : from->reason);
            e->interrupted_version = from->version;
        }
    }
    if (e->version_count == 0 && r->rejected && r->reason != NULL
        && r->reason->quarantined)
    {
        /* its agents crash the core */
        e->interrupted = inf_reason_ref(r->reason);
        e->interrupted_version = -1;
    }

    return true;
}
