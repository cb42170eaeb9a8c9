#include "core/repository/ensemble_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "core/proto/message.h"
#include "core/repository/ensemble_graph.h"
#include "core/sched/ensemble_plan.h"

#define KEY "ensemble_scheduling.step[%zu]%s"

/* A model that there is. */
typedef struct {
    inf_link_t           link;
    inf_graph_model_t    graph;
    char                *space;
    char                *name;
    inf_model_config_t  *config;        /* NULL: nobody can tell             */
    int64_t             *versions;
    size_t               version_count;
} candidate_t;

struct inf_ensemble_check_s {
    inf_ensemble_graph_t graph;
    inf_link_t           models;
    bool                 whole;
};

static const void *serves(const inf_graph_model_t *m, int64_t version);
static void last_unref(inf_model_t *model);
static candidate_t *candidate_of(const inf_graph_model_t *m);
static void candidate_free(candidate_t *c);
static bool is_ensemble(const candidate_t *c);
static inf_err_t *ask(inf_ensemble_check_t *check, candidate_t *c);
static bool find_members(inf_ensemble_check_t *check, candidate_t *c,
    inf_findings_t *f);
static void add_at(inf_findings_t *f, size_t step, const char *field,
    const char *text);
static inf_err_t *check_fit(inf_ensemble_check_t *check, candidate_t *c,
    inf_findings_t *f);
static inf_err_t *make_members(inf_ensemble_check_t *check, candidate_t *c,
    inf_model_t **members, bool *complete);
static inf_err_t *make_model(const candidate_t *c, inf_model_t **out);
static inf_err_t *find_misfit(inf_model_t *model, inf_model_t *const *members,
    size_t count, inf_findings_t *f);

static const inf_graph_ops_t graph_ops = { .serves = serves };
static const inf_model_ops_t model_ops = { .last_unref = last_unref };

inf_err_t *
inf_ensemble_check_new(bool whole, inf_ensemble_check_t **out)
{
    inf_ensemble_check_t *check = calloc(1, sizeof(*check));
    if (check == NULL) {
        return inf_err_nomem();
    }

    inf_ensemble_graph_init(&check->graph, &graph_ops);
    inf_link_init(&check->models);
    check->whole = whole;
    *out = check;
    return NULL;
}

void
inf_ensemble_check_free(inf_ensemble_check_t *check)
{
    inf_link_t *link;
    if (check == NULL) {
        return;
    }

    while ((link = inf_list_pop_front(&check->models)) != NULL) {
        candidate_t *c = inf_link_entry(link, candidate_t, link);
        free(inf_graph_drop_asked(&c->graph));
        inf_graph_remove(&c->graph);
        candidate_free(c);
    }
    free(check);
}

inf_err_t *
inf_ensemble_check_add(inf_ensemble_check_t *check, const inf_model_id_t *id,
    inf_model_config_t *config, const int64_t *versions, size_t count)
{
    candidate_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->space = strdup(id->space);
    c->name = strdup(id->name);
    c->versions = calloc(count + 1, sizeof(*c->versions));
    if (c->space == NULL || c->name == NULL || c->versions == NULL) {
        candidate_free(c);
        return inf_err_nomem();
    }

    if (count > 0) {
        memcpy(c->versions, versions, count * sizeof(*versions));
    }
    c->version_count = count;
    c->config = config != NULL ? inf_model_config_ref(config) : NULL;

    const inf_model_id_t own = { .space = c->space, .name = c->name };
    inf_graph_add(&check->graph, &c->graph, &own);
    inf_list_push_back(&check->models, &c->link);
    return is_ensemble(c) ? ask(check, c) : NULL;
}

inf_err_t *
inf_ensemble_check_find(inf_ensemble_check_t *check, const inf_model_id_t *id,
    inf_findings_t *f, inf_model_config_t **config)
{
    for (inf_graph_model_t *m = NULL;
        (m = inf_graph_next_named(&check->graph, id->name, m)) != NULL; )
    {
        candidate_t *c = candidate_of(m);
        if (!inf_model_id_equal(&m->id, id) || !is_ensemble(c)) {
            continue;
        }

        *config = c->config;
        if (inf_graph_circular(&check->graph, m)) {
            char *text = inf_graph_circle_text(m);
            inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling",
                "%s", text != NULL ? text : "circular dependency");
            free(text);
            return NULL;
        }
        return find_members(check, c, f) ? check_fit(check, c, f) : NULL;
    }

    return NULL;
}

static const void *
serves(const inf_graph_model_t *m, int64_t version)
{
    const candidate_t *c = candidate_of(m);

    if (c->config == NULL || version == -1) {
        return c;
    }
    for (size_t i = 0; i < c->version_count; i++) {
        if (c->versions[i] == version) {
            return c;
        }
    }
    return NULL;
}

static candidate_t *
candidate_of(const inf_graph_model_t *m)
{
    return inf_link_entry((inf_graph_model_t *) (uintptr_t) m, candidate_t,
        graph);
}

static void
candidate_free(candidate_t *c)
{
    inf_model_config_unref(c->config);
    free(c->space);
    free(c->name);
    free(c->versions);
    free(c);
}

