#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/buf.h"
#include "core/sched/ensemble_flow.h"
#include "sched/ensemble_models.h"

/*
 * A simulator: random graphs of steps, some of them decoupled, whose calls
 * answer, end and are released in any order, fail, and are cancelled.  Every
 * value knows of which item it is; what is looked at is said at each check.
 */

#define STEPS  7
#define DEPTH  8
#define VALUES 60000
#define CALLS  20000
#define MOST   3            /* responses of a decoupled call                 */

typedef struct {
    inf_flow_value_t base;
    uint32_t         tensor;
    uint32_t         path[DEPTH];       /* index of each response above      */
    uint32_t         depth;
    bool             dropped;
} sim_value_t;

typedef struct {
    inf_flow_call_t call;               /* first                             */
    uint32_t        path[DEPTH];
    uint32_t        depth;
    uint32_t        to_give;
    uint32_t        given;
    bool            ended;
    bool            released;
} sim_call_t;

typedef struct {
    inf_model_t   *ensemble;
    inf_model_t   *composing[STEPS];
    inf_plan_t    *plan;
    inf_flow_t     flow;
    sim_value_t   *values;
    uint32_t       value_count;
    uint32_t       dropped;
    sim_call_t    *calls;
    uint32_t       call_count;
    uint32_t       busy;                /* not ended or not released         */
    uint32_t       running[STEPS];
    uint32_t       expected;            /* items of the domain of answers    */
    uint32_t       answers;
    uint32_t       last[DEPTH];
    bool           any;
    uint32_t       errors;              /* given                             */
    uint32_t       first_error;         /* the one that must be told; 0:
                                           none was, or a cancel came first  */
    bool           cancelled;
    uint32_t       finals;
    inf_err_t     *error;
} sim_t;

static uint64_t seed;

static uint32_t
any_of(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return n == 0 ? 0 : (uint32_t) (seed >> 11) % n;
}

static void
make_composing(sim_t *s, uint32_t i, uint32_t ins, uint32_t outs,
    bool decoupled)
{
    inf_buf_t b;
    char name[16];

    snprintf(name, sizeof(name), "m%u", i);
    inf_buf_init(&b);
    inf_buf_printf(&b, "name: \"%s\"", name);
    for (uint32_t k = 0; k < ins; k++) {
        inf_buf_printf(&b, " input { name: \"I%u\" data_type: TYPE_INT32"
            " dims: [ -1 ] }", k);
    }
    for (uint32_t k = 0; k < outs; k++) {
        inf_buf_printf(&b, " output { name: \"O%u\" data_type: TYPE_INT32"
            " dims: [ -1 ] }", k);
    }
    if (decoupled) {
        inf_buf_puts(&b, " model_transaction_policy { decoupled: true }");
    }
    s->composing[i] = test_model(name, inf_buf_slice(&b).data);
    inf_buf_fini(&b);
}

/* Each step reads one or two tensors of one domain; what nobody reads is an
   output of the ensemble. */
static uint32_t
make_graph(sim_t *s)
{
    uint32_t domain_of[64] = { 0 };
    bool read[64] = { false };
    uint32_t tensors = 1 + any_of(2);
    uint32_t inputs = tensors;
    uint32_t steps = 1 + any_of(STEPS);
    uint32_t domains = 1;
    inf_buf_t b, list;
    inf_buf_init(&b);
    inf_buf_init(&list);

    for (uint32_t i = 0; i < steps; i++) {
        uint32_t a = i < inputs ? i : any_of(tensors);
        uint32_t c = any_of(tensors);
        bool two = c != a && domain_of[c] == domain_of[a] && any_of(2);
        uint32_t outs = 1 + any_of(2);
        bool decoupled = domains < DEPTH - 1 && any_of(3) == 0;
        uint32_t domain = decoupled ? domains++ : domain_of[a];

        make_composing(s, i, 1 + two, outs, decoupled);
        read[a] = true;
        inf_buf_printf(&list, " step { model_name: \"m%u\" model_version: -1"
            " input_map { key: \"I0\" value: \"T%u\" }", i, a);
        if (two) {
            read[c] = true;
            inf_buf_printf(&list, " input_map { key: \"I1\" value: \"T%u\" }",
                c);
        }
        for (uint32_t k = 0; k < outs; k++) {
            domain_of[tensors] = domain;
            inf_buf_printf(&list, " output_map { key: \"O%u\" value: \"T%u\""
                " }", k, tensors++);
        }
        inf_buf_puts(&list, " }");
    }

    inf_buf_puts(&b, "name: \"e\" platform: \"ensemble\"");
    for (uint32_t t = 0; t < tensors; t++) {
        if (t < inputs || !read[t] || any_of(8) == 0) {
            inf_buf_printf(&b, " %s { name: \"T%u\" data_type: TYPE_INT32"
                " dims: [ -1 ] }", t < inputs ? "input" : "output", t);
        }
    }
    inf_buf_printf(&b, " ensemble_scheduling { max_inflight_requests: %u %s"
        " }", any_of(2) ? 0 : 1 + any_of(3), inf_buf_slice(&list).data);
    s->ensemble = test_model("e", inf_buf_slice(&b).data);
    inf_buf_fini(&b);
    inf_buf_fini(&list);
    return steps;
}

