#include "model/config_text.h"

#include <stdio.h>

#include "core/model/instance_groups.h"

static const int32_t two_ids[] = { 0, 1 };
static const inf_gpus_t no_gpus = { .count = 0 };
static const inf_gpus_t two_gpus = {
    .ids = two_ids, .count = 2, .min_capability = 7.5
};

static const char *
is_lost(int64_t id)
{
    return id == 3 ? "it is lost" : NULL;
}

static const inf_gpus_t broken_gpus = { .why_none = "the driver is broken" };
static const inf_gpus_t lost_gpus = {
    .ids = two_ids, .count = 2, .min_capability = 7.5, .left_out = is_lost
};
static const inf_gpus_t all_lost = { .left_out = is_lost };

/* groups become one text: "name:KIND:count[gpus]" joined by blanks. */
static const char *
describe(const Inference__ModelConfig *msg)
{
    static char text[512];
    static const char *const kinds[] = { "AUTO", "GPU", "CPU", "MODEL" };
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < msg->n_instance_group; i++) {
        const Inference__ModelInstanceGroup *g = msg->instance_group[i];

        used += (size_t) snprintf(text + used, sizeof(text) - used,
            "%s%s:%s:%d[", i > 0 ? " " : "", g->name, kinds[g->kind],
            g->count);
        for (size_t k = 0; k < g->n_gpus; k++) {
            used += (size_t) snprintf(text + used, sizeof(text) - used,
                "%s%d", k > 0 ? "," : "", g->gpus[k]);
        }

        used += (size_t) snprintf(text + used, sizeof(text) - used, "]");
    }

    return text;
}

static const uint64_t prefer_gpu_1[] = { 1, 7 };
static const uint64_t prefer_gpu_7[] = { 7 };

static const inf_preferred_group_t prefer_cpu[] = {
    { INF_INSTANCE_CPU, 3, NULL, 0 }
};
static const inf_preferred_group_t prefer_gpu[] = {
    { INF_INSTANCE_GPU, 0, NULL, 0 }
};
static const inf_preferred_group_t prefer_gpu_then_cpu[] = {
    { INF_INSTANCE_GPU, 2, prefer_gpu_7, 1 },
    { INF_INSTANCE_GPU, 5, prefer_gpu_1, 2 },
    { INF_INSTANCE_CPU, 4, NULL, 0 },
};
static const inf_preferred_group_t prefer_auto[] = {
    { INF_INSTANCE_AUTO, 2, prefer_gpu_1, 1 }
};
static const inf_preferred_group_t prefer_model[] = {
    { INF_INSTANCE_MODEL, 0, NULL, 0 }
};
static const inf_preferred_group_t prefer_huge[] = {
    { INF_INSTANCE_CPU, UINT64_MAX, NULL, 0 }
};

#define M "name: \"m\" backend: \"b\" "
#define ORT "name: \"m\" backend: \"onnxruntime\" "

