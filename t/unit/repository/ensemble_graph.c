/* The graph of ensembles, alone and against a simple model of its rules. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/repository/ensemble_graph.h"

#define MODELS   24
#define VERSIONS 3

/* A model that stands for one on disk: node, and what serves. */
typedef struct {
    inf_graph_model_t node;
    int               serves[VERSIONS]; /* an object's number; 0: none       */
    char              name[16];
} model_t;

typedef struct {
    inf_ensemble_graph_t graph;
    model_t              models[MODELS];
    int                  objects;       /* made so far                       */
} world_t;

static world_t w;

/* Numbers as addresses: never followed. */
static const void *
serves(const inf_graph_model_t *m, int64_t version)
{
    const model_t *model = (const model_t *) (const void *) m;

    for (int v = VERSIONS; v-- > 0; ) {
        if (model->serves[v] != 0 && (version == -1 || version == v)) {
            return &((const char *) 0x1000)[model->serves[v]];
        }
    }

    return NULL;
}

static model_t *
add(int i, const char *space, const char *name)
{
    model_t *m = &w.models[i];

    memset(m, 0, sizeof(*m));
    snprintf(m->name, sizeof(m->name), "%s", name);
    const inf_model_id_t id = { .space = space, .name = m->name };
    inf_graph_add(&w.graph, &m->node, &id);
    return m;
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    inf_ensemble_graph_init(&w.graph, serves);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    for (int i = 0; i < MODELS; i++) {
        if (w.models[i].name[0] != '\0') {
            free(inf_graph_drop(&w.models[i].node.asked));
            free(inf_graph_drop(&w.models[i].node.made));
            inf_graph_remove(&w.models[i].node);
        }
    }
    return 0;
}

static void
serve(model_t *m, int version)
{
    m->serves[version] = ++w.objects;
}

/* "m n": their latest versions; "m:2" version 2. */
static inf_graph_plan_t *
plan_of(const char *steps)
{
    inf_graph_plan_t *plan;
    char text[256];
    char *save;

    snprintf(text, sizeof(text), "%s", steps);
    assert_null(inf_graph_plan_new(strlen(text), strlen(text), &plan));
    for (char *s = strtok_r(text, " ", &save); s != NULL;
        s = strtok_r(NULL, " ", &save))
    {
        char *colon = strchr(s, ':');
        int64_t version = -1;
        if (colon != NULL) {
            *colon = '\0';
            version = atoi(colon + 1);
        }
        inf_graph_plan_add(plan, s, version);
    }
    return plan;
}

/* Asks, finds, and settles: what a load does.  Whether it was made. */
static bool
make(model_t *e)
{
    const inf_graph_plan_t *plan = e->node.asked != NULL ? e->node.asked
        : e->node.made;
    const void *held[MODELS];
    bool whole = !inf_graph_circular(&w.graph, &e->node);

    for (size_t i = 0; whole && i < plan->count; i++) {
        inf_graph_model_t *target;
        whole = inf_graph_find(&w.graph, &e->node, &plan->steps[i], &target)
            == INF_GRAPH_SERVES;
        held[i] = whole ? serves(target, plan->steps[i].version) : NULL;
    }
    free(inf_graph_settle(&e->node, whole ? held : NULL));
    if (whole) {
        serve(e, 1);
    }
    return whole;
}

static bool
load(model_t *e, const char *steps)
{
    inf_graph_ask(&w.graph, &e->node, plan_of(steps));
    return make(e);
}

static inf_graph_found_t
found(const model_t *e, size_t step)
{
    inf_graph_model_t *target;
    return inf_graph_find(&w.graph, &e->node, &e->node.made->steps[step],
        &target);
}

static void
says_what_a_step_lacks(void **state)
{
    (void) state;
    model_t *e = add(0, "", "e");
    model_t *m = add(1, "", "m");

    assert_false(load(e, "m m:2 n"));
    assert_int_equal(found(e, 0), INF_GRAPH_NONE);
    assert_int_equal(found(e, 2), INF_GRAPH_UNKNOWN);
    serve(m, 1);
    assert_int_equal(found(e, 0), INF_GRAPH_SERVES);
    assert_int_equal(found(e, 1), INF_GRAPH_NO_VERSION);
    serve(m, 2);
    assert_int_equal(found(e, 1), INF_GRAPH_SERVES);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_INCOMPLETE);
    serve(add(2, "", "n"), 1);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_STALE);
}

