#include "core/repository/ensemble_graph.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/hash.h"

#define CIRCLE_MAX 32u          /* names in a text                           */

/* A breadth-first search for a path. */
typedef struct {
    inf_ensemble_graph_t    *g;
    uint64_t                 number;
    const inf_graph_model_t *to;
    inf_graph_model_t       *last;      /* end of the queue                  */
    bool                     settled;   /* ignore asked plans                */
    bool                     awaited;   /* only along what loads wait for    */
    bool                     found;
} search_t;

/* A model that a load waits for. */
typedef struct {
    size_t             step;
    inf_graph_model_t *model;   /* NULL: none of this step's yet             */
} awaited_t;

static inf_graph_model_t *next_awaited(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, awaited_t *at);
static uint32_t bucket_of(const char *name);
static void link_plan(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    inf_graph_plan_t *plan);
static bool is_alive(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m);
static const inf_graph_plan_t *plan_of(const inf_graph_model_t *m);
static bool search(search_t *s, inf_graph_model_t *from);
static void search_from(search_t *s, inf_graph_model_t *from);
static void search_name(search_t *s, inf_graph_model_t *from, const char *name,
    bool all);
static void meet(search_t *s, inf_graph_model_t *from, inf_graph_model_t *m);

void
inf_ensemble_graph_init(inf_ensemble_graph_t *g, inf_graph_serves_fn serves)
{
    g->serves = serves;
    g->searches = 0;
    for (size_t i = 0; i < INF_GRAPH_BUCKETS; i++) {
        inf_link_init(&g->models[i]);
        inf_link_init(&g->steps[i]);
    }
}

void
inf_graph_add(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    const inf_model_id_t *id)
{
    *m = (inf_graph_model_t) { .id = *id };
    inf_list_push_back(&g->models[bucket_of(id->name)], &m->link);
}

void
inf_graph_remove(inf_graph_model_t *m)
{
    inf_link_remove(&m->link);
}

inf_err_t *
inf_graph_plan_new(size_t count, size_t names_len, inf_graph_plan_t **out)
{
    inf_graph_plan_t *plan = calloc(1, sizeof(*plan)
        + count * sizeof(plan->steps[0]) + names_len + count);
    if (plan == NULL) {
        return inf_err_nomem();
    }

    plan->text = (char *) &plan->steps[count];
    *out = plan;
    return NULL;
}

void
inf_graph_plan_add(inf_graph_plan_t *plan, const char *name, int64_t version)
{
    inf_graph_step_t *step = &plan->steps[plan->count++];
    char *copy = plan->text + plan->text_len;
    size_t size = strlen(name) + 1;

    memcpy(copy, name, size);
    plan->text_len += size;
    inf_link_init(&step->link);
    step->name = copy;
    step->version = version;
}

inf_err_t *
inf_graph_plan_of(const Inference__ModelEnsembling *e, inf_graph_plan_t **out)
{
    size_t len = 0;

    for (size_t i = 0; i < e->n_step; i++) {
        len += strlen(e->step[i]->model_name);
    }

    inf_err_t *err = inf_graph_plan_new(e->n_step, len, out);
    for (size_t i = 0; err == NULL && i < e->n_step; i++) {
        inf_graph_plan_add(*out, e->step[i]->model_name,
            e->step[i]->model_version);
    }
    return err;
}

void
inf_graph_ask(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    inf_graph_plan_t *plan)
{
    m->asked = plan;
    link_plan(g, m, plan);
}

inf_graph_plan_t *
inf_graph_settle(inf_graph_model_t *m, const void *const *held)
{
    inf_graph_plan_t *before = NULL;
    if (m->asked != NULL) {
        before = inf_graph_drop(&m->made);
        m->made = m->asked;
        m->asked = NULL;
    }

    for (size_t i = 0; m->made != NULL && i < m->made->count; i++) {
        m->made->steps[i].held = held != NULL ? held[i] : NULL;
    }
    return before;
}

