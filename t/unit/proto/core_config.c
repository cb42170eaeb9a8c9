#include <stdlib.h>
#include <string.h>

#include "core_config_of.h"

static void
differ_by(inf_option_reload_t reload, const char *a, const char *b,
    const char *want)
{
    inf_core_config_t *x = core_config_of("%s", a);
    inf_core_config_t *y = core_config_of("%s", b);
    char text[512];

    inf_core_config_differences(x, y, reload, text, sizeof(text));
    assert_string_equal(text, want);
    inf_core_config_differences(y, x, reload, text, sizeof(text));
    assert_string_equal(text, want);
    inf_core_config_unref(x);
    inf_core_config_unref(y);
}

/* Only a new core takes it over. */
static void
differ(const char *a, const char *b, const char *want)
{
    differ_by(INF_RELOAD_CORE, a, b, want);
    differ_by(INF_RELOAD_LOADS, a, b, "");
}

/* The loads to come take it over. */
static void
differ_later(const char *a, const char *b, const char *want)
{
    differ_by(INF_RELOAD_LOADS, a, b, want);
    differ_by(INF_RELOAD_CORE, a, b, "");
}

static void
differences_are_named_as_in_the_nginx_configuration(void **state)
{
    (void) state;
    differ("", "", "");
    differ("generation: 1", "generation: 2 log { verbose: 3 }", "");
    differ("repositories: '/a'", "repositories: '/b'", "");
    differ("", "strict_readiness: false", "");
    differ("", "model_control: EXPLICIT load_models: 'm'", "");
    differ("", "model_control: POLL poll_interval_ms: 1 poll_inotify: false",
        "");
    differ("", "drain_ms: 1", "");
    differ("", "client_archives: true", "");
    differ("", "shared_memory_region_bytes: 1 shared_memory_copy_bytes: 1",
        "");
    differ_later("", "backend_directories: '/a'", "inference_backends");
    differ_later("", "agent_directories: '/a'", "inference_agents");
    differ_later("backend_settings { key: 'a' value: '1' }",
        "backend_settings { key: 'a' value: '2' }",
        "inference_backend_config");
    differ_later("backend_settings { key: 'a' value: '1' }",
        "backend_settings { backend: 'x' key: 'a' value: '1' }",
        "inference_backend_config");
    differ_later("", "auto_complete: false", "inference_auto_complete");
    differ_later("", "code_upload: true", "inference_code_upload");
    differ_later("",
        "host_policies { policy: 'cpu' key: 'numa-node' value: '0' }",
        "inference_host_policy");
    differ_later("host_policies { policy: 'cpu' key: 'numa-node' value: '0' }",
        "host_policies { policy: 'cpu' key: 'numa-node' value: '1' }",
        "inference_host_policy");
    differ_later("", "agent_directories: '/a' auto_complete: false",
        "inference_agents, inference_auto_complete");
    differ("", "environment: 'A=1'", "inference_env");
    differ("", "cache_name: 'local'", "inference_response_cache");
    differ("cache_settings { key: 'size' value: '1' }",
        "cache_settings { key: 'size' value: '2' }",
        "inference_response_cache");
    differ("", "cache_config: '{}'", "inference_response_cache");
    differ("", "cache_name: 'local' cache_config: '{}'",
        "inference_response_cache");
    differ("", "cache_directories: '/a'", "inference_cache_directory");
    differ("", "response_arena_bytes: 1", "inference_memory");
    differ("", "pinned_pool_bytes: 1", "inference_memory");
    differ("", "pinned_arena_bytes: 1", "inference_memory");
    differ("cuda_pools { device: 0 bytes: 1 }",
        "cuda_pools { device: 1 bytes: 1 }", "inference_memory");
    differ("cuda_virtual_sizes { device: 0 bytes: 1 }",
        "cuda_virtual_sizes { device: 0 bytes: 2 }", "inference_memory");
    differ("", "spin_us: 1", "inference_core spin=");
    differ("", "external_path: '/s'", "inference_core external=");
    differ("", "external_users: 'a'", "external_users");
    differ("", "metrics {}", "");
    differ("", "metrics { summaries: true }", "inference_metrics");
    differ("metrics { quantiles: '0.5:0' }", "metrics { quantiles: '1:0' }",
        "inference_metrics");
    differ("", "rate_limit: RATE_LIMIT_EXECUTION_COUNT",
        "inference_rate_limit");
    differ("rate_limit_resources { name: 'R' count: 1 }",
        "rate_limit_resources { name: 'R' count: 2 }",
        "inference_rate_limit_resource");
    differ("rate_limit_resources { name: 'R' count: 1 }",
        "rate_limit_resources { name: 'R' count: 1 device: 0 }",
        "inference_rate_limit_resource");
    differ("", "environment: 'A=1' spin_us: 1",
        "inference_env, inference_core spin=");
    differ_by(INF_RELOAD_CORE, "", "backend_settings { key:"
        " 'min-compute-capability' value: '7' }",
        "inference_backend_config min-compute-capability");
    differ_by(INF_RELOAD_CORE, "", "backend_settings { backend:"
        " 'x' key: 'min-compute-capability' value: '7' }", "");
}