static void
knows_when_it_is_made_of_what_serves(void **state)
{
    (void) state;
    model_t *e = add(0, "", "e");
    model_t *m = add(1, "", "m");

    assert_int_equal(inf_graph_verdict(&w.graph, &m->node), INF_GRAPH_FINE);
    serve(m, 1);
    assert_true(load(e, "m"));
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_FINE);
    serve(m, 0);                        /* an older version                  */
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_FINE);
    serve(m, 2);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_STALE);
    m->serves[0] = m->serves[1] = m->serves[2] = 0;
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_INCOMPLETE);
    inf_graph_unmake(&e->node);
    serve(m, 2);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_STALE);
}

static void
prefers_its_own_repository_then_the_only_other(void **state)
{
    (void) state;
    model_t *e = add(0, "/a", "e");
    model_t *own = add(1, "/a", "m");
    model_t *other = add(2, "/b", "m");
    model_t *third = add(3, "/c", "m");

    serve(other, 1);
    assert_true(load(e, "m"));          /* its own doesn't serve             */
    assert_ptr_equal(e->node.made->steps[0].held, serves(&other->node, -1));
    serve(third, 1);
    assert_int_equal(found(e, 0), INF_GRAPH_AMBIGUOUS);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_INCOMPLETE);
    serve(own, 1);
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_STALE);
    assert_true(load(e, "m"));
    assert_ptr_equal(e->node.made->steps[0].held, serves(&own->node, -1));
    third->serves[1] = 0;
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_FINE);
    assert_true(inf_graph_needed(&w.graph, &own->node));
    assert_false(inf_graph_needed(&w.graph, &other->node));
}

static void
equal_names_elsewhere_make_no_circle(void **state)
{
    (void) state;
    model_t *a1 = add(0, "/1", "a");
    model_t *a2 = add(1, "/2", "a");
    model_t *b2 = add(2, "/2", "b");

    serve(a2, 1);
    inf_graph_ask(&w.graph, &a1->node, plan_of("b"));
    inf_graph_ask(&w.graph, &b2->node, plan_of("a"));
    assert_false(inf_graph_circular(&w.graph, &a1->node));
    a2->serves[1] = 0;                  /* then b means the other a          */
    assert_true(inf_graph_circular(&w.graph, &a1->node));
    assert_true(inf_graph_circular(&w.graph, &b2->node));
}

static void
finds_the_shortest_circle(void **state)
{
    (void) state;
    model_t *a = add(0, "", "a");
    model_t *b = add(1, "", "b");
    model_t *c = add(2, "", "c");
    model_t *d = add(3, "", "d");

    inf_graph_ask(&w.graph, &a->node, plan_of("b"));
    inf_graph_ask(&w.graph, &b->node, plan_of("c d"));
    inf_graph_ask(&w.graph, &c->node, plan_of("d"));
    assert_false(inf_graph_circular(&w.graph, &a->node));
    inf_graph_ask(&w.graph, &d->node, plan_of("a"));
    assert_true(inf_graph_circular(&w.graph, &a->node));
    assert_ptr_equal(a->node.via, &d->node);
    assert_ptr_equal(d->node.via, &b->node);
    assert_ptr_equal(b->node.via, &a->node);

    free(inf_graph_drop(&a->node.asked));
    assert_false(inf_graph_circular(&w.graph, &d->node));
    a->node.awaits = "d";               /* its load waits for one of d       */
    assert_true(inf_graph_circular(&w.graph, &d->node));
    assert_true(inf_graph_leads(&w.graph, &c->node, &a->node));
    assert_true(inf_graph_leads(&w.graph, &a->node, &d->node));
    a->node.awaits = NULL;
    assert_false(inf_graph_leads(&w.graph, &a->node, &d->node));
}