static sim_value_t *
value_new(sim_t *s, uint32_t tensor, const uint32_t *path, uint32_t depth)
{
    assert_true(s->value_count < VALUES);
    sim_value_t *v = &s->values[s->value_count++];
    *v = (sim_value_t) { .tensor = tensor, .depth = depth };
    memcpy(v->path, path, sizeof(v->path));
    return v;
}

/* A value is dropped once. */
static void
take_dropped(sim_t *s)
{
    while (s->flow.dropped != NULL) {
        sim_value_t *v = (sim_value_t *) (void *) s->flow.dropped;
        s->flow.dropped = v->base.next;
        assert_false(v->dropped);
        v->dropped = true;
        s->dropped++;
    }
}

/* A step is needed, within its permits, and reads values of one item. */
static void
begin_call(sim_t *s, const inf_flow_action_t *a)
{
    const inf_plan_step_t *step = &s->plan->steps[a->step];
    assert_true(s->call_count < CALLS);
    sim_call_t *c = &s->calls[s->call_count++];
    *c = (sim_call_t) { .given = 0 };

    assert_true(inf_plan_steps_has(s->flow.needed, a->step));
    assert_false(s->cancelled);
    for (uint32_t i = 0; i < step->input_count; i++) {
        inf_flow_value_t *base = inf_flow_value(&s->flow, a->item,
            step->inputs[i].tensor);
        assert_non_null(base);
        if (base == &inf_flow_empty) {
            continue;
        }
        const sim_value_t *v = (sim_value_t *) (void *) base;
        assert_int_equal(v->tensor, step->inputs[i].tensor);
        assert_false(v->dropped);
        if (c->depth == 0 && v->depth > 0) {
            memcpy(c->path, v->path, sizeof(c->path));
            c->depth = v->depth;
        }
        assert_int_equal(v->depth, c->depth);
        assert_memory_equal(v->path, c->path, sizeof(c->path));
    }

    c->to_give = step->out_domain != step->domain ? any_of(MOST + 1) : 1;
    inf_flow_bind(&c->call, a);
    s->busy++;
    s->running[a->step]++;
    assert_true(s->plan->max_inflight == 0
        || s->running[a->step] <= s->plan->max_inflight);
}