static void
a_short_buffer_cuts_the_list_safely(void **state)
{
    (void) state;
    inf_core_config_t *x = core_config_of("%s", "");
    inf_core_config_t *y = core_config_of("rate_limit:"
        " RATE_LIMIT_EXECUTION_COUNT spin_us: 1 environment: 'A=1'"
        " cache_name: 'x'");

    for (size_t cap = 1; cap < 100; cap++) {
        char *text = malloc(cap);
        inf_core_config_differences(x, y, INF_RELOAD_CORE, text, cap);
        assert_true(strlen(text) < cap);
        free(text);
    }
    inf_core_config_unref(x);
    inf_core_config_unref(y);
}

/* ---- the table ----------------------------------------------------------- */

/* Fields that are no option: the identity of the server, and of its
   configuration. */
static bool
is_identity(const ProtobufCFieldDescriptor *f)
{
    return strcmp(f->name, "generation") == 0;
}

static size_t
rows_of(const char *message, const char *field)
{
    size_t rows = 0;
    char path[128];

    snprintf(path, sizeof(path), "%s%s%s", message, *message ? "." : "",
        field);
    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *o = &inf_core_options[i];
        rows += o->field != NULL && o->setting == NULL
            && strcmp(o->field, path) == 0;
    }
    return rows;
}

static void
every_field_has_one_row(void **state)
{
    (void) state;
    const ProtobufCMessageDescriptor *desc =
        &nginx_inference__core_config__descriptor;

    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &desc->fields[i];
        bool inside = f->type == PROTOBUF_C_TYPE_MESSAGE
            && !inf_field_is_repeated(f);
        if (!inside && !is_identity(f)) {
            assert_int_equal(rows_of("", f->name), 1);
        }
        const ProtobufCMessageDescriptor *in = inside ? f->descriptor : NULL;
        for (unsigned k = 0; inside && k < in->n_fields; k++) {
            assert_int_equal(rows_of(f->name, in->fields[k].name), 1);
        }
    }
}

static void
every_row_fits_its_field(void **state)
{
    (void) state;
    inf_core_config_t *c = core_config_of("%s", "");

    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *o = &inf_core_options[i];
        ProtobufCMessage *in;
        if (o->kind == INF_OPTION_GROUP) {
            assert_null(o->field);
            assert_non_null(o->usage);
            continue;
        }
        const ProtobufCFieldDescriptor *f = inf_core_option_field(o,
            c->values, &in);
        assert_non_null(f);
        assert_true(o->kind != INF_OPTION_FLAG
            || f->type == PROTOBUF_C_TYPE_BOOL);
        assert_int_equal(f->type == PROTOBUF_C_TYPE_ENUM,
            o->kind == INF_OPTION_CHOICE);
        if (o->kind == INF_OPTION_CHOICE) {
            const ProtobufCEnumDescriptor *e = f->descriptor;
            size_t words = 1;
            for (const char *p = o->words; *p != '\0'; p++) {
                words += *p == ' ';
            }
            assert_int_equal(words, e->n_values);
        }
        if (o->kind == INF_OPTION_DIRECTORY
            || o->kind == INF_OPTION_REPOSITORY)
        {
            assert_true(inf_field_is_repeated(f));
        }
        assert_true(o->max == 0 || o->min <= o->max);
    }
    inf_core_config_unref(c);
}

/* ---- a reload ------------------------------------------------------------ */