static void
only_what_is_settled_closes_a_circle(void **state)
{
    (void) state;
    model_t *a = add(0, "", "a");
    model_t *b = add(1, "", "b");

    serve(b, 1);
    inf_graph_ask(&w.graph, &a->node, plan_of("b"));
    inf_graph_ask(&w.graph, &b->node, plan_of("a"));
    assert_true(inf_graph_circular(&w.graph, &a->node));
    assert_false(inf_graph_closes(&w.graph, &a->node));     /* b may fail    */
    free(inf_graph_settle(&a->node, NULL));
    assert_true(inf_graph_closes(&w.graph, &b->node));
    free(inf_graph_drop(&b->node.asked));
    assert_int_equal(inf_graph_verdict(&w.graph, &a->node), INF_GRAPH_STALE);
}

static void
waits_for_turns_that_came_before(void **state)
{
    (void) state;
    model_t *e = add(0, "", "e");
    model_t *m = add(1, "", "m");

    inf_graph_ask(&w.graph, &e->node, plan_of("m n"));
    e->node.until = 5;
    assert_false(inf_graph_waits(&w.graph, &e->node));
    m->node.turn = 6;                   /* came later                        */
    assert_false(inf_graph_waits(&w.graph, &e->node));
    m->node.turn = 5;
    assert_true(inf_graph_waits(&w.graph, &e->node));
    m->node.turn = 0;
    add(2, "", "n")->node.turn = 3;
    assert_true(inf_graph_waits(&w.graph, &e->node));
}

static void
what_was_asked_counts_only_once_it_is_settled(void **state)
{
    (void) state;
    model_t *e = add(0, "", "e");
    model_t *m = add(1, "", "m");
    model_t *n = add(2, "", "n");

    serve(m, 1);
    serve(n, 1);
    assert_true(load(e, "m"));
    inf_graph_ask(&w.graph, &e->node, plan_of("n"));
    n->serves[1] = 0;
    assert_int_equal(inf_graph_verdict(&w.graph, &e->node), INF_GRAPH_FINE);
    assert_true(inf_graph_needed(&w.graph, &n->node));
    free(inf_graph_drop(&e->node.asked));
    assert_false(inf_graph_needed(&w.graph, &n->node));
    assert_true(inf_graph_needed(&w.graph, &m->node));
    free(inf_graph_drop(&e->node.made));
    assert_false(inf_graph_needed(&w.graph, &m->node));
}

/* ---- against a simple model ---------------------------------------------- */

/* The kind of each of MODELS, by number. */
typedef struct {
    bool wanted;                        /* loaded and not unloaded           */
    int  steps[3];                      /* of an ensemble; -1: no step       */
} rule_t;

static rule_t rules[MODELS];
static uint64_t seed;

static uint32_t
random_below(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t) ((seed >> 33) % n);
}

static bool
is_ensemble(int i)
{
    return rules[i].steps[0] >= 0;
}

/* The transitive closure: edges of edges until nothing is added. */
static void
rule_reach(bool reach[MODELS][MODELS])
{
    memset(reach, 0, MODELS * sizeof(reach[0]));
    for (int i = 0; i < MODELS; i++) {
        for (int k = 0; rules[i].wanted && k < 3; k++) {
            if (rules[i].steps[k] >= 0) {
                reach[i][rules[i].steps[k]] = true;
            }
        }
    }
    for (int via = 0; via < MODELS; via++) {
        for (int i = 0; i < MODELS; i++) {
            for (int k = 0; k < MODELS; k++) {
                reach[i][k] |= reach[i][via] && reach[via][k];
            }
        }
    }
}

/* From the plain ones that serve, until nothing is added. */
static void
rule_serve(bool serve_now[MODELS])
{
    bool more = true;

    for (int i = 0; i < MODELS; i++) {
        serve_now[i] = !is_ensemble(i) && w.models[i].serves[1] != 0;
    }
    while (more) {
        more = false;
        for (int i = 0; i < MODELS; i++) {
            bool all = is_ensemble(i) && rules[i].wanted && !serve_now[i];
            for (int k = 0; all && k < 3; k++) {
                all = rules[i].steps[k] < 0 || serve_now[rules[i].steps[k]];
            }
            serve_now[i] |= all;
            more |= all;
        }
    }
}