static bool
is_ensemble(const candidate_t *c)
{
    return c->config != NULL && inf_config_is_ensemble(c->config->msg)
        && c->config->msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

static inf_err_t *
ask(inf_ensemble_check_t *check, candidate_t *c)
{
    const Inference__ModelEnsembling *e = c->config->msg->ensemble_scheduling;
    inf_graph_plan_t *plan;
    size_t len = 0;

    for (size_t i = 0; i < e->n_step; i++) {
        len += strlen(e->step[i]->model_name);
    }

    inf_err_t *err = inf_graph_plan_new(e->n_step, len, &plan);
    if (err != NULL) {
        return err;
    }
    for (size_t i = 0; i < e->n_step; i++) {
        inf_graph_plan_add(plan, e->step[i]->model_name,
            e->step[i]->model_version);
    }
    inf_graph_ask(&check->graph, &c->graph, plan);
    return NULL;
}

/* Whether all are there. */
static bool
find_members(inf_ensemble_check_t *check, candidate_t *c, inf_findings_t *f)
{
    size_t before = inf_findings_total(f);
    bool all = true;
    char text[1024];

    for (size_t i = 0; i < c->graph.asked->count; i++) {
        const inf_graph_step_t *step = &c->graph.asked->steps[i];
        inf_graph_model_t *target;

        switch (inf_graph_find(&check->graph, &c->graph, step, &target)) {
        case INF_GRAPH_SERVES:
        case INF_GRAPH_NONE:
            break;
        case INF_GRAPH_UNKNOWN:
        case INF_GRAPH_AMBIGUOUS:
            all = false;
            if (!check->whole) {
                break;                  /* it may lie in a remote one        */
            }
            snprintf(text, sizeof(text), "ensemble %s contains models that"
                " are not available or ambiguous: %s", c->name, step->name);
            add_at(f, i, ".model_name", text);
            break;
        case INF_GRAPH_NO_VERSION:
            snprintf(text, sizeof(text), "ensemble '%s' depends on '%s' whose"
                " required version %lld is not loaded.", c->name, step->name,
                (long long) step->version);
            add_at(f, i, ".model_version", text);
            break;
        }
    }

    return all && inf_findings_total(f) == before;
}

static void
add_at(inf_findings_t *f, size_t step, const char *field, const char *text)
{
    char key[96];

    snprintf(key, sizeof(key), KEY, step, field);
    inf_findings_add(f, INF_ERR_INVALID_ARG, key, "%s", text);
}

/* As a load does it, with models that have nothing but a configuration. */
static inf_err_t *
check_fit(inf_ensemble_check_t *check, candidate_t *c, inf_findings_t *f)
{
    size_t count = c->graph.asked->count;
    inf_model_t **members = calloc(count + 1, sizeof(inf_model_t *));
    inf_model_t *model = NULL;
    bool complete = true;

    inf_err_t *err = members == NULL ? inf_err_nomem()
        : make_model(c, &model);
    if (err == NULL) {
        err = make_members(check, c, members, &complete);
    }
    if (err == NULL && complete) {
        err = find_misfit(model, members, count, f);
    }

    for (size_t i = 0; members != NULL && i < count; i++) {
        inf_model_unref(members[i]);
    }
    free(members);
    inf_model_unref(model);
    return err;
}

/* *complete is false where a backend may have something to add. */
static inf_err_t *
make_members(inf_ensemble_check_t *check, candidate_t *c,
    inf_model_t **members, bool *complete)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && *complete && i < c->graph.asked->count;
        i++)
    {
        inf_graph_model_t *target;
        inf_graph_find(&check->graph, &c->graph, &c->graph.asked->steps[i],
            &target);
        const candidate_t *member = target != NULL ? candidate_of(target)
            : NULL;

        *complete = member != NULL && member->config != NULL
            && member->config->msg->n_input > 0
            && member->config->msg->n_output > 0;
        if (*complete) {
            err = make_model(member, &members[i]);
        }
    }

    return err;
}

static inf_err_t *
make_model(const candidate_t *c, inf_model_t **out)
{
    ProtobufCMessage *built;
    inf_model_t *model = inf_model_new(c->name, -1, "");

    if (model == NULL) {
        return inf_err_nomem();
    }
    model->ops = &model_ops;

    inf_err_t *err = inf_message_clone(&c->config->msg->base, &built);
    if (err == NULL) {
        model->built = (Inference__ModelConfig *) (void *) built;
        model->decoupled = model->built->model_transaction_policy != NULL
            && model->built->model_transaction_policy->decoupled;
        err = inf_config_tensors_new(model->built, &model->tensors);
    }
    if (err != NULL) {
        inf_model_free(model);
        return err;
    }

    *out = model;
    return NULL;
}

static void
last_unref(inf_model_t *model)
{
    inf_model_free(model);
}

/* The step that is to blame is the first with which it doesn't fit. */
static inf_err_t *
find_misfit(inf_model_t *model, inf_model_t *const *members, size_t count,
    inf_findings_t *f)
{
    Inference__ModelEnsembling *e = model->built->ensemble_scheduling;
    inf_plan_t *plan;

    inf_err_t *whole = inf_plan_new(model, members, count, &plan);
    if (whole == NULL) {
        inf_plan_free(plan);
        return NULL;
    }
    if (inf_err_code(whole) != INF_ERR_INVALID_ARG) {
        return whole;
    }

    for (e->n_step = 1; e->n_step < count; e->n_step++) {
        inf_err_t *err = inf_plan_new(model, members, e->n_step, &plan);
        if (err == NULL) {
            inf_plan_free(plan);
            continue;
        }

        bool same = strcmp(inf_err_msg(err), inf_err_msg(whole)) == 0;
        inf_err_free(err);
        if (same) {
            break;
        }
    }

    add_at(f, e->n_step - 1, "", inf_err_msg(whole));
    e->n_step = count;
    inf_err_free(whole);
    return NULL;
}