/* In the producers' order, with values of one item (or those above it). */
static void
answer(sim_t *s, const inf_flow_action_t *a)
{
    uint32_t path[DEPTH] = { 0 };
    uint32_t depth = 0;

    assert_int_equal(s->finals, 0);
    for (uint32_t o = 0; o < s->flow.output_count; o++) {
        uint32_t tensor = s->plan->outputs[o];
        if (!s->flow.wanted[o]) {
            continue;
        }
        const sim_value_t *v = (sim_value_t *) (void *) inf_flow_value(
            &s->flow, a->item, tensor);
        assert_non_null(v);
        if ((const void *) v == &inf_flow_empty) {
            continue;
        }
        assert_false(v->dropped);
        assert_int_equal(v->tensor, tensor);
        uint32_t common = v->depth < depth ? v->depth : depth;
        assert_memory_equal(v->path, path, common * sizeof(path[0]));
        if (v->depth > depth) {
            memcpy(path, v->path, sizeof(path));
            depth = v->depth;
        }
    }

    if (depth == s->plan->domains[s->flow.emit_domain].depth) {
        assert_true(!s->any || depth == 0
            || memcmp(s->last, path, sizeof(path)) != 0);
        for (uint32_t d = 0; s->any && d < depth; d++) {
            assert_true(path[d] >= s->last[d]);
            if (path[d] > s->last[d]) {
                break;
            }
        }
        memcpy(s->last, path, sizeof(path));
        s->any = true;
    }
    s->answers++;
    s->finals += a->final;
    inf_flow_emitted(&s->flow, a->item);
}

static void
trouble_now(sim_t *s)
{
    s->errors++;
    if (!s->flow.failed) {
        s->first_error = s->errors;
    }
    inf_flow_fail(&s->flow, inf_err_new(INF_ERR_INTERNAL, "%u", s->errors));
}

static void
follow(sim_t *s)
{
    for (;;) {
        inf_flow_action_t a = inf_flow_next(&s->flow);
        switch (a.what) {
        case INF_FLOW_NOTHING:
            take_dropped(s);
            return;
        case INF_FLOW_START:
            if (any_of(200) == 0) {
                trouble_now(s);
                inf_flow_unbind(&s->flow, &a);
            } else {
                begin_call(s, &a);
            }
            break;
        case INF_FLOW_EMIT:
            answer(s, &a);
            break;
        case INF_FLOW_FINISH:
            s->finals++;
            s->error = s->flow.failure;
            s->flow.failure = NULL;
            break;
        }
    }
}

static void
give(sim_t *s, sim_call_t *c)
{
    const inf_plan_step_t *step = &s->plan->steps[c->call.step];
    inf_flow_value_t *values[2] = { NULL };
    uint32_t path[DEPTH];
    uint32_t depth = c->depth;

    memcpy(path, c->path, sizeof(path));
    if (step->out_domain != step->domain) {
        path[depth++] = c->given + 1;
        s->expected += step->out_domain == s->flow.emit_domain
            && !s->flow.failed;
    }
    for (uint32_t i = 0; i < step->output_count; i++) {
        if (depth > 0 || any_of(30) != 0) {     /* else path is unknown */
            values[i] = &value_new(s, step->outputs[i].tensor, path,
                depth)->base;
        }
    }
    c->given++;
    assert_true(inf_flow_respond(&s->flow, &c->call, values, NULL));
}

/* One event at a call that isn't over. */
static void
move(sim_t *s, sim_call_t *c, uint32_t trouble)
{
    uint32_t step = c->call.step;
    bool decoupled = s->plan->steps[step].out_domain
        != s->plan->steps[step].domain;

    if (!c->released && any_of(3) == 0) {
        c->released = true;
        inf_flow_release(&s->flow, &c->call);
    } else if (!c->ended && trouble > 0 && any_of(trouble) == 0) {
        trouble_now(s);
        c->ended = true;
        s->running[step]--;
        inf_flow_end(&s->flow, &c->call);
    } else if (!c->ended && c->given < c->to_give) {
        give(s, c);
        if (!decoupled || (c->given == c->to_give && any_of(2))) {
            c->ended = true;
            s->running[step]--;
            inf_flow_end(&s->flow, &c->call);
        }
    } else if (!c->ended) {
        c->ended = true;
        s->running[step]--;
        inf_flow_end(&s->flow, &c->call);
    }
    s->busy -= c->ended && c->released;
}