/* As the lifecycle does it: what is lost goes, what is stale is made. */
static void
follow(const model_t *changed)
{
    const inf_graph_step_t *at = NULL;
    inf_graph_model_t *m;
    model_t *due[3 * MODELS];           /* as many steps as there are        */
    size_t count = 0;

    while ((m = inf_graph_next_ensemble(&w.graph, &changed->node, &at))
        != NULL)
    {
        model_t *e = (model_t *) (void *) m;
        switch (inf_graph_verdict(&w.graph, m)) {
        case INF_GRAPH_INCOMPLETE:
            if (e->serves[1] != 0) {
                e->serves[1] = 0;
                inf_graph_unmake(m);
                follow(e);
            }
            break;
        case INF_GRAPH_STALE:
            due[count++] = e;
            break;
        case INF_GRAPH_FINE:
            break;
        }
    }

    for (size_t i = 0; i < count; i++) {
        if (inf_graph_verdict(&w.graph, &due[i]->node) == INF_GRAPH_STALE
            && make(due[i]))
        {
            follow(due[i]);
        }
    }
}

static void
random_load(int i)
{
    model_t *m = &w.models[i];
    char text[64] = "";

    if (!is_ensemble(i)) {
        if (random_below(4) > 0) {
            serve(m, 1);
        }
        return;
    }

    for (int k = 0; k < 3; k++) {
        int to = random_below(3) > 0 || k == 0 ? (int) random_below(MODELS)
            : -1;
        rules[i].steps[k] = to;
        if (to >= 0) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, "%s ",
                w.models[to].name);
        }
    }
    rules[i].wanted = true;
    m->serves[1] = 0;                   /* the old one goes in any case      */
    load(m, text);
}

static void
random_unload(int i)
{
    model_t *m = &w.models[i];

    m->serves[1] = 0;
    rules[i].wanted = false;
    free(inf_graph_drop(&m->node.made));
}

static void
check_all(void)
{
    bool reach[MODELS][MODELS];
    bool serve_now[MODELS];

    rule_reach(reach);
    rule_serve(serve_now);
    for (int i = 0; i < MODELS; i++) {
        model_t *m = &w.models[i];
        bool needed = false;

        assert_int_equal(m->serves[1] != 0, serve_now[i]);
        if (m->serves[1] != 0) {
            assert_int_equal(inf_graph_verdict(&w.graph, &m->node),
                INF_GRAPH_FINE);
        }
        for (int k = 0; k < MODELS; k++) {
            for (int s = 0; s < 3; s++) {
                needed |= rules[k].wanted && rules[k].steps[s] == i;
            }
        }
        assert_int_equal(inf_graph_needed(&w.graph, &m->node), needed);
        assert_int_equal(inf_graph_circular(&w.graph, &m->node), reach[i][i]);
    }
}

static void
random_events_end_as_the_rules_say(void **state)
{
    (void) state;
    char name[16];

    for (uint64_t run = 1; run <= 60; run++) {
        setup(NULL);
        seed = run;
        for (int i = 0; i < MODELS; i++) {
            snprintf(name, sizeof(name), "m%d", i);
            add(i, "", name);
            rules[i] = (rule_t) {
                .steps = { random_below(2) == 0 ? 0 : -1, -1, -1 }
            };
        }
        for (int n = 0; n < 150; n++) {
            int i = (int) random_below(MODELS);
            if (random_below(3) > 0) {
                random_load(i);
            } else {
                random_unload(i);
            }
            follow(&w.models[i]);
            check_all();
        }
        teardown(NULL);
    }
    setup(NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T(says_what_a_step_lacks),
        T(knows_when_it_is_made_of_what_serves),
        T(prefers_its_own_repository_then_the_only_other),
        T(equal_names_elsewhere_make_no_circle),
        T(finds_the_shortest_circle),
        T(only_what_is_settled_closes_a_circle),
        T(waits_for_turns_that_came_before),
        T(what_was_asked_counts_only_once_it_is_settled),
        T(random_events_end_as_the_rules_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