void
inf_graph_unmake(inf_graph_model_t *m)
{
    for (size_t i = 0; m->made != NULL && i < m->made->count; i++) {
        m->made->steps[i].held = NULL;
    }
}

inf_graph_plan_t *
inf_graph_drop(inf_graph_plan_t **at)
{
    inf_graph_plan_t *plan = *at;

    for (size_t i = 0; plan != NULL && i < plan->count; i++) {
        inf_link_remove(&plan->steps[i].link);
        plan->steps[i].of = NULL;
    }
    *at = NULL;
    return plan;
}

inf_graph_found_t
inf_graph_find(const inf_ensemble_graph_t *g, const inf_graph_model_t *m,
    const inf_graph_step_t *step, inf_graph_model_t **target)
{
    inf_graph_model_t *other = NULL;
    inf_graph_model_t *idle = NULL;
    size_t others = 0;

    *target = NULL;
    for (inf_graph_model_t *n = NULL;
        (n = inf_graph_next_named(g, step->name, n)) != NULL; )
    {
        if (g->serves(n, -1) == NULL) {
            idle = idle == NULL || strcmp(n->id.space, m->id.space) == 0 ? n
                : idle;
        } else if (strcmp(n->id.space, m->id.space) == 0) {
            other = n;
            others = 1;
            break;
        } else {
            other = n;
            others++;
        }
    }

    if (others > 1) {
        return INF_GRAPH_AMBIGUOUS;
    }

    *target = others == 1 ? other : idle;
    if (others == 0) {
        return idle != NULL ? INF_GRAPH_NONE : INF_GRAPH_UNKNOWN;
    }
    return g->serves(other, step->version) != NULL ? INF_GRAPH_SERVES
        : INF_GRAPH_NO_VERSION;
}

inf_graph_found_t
inf_graph_lack(const inf_ensemble_graph_t *g, const inf_graph_model_t *m,
    const inf_graph_plan_t *plan, inf_buf_t *text, size_t *at)
{
    inf_graph_found_t lack = INF_GRAPH_SERVES;
    inf_graph_model_t *target;

    for (size_t i = 0; i < plan->count; i++) {
        const inf_graph_step_t *step = &plan->steps[i];
        inf_graph_found_t found = inf_graph_find(g, m, step, &target);

        if (found == INF_GRAPH_UNKNOWN || found == INF_GRAPH_AMBIGUOUS) {
            bool first = lack != INF_GRAPH_UNKNOWN;
            inf_buf_printf(text, first ? "ensemble %s contains models that are"
                " not available or ambiguous: %s" : "%s%s",
                first ? m->id.name : ", ", step->name);
            *at = first ? i : *at;
            lack = INF_GRAPH_UNKNOWN;
        } else if (lack == INF_GRAPH_SERVES && found != INF_GRAPH_SERVES) {
            *at = i;
            lack = found;
        }
    }

    if (lack == INF_GRAPH_NO_VERSION) {
        inf_buf_printf(text, "ensemble '%s' depends on '%s' whose required"
            " version %lld is not loaded.", m->id.name,
            plan->steps[*at].name, (long long) plan->steps[*at].version);
    }
    return lack;
}

inf_graph_verdict_t
inf_graph_verdict(const inf_ensemble_graph_t *g, const inf_graph_model_t *m)
{
    return m->made == NULL ? INF_GRAPH_FINE
        : inf_graph_compare(g, m, m->made, NULL);
}

/* held NULL: compares with the steps' own objects. */
inf_graph_verdict_t
inf_graph_compare(const inf_ensemble_graph_t *g, const inf_graph_model_t *m,
    const inf_graph_plan_t *plan, const void *const *held)
{
    inf_graph_verdict_t verdict = INF_GRAPH_FINE;

    for (size_t i = 0; i < plan->count; i++) {
        const inf_graph_step_t *step = &plan->steps[i];
        const void *now = held != NULL ? held[i] : step->held;
        inf_graph_model_t *target;

        if (inf_graph_find(g, m, step, &target) != INF_GRAPH_SERVES) {
            return INF_GRAPH_INCOMPLETE;
        }
        if (now == NULL || now != g->serves(target, step->version)) {
            verdict = INF_GRAPH_STALE;
        }
    }

    return verdict;
}