static void
groups_are_completed(void **state)
{
    (void) state;
    static const struct {
        const char                  *config;
        const inf_gpus_t            *gpus;
        const inf_preferred_group_t *preferred;
        size_t                       preferred_count;
        const char                  *expected;
    } rows[] = {
        { M, &no_gpus, NULL, 0, "m:CPU:1[]" },
        { ORT, &no_gpus, NULL, 0, "m:CPU:2[]" },
        { "name: \"m\" backend: \"tensorflow\"", &no_gpus, NULL, 0,
          "m:CPU:2[]" },
        { M, &two_gpus, NULL, 0, "m:GPU:1[0,1]" },
        { ORT, &two_gpus, NULL, 0, "m:GPU:1[0,1]" },
        { M, &two_gpus, prefer_cpu, 1, "m:CPU:3[]" },
        { M, &no_gpus, prefer_gpu, 1, "m:CPU:1[]" },
        { M, &two_gpus, prefer_gpu, 1, "m:GPU:1[0,1]" },
        { M, &two_gpus, prefer_gpu_then_cpu, 3, "m:GPU:5[1]" },
        { M, &no_gpus, prefer_gpu_then_cpu, 3, "m:CPU:4[]" },
        { M, &two_gpus, prefer_auto, 1, "m:GPU:2[1]" },
        { M, &two_gpus, prefer_model, 1, "m:MODEL:1[]" },
        { M, &no_gpus, prefer_huge, 1, "m:CPU:2147483647[]" },
        { M "instance_group { }", &no_gpus, NULL, 0, "m_0:CPU:1[]" },
        { M "instance_group { count: 0 }", &no_gpus, NULL, 0,
          "m_0:CPU:1[]" },
        { ORT "instance_group { count: -3 }", &no_gpus, NULL, 0,
          "m_0:CPU:2[]" },
        { ORT "instance_group { kind: KIND_MODEL }", &no_gpus, NULL, 0,
          "m_0:MODEL:1[]" },
        { M "instance_group { kind: KIND_CPU }", &no_gpus, prefer_cpu, 1,
          "m_0:CPU:3[]" },
        { M "instance_group { kind: KIND_CPU count: 2 }", &no_gpus, prefer_cpu,
          1, "m_0:CPU:2[]" },
        { M "instance_group { kind: KIND_GPU }", &two_gpus,
          prefer_gpu_then_cpu, 3, "m_0:GPU:5[1]" },
        { M "instance_group { kind: KIND_GPU gpus: 0 }", &two_gpus,
          prefer_gpu_then_cpu, 3, "m_0:GPU:2[0]" },
        { M "instance_group { name: \"g\" count: 2 } instance_group { } ",
          &no_gpus, NULL, 0, "g:CPU:2[] m_1:CPU:1[]" },
        { M "instance_group { gpus: 1 }", &two_gpus, NULL, 0,
          "m_0:GPU:1[1]" },
        { M "instance_group { gpus: [1, 5] }", &two_gpus, NULL, 0,
          "m_0:CPU:1[1,5]" },
        { M "instance_group { gpus: 0 }", &no_gpus, NULL, 0,
          "m_0:CPU:1[0]" },
        { M "instance_group { kind: KIND_GPU }", &no_gpus, NULL, 0,
          "m_0:GPU:1[]" },
        { "name: \"m\" platform: \"ensemble\" ensemble_scheduling { }",
          &two_gpus, prefer_cpu, 1, "" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *msg = config_parse(rows[i].config);
        inf_instance_host_t host = { rows[i].preferred, rows[i].preferred_count,
            *rows[i].gpus };

        assert_ok(inf_instance_groups_normalize(msg, &host));
        assert_string_equal(describe(msg), rows[i].expected);
        inf_message_free(&msg->base);
    }
}

static void
broken_groups_are_named(void **state)
{
    (void) state;
    static const struct {
        const char       *config;
        const inf_gpus_t *gpus;
        const char       *part;         /* NULL: valid                     */
    } rows[] = {
        { M "instance_group { kind: KIND_CPU }", &no_gpus, NULL },
        { M "instance_group { kind: KIND_GPU gpus: [0, 1] }", &two_gpus,
          NULL },
        { M "instance_group { gpus: 0 }", &no_gpus, "instance_group[0].gpus: "
          "instance group m_0 of model m has kind KIND_CPU but specifies one "
          "or more GPUs" },
        { M "instance_group { kind: KIND_MODEL gpus: 0 }", &two_gpus,
          "instance group m_0 of model m has kind KIND_MODEL but specifies "
          "one or more GPUs" },
        { M "instance_group { kind: KIND_GPU }", &no_gpus,
          "instance_group[0].kind: instance group m_0 of model m has kind "
          "KIND_GPU but no GPUs are available" },
        { M "instance_group { kind: KIND_GPU gpus: 7 }", &no_gpus,
          "instance_group[0].gpus: instance group m_0 of model m specifies "
          "invalid or unsupported gpu id 7. GPUs" },
        { M "instance_group { kind: KIND_GPU gpus: [0, 7] }", &two_gpus,
          "instance group m_0 of model m specifies invalid or unsupported "
          "gpu id 7. GPUs with at least the minimum required CUDA compute "
          "compatibility of 7.500000 are: 0 1" },
        { M "instance_group { name: \"g\" kind: KIND_GPU gpus: -1 }",
          &two_gpus, "instance group g of model m specifies invalid or "
          "unsupported gpu id -1" },
        { M "instance_group { kind: KIND_GPU }", &broken_gpus,
          "no GPUs are available: the driver is broken" },
        { M "instance_group { kind: KIND_GPU gpus: 1 }", &broken_gpus,
          "unsupported gpu id 1. GPUs with at least the minimum required CUDA "
          "compute compatibility of 0.000000 are:; there are none: the driver "
          "is broken" },
        { M "instance_group { kind: KIND_GPU gpus: 3 }", &lost_gpus,
          "are: 0 1; GPU 3 is left out: it is lost" },
        { M "instance_group { kind: KIND_GPU }", &all_lost,
          "no GPUs are available; GPU 3 is left out: it is lost" },
        { M "instance_group { kind: 9 }", &no_gpus, "instance_group[0].kind: "
          "instance group m_0 of model m has an unknown kind" },
        { M "instance_group { kind: KIND_CPU profile: \"0\" }", &no_gpus,
          "instance_group[0].profile: instance group m_0 of model m "
          "and platform specifies profile field which is only supported for "
          "TensorRT models" },
        { M "platform: \"tensorrt_plan\" instance_group { kind: KIND_GPU "
          "profile: [\"0\", \"12\"] }", &two_gpus, NULL },
        { M "platform: \"tensorrt_plan\" instance_group { kind: KIND_GPU "
          "profile: \"-1\" }", &two_gpus, "specifies invalid profile" },
        { M "platform: \"tensorrt_plan\" instance_group { kind: KIND_GPU "
          "profile: \"\" }", &two_gpus, "specifies invalid profile" },
        { M "instance_group { kind: KIND_CPU count: 4096 }", &no_gpus,
          NULL },
        { M "instance_group { kind: KIND_CPU count: 4096 } instance_group { "
          "kind: KIND_CPU }", &no_gpus, "instance_group[0].count: instance "
          "groups of model m ask for 4097 instances, the limit is 4096" },
        { M "instance_group { kind: KIND_CPU count: 2147483647 }", &no_gpus,
          "2147483647 instances" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *msg = config_parse(rows[i].config);
        inf_instance_host_t host = { NULL, 0, *rows[i].gpus };

        assert_ok(inf_instance_groups_normalize(msg, &host));
        inf_findings_t f;

        inf_findings_init(&f);
        inf_instance_groups_find(msg, rows[i].gpus, INF_INSTANCES_MAX, &f);
        assert_found(&f, INF_ERR_INVALID_ARG, rows[i].part);
        inf_message_free(&msg->base);
    }
}

static void
a_load_request_may_ask_for_fewer(void **state)
{
    (void) state;
    static const struct {
        const char *config;
        const char *part;               /* NULL: valid                       */
    } rows[] = {
        { M "instance_group { kind: KIND_CPU count: 1024 }", NULL },
        { M "instance_group { count: 2 kind: KIND_CPU } instance_group {"
          " count: 511 kind: KIND_GPU gpus: [0, 1] }", NULL },
        { M "instance_group { count: 3 kind: KIND_CPU } instance_group {"
          " count: 511 kind: KIND_GPU gpus: [0, 1] }",
          "instance_group[1].count: instance groups of model m ask for 1025 "
          "instances, the limit for a load request is 1024" }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *msg = config_parse(rows[i].config);
        inf_findings_t f;

        inf_findings_init(&f);
        inf_instance_groups_find(msg, &two_gpus, INF_INSTANCES_MAX_REQUESTED,
            &f);
        assert_found(&f, INF_ERR_INVALID_ARG, rows[i].part);
        inf_message_free(&msg->base);
    }
}

static void
groups_must_be_normalised_before_they_are_validated(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse(M);
    assert_error(inf_instance_groups_validate(msg, &no_gpus),
        INF_ERR_INVALID_ARG, "must specify one or more 'instance group's for "
        "m");
    inf_message_free(&msg->base);

    msg = config_parse(M "instance_group { }");
    assert_error(inf_instance_groups_validate(msg, &no_gpus),
        INF_ERR_INTERNAL, "has unexpected kind KIND_AUTO");
    inf_message_free(&msg->base);

    msg = config_parse("platform: \"ensemble\" ensemble_scheduling { }");
    assert_ok(inf_instance_groups_validate(msg, &no_gpus));
    inf_message_free(&msg->base);
}

static void
the_flat_list_says_what_to_make_and_where(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse(M
        "instance_group { name: \"g\" kind: KIND_GPU count: 2 "
        "gpus: [1, 0] } "
        "instance_group { kind: KIND_CPU passive: true host_policy: \"p\" "
        "secondary_devices { kind: KIND_NVDLA device_id: 3 } } "
        "instance_group { kind: KIND_MODEL } "
        "instance_group { kind: KIND_CPU }");
    static const struct {
        const char          *name;
        inf_instance_kind_t  kind;
        int32_t              device;
        uint32_t             group;
        const char          *policy;
    } rows[] = {
        { "g_0", INF_INSTANCE_GPU, 1, 0, "gpu_1" },
        { "g_0", INF_INSTANCE_GPU, 0, 0, "gpu_0" },
        { "g_1", INF_INSTANCE_GPU, 1, 0, "gpu_1" },
        { "g_1", INF_INSTANCE_GPU, 0, 0, "gpu_0" },
        { "m_1_0", INF_INSTANCE_CPU, 0, 1, "p" },
        { "m_2_0", INF_INSTANCE_MODEL, 0, 2, "model" },
        { "m_3_0", INF_INSTANCE_CPU, 0, 3, "cpu" },
    };
    inf_instance_host_t host = { NULL, 0, two_gpus };
    inf_instance_specs_t specs;

    assert_ok(inf_instance_groups_normalize(msg, &host));
    assert_ok(inf_instance_groups_validate(msg, &two_gpus));
    assert_ok(inf_instance_specs_make(msg, &specs));
    assert_int_equal(specs.count, 7);

    for (size_t i = 0; i < specs.count; i++) {
        const inf_instance_spec_t *s = &specs.items[i];
        assert_string_equal(s->name, rows[i].name);
        assert_int_equal(s->kind, rows[i].kind);
        assert_int_equal(s->device_id, rows[i].device);
        assert_string_equal(s->settings->name,
            msg->instance_group[rows[i].group]->name);
        assert_string_equal(s->host_policy, rows[i].policy);
        assert_int_equal(s->passive, i == 4);
    }

    assert_int_equal(specs.items[4].secondary_count, 1);
    assert_string_equal(specs.items[4].secondary[0].kind, "KIND_NVDLA");
    assert_true(specs.items[4].secondary[0].id == 3);
    inf_instance_specs_fini(&specs);
    inf_message_free(&msg->base);
}

/* Of the only instance that groups ask for. */
static inf_instance_specs_t
spec_of(const char *groups)
{
    char text[1024];
    inf_instance_host_t host = { NULL, 0, two_gpus };
    inf_instance_specs_t specs;

    snprintf(text, sizeof(text), "%s %s", M, groups);
    Inference__ModelConfig *msg = config_parse(text);
    assert_ok(inf_instance_groups_normalize(msg, &host));
    assert_ok(inf_instance_specs_make(msg, &specs));
    inf_message_free(&msg->base);           /* the list needs it no more     */
    return specs;
}

static void
instances_are_alike_whatever_their_group_is_called_and_counts(void **state)
{
    (void) state;
    static const struct {
        const char *groups;
        bool        alike;
    } rows[] = {
        { "instance_group { name: 'b' kind: KIND_GPU gpus: 1 }", true },
        { "instance_group { name: 'a' kind: KIND_GPU gpus: 1 count: 7 }",
            true },
        { "instance_group { kind: KIND_GPU gpus: 0 }", false },
        { "instance_group { kind: KIND_CPU }", false },
        { "instance_group { kind: KIND_GPU gpus: 1 passive: true }", false },
        { "instance_group { kind: KIND_GPU gpus: 1 host_policy: 'p' }",
            false },
        { "instance_group { kind: KIND_GPU gpus: 1 rate_limiter {"
            " resources { name: 'R' count: 1 } } }", false },
    };
    inf_instance_specs_t one = spec_of("instance_group { name: 'a'"
        " kind: KIND_GPU gpus: 1 }");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_instance_specs_t other = spec_of(rows[i].groups);
        assert_int_equal(inf_instance_spec_alike(&one.items[0],
            &other.items[0]), rows[i].alike);
        inf_instance_specs_fini(&other);
    }
    inf_instance_specs_fini(&one);
}

static void
default_instances_are_named_after_the_model(void **state)
{
    (void) state;
    Inference__ModelConfig *msg = config_parse(ORT);
    inf_instance_host_t host = { NULL, 0, no_gpus };
    inf_instance_specs_t specs;

    assert_ok(inf_instance_groups_normalize(msg, &host));
    assert_ok(inf_instance_specs_make(msg, &specs));
    assert_int_equal(specs.count, 2);
    assert_string_equal(specs.items[0].name, "m_0");
    assert_string_equal(specs.items[1].name, "m_1");
    inf_instance_specs_fini(&specs);
    inf_message_free(&msg->base);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_completed),
        cmocka_unit_test(broken_groups_are_named),
        cmocka_unit_test(a_load_request_may_ask_for_fewer),
        cmocka_unit_test(groups_must_be_normalised_before_they_are_validated),
        cmocka_unit_test(the_flat_list_says_what_to_make_and_where),
        cmocka_unit_test(
            instances_are_alike_whatever_their_group_is_called_and_counts),
        cmocka_unit_test(default_instances_are_named_after_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
