#include "model/config_text.h"

#include <stdio.h>

#include "core/model/instances.h"

static inf_model_t *model;

static int
setup(void **state)
{
    (void) state;
    model = inf_model_new("m", 1, "/m");
    return model == NULL;
}

static int
teardown(void **state)
{
    (void) state;
    inf_model_free(model);
    return 0;
}

/* Linked, with executions counted already. */
static inf_instance_t *
add(const char *name, inf_instance_kind_t kind, int32_t device,
    uint64_t executions)
{
    inf_instance_spec_t spec = { .name = strdup(name), .kind = kind,
        .device_id = device };
    inf_instance_t *instance;

    assert_ok(inf_instance_new(model, &spec, &instance));
    assert_null(spec.name);
    assert_ok(inf_instances_link(model, &instance, 1));
    instance->statistics.execution_count = executions;
    return instance;
}

static void
end(inf_instance_t *instance)
{
    inf_instance_leave(instance);
    assert_true(inf_instance_is_idle(instance));
    inf_instance_unlink(instance);
    inf_instance_free(instance);
}

static void
note(void *userp, const inf_instance_spec_t *spec, const inf_statistics_t *s)
{
    char *text = userp;
    size_t len = strlen(text);

    snprintf(text + len, 256 - len, "%s=%d ", spec != NULL ? spec->name
        : "model", (int) s->execution_count);
}

/* "model=1 a=2 ": the executions of each. */
static const char *
executions(void)
{
    static char text[256];

    text[0] = '\0';
    inf_model_each_statistics(model, note, text);
    return text;
}

static uint64_t
all_executions(void)
{
    inf_statistics_t sum = { 0 };

    inf_model_sum_statistics(model, &sum);
    uint64_t count = sum.execution_count;
    inf_statistics_fini(&sum);
    return count;
}

static void
instances_are_numbered_as_they_come(void **state)
{
    (void) state;
    inf_instance_t *a = add("m_0", INF_INSTANCE_CPU, 0, 0);
    inf_instance_t *b = add("m_1", INF_INSTANCE_CPU, 0, 0);

    assert_string_equal(a->spec->name, "m_0");
    assert_true(a->number < b->number);
    assert_int_equal(model->instance_count, 2);

    uint64_t last = b->number;
    end(b);
    b = add("m_1", INF_INSTANCE_CPU, 0, 0);
    assert_true(b->number > last);
    assert_ptr_equal(model->instances[0], a);
    assert_ptr_equal(model->instances[1], b);
}

/* Counters of a metric with a GPU's label must not go back. */
static void
what_an_instance_has_counted_stays_on_its_gpu(void **state)
{
    (void) state;
    inf_instance_t *a = add("a", INF_INSTANCE_GPU, 0, 1);
    inf_instance_t *b = add("b", INF_INSTANCE_GPU, 1, 10);
    inf_instance_t *c = add("c", INF_INSTANCE_GPU, 0, 100);
    inf_instance_t *d = add("d", INF_INSTANCE_GPU, 0, 1000);

    inf_instance_leave(c);                      /* it is no heir             */
    end(a);
    assert_string_equal(executions(), "model=0 b=10 c=100 d=1001 ");
    end(c);
    assert_string_equal(executions(), "model=0 b=10 d=1101 ");
    end(d);                                     /* the last on its GPU       */
    assert_string_equal(executions(), "model=1101 b=10 ");
    end(b);
    assert_string_equal(executions(), "model=1111 ");
}

static void
what_others_have_counted_stays_with_the_model(void **state)
{
    (void) state;
    inf_instance_t *a = add("a", INF_INSTANCE_CPU, 0, 1);
    inf_instance_t *b = add("b", INF_INSTANCE_CPU, 0, 10);
    inf_instance_t *c = add("c", INF_INSTANCE_GPU, 0, 100);

    end(a);
    assert_string_equal(executions(), "model=1 b=10 c=100 ");
    assert_int_equal(all_executions(), 111);
    end(c);
    end(b);
    assert_int_equal(all_executions(), 111);
}

static void
an_instance_that_is_visited_is_not_idle(void **state)
{
    (void) state;
    inf_instance_t *a = add("a", INF_INSTANCE_CPU, 0, 0);
    inf_instance_t *b = add("b", INF_INSTANCE_CPU, 0, 0);
    inf_instance_t *c = add("c", INF_INSTANCE_CPU, 0, 0);

    assert_false(inf_instance_is_idle(a));      /* nobody has asked it to go */
    assert_ptr_equal(inf_instance_visit_next(model, NULL), a);
    inf_instance_leave(a);
    assert_false(inf_instance_is_idle(a));
    inf_instance_leave(b);
    assert_ptr_equal(inf_instance_visit_next(model, a), c);
    assert_true(inf_instance_is_idle(a));
    assert_null(inf_instance_visit_next(model, c));

    inf_instance_leave(c);
    assert_true(inf_instance_is_idle(c));
    c->kept = 2;                                /* what Execute keeps        */
    c->returned = 1;
    assert_false(inf_instance_is_idle(c));
    c->returned = 2;
    assert_true(inf_instance_is_idle(c));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(instances_are_numbered_as_they_come),
        T(what_an_instance_has_counted_stays_on_its_gpu),
        T(what_others_have_counted_stays_with_the_model),
        T(an_instance_that_is_visited_is_not_idle)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
