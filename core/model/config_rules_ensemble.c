/*
 * config_rules_ensemble.c - rules of an ensemble and its graph of tensors that
 *                           need no other model.
 */

#include "core/model/config_validate.h"

#include <stdlib.h>

#include "core/model/config_names.h"
#include "core/model/model_config.h"

#define NO_STEP UINT32_MAX

typedef Inference__ModelEnsembling__Step step_t;

/* A tensor of the ensemble.  It is ready if it is an input, or the output of a
   finished step; a step is finished when all its inputs are ready. */
typedef struct {
    const char *name;
    uint32_t    producer;       /* step, or NO_STEP                        */
    uint32_t    consumers;
    bool        input;
    bool        output;
    bool        ready;
} node_t;

typedef struct {
    const Inference__ModelConfig *msg;
    const Inference__ModelEnsembling *ensemble;

    inf_config_names_t names;   /* tensor name -> index into nodes         */
    node_t            *nodes;
    size_t             node_count;
    uint32_t          *waiting; /* by step: inputs not ready               */
    uint32_t          *queue;   /* steps with all inputs ready             */
} graph_t;

static void find_kind(const Inference__ModelConfig *msg, bool scheduled,
    bool platform, inf_findings_t *f);
static void find_forbidden(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static bool find_steps(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static void find_graph(const Inference__ModelConfig *msg,
    inf_findings_t *f);
static bool graph_make(graph_t *g, const Inference__ModelConfig *msg);
static void graph_free(graph_t *g);
static bool graph_link(graph_t *g, inf_findings_t *f);
static node_t *graph_node(graph_t *g, const char *name);
static bool graph_ends(graph_t *g, inf_findings_t *f);
static bool graph_run(graph_t *g);
static uint32_t graph_touch(graph_t *g, const uint32_t *consumers,
    const uint32_t *first, node_t *node, uint32_t queued);
static void graph_report(const graph_t *g, inf_findings_t *f);
static void graph_report_output(const graph_t *g, size_t index,
    inf_findings_t *f);

void
inf_config_find_ensemble(const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    bool platform = inf_config_is_ensemble(msg);
    bool scheduled = msg->scheduling_choice_case
        == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;

    find_kind(msg, scheduled, platform, f);
    if (!scheduled || !platform) {
        return;
    }

    find_forbidden(msg, f);
    if (find_steps(msg, f)) {
        find_graph(msg, f);
    }
}

static void
find_kind(const Inference__ModelConfig *msg, bool scheduled, bool platform,
    inf_findings_t *f)
{
    if (scheduled && !platform) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling",
            "ensemble scheduling cannot be set for model '%s' whose platform "
            "is not ensemble", msg->name);
    }

    if (platform && !scheduled) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling",
            "ensemble scheduling must be set for ensemble %s whose platform "
            "is ensemble", msg->name);
    }
}

static void
find_forbidden(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    if (msg->n_instance_group > 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "instance_group",
            "instance group should not be specified for ensemble '%s'",
            msg->name);
    }

    if (msg->optimization != NULL) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "optimization",
            "optimization should not be specified for ensemble '%s'",
            msg->name);
    }

    if (msg->n_model_warmup > 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "model_warmup",
            "model_warmup can not be specified for ensemble '%s'",
            msg->name);
    }
}

/* Whether every step is complete enough to check the graph. */
static bool
find_steps(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    const Inference__ModelEnsembling *e = msg->ensemble_scheduling;
    size_t before = inf_findings_total(f);
    char key[INF_KEY_MAX];

    if (e->n_step == 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling.step",
            "must specify 'step' for ensemble '%s'", msg->name);
    }

    for (size_t i = 0; i < e->n_step; i++) {
        const step_t *step = e->step[i];
        const char *missing[] = {
            step->model_name[0] == '\0' ? "model_name" : NULL,
            step->n_input_map == 0 ? "input_map" : NULL,
            step->n_output_map == 0 ? "output_map" : NULL,
        };

        for (size_t k = 0; k < 3; k++) {
            if (missing[k] != NULL) {
                inf_findings_add(f, INF_ERR_INVALID_ARG,
                    inf_key(key, "ensemble_scheduling.step[%zu].%s", i,
                        missing[k]),
                    "must specify '%s' in step %zu of ensemble '%s'",
                    missing[k], i, msg->name);
            }
        }
    }

    return inf_findings_total(f) == before;
}