bool
inf_graph_waits(inf_ensemble_graph_t *g, inf_graph_model_t *m)
{
    return next_awaited(g, m, &(awaited_t) { .step = 0 }) != NULL
        && !inf_graph_circular(g, m);
}

bool
inf_graph_asks(const inf_graph_model_t *m, const inf_graph_step_t *step)
{
    const inf_graph_plan_t *plan = m->asked;

    return plan != NULL && step >= plan->steps
        && step < plan->steps + plan->count;
}

bool
inf_graph_means(const inf_ensemble_graph_t *g, const inf_graph_model_t *m,
    const inf_graph_model_t *target)
{
    if (strcmp(target->id.space, m->id.space) == 0) {
        return true;
    }

    for (inf_graph_model_t *n = NULL;
        (n = inf_graph_next_named(g, target->id.name, n)) != NULL; )
    {
        if (strcmp(n->id.space, m->id.space) == 0) {
            return !is_alive(g, n);
        }
    }

    return true;
}

bool
inf_graph_goes_on(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    uint64_t turn)
{
    search_t s = { .g = g, .awaited = true };

    (void) search(&s, m);
    while (m != NULL && (!m->unloads || m->turn < turn)
        && m->awaits == NULL)
    {
        m = m->next;
    }
    return m == NULL;
}

bool
inf_graph_circular(inf_ensemble_graph_t *g, inf_graph_model_t *m)
{
    return inf_graph_leads(g, m, m);
}

bool
inf_graph_closes(inf_ensemble_graph_t *g, inf_graph_model_t *m)
{
    search_t s = { .g = g, .to = m, .settled = true };
    return search(&s, m);
}

bool
inf_graph_leads(inf_ensemble_graph_t *g, inf_graph_model_t *from,
    const inf_graph_model_t *to)
{
    search_t s = { .g = g, .to = to };
    return search(&s, from);
}

void
inf_graph_circle_text(inf_graph_model_t *m, inf_buf_t *text)
{
    inf_graph_model_t *first = m;
    size_t left = CIRCLE_MAX;

    for (inf_graph_model_t *n = m->via; n != NULL && n != m; n = n->via) {
        n->next = first;
        first = n;
    }

    inf_buf_printf(text, "circular dependency between ensembles: %s -> ... ->"
        " %s -> %s (%s", m->id.name, m->via != NULL ? m->via->id.name
        : m->id.name, m->id.name, m->id.name);
    for (const inf_graph_model_t *n = first; n != m; n = n->next) {
        if (left-- == 0) {
            inf_buf_puts(text, " -> ...");
            break;
        }
        inf_buf_printf(text, " -> %s", n->id.name);
    }
    inf_buf_printf(text, " -> %s)", m->id.name);
}

inf_graph_model_t *
inf_graph_next_ensemble(const inf_ensemble_graph_t *g,
    const inf_graph_model_t *m, const inf_graph_step_t **at)
{
    const inf_link_t *head = &g->steps[bucket_of(m->id.name)];
    const inf_link_t *l = *at == NULL ? head->next : (*at)->link.next;

    for (; l != head; l = l->next) {
        const inf_graph_step_t *step = inf_link_entry(l, inf_graph_step_t,
            link);
        if (strcmp(step->name, m->id.name) == 0) {
            *at = step;
            return step->of;
        }
    }

    return NULL;
}