static void
simulate_request(sim_t *s, uint32_t trouble, uint32_t cancel)
{
    bool wanted[64] = { false };
    uint32_t none[DEPTH] = { 0 };
    uint32_t outputs = s->flow.output_count;

    for (uint32_t o = 0; o < outputs; o++) {
        wanted[o] = any_of(2);
    }
    wanted[any_of(outputs)] = true;

    s->value_count = s->dropped = s->call_count = s->busy = 0;
    s->expected = s->answers = s->finals = 0;
    s->any = s->cancelled = false;
    s->errors = s->first_error = 0;
    s->error = NULL;
    memset(s->running, 0, sizeof(s->running));
    memset(s->last, 0, sizeof(s->last));

    inf_err_t *err = inf_flow_begin(&s->flow, wanted);
    if (err != NULL) {
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        inf_err_free(err);
        return;
    }
    s->expected = s->flow.emit_domain == 0;
    uint32_t inputs = inf_config_tensors_input_count(s->ensemble->tensors);
    for (uint32_t i = 0; i < inputs; i++) {
        inf_flow_set_input(&s->flow, i, &value_new(s, s->plan->inputs[i], none,
            0)->base);
    }
    inf_flow_run(&s->flow);
    follow(s);

    while (s->busy > 0) {
        sim_call_t *c;
        do {
            c = &s->calls[any_of(s->call_count)];
        } while (c->ended && c->released);
        move(s, c, trouble);
        if (cancel > 0 && any_of(cancel) == 0) {
            s->cancelled = true;
            inf_flow_cancel(&s->flow);
        }
        follow(s);
    }

    /* answered once and for all, and nothing is kept */
    assert_int_equal(s->finals, 1);
    inf_flow_clear(&s->flow);
    take_dropped(s);
    inf_flow_trim(&s->flow);
    assert_int_equal(s->dropped, s->value_count);
    assert_int_equal(s->flow.items, 0);
    for (uint32_t i = 0; i < s->plan->step_count; i++) {
        assert_int_equal(s->flow.outstanding[i], 0);
    }
    if (s->error == NULL) {
        assert_int_equal(s->errors, 0);
        assert_int_equal(s->answers, s->expected);
    } else {
        assert_true(s->first_error != 0 || s->cancelled);
        assert_true(s->first_error == 0 || s->first_error
            == (uint32_t) atoi(inf_err_msg(s->error)));
        assert_true(s->answers <= s->expected);
        assert_true(inf_err_code(s->error) != INF_ERR_CANCELLED
            || s->cancelled);
    }
    inf_err_free(s->error);
}

static void
simulate(uint64_t graphs, uint32_t trouble, uint32_t cancel)
{
    sim_t *s = calloc(1, sizeof(*s));
    s->values = calloc(VALUES, sizeof(*s->values));
    s->calls = calloc(CALLS, sizeof(*s->calls));

    for (uint64_t g = 0; g < graphs; g++) {
        seed = 0x9e3779b97f4a7c15u * (g + 1) + trouble + cancel;
        uint32_t steps = make_graph(s);
        inf_err_t *err = inf_plan_new(s->ensemble, s->composing, steps,
            NULL, &s->plan);
        if (err != NULL) {
            fail_msg("graph %llu: %s", (unsigned long long) g,
                inf_err_msg(err));
        }
        assert_null(inf_flow_init(&s->flow, s->plan));
        for (int r = 0; s->flow.output_count > 0 && r < 12; r++) {
            simulate_request(s, trouble, cancel);
        }
        inf_flow_fini(&s->flow);
        inf_plan_free(s->plan);
        for (uint32_t i = 0; i < steps; i++) {
            inf_model_free(s->composing[i]);
        }
        inf_model_free(s->ensemble);
    }
    free(s->values);
    free(s->calls);
    free(s);
}

static void
random_graphs_answer_each_item_once_and_in_order(void **state)
{
    (void) state;
    simulate(2500, 0, 0);
}

static void
a_failed_step_ends_the_request_once(void **state)
{
    (void) state;
    simulate(2500, 40, 0);
}

static void
a_cancelled_request_starts_nothing_more(void **state)
{
    (void) state;
    simulate(2500, 0, 40);
}

static void
failures_and_cancels_together_leave_nothing_behind(void **state)
{
    (void) state;
    simulate(2500, 60, 60);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_answer_each_item_once_and_in_order),
        cmocka_unit_test(a_failed_step_ends_the_request_once),
        cmocka_unit_test(a_cancelled_request_starts_nothing_more),
        cmocka_unit_test(failures_and_cancels_together_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