static void
a_reload_keeps_what_needs_a_new_core(void **state)
{
    (void) state;
    inf_core_config_t *start = core_config_of("load_threads: 2"
        " load_retries: 1 cache_name: 'local' cache_settings { key: 'size'"
        " value: '1' } metrics { interval_ms: 5 } repositories: '/a'"
        " host_policies { policy: 'p' key: 'numa-node' value: '0' }");
    inf_core_config_t *wanted = core_config_of("load_threads: 3"
        " load_retries: 7 cache_settings { key: 'size' value: '2' }"
        " cache_settings { key: 'more' value: '3' } metrics { cpu: false }"
        " repositories: '/b' repositories: '/c' drain_ms: 8 log { info: false"
        " } environment: 'A=1'");
    inf_core_config_t *now, *again;

    assert_null(inf_core_config_reload(start, wanted, &now));
    const NginxInference__CoreConfig *c = now->values;
    assert_int_equal(c->load_threads, 2);
    assert_string_equal(c->cache_name, "local");
    assert_int_equal(c->n_cache_settings, 1);
    assert_string_equal(c->cache_settings[0]->value, "1");
    assert_int_equal(c->metrics->interval_ms, 5);
    assert_true(c->metrics->cpu);
    assert_int_equal(c->n_environment, 0);

    assert_int_equal(c->load_retries, 7);
    assert_int_equal(c->n_repositories, 2);
    assert_int_equal(c->n_host_policies, 0);
    assert_int_equal(c->drain_ms, 8);
    assert_false(c->log->info);

    /* what was kept is no difference; nobody else's values have changed */
    assert_null(inf_core_config_reload(now, start, &again));
    assert_int_equal(again->values->load_retries, 1);
    assert_int_equal(start->values->load_threads, 2);
    assert_int_equal(wanted->values->n_cache_settings, 2);
    inf_core_config_unref(again);
    inf_core_config_unref(now);
    inf_core_config_unref(wanted);
    inf_core_config_unref(start);
    inf_core_config_unref(NULL);
}

static void
an_object_is_a_copy_that_lives_as_long_as_a_reference(void **state)
{
    (void) state;
    char name[] = "wide";
    NginxInference__CoreConfig values = NGINX_INFERENCE__CORE_CONFIG__INIT;
    inf_core_config_t *c;

    values.model_config_name = name;
    values.load_threads = 9;                    /* and no flag that says so  */
    assert_null(inf_core_config_new(&values, &c));
    name[0] = 'x';
    assert_ptr_equal(inf_core_config_ref(c), c);
    inf_core_config_unref(c);
    assert_string_equal(c->values->model_config_name, "wide");
    assert_int_equal(c->values->load_threads, 9);
    assert_non_null(c->values->log);
    inf_core_config_unref(c);
}

static void
the_last_value_of_a_setting_counts(void **state)
{
    (void) state;
    inf_core_config_t *c = core_config_of("backend_settings { key: 'a' value:"
        " '1' } backend_settings { backend: 'x' key: 'a' value: '2' }"
        " backend_settings { key: 'a' value: '3' }");

    assert_string_equal(inf_core_config_setting(c->values, "", "a"), "3");
    assert_string_equal(inf_core_config_setting(c->values, "x", "a"), "2");
    assert_null(inf_core_config_setting(c->values, "x", "b"));
    assert_null(inf_core_config_setting(c->values, "y", "a"));
    inf_core_config_unref(c);
}

static void
a_zero_of_the_span_processor_is_its_default(void **state)
{
    (void) state;
    inf_core_config_t *c = core_config_of("trace { bsp_max_queue_size: 0"
        " bsp_schedule_delay_ms: 0 bsp_max_export_batch_size: 0 }");
    const NginxInference__TraceSettings *t = c->values->trace;

    assert_int_equal(t->bsp_max_queue_size, 2048);
    assert_int_equal(t->bsp_schedule_delay_ms, 5000);
    assert_int_equal(t->bsp_max_export_batch_size, 512);
    inf_core_config_unref(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_named_as_in_the_nginx_configuration),
        cmocka_unit_test(a_short_buffer_cuts_the_list_safely),
        cmocka_unit_test(every_field_has_one_row),
        cmocka_unit_test(every_row_fits_its_field),
        cmocka_unit_test(a_reload_keeps_what_needs_a_new_core),
        cmocka_unit_test(
            an_object_is_a_copy_that_lives_as_long_as_a_reference),
        cmocka_unit_test(the_last_value_of_a_setting_counts),
        cmocka_unit_test(a_zero_of_the_span_processor_is_its_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