bool
inf_graph_needed(const inf_ensemble_graph_t *g, const inf_graph_model_t *m)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *e;

    while ((e = inf_graph_next_ensemble(g, m, &at)) != NULL) {
        if (inf_graph_means(g, e, m)) {
            return true;
        }
    }

    return false;
}

inf_graph_model_t *
inf_graph_next_named(const inf_ensemble_graph_t *g, const char *name,
    const inf_graph_model_t *at)
{
    const inf_link_t *head = &g->models[bucket_of(name)];
    const inf_link_t *l = at == NULL ? head->next : at->link.next;

    for (; l != head; l = l->next) {
        inf_graph_model_t *m = inf_link_entry(l, inf_graph_model_t, link);
        if (strcmp(m->id.name, name) == 0) {
            return m;
        }
    }

    return NULL;
}

static inf_graph_model_t *
next_awaited(const inf_ensemble_graph_t *g, const inf_graph_model_t *m,
    awaited_t *at)
{
    const inf_graph_plan_t *plan = plan_of(m);

    for (; plan != NULL && at->step < plan->count; at->step++) {
        while ((at->model = inf_graph_next_named(g, plan->steps[at->step].name,
            at->model)) != NULL)
        {
            const inf_graph_model_t *n = at->model;
            if (n->turn != 0 && n->turn <= m->until
                && inf_graph_means(g, m, n))
            {
                return at->model;
            }
        }
    }

    return NULL;
}

static uint32_t
bucket_of(const char *name)
{
    return (uint32_t) (inf_hash(name, strlen(name)) % INF_GRAPH_BUCKETS);
}

static void
link_plan(inf_ensemble_graph_t *g, inf_graph_model_t *m,
    inf_graph_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        inf_graph_step_t *step = &plan->steps[i];
        step->of = m;
        inf_list_push_back(&g->steps[bucket_of(step->name)], &step->link);
    }
}

/* Whether the model serves or has a turn to come. */
static bool
is_alive(const inf_ensemble_graph_t *g, const inf_graph_model_t *m)
{
    return m->turn != 0 || g->serves(m, -1) != NULL;
}

static const inf_graph_plan_t *
plan_of(const inf_graph_model_t *m)
{
    return m->asked != NULL ? m->asked : m->made;
}

static bool
search(search_t *s, inf_graph_model_t *from)
{
    s->number = ++s->g->searches;
    s->last = from;
    from->next = NULL;
    from->via = NULL;
    if (from != s->to) {
        from->seen = s->number;
    }
    for (inf_graph_model_t *m = from; m != NULL && !s->found; m = m->next) {
        search_from(s, m);
    }
    return s->found;
}

static void
search_from(search_t *s, inf_graph_model_t *from)
{
    const inf_graph_plan_t *plan = s->settled && from != s->to ? from->made
        : plan_of(from);
    awaited_t at = { .step = 0 };

    if (s->awaited) {
        while (next_awaited(s->g, from, &at) != NULL) {
            meet(s, from, at.model);
        }
        return;
    }
    for (size_t i = 0; plan != NULL && i < plan->count; i++) {
        search_name(s, from, plan->steps[i].name, false);
    }
    if (from->awaits != NULL && !s->settled) {
        search_name(s, from, from->awaits, true);
    }
}

/* Queues the models of a name to which from's step may refer; all: every model
   of the name. */
static void
search_name(search_t *s, inf_graph_model_t *from, const char *name, bool all)
{
    for (inf_graph_model_t *n = NULL;
        (n = inf_graph_next_named(s->g, name, n)) != NULL; )
    {
        if (all || inf_graph_means(s->g, from, n)) {
            meet(s, from, n);
        }
    }
}

static void
meet(search_t *s, inf_graph_model_t *from, inf_graph_model_t *m)
{
    if (s->found || m->seen == s->number) {
        return;
    }

    m->seen = s->number;
    m->via = from;
    s->found = m == s->to;
    if (!s->found) {
        m->next = NULL;
        s->last->next = m;
        s->last = m;
    }
}
