#include "core/repository/ensemble_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/repository/ensemble_graph.h"
#include "core/sched/ensemble.h"
#include "core/sched/ensemble_plan.h"

#define KEY "ensemble_scheduling.step[%zu]%s"

/* A model of the repositories. */
typedef struct {
    inf_link_t           link;
    inf_graph_model_t    graph;
    inf_model_t         *draft;         /* NULL: not known                   */
    int64_t             *versions;
    size_t               version_count;
} candidate_t;

struct inf_ensemble_check_s {
    inf_ensemble_graph_t graph;
    inf_link_t           models;
    bool                 whole;
};

static const void *serves(const inf_graph_model_t *m, int64_t version);
static candidate_t *candidate_of(const inf_graph_model_t *m);
static bool is_ensemble(const candidate_t *c);
static inf_err_t *ask(inf_ensemble_check_t *check, candidate_t *c);
static bool find_lack(inf_ensemble_check_t *check, candidate_t *c,
    inf_findings_t *f);
static void add_at(inf_findings_t *f, size_t step, const char *field,
    const char *text);
static inf_err_t *check_fit(inf_ensemble_check_t *check, candidate_t *c,
    inf_findings_t *f);
static bool find_models(inf_ensemble_check_t *check, const candidate_t *c,
    inf_model_t **models);

inf_err_t *
inf_ensemble_check_new(bool whole, inf_ensemble_check_t **out)
{
    inf_ensemble_check_t *check = calloc(1, sizeof(*check));
    if (check == NULL) {
        return inf_err_nomem();
    }

    inf_ensemble_graph_init(&check->graph, serves);
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
        free(inf_graph_drop(&c->graph.asked));
        inf_graph_remove(&c->graph);
        inf_model_unref(c->draft);
        free(c->versions);
        free(c);
    }
    free(check);
}

inf_err_t *
inf_ensemble_check_add(inf_ensemble_check_t *check, const inf_model_id_t *id,
    inf_model_t *draft, int64_t *versions, size_t count)
{
    candidate_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        free(versions);
        return inf_err_nomem();
    }

    c->versions = versions;
    c->version_count = count;
    c->draft = draft;
    if (draft != NULL) {
        inf_model_ref(draft);
    }
    inf_graph_add(&check->graph, &c->graph, id);
    inf_list_push_back(&check->models, &c->link);
    return is_ensemble(c) ? ask(check, c) : NULL;
}

inf_err_t *
inf_ensemble_check_find(inf_ensemble_check_t *check, const inf_model_id_t *id,
    inf_findings_t *f, const inf_model_config_t **config)
{
    for (inf_graph_model_t *m = NULL;
        (m = inf_graph_next_named(&check->graph, id->name, m)) != NULL; )
    {
        candidate_t *c = candidate_of(m);
        if (!inf_model_id_equal(&m->id, id) || m->asked == NULL) {
            continue;                   /* no ensemble, or out of memory     */
        }

        *config = c->draft->config;
        if (inf_graph_circular(&check->graph, m)) {
            inf_buf_t text;
            inf_buf_init(&text);
            inf_graph_circle_text(m, &text);
            inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling",
                "%s", text.data != NULL ? text.data : "circular dependency");
            inf_buf_fini(&text);
            return NULL;
        }
        return find_lack(check, c, f) ? NULL : check_fit(check, c, f);
    }

    return NULL;
}

static const void *
serves(const inf_graph_model_t *m, int64_t version)
{
    const candidate_t *c = candidate_of(m);

    if (c->draft == NULL || version == -1) {
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

static bool
is_ensemble(const candidate_t *c)
{
    return c->draft != NULL && inf_config_is_ensemble(c->draft->built)
        && c->draft->built->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

static inf_err_t *
ask(inf_ensemble_check_t *check, candidate_t *c)
{
    inf_graph_plan_t *plan;

    inf_err_t *err = inf_graph_plan_of(c->draft->built->ensemble_scheduling,
        &plan);
    if (err == NULL) {
        inf_graph_ask(&check->graph, &c->graph, plan);
    }
    return err;
}

/* Finds missing composing models.  true: one, or its version, is in no
   repository, or may be in a remote one. */
static bool
find_lack(inf_ensemble_check_t *check, candidate_t *c, inf_findings_t *f)
{
    inf_buf_t text;
    size_t at = 0;

    inf_buf_init(&text);
    inf_graph_found_t lack = inf_graph_lack(&check->graph, &c->graph,
        c->graph.asked, &text, &at);
    if (text.failed) {
        f->lost++;
    } else if (lack == INF_GRAPH_NO_VERSION || (lack == INF_GRAPH_UNKNOWN
        && check->whole))
    {
        add_at(f, at, lack == INF_GRAPH_UNKNOWN ? ".model_name"
            : ".model_version", inf_buf_slice(&text).data);
    }
    inf_buf_fini(&text);
    return lack != INF_GRAPH_SERVES;
}

static void
add_at(inf_findings_t *f, size_t step, const char *field, const char *text)
{
    char key[96];

    snprintf(key, sizeof(key), KEY, step, field);
    inf_findings_add(f, INF_ERR_INVALID_ARG, key, "%s", text);
}

/* Checks the fit as a load does. */
static inf_err_t *
check_fit(inf_ensemble_check_t *check, candidate_t *c, inf_findings_t *f)
{
    size_t count = c->graph.asked->count;
    uint32_t at = INF_PLAN_NONE;

    inf_model_t **models = calloc(count + 1, sizeof(inf_model_t *));
    if (models == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = !find_models(check, c, models) ? NULL
        : inf_ensemble_new(c->draft, models, count, &at,
            &c->draft->sched.ensemble);
    free(models);
    if (err == NULL || inf_err_code(err) != INF_ERR_INVALID_ARG) {
        return err;
    }

    if (at != INF_PLAN_NONE) {
        add_at(f, at, "", inf_err_msg(err));
    } else {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling", "%s",
            inf_err_msg(err));
    }
    inf_err_free(err);
    return NULL;
}

/* Finds the drafts of the composing models; false if a backend may change
   one. */
static bool
find_models(inf_ensemble_check_t *check, const candidate_t *c,
    inf_model_t **models)
{
    bool complete = true;

    for (size_t i = 0; complete && i < c->graph.asked->count; i++) {
        inf_graph_model_t *target;
        inf_graph_find(&check->graph, &c->graph, &c->graph.asked->steps[i],
            &target);
        models[i] = target != NULL ? candidate_of(target)->draft : NULL;
        complete = models[i] != NULL && models[i]->built->n_input > 0
            && models[i]->built->n_output > 0;
    }

    return complete;
}