static void
find_graph(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    graph_t g;

    if (!graph_make(&g, msg)) {
        f->lost++;

    } else if (graph_link(&g, f) && graph_ends(&g, f)) {
        if (graph_run(&g)) {
            graph_report(&g, f);

        } else {
            f->lost++;
        }
    }

    graph_free(&g);
}

/* Allocates the graph for every tensor that steps name; names are views. */
static bool
graph_make(graph_t *g, const Inference__ModelConfig *msg)
{
    const Inference__ModelEnsembling *e = msg->ensemble_scheduling;
    size_t most = 0;

    for (size_t i = 0; i < e->n_step; i++) {
        most += e->step[i]->n_input_map + e->step[i]->n_output_map;
    }

    *g = (graph_t) { .msg = msg, .ensemble = e };
    inf_config_names_init(&g->names);
    g->nodes = calloc(most, sizeof(*g->nodes));
    g->waiting = calloc(e->n_step, sizeof(*g->waiting));
    g->queue = calloc(e->n_step, sizeof(*g->queue));
    return g->nodes != NULL && g->waiting != NULL && g->queue != NULL;
}

static void
graph_free(graph_t *g)
{
    inf_config_names_fini(&g->names);
    free(g->nodes);
    free(g->waiting);
    free(g->queue);
}

/* Links producers; false if a tensor has two, or out of memory. */
static bool
graph_link(graph_t *g, inf_findings_t *f)
{
    size_t before = inf_findings_total(f);
    char key[INF_KEY_MAX];

    for (uint32_t i = 0; i < g->ensemble->n_step; i++) {
        const step_t *step = g->ensemble->step[i];

        for (size_t k = 0; k < step->n_output_map; k++) {
            node_t *node = graph_node(g, step->output_map[k]->value);
            if (node == NULL) {
                f->lost++;
                return false;
            }

            if (node->producer != NO_STEP) {
                inf_findings_add(f, INF_ERR_INVALID_ARG, inf_key(key,
                    "ensemble_scheduling.step[%u].output_map", i),
                    "ensemble tensor '%s' can appear in an output map only "
                    "once for ensemble '%s' step %u", node->name,
                    g->msg->name, i);
            }

            node->producer = i;
        }

        for (size_t k = 0; k < step->n_input_map; k++) {
            node_t *node = graph_node(g, step->input_map[k]->value);
            if (node == NULL) {
                f->lost++;
                return false;
            }

            node->consumers++;
            g->waiting[i]++;
        }
    }

    return inf_findings_total(f) == before;
}

static node_t *
graph_node(graph_t *g, const char *name)
{
    inf_slice_t slice = inf_slice_str(name);
    uint32_t index = (uint32_t) g->node_count;

    switch (inf_config_names_add(&g->names, slice, index)) {
    case INF_CONFIG_NAMES_ADDED:
        g->node_count++;
        g->nodes[index] = (node_t) { .name = name, .producer = NO_STEP };
        return &g->nodes[index];
    case INF_CONFIG_NAMES_KNOWN:
        return &g->nodes[inf_config_names_find(&g->names, slice)];
    case INF_CONFIG_NAMES_NOMEM:
        break;
    }

    return NULL;
}

/* Checks that the ensemble's inputs and outputs are tensors of the graph.  The
   text is exactly Triton's, with its unbalanced quote. */
static bool
graph_ends(graph_t *g, inf_findings_t *f)
{
    const Inference__ModelConfig *msg = g->msg;
    size_t before = inf_findings_total(f);
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < msg->n_input; i++) {
        uint32_t at = inf_config_names_find(&g->names,
            inf_slice_str(msg->input[i]->name));
        if (at == INF_CONFIG_NAMES_NONE) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "input[%zu].name", i),
                "ensemble input '%s' for ensemble %s' is not used",
                msg->input[i]->name, msg->name);
            continue;
        }

        g->nodes[at].input = true;
    }

    for (size_t i = 0; i < msg->n_output; i++) {
        uint32_t at = inf_config_names_find(&g->names,
            inf_slice_str(msg->output[i]->name));
        if (at == INF_CONFIG_NAMES_NONE) {
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "output[%zu].name", i),
                "ensemble output '%s' for ensemble %s' is not used",
                msg->output[i]->name, msg->name);
            continue;
        }

        g->nodes[at].output = true;
    }

    return inf_findings_total(f) == before;
}

