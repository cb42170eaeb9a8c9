/*
 * Every allocation of instances and their groups, of a warmup and of what is
 * inferred for a configuration fails once, in turn: each time there is an
 * error that says so, or the whole result, and nothing is left behind.
 */

#define SHRINKING_SUCCEEDS
#include "scarce_memory.h"
#include "fail_each.h"

#include "model/config_text.h"
#include "model/memory_storage.h"

#include "core/model/config_infer.h"
#include "core/model/instance_groups.h"
#include "core/model/instances.h"
#include "core/model/warmup.h"
#include "core/tensor/response.h"

static const char warmup_text[] =
    "name: 'm' backend: 'x' max_batch_size: 4 "
    "input { name: 'A' data_type: TYPE_UINT8 dims: 2 } "
    "output { name: 'B' data_type: TYPE_UINT8 dims: 2 } "
    "model_warmup { name: 's' batch_size: 3 inputs { key: 'A' value { "
    "data_type: TYPE_UINT8 dims: 2 random_data: true } } } ";

static inf_model_t model;

static inf_err_t *
use_instances(void)
{
    inf_instance_t *made[2] = { NULL, NULL };
    inf_model_t *m = inf_model_new("m", 1, "/m");
    inf_err_t *err = m == NULL ? inf_err_nomem() : NULL;

    for (int i = 0; err == NULL && i < 2; i++) {
        inf_instance_spec_t spec = { .kind = INF_INSTANCE_CPU,
            .name = strdup(i == 0 ? "a" : "b") };
        err = spec.name == NULL ? inf_err_nomem()
            : inf_instance_new(m, &spec, &made[i]);
        if (err == NULL) {
            err = inf_instances_link(m, &made[i], 1);
            if (err != NULL) {
                inf_instance_free(made[i]);
            }
        }
        free(spec.name);
    }

    if (m != NULL) {
        inf_model_free(m);
    }
    return err;
}

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        inf_factory_t *f = requests[i]->factory;
        inf_factory_ref(f);
        inf_factory_send_flags(f, INF_SEND_FINAL);
        inf_request_release(requests[i], 1);
        inf_factory_unref(f);
    }
}

static inf_err_t *
use_warmup(void)
{
    static const memory_file_t files[] = { { NULL, NULL } };
    static const inf_instance_spec_t spec = { .name = (char *) "m_0" };
    memory_storage_t st = memory_storage(files);
    inf_instance_t instance = { .model = &model, .spec = &spec };
    inf_warmup_t *warmup = NULL;

    inf_err_t *err = inf_warmup_new(&st.base, "m", &model, &warmup);
    if (err == NULL) {
        err = inf_warmup_run(warmup, &instance, execute, NULL);
    }
    inf_warmup_free(warmup);
    return err;
}

/* The configuration of the text; its own allocations don't fail. */
static Inference__ModelConfig *
parse_aside(const char *text)
{
    long left = countdown;

    countdown = 0;
    Inference__ModelConfig *msg = config_parse(text);
    countdown = left;
    return msg;
}

static inf_err_t *
use_groups(void)
{
    static const int32_t gpus[] = { 0, 1 };
    const inf_instance_host_t host = {
        .gpus = { .ids = gpus, .count = 2 } };
    Inference__ModelConfig *msg = parse_aside("name: 'm' "
        "instance_group { kind: KIND_GPU } instance_group { kind: KIND_CPU }");
    inf_instance_specs_t specs = { NULL, 0 };

    inf_err_t *err = inf_instance_groups_normalize(msg, &host);
    if (err == NULL) {
        assert_string_equal(msg->instance_group[0]->name, "m_0");
        assert_int_equal(msg->instance_group[0]->n_gpus, 2);
        assert_string_equal(msg->instance_group[1]->name, "m_1");
        err = inf_instance_specs_make(msg, &specs);
    }
    if (err == NULL) {
        assert_int_equal(specs.count, 3);
        assert_string_equal(specs.items[2].name, "m_1_0");
    }

    inf_instance_specs_fini(&specs);
    inf_message_free(&msg->base);
    return err;
}

/* Fields left open among platform, backend and file name follow. */
static inf_err_t *
use_inference(void)
{
    static const memory_file_t files[] = {
        { "repo/m/1/model.savedmodel/x", "" }, { NULL, NULL }
    };
    memory_storage_t st = memory_storage(files);
    Inference__ModelConfig *msg = parse_aside("name: 'm'");

    inf_err_t *err = inf_config_infer(msg, &st.base, "repo/m", "m");
    if (err == NULL) {
        assert_string_equal(msg->platform, "tensorflow_savedmodel");
        assert_string_equal(msg->backend, "tensorflow");
        assert_string_equal(msg->default_model_filename, "model.savedmodel");
    }

    inf_message_free(&msg->base);
    return err;
}

static void
instances_do_without_memory(void **state)
{
    (void) state;
    fail_each(use_instances, 8);
}

static void
a_warmup_does_without_memory(void **state)
{
    (void) state;
    model.name = (char *) "m";
    model.version = 1;
    model.built = config_parse_normal(warmup_text);
    assert_ok(inf_config_tensors_new(model.built, &model.tensors));
    fail_each(use_warmup, 5);
    inf_config_tensors_free(model.tensors);
    inf_message_free(&model.built->base);
}

static void
instance_groups_do_without_memory(void **state)
{
    (void) state;
    fail_each_or_whole(use_groups, 10);
}

static void
an_inferred_configuration_does_without_memory(void **state)
{
    (void) state;
    fail_each(use_inference, 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_do_without_memory),
        cmocka_unit_test(a_warmup_does_without_memory),
        cmocka_unit_test(instance_groups_do_without_memory),
        cmocka_unit_test(an_inferred_configuration_does_without_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