/* Marks ready tensors; false when out of memory. */
static bool
graph_run(graph_t *g)
{
    /* first[n] .. first[n + 1]: the steps that consume tensor n */
    uint32_t *first = calloc(g->node_count + 2, sizeof(*first));
    size_t links = 0;

    for (size_t i = 0; first != NULL && i < g->node_count; i++) {
        first[i + 2] = first[i + 1] + g->nodes[i].consumers;
        links += g->nodes[i].consumers;
    }

    uint32_t *consumers = calloc(links + 1, sizeof(*consumers));
    if (first == NULL || consumers == NULL) {
        free(first);
        free(consumers);
        return false;
    }

    for (uint32_t i = 0; i < g->ensemble->n_step; i++) {
        const step_t *step = g->ensemble->step[i];
        for (size_t k = 0; k < step->n_input_map; k++) {
            uint32_t at = inf_config_names_find(&g->names,
                inf_slice_str(step->input_map[k]->value));
            consumers[first[at + 1]++] = i;
        }
    }

    uint32_t queued = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->nodes[i].input) {
            queued = graph_touch(g, consumers, first, &g->nodes[i], queued);
        }
    }

    for (uint32_t done = 0; done < queued; done++) {
        const step_t *step = g->ensemble->step[g->queue[done]];
        for (size_t k = 0; k < step->n_output_map; k++) {
            uint32_t at = inf_config_names_find(&g->names,
                inf_slice_str(step->output_map[k]->value));
            queued = graph_touch(g, consumers, first, &g->nodes[at], queued);
        }
    }

    free(first);
    free(consumers);
    return true;
}

/* Handles a ready node: queues steps that waited for it alone. */
static uint32_t
graph_touch(graph_t *g, const uint32_t *consumers, const uint32_t *first,
    node_t *node, uint32_t queued)
{
    if (node->ready) {
        return queued;
    }

    node->ready = true;
    size_t at = (size_t) (node - g->nodes);

    for (uint32_t i = first[at]; i < first[at + 1]; i++) {
        if (--g->waiting[consumers[i]] == 0) {
            g->queue[queued++] = consumers[i];
        }
    }

    return queued;
}

static void
graph_report(const graph_t *g, inf_findings_t *f)
{
    for (size_t i = 0; i < g->msg->n_output; i++) {
        graph_report_output(g, i, f);
    }

    for (size_t i = 0; i < g->node_count; i++) {
        const node_t *node = &g->nodes[i];

        if (!node->output && (!node->ready || node->consumers == 0)) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, "ensemble_scheduling",
                "ensemble tensor '%s' is unused in ensemble '%s'",
                node->name, g->msg->name);
        }
    }
}

static void
graph_report_output(const graph_t *g, size_t index, inf_findings_t *f)
{
    const char *name = g->msg->output[index]->name;
    const node_t *node = &g->nodes[inf_config_names_find(&g->names,
        inf_slice_str(name))];
    char key[INF_KEY_MAX];

    if (node->ready) {
        return;
    }

    inf_key(key, "output[%zu].name", index);
    if (node->producer == NO_STEP) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key,
            "output '%s' for ensemble '%s' is not written", name,
            g->msg->name);
        return;
    }

    const step_t *step = g->ensemble->step[node->producer];
    for (size_t k = 0; k < step->n_input_map; k++) {
        const char *source = step->input_map[k]->value;

        const node_t *from = &g->nodes[inf_config_names_find(&g->names,
            inf_slice_str(source))];

        if (!from->ready) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "output '%s' for "
                "ensemble '%s' is not written: at least one of its depending "
                "tensors, '%s', is not connected", name, g->msg->name,
                source);
            return;
        }
    }
}
